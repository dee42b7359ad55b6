import { describe, expect, test } from '@jest/globals';

import type { DrainProgress, PodRule } from '../../pkg/drain/drain.ts';
import type { Node, Pod } from '../../pkg/apis/wire.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import { DrainLimits } from '../../pkg/drain/limits.ts';
import type { RequestRecord } from '../../pkg/kube/client/transport.ts';
import { eventually } from '../expect/eventually.ts';
import { privateApiServer } from '../env/api-server.ts';
import { connect, WITHOUT_KUBELETS } from '../env/environment.ts';
import { MemoryInformer } from '../memory-informer.ts';
import { DrainCluster } from './drain-cluster.ts';
import { httpProxyFor } from './kube-session.ts';

const never = new AbortController().signal;
/** Of drains that end by it: six seconds here, which is time for a look on a busy host. */
const DEADLINE_MS = 4 * 60_000;
const condition = { type: 'Terminating', status: 'True', reason: 'ScaleDown', message: 'scaling down' } as const;

const evictions = (cluster: DrainCluster): number => cluster.sent.filter((r) => r.resource === 'pods/eviction').length;
// Caches watch anew each 10 s or so; and kube-controller-manager taints a cordoned Node at once, so that a patch may be refused with 409,
// and is sent again after a look at the Node.
const done = (cluster: DrainCluster): string[] =>
  cluster.sent
    .filter(({ verb, code }) => verb !== 'watch' && verb !== 'get' && code < 300)
    .map(({ verb, resource }) => `${verb} ${resource}`);
const isEnding = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
const leaves = (order: number) => ({ behavior: 'leaves', order }) as const;
const namesOf = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.name).toSorted();

describe('a drain', () => {
  test('marks and cordons the node, evicts its pods, and leaves those of DaemonSets and static ones', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    const { name } = node.metadata;
    cluster.endPods(name);
    await cluster.pod(name);
    await cluster.pod(name);
    const daemon = await cluster.pod(name, ({ metadata }) => {
      metadata.ownerReferences = [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }];
      metadata.finalizers = ['example.com/held'];
    });
    cluster.defer(() => cluster.patch(cluster.podPath(daemon), { metadata: { finalizers: null } }));
    const mirror = await cluster.pod(name, ({ metadata }) => {
      metadata.annotations = { 'kubernetes.io/config.mirror': 'hash' };
    });
    const reports: DrainProgress[] = [];

    const outcome = await cluster.drain(cluster.request(node, { nodeCondition: condition }), never, (p) =>
      reports.push(p),
    );

    const after = await cluster.get<Node>(`/api/v1/nodes/${name}`);
    expect(outcome).toEqual({ kind: 'drained' });
    expect(namesOf(await cluster.podsOf(name))).toEqual(namesOf([daemon, mirror]));
    expect(after.spec?.unschedulable).toBe(true);
    expect(after.status?.conditions).toContainEqual(expect.objectContaining(condition));
    expect([...new Set(reports.map((r) => r.remainingPods))]).toEqual([2, 1, 0]);
    expect(evictions(cluster)).toBe(2);
  });

  // promise: cluster-api/deletion/pods-lower-order-gone
  test('goes by the order of rules: the next ones leave when those before are gone, and some are only waited for', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    const { name } = node.metadata;
    const make = (rule: string): Promise<Pod> =>
      cluster.pod(name, ({ metadata }) => void Object.assign(metadata, { labels: { ...metadata.labels, rule } }));
    const [first, job, last, kept] = [await make('first'), await make('job'), await make('last'), await make('kept')];
    const blocked = new Set<string>();
    const rule = {
      first: leaves(-1),
      job: { behavior: 'completes' },
      last: leaves(7),
      kept: { behavior: 'stays' },
    } as const;
    const ruleOf = ({ metadata }: Pod): PodRule => rule[metadata.labels?.['rule'] as keyof typeof rule];

    const drained = cluster.drain(
      cluster.request(node, { rules: () => Promise.resolve(ruleOf) }),
      never,
      (progress) => {
        for (const { pod, reason } of progress.blocked) blocked.add(`${reason} ${pod.split('/')[1]}`);
      },
    );
    await eventually(async () => (await cluster.podsOf(name)).some(isEnding), { describe: 'the first to be evicted' });
    expect(namesOf((await cluster.podsOf(name)).filter(isEnding))).toEqual([first.metadata.name]);
    cluster.endPods(name);
    await eventually(() => blocked.has(`completion ${job.metadata.name}`), { describe: 'the job to be waited for' });
    expect(evictions(cluster)).toBe(1);
    await cluster.patch(`${cluster.podPath(job)}/status`, { status: { phase: 'Succeeded' } });

    expect(await drained).toEqual({ kind: 'drained' });
    expect(namesOf(await cluster.podsOf(name))).toEqual(namesOf([job, kept]));
    expect(evictions(cluster)).toBe(2);
    expect(blocked).toContain(`order ${last.metadata.name}`);
  });

  test('costs three requests on a node without pods, and two when it is marked already: that it still is cordoned is read live', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    const request = cluster.request(node, { nodeCondition: condition });

    const before = done(cluster).length;
    await cluster.drain(request, never);
    const first = done(cluster).slice(before);
    await cluster.drain(request, never);
    const second = done(cluster).slice(before + first.length);

    expect(first.toSorted()).toEqual(['list pods', 'patch nodes', 'patch nodes/status']);
    expect(second).toEqual(['list pods']);
    const count = (isOne: (request: RequestRecord) => boolean): number => cluster.sent.filter(isOne).length;
    expect(count(({ verb }) => verb === 'get')).toBe(count(({ code }) => code === 409) + 1);
  });

  test('has its marked cordon accepted at once while the cache does not show yet what it has told the node', async () => {
    await using server = await privateApiServer(WITHOUT_KUBELETS);
    await using cluster = await DrainCluster.open({ connection: server.connection });
    const node = await cluster.node();
    const request = cluster.request(node, { nodeCondition: condition, barrier: 'deletion-cordon' });
    const late = new MemoryInformer([await cluster.get<Node>(`/api/v1/nodes/${node.metadata.name}`)]);

    await cluster.drain({ ...request, target: { ...cluster.target, nodes: late } }, never);

    const writes = cluster.sent.filter(({ verb }) => verb === 'patch').map(({ code }) => code);
    const looks = cluster.sent.filter(({ verb, resource }) => verb === 'get' && resource === 'nodes');
    expect({ writes, looks }).toEqual({ writes: [200, 200], looks: [] });
  });

  test('goes on when the API server refuses the condition of the node', async () => {
    await using cluster = await DrainCluster.open({
      intercept: ({ text }, send) =>
        text.includes('nodes/') && text.includes('/status')
          ? Promise.reject(new ApiError(403, 'Forbidden', 'a policy refuses it'))
          : send(),
    });
    const node = await cluster.node();

    const outcome = await cluster.drain(cluster.request(node, { nodeCondition: condition }), never);

    expect(outcome).toEqual({ kind: 'drained' });
    expect((await cluster.get<Node>(`/api/v1/nodes/${node.metadata.name}`)).spec?.unschedulable).toBe(true);
  });

  test('keeps new pods off by a taint when asked to, beside the taints that are there', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    const { name } = node.metadata;
    await cluster.patch(`/api/v1/nodes/${name}`, { spec: { taints: [{ key: 'other', effect: 'NoSchedule' }] } });
    const taint = { key: 'node.machine.sapcloud.io/preserved', effect: 'NoSchedule' } as const;

    await cluster.drain(cluster.request(node, { barrier: { taint } }), never);
    await cluster.drain(cluster.request(node, { barrier: { taint } }), never);

    const { spec } = await cluster.get<Node>(`/api/v1/nodes/${name}`);
    const keys = (spec?.taints ?? []).map(({ key }) => key).filter((key) => !key.startsWith('node.kubernetes.io/'));
    expect(keys.toSorted()).toEqual([taint.key, 'other']);
    expect(spec?.unschedulable).toBeUndefined();
  });

  test('obeys a budget that allows one eviction at a time', async () => {
    await using cluster = await DrainCluster.open();
    const [node, other] = [await cluster.node(), await cluster.node()];
    const { name } = node.metadata;
    for (let i = 0; i < 3; i++) await cluster.pod(name);
    await cluster.budget(2, { healthy: 3, allowed: 1 });
    let fewest = 3;
    const reasons = new Set<string>();

    const drained = cluster.drain(cluster.request(node, {}, 40 * 60_000), never, ({ blocked }) => {
      for (const { reason, detail } of blocked) reasons.add(`${reason} ${detail}`);
    });
    // Before the first pod ends: between its end and its replacement the budget expects no more pods than there are healthy ones,
    // and looks as if it allowed none ever.
    await eventually(() => [...reasons].some((reason) => reason.endsWith(' pdb')), {
      describe: 'an eviction to be refused',
    });
    // A pod ends, and only then its replacement runs elsewhere.
    cluster.endPods(name, 0, async () => {
      const left = (await cluster.podsOf(name)).filter((p) => p.metadata.deletionTimestamp === undefined);
      const elsewhere = await cluster.podsOf(other.metadata.name);
      fewest = Math.min(fewest, left.length + elsewhere.length);
      await cluster.pod(other.metadata.name);
    });
    const outcome = await drained;

    expect(outcome).toEqual({ kind: 'drained' });
    expect(fewest).toBe(2);
    expect(reasons).toContain('disruption-budget pdb');
    await eventually(async () => (await cluster.podsOf(other.metadata.name)).length === 3);
  });

  test('ends at its deadline under a budget that allows nothing, names it, and deletes nothing', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    const pod = await cluster.pod(node.metadata.name);
    await cluster.budget(1, { healthy: 1, allowed: 0 });

    const outcome = await cluster.drain(cluster.request(node, { maxEvictRetries: 1 }, 6 * 60_000), never);

    const { namespace } = cluster;
    const blocked = [
      {
        pod: `${namespace}/${pod.metadata.name}`,
        reason: 'misconfigured-disruption-budget',
        detail: `${namespace}/pdb`,
      },
    ];
    expect(outcome).toEqual({ kind: 'incomplete', progress: { remainingPods: 1, blocked } });
    const [left] = await cluster.podsOf(node.metadata.name);
    expect(left?.metadata.uid).toBe(pod.metadata.uid);
    expect(left?.metadata.deletionTimestamp).toBeUndefined();
    expect(evictions(cluster)).toBeGreaterThan(3);
  });

  test('deletes a pod once its last eviction was refused', async () => {
    await using cluster = await DrainCluster.open();
    const [node, other] = [await cluster.node(), await cluster.node()];
    await cluster.pod(node.metadata.name);
    const sick = await cluster.pod(other.metadata.name);
    await cluster.patch(`${cluster.podPath(sick)}/status`, {
      status: { conditions: [{ type: 'Ready', status: 'False' }] },
    });
    await cluster.budget(1, { healthy: 1, allowed: 0 });

    const outcome = await cluster.drain(cluster.request(node, { maxEvictRetries: 2 }), never);

    expect(outcome).toEqual({ kind: 'drained' });
    expect(evictions(cluster)).toBe(2);
    expect(await cluster.podsOf(node.metadata.name)).toEqual([]);
  });

  test('waits for pods that end slowly, without asking twice', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    await cluster.pod(node.metadata.name);
    cluster.endPods(node.metadata.name, 1_500);
    const begin = performance.now();

    const outcome = await cluster.drain(cluster.request(node), never);

    expect(outcome).toEqual({ kind: 'drained' });
    expect(performance.now() - begin).toBeGreaterThan(1_400);
    expect(evictions(cluster)).toBe(1);
  });

  test('takes a pod of the same name on another node for gone', async () => {
    await using cluster = await DrainCluster.open();
    const [node, other] = [await cluster.node(), await cluster.node()];
    const pod = await cluster.pod(node.metadata.name);
    cluster.endPods(node.metadata.name, 0, async (ended) => {
      await cluster.pod(other.metadata.name, ({ metadata }) => {
        metadata.name = ended.metadata.name;
      });
    });

    const outcome = await cluster.drain(cluster.request(node), never);

    expect(outcome).toEqual({ kind: 'drained' });
    const arrived = async (): Promise<boolean> => {
      const [replacement] = await cluster.podsOf(other.metadata.name);
      return replacement?.metadata.name === pod.metadata.name;
    };
    await eventually(arrived, { describe: 'the replacement on the other node' });
  });

  test('sees pods go by listing them when no watch is to be had', async () => {
    await using cluster = await DrainCluster.open({ limits: new DrainLimits({ watches: 0 }) });
    const node = await cluster.node();
    await cluster.pod(node.metadata.name);
    cluster.endPods(node.metadata.name);

    const outcome = await cluster.drain(cluster.request(node), never);

    const ofPods = cluster.sent.filter(({ resource }) => resource === 'pods').map(({ verb }) => verb);
    expect(outcome).toEqual({ kind: 'drained' });
    expect(new Set(ofPods)).toEqual(new Set(['list']));
  });

  test.each([
    { what: 'sends away', tolerations: [], left: 0 },
    { what: 'does not chase', tolerations: [{ operator: 'Exists' }], left: 1 },
  ])('$what a pod with tolerations $tolerations that is bound during the drain', async ({ tolerations, left }) => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    const { name } = node.metadata;
    const first = await cluster.pod(name);
    const drained = cluster.drain(cluster.request(node), never);
    await eventually(() => evictions(cluster) === 1);

    await cluster.pod(name, ({ spec }) => {
      spec['tolerations'] = tolerations;
    });
    cluster.endPods(name);

    await expect(drained).resolves.toEqual({ kind: 'drained' });
    const pods = await cluster.podsOf(name);
    expect(pods).toHaveLength(left);
    expect(namesOf(pods)).not.toContain(first.metadata.name);
  });
});

describe('a forced drain', () => {
  test('deletes all pods at once, whatever budgets and graces say', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    for (let i = 0; i < 3; i++) await cluster.pod(node.metadata.name);
    await cluster.budget(3, { healthy: 3, allowed: 0 });
    const [terminating] = await cluster.podsOf(node.metadata.name);
    await cluster.delete(cluster.podPath(terminating as Pod));

    const outcome = await cluster.drain(cluster.request(node, { force: true }), never);

    expect(outcome).toEqual({ kind: 'drained' });
    expect(await cluster.podsOf(node.metadata.name)).toEqual([]);
    expect(evictions(cluster)).toBe(0);
  });

  test('waits for nothing: not for a pod that a finalizer holds', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    const pod = await cluster.pod(node.metadata.name, ({ metadata }) => {
      metadata.finalizers = ['example.com/held'];
    });
    cluster.defer(() => cluster.patch(cluster.podPath(pod), { metadata: { finalizers: null } }));

    const outcome = await cluster.drain(cluster.request(node, { force: true }), never);

    expect(outcome).toEqual({ kind: 'drained' });
    const [left] = await cluster.podsOf(node.metadata.name);
    expect(left?.metadata.deletionGracePeriodSeconds).toBe(0);
  });
});

describe('a node that is not the one meant', () => {
  test('ends the drain at once when it does not exist', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    await cluster.delete(`/api/v1/nodes/${node.metadata.name}`);

    await expect(cluster.drain(cluster.request(node), never)).resolves.toEqual({ kind: 'node-gone' });
  });

  test('is left alone when it took the name of another', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    const pod = await cluster.pod(node.metadata.name);

    const outcome = await cluster.drain(cluster.request(node, { nodeUID: 'uid-of-another' }), never);

    const after = await cluster.get<Node>(`/api/v1/nodes/${node.metadata.name}`);
    expect(outcome).toEqual({ kind: 'node-gone' });
    expect(after.spec?.unschedulable).toBeUndefined();
    expect(namesOf(await cluster.podsOf(node.metadata.name))).toEqual([pod.metadata.name]);
  });

  test('ends a drain under way when it replaces the one meant', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    const { name } = node.metadata;
    await cluster.pod(name); // it never ends: nobody plays its kubelet
    const drained = cluster.drain(cluster.request(node, {}, 120 * 60_000), never);
    await eventually(() => evictions(cluster) === 1);

    await cluster.delete(`/api/v1/nodes/${name}`);
    await cluster.create('/api/v1/nodes', { metadata: { name } });

    await expect(drained).resolves.toEqual({ kind: 'node-gone' });
    const after = await cluster.get<Node>(`/api/v1/nodes/${name}`);
    expect(after.spec?.unschedulable).toBeUndefined();
  });
});

describe('a drain that cannot go on', () => {
  test('stops at once when it is aborted, and asks for nothing more', async () => {
    await using cluster = await DrainCluster.open();
    const node = await cluster.node();
    await cluster.pod(node.metadata.name);
    await cluster.budget(1, { healthy: 1, allowed: 0 });
    const abort = new AbortController();
    const drained = cluster.drain(cluster.request(node), abort.signal);
    await eventually(() => evictions(cluster) > 0);

    abort.abort(new Error('the machine is deleted'));

    await expect(drained).rejects.toThrow('the machine is deleted');
    const asked = evictions(cluster);
    await cluster.clock.sleep(60_000, never);
    expect(evictions(cluster)).toBe(asked);
  });

  test.each([
    { what: 'never answers', intercept: (): Promise<never> => new Promise(() => undefined) },
    { what: 'loses every answer', intercept: lost },
    { what: 'refuses everything', intercept: refused },
  ])('ends by its deadline when the server $what', async ({ intercept }) => {
    let isBroken = false;
    await using cluster = await DrainCluster.open({
      intercept: ({ text }, send) => (isBroken && text.includes('eviction') ? intercept(send) : send()),
    });
    const node = await cluster.node();
    await cluster.pod(node.metadata.name);
    isBroken = true;

    const outcome = await cluster.drain(cluster.request(node, {}, DEADLINE_MS), never);

    expect(outcome).toMatchObject({ kind: 'incomplete', progress: { remainingPods: 1 } });
  });

  describe('departure: a drain ends at its deadline under throttling, whatever it waits for (the original overran it: MCM 785, MCM 553, MCM 547)', () => {
    // An overloaded server says 429 too; it has no budget among its causes.
    test.each([
      { what: 'evictions', verb: 'create', resource: 'pods/eviction', force: false },
      { what: 'deletions', verb: 'delete', resource: 'pods', force: true },
    ])('when $what are answered with 429 forever', async ({ verb, resource, force }) => {
      await using proxy = await httpProxyFor(connect());
      await using cluster = await DrainCluster.open({ url: proxy.url });
      const node = await cluster.node();
      const pod = await cluster.pod(node.metadata.name);
      proxy.inject({ matches: (r) => r.verb === verb && r.resource === resource, status: 429, retryAfterSeconds: 1 });

      const outcome = await cluster.drain(cluster.request(node, { force }, DEADLINE_MS), never);

      expect(outcome).toMatchObject({ kind: 'incomplete', progress: { remainingPods: 1 } });
      expect(proxy.count((r) => r.verb === verb && r.resource === resource)).toBeGreaterThan(0);
      const [left] = await cluster.podsOf(node.metadata.name);
      expect(left?.metadata).toMatchObject({ uid: pod.metadata.uid });
      expect(left?.metadata.deletionTimestamp).toBeUndefined();
    });

    test('when nobody can even say which pods there are', async () => {
      await using proxy = await httpProxyFor(connect());
      await using cluster = await DrainCluster.open({ url: proxy.url });
      const node = await cluster.node();
      proxy.inject({ matches: (r) => r.verb === 'list' && r.resource === 'pods', status: 429, retryAfterSeconds: 1 });

      const drained = cluster.drain(cluster.request(node, {}, 20_000), never);

      await expect(drained).rejects.toThrow(`reading node ${node.metadata.name}`);
    });
  });

  test('still takes one look when its deadline is past', async () => {
    // Which has some seconds of the world's own.
    await using cluster = await DrainCluster.open({ clock: new SystemClock() });
    const node = await cluster.node();

    await expect(cluster.drain(cluster.request(node, {}, -60_000), never)).resolves.toEqual({ kind: 'drained' });
  });
});

async function lost(send: () => Promise<unknown>): Promise<never> {
  await send();
  throw new ApiError(0, 'Unreachable', 'the answer was lost');
}

function refused(): Promise<never> {
  return Promise.reject(new ApiError(503, 'ServiceUnavailable', 'not now'));
}
