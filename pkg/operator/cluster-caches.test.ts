import { expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { CONTROL } from '../gate/gate.ts';
import type { Outages } from '../gate/outages.ts';
import { HeldWork } from '../health/held-work.ts';
import { ApiError } from '../kube/errors.ts';
import { clusterMachines, machinePools } from '../kube/resource.ts';
import { silentLogger } from '../log/logger.ts';
import { kubeMetrics } from '../metrics/kube.ts';
import { createRegistry } from '../metrics/registry.ts';
import { ClusterCaches } from './cluster-caches.ts';
import type { ClusterAccess } from './clusters.ts';

test('a kind that is not served is named with its group and its file: while it is waited for, and when the process gives up', async () => {
  const clock = new FakeClock();
  const held = new HeldWork({ clock });
  const refusal = new ApiError(404, 'NotServed', '404 page not found');
  const access = {
    cluster: CONTROL,
    reader: { list: () => Promise.reject(refusal) },
    continuity: { add: () => ({ remove: () => undefined }) },
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
  caches.add(clusterMachines);
  caches.add(machinePools, { optionalFor: 'MachinePools' });
  const message =
    'the control cluster does not serve machines.cluster.k8s.io: apply crds/mirantis/cluster.k8s.io_machines.yaml';

  const outcome = caches.start(new AbortController().signal).then(
    () => 'started',
    (err: unknown) => String(err),
  );
  await clock.advanceAsync(5_000);
  const [hold] = held.list();
  expect(hold).toMatchObject({ waitsFor: 'caches', why: message });
  expect(caches.synced.map(({ kind }) => kind)).toEqual(['Machine.cluster.k8s.io', 'MachinePool.kaas.mirantis.com']);

  await clock.advanceAsync(20_000);
  await caches.stop();
  expect(await outcome).toBe(`CannotStartError: ${message}`);
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
    continuity: { add: () => ({ remove: () => undefined, restore: () => undefined }) },
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
