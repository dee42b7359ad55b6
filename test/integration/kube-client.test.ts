import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import type { KubeObject } from '../../pkg/apis/meta.ts';
import { GateClosedError } from '../../pkg/kube/gate/gate.ts';
import type { Gate } from '../../pkg/kube/gate/gate.ts';
import type { New } from '../../pkg/kube/client/client.ts';
import { ApiError, mayHaveHappened } from '../../pkg/kube/client/errors.ts';
import { addressOf } from '../../pkg/kube/client/address.ts';
import { MUTATE } from '../../pkg/kube/client/mutate.ts';
import type { ReadCall } from '../../pkg/kube/client/transport.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch, strategicPatch } from '../../pkg/kube/client/patch.ts';
import {
  machineDeployments,
  machines,
  nodes,
  podDisruptionBudgets,
  pods,
  secrets,
} from '../../pkg/kube/client/resource.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import { createThrottle } from '../../pkg/base/clock/throttle.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Pod, Secret } from '../../pkg/apis/wire.ts';
import { kubeMetrics } from '../../pkg/base/metrics/kube.ts';
import { connect, namespace } from '../env/environment.ts';
import type { TestNamespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';
import { httpProxyFor, KubeSession } from './kube-session.ts';

let ns: TestNamespace;
let kube: KubeSession;
beforeAll(async () => {
  ns = await namespace();
  kube = new KubeSession(connect());
});
afterAll(async () => {
  await kube[Symbol.asyncDispose]();
  await ns[Symbol.asyncDispose]();
});

const WRONG_UID = '11111111-1111-1111-1111-111111111111';
let made = 0;
const uniqueName = (): string => `k-${process.pid}-${++made}`;

function newSecret(name = uniqueName(), data: Record<string, string> = {}): New<Secret> {
  return { metadata: { name, namespace: ns.name }, stringData: data };
}

function newMachine(name = uniqueName()): New<Machine> {
  return {
    metadata: { name, namespace: ns.name, labels: { app: 'test' } },
    spec: { class: { kind: 'MachineClass', name: 'class' }, nodeTemplate: {} },
  };
}

function create<T extends KubeObject>(resource: Resource<T>, object: New<T>): Promise<T> {
  return kube.writer.create('create', resource, object);
}

const refOf = ({ metadata: { namespace: inNamespace, name } }: KubeObject) => ({
  name,
  ...(inNamespace === undefined ? {} : { namespace: inNamespace }),
});

describe('reads', () => {
  test('answers with the object as it is on the wire', async () => {
    const secret = await create(secrets, newSecret(uniqueName(), { a: 'b' }));

    const read = await kube.reader.get(secrets, refOf(secret));

    expect(read.data).toEqual({ a: 'Yg==' });
    expect(read.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  test('says NotFound for what does not exist', async () => {
    await expect(kube.reader.get(secrets, { namespace: ns.name, name: 'none' })).rejects.toMatchObject({
      name: 'ApiError',
      code: 404,
      reason: 'NotFound',
    });
  });

  test('lists by label, by field and in pages', async () => {
    const label = uniqueName();
    for (let i = 0; i < 3; i++) {
      const secret = newSecret();
      secret.metadata.labels = { batch: label };
      await create(secrets, secret);
    }
    const labelSelector = `batch=${label}`;

    const all = await kube.reader.list(secrets, { namespace: ns.name, labelSelector });
    const page = await kube.reader.list(secrets, { namespace: ns.name, labelSelector, limit: 2 });
    const rest = await kube.reader.list(secrets, {
      namespace: ns.name,
      labelSelector,
      limit: 2,
      continue: page.metadata.continue ?? '',
    });
    const name = all.items[1]?.metadata.name ?? '';
    const one = await kube.reader.list(secrets, { namespace: ns.name, fieldSelector: `metadata.name=${name}` });

    expect(all.items).toHaveLength(3);
    expect([...page.items, ...rest.items].map(({ metadata }) => metadata.name)).toEqual(
      all.items.map(({ metadata }) => metadata.name),
    );
    expect(one.items.map(({ metadata }) => metadata.name)).toEqual([name]);
  });

  test('with metadata alone are answered without contents, and a list of nothing has no items', async () => {
    const secret = await create(secrets, newSecret(uniqueName(), { a: 'b' }));
    const { name } = secret.metadata;
    const metadataOnly = true;

    const read = await kube.reader.get(secrets, refOf(secret), { metadataOnly });
    const [one, none] = await Promise.all(
      [name, 'none'].map((what) =>
        kube.reader.list(secrets, { namespace: ns.name, fieldSelector: `metadata.name=${what}`, metadataOnly }),
      ),
    );

    expect([read, ...(one?.items ?? [])].map(({ metadata, data }) => [metadata.name, data])).toEqual([
      [name, undefined],
      [name, undefined],
    ]);
    expect(none?.items).toEqual([]);
  });
});

describe('preconditions', () => {
  test('a POST of a taken name is AlreadyExists', async () => {
    const secret = await create(secrets, newSecret());

    await expect(create(secrets, newSecret(secret.metadata.name))).rejects.toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
    });
  });

  test.each([
    { kind: 'Secret', make: () => create<KubeObject>(secrets, newSecret()), resource: secrets as Resource<KubeObject> },
    {
      kind: 'Machine',
      make: () => create<KubeObject>(machines, newMachine()),
      resource: machines as Resource<KubeObject>,
    },
  ])(
    'a merge patch with a wrong UID or an old version of a $kind is a Conflict and changes nothing',
    async ({ make, resource }) => {
      const object = await make();
      const stale = { metadata: { ...object.metadata, uid: WRONG_UID } };
      const labelled = await kube.writer.patch(
        'change',
        resource,
        refOf(object),
        mergePatch(object, { metadata: { labels: { a: '1' } } }),
      );

      const wrongUid = kube.writer.patch(
        'change',
        resource,
        refOf(object),
        mergePatch(stale, { metadata: { labels: { a: '2' } } }),
      );
      const oldVersion = kube.writer.patch(
        'change',
        resource,
        refOf(object),
        mergePatchIfUnchanged(object, { metadata: { labels: { a: '3' } } }),
      );

      await expect(wrongUid).rejects.toMatchObject({ reason: 'Conflict' });
      await expect(oldVersion).rejects.toMatchObject({ code: 409, reason: 'Conflict' });
      expect((await kube.reader.get(resource, refOf(object))).metadata.labels).toEqual(labelled.metadata.labels);
    },
  );

  test('an ordinary refusal of the schema stays Invalid', async () => {
    const machine = await create(machines, newMachine());
    const patch = mergePatch(machine as KubeObject, { spec: { class: 'a string' } } as object);

    await expect(kube.writer.patch('change', machines, refOf(machine), patch)).rejects.toMatchObject({
      reason: 'Invalid',
    });
  });

  test('a status patch of an old version is a Conflict, also on a custom resource', async () => {
    const machine = await create(machines, newMachine());
    const first = await kube.writer.patch(
      'change',
      machines,
      refOf(machine),
      statusPatch(machine, { lastKnownState: 'a' }),
    );
    const late = kube.writer.patch(
      'change',
      machines,
      refOf(machine),
      statusPatch(machine, { lastOperation: { description: 'late' } }),
    );

    await expect(late).rejects.toMatchObject({ code: 409, reason: 'Conflict' });
    const read = await kube.reader.get(machines, refOf(machine));
    expect(read.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test('a scale patch of an old version is a Conflict', async () => {
    const deployment = await create(machineDeployments, {
      metadata: { name: uniqueName(), namespace: ns.name },
      spec: {
        replicas: 1,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: { app: 'x' } },
        template: { metadata: { labels: { app: 'x' } }, spec: { class: { kind: 'MachineClass', name: 'c' } } },
      },
    });
    const body = (replicas: number) => ({
      type: 'merge' as const,
      subresource: 'scale' as const,
      body: { metadata: { resourceVersion: deployment.metadata.resourceVersion }, spec: { replicas } },
    });
    await kube.writer.patch('change', machineDeployments, refOf(deployment), body(2));

    const late = kube.writer.patch('change', machineDeployments, refOf(deployment), body(3));

    await expect(late).rejects.toMatchObject({ code: 409, reason: 'Conflict' });
  });

  test.each([
    { what: 'UID', of: { uid: WRONG_UID } },
    { what: 'version', of: { resourceVersion: '1' } },
  ])('a DELETE with a wrong $what is a Conflict', async ({ of }) => {
    const { metadata } = await create(secrets, newSecret());
    const { uid, resourceVersion, name } = metadata;

    const refused = kube.writer.delete(
      'destroy',
      secrets,
      { namespace: ns.name, name },
      { uid, resourceVersion, ...of },
    );

    await expect(refused).rejects.toMatchObject({ code: 409, reason: 'Conflict' });
    await kube.reader.get(secrets, { namespace: ns.name, name });
  });

  // The server itself tries for 10 s before it says so.
  test('an eviction of another UID is a Conflict', async () => {
    const pod = await create(pods, newPod());
    const other = { ...pod, metadata: { ...pod.metadata, uid: WRONG_UID } };

    await expect(kube.writer.evict(other)).rejects.toMatchObject({ code: 409, reason: 'Conflict' });
    await kube.writer.evict(pod, { gracePeriodSeconds: 0 });
    await expect(kube.reader.get(pods, refOf(pod))).rejects.toMatchObject({ reason: 'NotFound' });
  });

  test('a strategic patch of a Node merges conditions by type and refuses another UID', async () => {
    const node = await create(nodes, { metadata: { name: uniqueName() } });
    const ready = { type: 'Ready', status: 'True', reason: 'r', message: 'm' };
    const draining = { type: 'Terminating', status: 'True', reason: 'd', message: 'd' };
    await kube.writer.patch(
      'change',
      nodes,
      refOf(node),
      strategicPatch(node, { status: { conditions: [ready] } }, 'status'),
    );

    const both = await kube.writer.patch(
      'change',
      nodes,
      refOf(node),
      strategicPatch(node, { status: { conditions: [draining] } }, 'status'),
    );
    const stale = { metadata: { ...node.metadata, uid: WRONG_UID } };
    const refused = kube.writer.patch(
      'change',
      nodes,
      refOf(node),
      strategicPatch(stale, { metadata: { labels: { a: 'b' } } }),
    );

    expect(both.status?.conditions?.map(({ type }) => type).toSorted()).toEqual(['Ready', 'Terminating']);
    await expect(refused).rejects.toMatchObject({ reason: 'Conflict' });
    await kube.writer.delete('destroy', nodes, refOf(node), { uid: node.metadata.uid });
  });
});

function newPod(): New<Pod> {
  return {
    metadata: { name: uniqueName(), namespace: ns.name, labels: { app: 'guarded' } },
    spec: { containers: [{ name: 'c', image: 'none' }], nodeName: 'no-such-node' },
  };
}

describe('writes', () => {
  test('keep what they do not name, known to us or not', async () => {
    const pod = newPod();
    (pod.spec as unknown as Record<string, unknown>)['hostname'] = 'keeper';
    pod.metadata.annotations = { keep: 'me' };
    const before = await create(pods, pod);

    const after = await kube.writer.patch(
      'change',
      pods,
      refOf(before),
      mergePatch(before, { metadata: { annotations: { add: 'ed' } } }),
    );

    expect(after.metadata.annotations).toEqual({ keep: 'me', add: 'ed' });
    expect(after.spec).toEqual(before.spec);
    await kube.writer.delete('destroy', pods, refOf(before), { uid: before.metadata.uid }, { gracePeriodSeconds: 0 });
  });

  test('a DELETE resolves with the object while finalizers hold it, then with nothing', async () => {
    const machine = newMachine();
    machine.metadata.finalizers = ['machine.sapcloud.io/machine-controller'];
    const { metadata } = await create(machines, machine);
    const ref = { namespace: ns.name, name: metadata.name };

    const held = await kube.writer.delete('destroy', machines, ref, { uid: metadata.uid });
    expect(held?.metadata.deletionTimestamp).toBeDefined();

    const released = mergePatchIfUnchanged(held as Machine, { metadata: { finalizers: null } });
    await kube.writer.patch('destroy', machines, ref, released);
    await expect(kube.writer.delete('destroy', machines, ref, { uid: metadata.uid })).rejects.toMatchObject({
      reason: 'NotFound',
    });

    const secret = await create(secrets, newSecret());
    expect(await kube.writer.delete('destroy', secrets, refOf(secret), { uid: secret.metadata.uid })).toBeUndefined();
  });

  test('an eviction that a PodDisruptionBudget forbids is TooManyRequests at once', async () => {
    const pod = await create(pods, newPod());
    const running = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await kube.writer.patch('change', pods, refOf(pod), strategicPatch(pod, { status: running }, 'status'));
    const budget = await create(podDisruptionBudgets, {
      metadata: { name: uniqueName(), namespace: ns.name },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
    });
    await eventually(
      async () => (await kube.reader.get(podDisruptionBudgets, refOf(budget))).status?.expectedPods === 1,
    );
    const sent = kube.count('create', 'pods/eviction');

    await expect(kube.writer.evict(pod)).rejects.toMatchObject({ code: 429, reason: 'TooManyRequests' });

    expect(kube.count('create', 'pods/eviction')).toBe(sent + 1);
    await kube.writer.delete('destroy', pods, refOf(pod), { uid: pod.metadata.uid }, { gracePeriodSeconds: 0 });
  });

  test('ask the gate first, with their intent, and send nothing when it is closed', async () => {
    const asked: unknown[] = [];
    const gate: Gate = {
      admit: async (intent, clusters) => {
        asked.push([intent, clusters]);
        throw new GateClosedError('outage', 'control', 'outage');
      },
    };
    await using fenced = new KubeSession(connect(), { writer: { gate } });

    await expect(fenced.writer.create('create', secrets, newSecret(), { clusters: ['target'] })).rejects.toBeInstanceOf(
      GateClosedError,
    );
    await expect(
      fenced.writer.evict({ metadata: { name: 'p', namespace: ns.name, uid: 'u' } } as Pod),
    ).rejects.toBeInstanceOf(GateClosedError);

    expect(asked).toEqual([
      ['create', ['control', 'target']],
      ['destroy', ['control']],
    ]);
    expect(fenced.requests).toEqual([]);
  });

  test('a write ends with the admission', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    const gate: Gate = { admit: async () => ({ remainingMs: 300, fencingToken: 1n }) };
    await using fenced = new KubeSession(connect(), { url: proxy.url, writer: { gate } });
    proxy.set('swallow-to-client');
    const fromMs = kube.clock.monotonicMs();

    const late = fenced.writer.create('create', secrets, newSecret());

    await expect(late).rejects.toMatchObject({ reason: 'DeadlineExceeded' });
    expect(kube.clock.monotonicMs() - fromMs).toBeLessThan(10_000); // else it has 30 s
  });

  test('a write that takes longer than what was left of the admission ends well if that was renewed meanwhile', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    let asked = 0;
    const gate = (renewals: number): Gate => ({
      admit: async () => ({ remainingMs: 300, fencingToken: 1n, leftMs: () => (++asked > renewals ? 0 : 300) }),
    });
    const sessionOf = async (renewals: number): Promise<KubeSession> => {
      const session = new KubeSession(connect(), { url: proxy.url, writer: { gate: gate(renewals) } });
      await session.reader.list(secrets, { namespace: ns.name, limit: 1 }); // it has a connection
      asked = 0;
      proxy.set('stall');
      return session;
    };

    await using renewed = await sessionOf(Infinity);
    const answered = renewed.writer.create('create', secrets, newSecret());
    // When the request was begun, when its time was up, and when the time after that was.
    await eventually(() => asked >= 3);
    proxy.set('up');
    await answered;

    await using lost = await sessionOf(2);
    const fromMs = kube.clock.monotonicMs();
    // No answer comes: however slow the host is, the write ends with the leadership.
    await expect(lost.writer.create('create', secrets, newSecret())).rejects.toMatchObject({
      reason: 'DeadlineExceeded',
    });
    expect(kube.clock.monotonicMs() - fromMs).toBeLessThan(10_000); // else it has 30 s
  });

  test('a lost answer is not learnt from', async () => {
    const intercept: Interceptor = async (_mutation, send) => {
      await send();
      throw new ApiError(0, 'Unreachable', 'answer lost');
    };
    await using lossy = new KubeSession(connect(), { writer: { intercept, observer: undefined } });
    const secret = newSecret();

    const lost = await lossy.writer.create('create', secrets, secret).catch((err: unknown) => err);

    expect(mayHaveHappened(lost)).toBe(true);
    await kube.reader.get(secrets, { namespace: ns.name, name: secret.metadata.name });
  });
});

describe('a transport', () => {
  const address = () => addressOf(secrets, { namespace: ns.name, name: 'none' });
  const deletion = () => ({ method: 'DELETE', verb: 'delete', address: address() }) as const;

  test('sends no mutation that the gate has not admitted', async () => {
    const before = kube.requests.length;
    const unadmitted = { ...deletion(), lane: 'leases' } as const;

    await expect(kube.transport[MUTATE](unadmitted)).rejects.toThrow('was refused by the gate');

    expect(kube.requests).toHaveLength(before);
  });

  test('sends no mutation for a reader', async () => {
    const before = kube.requests.length;
    // What the compiler would not let pass.
    const disguised = deletion() as unknown as ReadCall;

    await expect(kube.transport.request(disguised)).rejects.toThrow('DELETE is no read');

    expect(kube.requests).toHaveLength(before);
  });
});

describe('requests', () => {
  test('a hundred at once use at most 16 connections, and the next hundred the same ones', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    await using many = new KubeSession(connect(), { url: proxy.url });
    const hundred = () =>
      Promise.all(Array.from({ length: 100 }, () => many.reader.list(secrets, { namespace: ns.name, limit: 1 })));

    await hundred();
    const first = proxy.accepted;
    await hundred();

    expect(first).toBeLessThanOrEqual(16);
    expect(proxy.accepted).toBe(first);
  });

  test('a deletion keeps its connection although it has a body', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    await using one = new KubeSession(connect(), { url: proxy.url });

    for (let i = 0; i < 6; i++) {
      const { metadata } = await one.writer.create('create', secrets, newSecret());
      await one.writer.delete('destroy', secrets, refOf({ metadata }), { uid: metadata.uid });
    }

    // The pool may open a second one while the first is still settling.
    expect(proxy.accepted).toBeLessThanOrEqual(2);
  });

  test('end at their deadline while the network stalls, and the next finds a new connection', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    await using slow = new KubeSession(connect(), { url: proxy.url });
    const read = (timeoutMs: number) => slow.reader.list(secrets, { namespace: ns.name, limit: 1, timeoutMs });
    await read(5_000);
    proxy.set('stall');

    await expect(read(200)).rejects.toMatchObject({ code: 0, reason: 'DeadlineExceeded' });
    proxy.set('up');
    await read(5_000);
  });

  test('end with the reason of their signal', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    await using slow = new KubeSession(connect(), { url: proxy.url });
    await slow.reader.list(secrets, { namespace: ns.name, limit: 1 });
    proxy.set('swallow-to-client');
    const leaving = new AbortController();
    const reading = slow.reader.get(secrets, { namespace: ns.name, name: 'x' }, { signal: leaving.signal });
    setTimeout(() => leaving.abort(reason), 100);
    const reason = new Error('leaving');

    await expect(reading).rejects.toBe(reason);
  });

  test('reads survive a broken connection, writes say that they may have happened', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    await using broken = new KubeSession(connect(), { url: proxy.url });
    await broken.reader.list(secrets, { namespace: ns.name, limit: 1 });
    proxy.cut();
    await broken.reader.list(secrets, { namespace: ns.name, limit: 1 });
    proxy.set('refuse');

    const refused = broken.writer.create('create', secrets, newSecret());

    await expect(refused).rejects.toMatchObject({ code: 0, reason: 'Unreachable' });
    expect(mayHaveHappened(await refused.catch((err: unknown) => err))).toBe(true);
    expect(broken.count('create', 'secrets')).toBe(1);
  });

  test('wait out a 429 as long as Retry-After says, writes too', async () => {
    await using proxy = await httpProxyFor(connect());
    await using throttled = new KubeSession(connect(), { url: proxy.url });
    proxy.inject({ matches: ({ resource }) => resource === 'secrets', status: 429, retryAfterSeconds: 1, times: 2 });
    const fromMs = kube.clock.monotonicMs();

    await throttled.writer.create('create', secrets, newSecret());

    expect(kube.clock.monotonicMs() - fromMs).toBeGreaterThan(1_950);
    expect(proxy.counts().get('create secrets')).toBe(3);
  });

  test('hand a 429 to the caller when its Retry-After is beyond the deadline', async () => {
    await using proxy = await httpProxyFor(connect());
    await using throttled = new KubeSession(connect(), { url: proxy.url });
    proxy.inject({ matches: () => true, status: 429, retryAfterSeconds: 60 });

    await expect(throttled.reader.list(secrets, { namespace: ns.name, timeoutMs: 20_000 })).rejects.toMatchObject({
      reason: 'TooManyRequests',
      retryAfterMs: 60_000,
    });
  });

  test('a 404 that the API server did not write does not mean that the object is gone', async () => {
    await using proxy = await httpProxyFor(connect());
    await using misled = new KubeSession(connect(), { url: proxy.url });
    const { metadata } = await create(secrets, newSecret());
    const ref = { namespace: ns.name, name: metadata.name };
    const informer = misled.informer(secrets, { namespace: ns.name });
    await informer.waitForSync(misled.signal);
    proxy.inject({ matches: ({ verb }) => verb === 'get' || verb === 'delete', status: 404, times: 2 });

    const read = misled.reader.get(secrets, ref);
    await expect(read).rejects.toMatchObject({ code: 404, reason: 'NotServed' });
    const deletion = misled.writer.delete('destroy', secrets, ref, { uid: metadata.uid });
    await expect(deletion).rejects.toMatchObject({ code: 404, reason: 'NotServed' });

    expect(informer.get(`${ns.name}/${metadata.name}`)?.metadata.uid).toBe(metadata.uid);
    await misled.writer.delete('destroy', secrets, ref, { uid: metadata.uid });
    expect(informer.get(`${ns.name}/${metadata.name}`)).toBeUndefined();
  });

  test('a write is not repeated after 500, a read neither', async () => {
    await using proxy = await httpProxyFor(connect());
    await using failing = new KubeSession(connect(), { url: proxy.url });
    proxy.inject({ matches: () => true, status: 500, reason: 'InternalError' });

    await expect(failing.writer.create('create', secrets, newSecret())).rejects.toMatchObject({ code: 500 });
    await expect(failing.reader.list(secrets)).rejects.toMatchObject({ code: 500 });
    expect([...proxy.counts().values()]).toEqual([1, 1]);
  });

  test('asks for credentials anew after 401', async () => {
    await using proxy = await httpProxyFor(connect());
    let refusals = 0;
    const { ca, admin } = connect();
    const credentials = { headers: {}, connection: { tls: { ca, cert: admin.certificate, key: admin.key } } };
    const endpoint = {
      url: proxy.url,
      namespace: undefined,
      credentials: async () => credentials,
      refused: () => {
        refusals += 1;
      },
    };
    await using refused = new KubeSession(connect(), { transport: { endpoint } });
    proxy.inject({ matches: () => true, status: 401, reason: 'Unauthorized', times: 1 });

    await refused.writer.create('create', secrets, newSecret());

    expect(refusals).toBe(1);
  });

  test('keep to the rate limit, leases excepted', async () => {
    const clock = kube.clock;
    await using limited = new KubeSession(connect(), {
      transport: { throttle: createThrottle({ qps: 20, burst: 1 }) },
    });
    const fromMs = clock.monotonicMs();

    await Promise.all(Array.from({ length: 6 }, () => limited.reader.list(secrets, { namespace: ns.name, limit: 1 })));

    expect(clock.monotonicMs() - fromMs).toBeGreaterThan(200);
  });

  test('count in the metrics under the names and labels of the original', async () => {
    const registry = new Registry();
    await using counted = new KubeSession(connect(), { transport: { metrics: kubeMetrics(registry) } });
    await counted.reader.get(secrets, { namespace: ns.name, name: 'none' }).catch(() => undefined);

    const { host } = new URL(connect().url);
    const url = `${connect().url}/api/v1/namespaces/%7Bnamespace%7D/secrets/%7Bname%7D`;
    const text = await registry.metrics();
    expect(text).toContain(`rest_client_requests_total{code="404",method="GET",host="${host}"} 1`);
    expect(text).toContain(`rest_client_request_latency_seconds_count{verb="GET",url="${url}"} 1`);
  });

  test('tell the time of the server', async () => {
    await kube.reader.list(secrets, { namespace: ns.name, limit: 1 });

    const { date, code, verb, resource } = kube.requests.at(-1) ?? {};
    expect({ code, verb, resource }).toEqual({ code: 200, verb: 'list', resource: 'secrets' });
    expect(Math.abs(Date.parse(date ?? '') - Date.now())).toBeLessThan(30_000);
  });
});
