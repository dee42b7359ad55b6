import { beforeEach, describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { ClusterAPICluster } from '../api/cluster.ts';
import { HAD_KUBECONFIG_ANNOTATION } from '../api/keys.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { Patch } from '../../../kube/client/patch.ts';
import { apiVersionOf, providerResource } from '../../../kube/client/resource.ts';
import { CLUSTER_API_MACHINE_INDEXES } from './kinds.ts';
import { ClusterAPIMachineController, type ClusterAPIMachineControllerDeps } from './machine-controller.ts';

const HELD = ['machine.cluster.x-k8s.io'];
const named = (name: string, metadata: object = {}): KubeObject => ({
  metadata: { name, namespace: 'ns', uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: '', ...metadata },
});
const machine = (metadata: object = {}): ClusterAPIMachine => ({
  ...named('m', { finalizers: HELD, ...metadata }),
  spec: {
    clusterName: 'c',
    bootstrap: { dataSecretName: 's' },
    infrastructureRef: { apiGroup: 'g', kind: 'Sim', name: 'i' },
  },
});

/** What is written, and what writes to infrastructure fail with. */
let writes: { readonly plural: string; readonly body: Record<string, unknown> }[];
let events: string[];
let failure: unknown;
let clusterFailure: unknown;

beforeEach(() => {
  writes = [];
  events = [];
  failure = undefined;
  clusterFailure = undefined;
});

async function reconcile(
  object: ClusterAPIMachine,
  {
    cluster = named('c'),
    isServed = true,
    isApart = false,
  }: { cluster?: ClusterAPICluster | undefined; isServed?: boolean; isApart?: boolean } = {},
): Promise<unknown> {
  const dropped: string[] = [];
  const resource = providerResource({ group: 'g', version: 'v1', plural: 'sims', kind: 'Sim' });
  const deps = {
    clock: new FakeClock(),
    machines: new MemoryInformer([object], CLUSTER_API_MACHINE_INDEXES),
    clusters: new MemoryInformer<ClusterAPICluster>(cluster.metadata.name === '' ? [] : [cluster]),
    externals: {
      use: () => undefined,
      drop: (user: string) => void dropped.push(user),
      find: () => ({ kind: 'found', object: named('i'), resource, contract: 'v1beta2' }),
    },
    nodeClusters: {
      use: () => undefined,
      drop: () => undefined,
      isApart: () => isApart,
      of: () => {
        writes.push({ plural: 'looks', body: {} });
        return { kind: 'none' };
      },
    },
    dataSecrets: { troubleWith: () => Promise.resolve(undefined) },
    drains: { forgetAll: () => undefined },
    target: undefined,
    recorder: {
      event: ({ reason, message }: { reason: string; message: string }) => events.push(`${reason} ${message}`),
    },
    isServed: () => isServed,
    servedAs: apiVersionOf,
    writer: {
      patch: (_intent: string, { plural }: { plural: string }, _ref: unknown, patch: Patch) => {
        if (plural === 'clusters' && clusterFailure !== undefined) return Promise.reject(clusterFailure);
        if (plural === 'sims' && failure !== undefined) return Promise.reject(failure);
        writes.push({ plural, body: patch.body as Record<string, unknown> });
        return Promise.resolve(plural === 'sims' ? named('i') : object);
      },
    },
  } as unknown as ClusterAPIMachineControllerDeps;
  const controller = new ClusterAPIMachineController(deps);
  const [ended] = await Promise.allSettled([controller.reconcile('ns/m', new AbortController().signal)]);
  return ended.status === 'rejected' ? ended.reason : dropped;
}

describe('a Cluster with a kubeconfig', () => {
  const plurals = (): readonly string[] =>
    writes.map(({ plural }) => plural).filter((one) => one === 'clusters' || one === 'looks');

  test('remembers it before it is used', async () => {
    await reconcile(machine(), { isApart: true });

    expect(plurals()).toEqual(['clusters', 'looks']);
    expect(writes[0]?.body).toMatchObject({ metadata: { annotations: { [HAD_KUBECONFIG_ANNOTATION]: 'true' } } });
  });

  test.each([
    { what: 'without one', options: {} },
    {
      what: 'that remembers',
      options: { isApart: true, cluster: named('c', { annotations: { [HAD_KUBECONFIG_ANNOTATION]: 'true' } }) },
    },
    { what: 'that goes', options: { isApart: true, cluster: named('c', { deletionTimestamp: 'now' }) } },
  ])('one $what is not written', async ({ options }) => {
    await reconcile(machine(), options);

    expect(plurals()).toEqual(['looks']);
  });

  test('is not used while that is refused, and the Machine says why', async () => {
    clusterFailure = new ApiError(422, 'Invalid', 'a webhook says no');
    await reconcile({ ...machine(), spec: { ...machine().spec, providerID: 'sim:///1' } }, { isApart: true });

    expect(plurals()).toEqual([]);
    const told = writes.at(-1)?.body as Pick<ClusterAPIMachine, 'status'> | undefined;
    expect(told?.status?.conditions?.find(({ type }) => type === 'NodeReady')).toMatchObject({
      reason: 'ConnectionDown',
      message: expect.stringContaining('a webhook says no'),
    });
  });
});

// Its cluster may be well, with the Node of the Machine in it.
test.each([429, 500])(
  'a Machine that was never provisioned is not let go undrained because a write about its Cluster got %d',
  async (code) => {
    clusterFailure = new ApiError(code, 'Failed', 'not now');
    const going = machine({ deletionTimestamp: '2026-01-01T00:00:00Z' });
    await reconcile({ ...going, spec: { ...going.spec, providerID: 'sim:///1' } }, { isApart: true });

    const told = writes.at(-1)?.body as Pick<ClusterAPIMachine, 'status'> | undefined;
    expect(told?.status?.conditions?.find(({ type }) => type === 'Deleting')).toMatchObject({
      reason: 'DrainingNode',
      message: expect.stringContaining('not now'),
    });
  },
);

describe('a Machine', () => {
  test('is held before anything that it names is touched', async () => {
    await reconcile(machine({ finalizers: ['other'] }));

    expect(writes).toMatchObject([
      { plural: 'machines', body: { metadata: { finalizers: ['other', ...HELD], resourceVersion: '1' } } },
    ]);
  });

  test('owns what it names, then tells; one patch of each', async () => {
    await reconcile(machine());

    expect(
      writes
        .filter(({ plural }) => plural !== 'looks')
        .map(({ plural, body }) => `${plural} ${Object.keys(body).join(' ')}`),
    ).toEqual(['sims metadata', 'machines metadata spec', 'machines status metadata']);
  });

  test.each([
    { what: 'a conflict', err: new ApiError(409, 'Conflict', 'no') },
    { what: 'a closed gate', err: new GateClosedError('outage', 'target', 'no') },
  ])('says nothing about $what: the next pass is another', async ({ err }) => {
    failure = err;

    expect(await reconcile(machine())).toBe(err);
    expect(writes.filter(({ plural }) => plural !== 'looks')).toEqual([]);
  });

  test('says what else was refused', async () => {
    failure = new ApiError(422, 'Invalid', 'a webhook says no');

    expect(await reconcile(machine())).toBe(failure);
    const told = writes.at(-1)?.body as Pick<ClusterAPIMachine, 'status'> | undefined;
    expect(told?.status?.conditions?.find(({ type }) => type === 'Ready')?.message).toContain('a webhook says no');
  });

  test.each([
    { what: 'of somebody else', object: machine(), isServed: false },
    { what: 'that was let go', object: machine({ deletionTimestamp: 'now', finalizers: ['other'] }), isServed: true },
  ])('$what is not looked after', async ({ object, isServed }) => {
    expect(await reconcile(object, { isServed })).toEqual(['Machine/ns/m']);
    expect(writes).toEqual([]);
  });

  test.each([
    { what: 'by its Cluster', annotations: {}, paused: true, message: 'Cluster spec.paused is set to true' },
    {
      what: 'by itself',
      annotations: { 'cluster.x-k8s.io/paused': '' },
      paused: false,
      message: 'Machine has the cluster.x-k8s.io/paused annotation',
    },
    {
      what: 'by both',
      annotations: { 'cluster.x-k8s.io/paused': '' },
      paused: true,
      message: 'Cluster spec.paused is set to true, Machine has the cluster.x-k8s.io/paused annotation',
    },
  ])('that is paused $what says so', async ({ annotations, paused, message }) => {
    await reconcile(machine({ annotations }), { cluster: { ...named('c'), spec: { paused } } });

    expect(writes.map(({ body }) => body)).toMatchObject([{ status: { conditions: [{ type: 'Paused', message }] } }]);
    expect(events).toEqual([`Paused Not reconciled and not deleted: ${message}`]);
  });

  test('that is paused, or has no Cluster, is told so once, also while it goes', async () => {
    const going = machine({ deletionTimestamp: 'now' });
    await reconcile(going, { cluster: { ...named('c'), spec: { paused: true } } });
    await reconcile(going, { cluster: named('') });

    expect(
      writes
        .filter(({ plural }) => plural !== 'looks')
        .map(({ plural, body }) => `${plural} ${Object.keys(body).join(' ')}`),
    ).toEqual(['machines status metadata', 'machines status metadata']);
  });
});
