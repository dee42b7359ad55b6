import { expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import type { Outages } from '../kube/gate/outages.ts';
import { HeldWork } from '../health/held-work.ts';
import { ApiError, REFUSAL_PATIENCE_MS } from '../kube/client/errors.ts';
import { nodeLabelPolicies, volumeAttachments } from '../kube/client/resource.ts';
import { ClusterContinuity } from '../kube/cache/cluster-continuity.ts';
import { clusterMachines, machinePools } from '../worlds/mirantis/api/resources.ts';
import { silentLogger } from '../base/log/logger.ts';
import { kubeMetrics } from '../base/metrics/kube.ts';
import { createRegistry } from '../base/metrics/registry.ts';
import { ClusterCaches } from './cluster-caches.ts';
import type { ClusterAccess } from './clusters.ts';

/** Of retryUntilDone: 5 s, jittered. */
const LONGEST_JITTERED_PAUSE_MS = 5_000 * 1.25;

/** Caches of a control cluster whose lists are refused with whatever `answer` says at that time. */
function scene(answer: () => Error) {
  const clock = new FakeClock();
  const held = new HeldWork({ clock });
  const access = {
    cluster: CONTROL,
    reader: { list: () => Promise.reject(answer()) },
    continuity: { add: () => ({ remove: () => undefined, onMustList: () => undefined }) },
  } as unknown as ClusterAccess;
  const caches = new ClusterCaches(access, {
    clock,
    log: silentLogger,
    metrics: kubeMetrics(createRegistry()),
    outages: {} as Outages,
    held,
    freeze: true,
    roleFile: 'deploy/rbac/control.yaml',
  });
  let outcome = 'starting';
  const start = (): void =>
    void caches.start(new AbortController().signal).then(
      () => (outcome = 'started'),
      (err: unknown) => (outcome = String(err)),
    );
  return { clock, held, caches, start, outcome: () => outcome };
}

test('a kind that is not served is named with its group and its file: while it is waited for, and when the process gives up', async () => {
  const { clock, held, caches, start, outcome } = scene(() => new ApiError(404, 'NotServed', '404 page not found'));
  caches.add(clusterMachines);
  caches.add(machinePools, { optionalFor: 'MachinePools' });
  const message =
    'the control cluster does not serve machines.cluster.k8s.io: apply crds/mirantis/cluster.k8s.io_machines.yaml';

  start();
  await clock.advanceAsync(5_000);
  const [hold] = held.list();
  expect(hold).toMatchObject({ waitsFor: 'caches', why: message });
  expect(caches.synced.map(({ kind }) => kind)).toEqual(['Machine.cluster.k8s.io', 'MachinePool.kaas.mirantis.com']);

  await clock.advanceAsync(20_000);
  await caches.stop();
  expect(outcome()).toBe(`CannotStartError: ${message}`);
});

test('nothing begins without an optional kind before a server that was away has refused it for as long as one that is just starting does', async () => {
  const refusals = new ApiError(403, 'Forbidden', 'nodelabelpolicies is forbidden');
  let answer = new ApiError(0, 'Unreachable', 'connection refused');
  const { clock, caches, start, outcome } = scene(() => answer);
  caches.add(nodeLabelPolicies, { optionalFor: 'NodeLabelPolicies' });

  start();
  await clock.advanceAsync(60_000);
  expect(outcome()).toBe('starting');
  answer = refusals;
  await clock.advanceAsync(REFUSAL_PATIENCE_MS);
  expect(outcome()).toBe('starting');
  // The first refusal comes up to a pause after the answer has changed, and the one that has lasted long enough up to another one.
  await clock.advanceAsync(2 * LONGEST_JITTERED_PAUSE_MS);
  expect(outcome()).toBe('started');
  await caches.stop();
});

test('a server that does not know an optional kind holds up nothing', async () => {
  const { clock, caches, start, outcome } = scene(() => new ApiError(404, 'NotServed', 'not found'));
  caches.add(nodeLabelPolicies, { optionalFor: 'NodeLabelPolicies' });

  start();
  await clock.advanceAsync(0);
  expect(outcome()).toBe('started');
  await caches.stop();
});

test('a server that refuses an optional kind at once is asked again for two seconds before anything begins without it', async () => {
  let looks = 0;
  const { clock, caches, start, outcome } = scene(() => {
    looks += 1;
    return new ApiError(403, 'Forbidden', 'forbidden');
  });
  caches.add(nodeLabelPolicies, { optionalFor: 'NodeLabelPolicies' });

  start();
  await clock.advanceAsync(1_900);
  expect(outcome()).toBe('starting');
  expect(looks).toBeGreaterThan(2);
  await clock.advanceAsync(REFUSAL_PATIENCE_MS / 2);
  expect(outcome()).toBe('started');
  await caches.stop();
});

test('a cache that is opened later says that it is refused, holds nobody up, and leaves nothing when it is closed', async () => {
  const clock = new FakeClock();
  const refusal = new ApiError(403, 'Forbidden', 'no');
  const told: ApiError[] = [];
  let looks = 0;
  const access = {
    cluster: CONTROL,
    reader: {
      list: () => {
        looks += 1;
        return Promise.reject(refusal);
      },
    },
    continuity: { add: () => ({ remove: () => undefined, restore: () => undefined, onMustList: () => undefined }) },
  } as unknown as ClusterAccess;
  const caches = new ClusterCaches(access, {
    clock,
    log: silentLogger,
    metrics: kubeMetrics(createRegistry()),
    outages: {} as Outages,
    held: new HeldWork({ clock }),
    freeze: true,
    roleFile: 'deploy/rbac/control.yaml',
  });
  const opened = caches.open(machinePools, { namespace: 'ns', refused: (err) => void told.push(err) });

  await clock.advanceAsync(0);
  expect(told).toEqual([refusal]);
  expect(caches.synced).toEqual([{ kind: 'MachinePool.kaas.mirantis.com', hasSynced: false, isOptional: true }]);
  await clock.advanceAsync(5_000);
  expect(told.length).toBeGreaterThan(1);
  expect(caches.kinds).toEqual([]);

  opened.close();
  const before = looks;
  await clock.advanceAsync(3_600_000);
  await caches.stop();
  expect(looks).toBe(before);
  expect(caches.synced).toEqual([]);
});

test('a cache that is opened later and that nobody does without says within 20 s which role is missing, and begins within 30 s of the grant', async () => {
  const clock = new FakeClock();
  const held = new HeldWork({ clock });
  let isGranted = false;
  const list = { metadata: { resourceVersion: '1' }, items: [] };
  const metadata = { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } };
  const bookmark = {
    type: 'BOOKMARK',
    object: { kind: 'VolumeAttachment', apiVersion: 'storage.k8s.io/v1', metadata },
  };
  async function* watch(signal: AbortSignal): AsyncGenerator<Buffer> {
    yield Buffer.from(`${JSON.stringify(bookmark)}\n`);
    await clock.sleep(3_600_000, signal);
  }
  const access = {
    cluster: 'target',
    transport: {
      request: () => Promise.resolve(list),
      open: ({ signal }: { signal: AbortSignal }) => Promise.resolve(watch(signal)),
    },
    reader: {
      list: () => (isGranted ? Promise.resolve(list) : Promise.reject(new ApiError(403, 'Forbidden', 'forbidden'))),
    },
    continuity: new ClusterContinuity(clock),
  } as unknown as ClusterAccess;
  const caches = new ClusterCaches(access, {
    clock,
    log: silentLogger,
    metrics: kubeMetrics(createRegistry()),
    outages: { sawLife: () => undefined } as unknown as Outages,
    held,
    freeze: false,
    roleFile: 'deploy/rbac/target.yaml',
  });
  const { informer } = caches.open(volumeAttachments, { refused: () => undefined, isNeeded: true });

  await clock.advanceAsync(20_000);
  expect(held.list()).toMatchObject([
    {
      work: 'process',
      waitsFor: 'caches',
      of: 'target',
      why: 'missing permissions in the target cluster: read volumeattachments.storage.k8s.io: apply deploy/rbac/target.yaml (forbidden)',
    },
  ]);
  await clock.advanceAsync(3_600_000);
  isGranted = true;
  await clock.advanceAsync(30_000);
  expect(informer.hasSynced).toBe(true);
  expect(held.list()).toEqual([]);
  await caches.stop();
});
