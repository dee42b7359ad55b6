import { beforeEach, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { HAD_KUBECONFIG_ANNOTATION } from '../api/keys.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Secret } from '../../../apis/wire.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { ConfigError } from '../../../kube/client/config-error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { WorkloadState } from '../../../operator/workload-cluster.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { NodeClusters } from './node-clusters.ts';

const MARK = 'cluster-api.machine.sapcloud.io/node-cluster';
const named = (name: string, annotations?: Record<string, string>): KubeObject => ({
  metadata: {
    name,
    namespace: 'ns',
    uid: name,
    resourceVersion: '1',
    creationTimestamp: '',
    ...(annotations && { annotations }),
  },
});
const secret = (resourceVersion: string, value?: string): Secret => ({
  metadata: { ...named('c-kubeconfig').metadata, resourceVersion },
  data: value === undefined ? {} : { value: Buffer.from(value).toString('base64') },
});
const cluster = named('c');
const manager = { cluster: 'control' } as Target;
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

let clock: FakeClock;
let secrets: MemoryInformer<KubeObject>;
let live: Secret | ApiError;
let state: WorkloadState;
/** What was opened and closed, by kubeconfig. */
let log: string[];
let woken: string[];
let changed: () => void;

beforeEach(() => {
  clock = new FakeClock();
  secrets = new MemoryInformer<KubeObject>();
  state = { kind: 'reached', identity: 'u' };
  log = [];
  woken = [];
});

function nodeClusters(target: Target | undefined = manager): NodeClusters {
  const get = (): Promise<Secret> => (live instanceof ApiError ? Promise.reject(live) : Promise.resolve(live));
  const all = new NodeClusters({
    secrets,
    reader: { get } as unknown as Reader,
    clock,
    target,
    open: (_name, { kubeconfig }, tell) => {
      if (kubeconfig === 'bad') return Promise.reject(new ConfigError('exec is not allowed'));
      log.push(`open ${kubeconfig}`);
      changed = tell;
      return Promise.resolve({
        target: { cluster: kubeconfig } as Target,
        get state() {
          return state;
        },
        close: () => void log.push(`close ${kubeconfig}`),
      });
    },
  });
  all.start({ wake: (user) => void woken.push(user), opened: (_cluster, of) => void log.push(`watch ${of.cluster}`) });
  return all;
}

async function store(version: string, value?: string): Promise<void> {
  live = secret(version, value);
  secrets.put(secret(version));
  await settled();
}

test('without a Secret the Nodes are in the target of the manager, if it has one', () => {
  expect(nodeClusters().of(cluster, named('m'))).toEqual({ kind: 'reached', target: manager, identity: undefined });
  const { secrets: none, ...deps } = {
    secrets,
    reader: {} as Reader,
    clock,
    target: undefined,
    open: () => Promise.reject(new Error('no')),
  };
  expect(new NodeClusters({ ...deps, secrets: none }).of(cluster, named('m'))).toEqual({ kind: 'none' });
});

test('a Secret may come late; what it leads to is used by all Machines, and given up with the last', async () => {
  const all = nodeClusters();
  for (const user of ['a', 'b']) all.use(user, 'ns/c');
  expect(all.isApart('ns/c')).toBe(false);
  await store('1', 'k1');

  expect(all.isApart('ns/c')).toBe(true);
  expect(all.of(cluster, named('m'))).toMatchObject({ kind: 'reached', target: { cluster: 'k1' }, identity: 'u' });
  expect(woken).toEqual(['a', 'b']);
  changed();
  expect(woken).toHaveLength(4);
  all.drop('a');
  expect(all.connected).toEqual(['ns/c']);
  all.use('b', 'ns/other');
  expect(all.connected).toEqual([]);
  expect(log).toEqual(['open k1', 'watch k1', 'close k1']);
});

test('a connection is made anew when the kubeconfig changes, not when only its Secret does', async () => {
  const all = nodeClusters();
  all.use('a', 'ns/c');
  await store('1', 'k1');
  await store('2', 'k1');
  await store('3', 'k2');

  expect(log).toEqual(['open k1', 'watch k1', 'close k1', 'open k2', 'watch k2']);
});

test('what is read after the Secret has changed once more is not used', async () => {
  const all = nodeClusters();
  all.use('a', 'ns/c');
  live = secret('1', 'k1');
  secrets.put(secret('1'));
  await store('2', 'k2');

  expect(log).toEqual(['open k2', 'watch k2']);
});

test.each([
  { what: 'says nothing', value: undefined, why: 'it has no data under key value' },
  { what: 'is not allowed', value: 'bad', why: 'exec is not allowed' },
])('a kubeconfig that $what is told, and leads nowhere', async ({ value, why }) => {
  const all = nodeClusters();
  all.use('a', 'ns/c');
  await store('1', 'k1');
  await store('2', value);

  expect(all.of(cluster, named('m'))).toMatchObject({ kind: 'unreachable' });
  expect(all.of(cluster, named('m'))).toMatchObject({ why: `Secret c-kubeconfig is not usable: ${why}` });
  expect(log.at(-1)).toBe('close k1');
  await store('3', 'k3');
  expect(all.of(cluster, named('m'))).toMatchObject({ kind: 'reached' });
});

test('one that was of no use from the beginning is told at once, one that followed a connection when that was lost', async () => {
  const all = nodeClusters();
  all.use('a', 'ns/c');
  await store('1', 'bad');
  expect(all.of(cluster, named('m'))).toMatchObject({ sinceMs: Number.NEGATIVE_INFINITY });

  await store('2', 'k2');
  clock.advance(1_000);
  await store('3', 'bad');
  expect(all.of(cluster, named('m'))).toMatchObject({ sinceMs: clock.monotonicMs() });
});

test('a Secret that cannot be read is read again', async () => {
  const all = nodeClusters();
  all.use('a', 'ns/c');
  live = new ApiError(500, 'InternalError', 'no');
  secrets.put(secret('1'));
  await settled();
  expect(all.of(cluster, named('m'))).toMatchObject({ kind: 'unreachable' });

  live = secret('1', 'k1');
  clock.advance(5_000);
  await settled();
  expect(all.of(cluster, named('m'))).toMatchObject({ kind: 'reached' });
});

test('the Node of a Machine is looked for only where it was found', async () => {
  const all = nodeClusters();
  all.use('a', 'ns/c');
  await store('1', 'k1');
  expect(all.of(cluster, named('m', { [MARK]: 'u' }))).toMatchObject({ kind: 'reached' });
  expect(all.of(cluster, named('m', { [MARK]: 'x' }))).toMatchObject({
    kind: 'unreachable',
    sinceMs: Number.NEGATIVE_INFINITY,
  });

  clock.advance(1_000);
  secrets.remove('ns/c-kubeconfig');
  expect(all.of(cluster, named('m', { [MARK]: 'u' }))).toMatchObject({
    kind: 'unreachable',
    sinceMs: clock.monotonicMs(),
  });
  expect(all.of(cluster, named('m'))).toMatchObject({ target: manager });
});

test('a cluster that does not answer is told with its Secret', async () => {
  const all = nodeClusters();
  all.use('a', 'ns/c');
  await store('1', 'k1');
  state = { kind: 'unreachable', why: 'no answer', sinceMs: 7, lostSinceMs: 7 };

  expect(all.of(cluster, named('m'))).toEqual({
    kind: 'unreachable',
    why: 'the API server in Secret c-kubeconfig: no answer',
    sinceMs: 7,
    lostSinceMs: 7,
  });
});

test('a cluster is lost for as long as its Secret is missing, not while its kubeconfig is read, is of no use, or its Nodes are elsewhere', async () => {
  const had = named('c', { [HAD_KUBECONFIG_ANNOTATION]: 'true' });
  const all = nodeClusters();
  all.use('a', 'ns/c');
  const missingMs = clock.monotonicMs();
  clock.advance(120_000);
  expect(all.of(had, named('m'))).toMatchObject({ why: expect.stringContaining('missing'), lostSinceMs: missingMs });

  live = secret('1', 'bad');
  secrets.put(secret('1'));
  expect(all.of(had, named('m'))).toMatchObject({ why: 'Reading Secret c-kubeconfig', lostSinceMs: undefined });
  await settled();
  expect(all.of(had, named('m'))).toMatchObject({
    why: expect.stringContaining('exec'),
    sinceMs: Number.NEGATIVE_INFINITY,
    lostSinceMs: undefined,
  });

  clock.advance(120_000);
  secrets.remove('ns/c-kubeconfig');
  expect(all.of(had, named('m'))).toMatchObject({
    why: expect.stringContaining('missing'),
    sinceMs: Number.NEGATIVE_INFINITY,
    lostSinceMs: clock.monotonicMs(),
  });

  await store('2', 'k2');
  expect(all.of(had, named('m', { [MARK]: 'x' }))).toMatchObject({
    why: expect.stringContaining('another cluster'),
    lostSinceMs: undefined,
  });
});

test.each([
  { what: 'has had one', annotations: { [HAD_KUBECONFIG_ANNOTATION]: 'true' }, want: { kind: 'unreachable' } },
  { what: 'has had none', annotations: {}, want: { kind: 'reached', target: manager } },
])('without a Secret, a Machine without a mark of a Cluster that $what is $want', ({ annotations, want }) => {
  expect(nodeClusters().of(named('c', annotations), named('m'))).toMatchObject(want);
});

test('after the end everything is closed, also what is just being opened, and a Secret that cannot be read is not read again', async () => {
  const all = nodeClusters();
  await store('1', 'one');
  all.use('m', 'ns/c');
  await settled();
  all.use('n', 'ns/other');
  secrets.put({ metadata: { ...named('other-kubeconfig').metadata } });
  live = new ApiError(500, 'InternalError', 'no');
  all.stop();
  await settled();
  live = secret('2', 'two');
  clock.advance(60_000);
  await settled();

  expect(log).toEqual(['open one', 'watch one', 'close one']);
  expect(all.connected).toEqual([]);
});
