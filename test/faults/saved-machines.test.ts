import { expect, test } from '@jest/globals';

import { NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Event } from '../../pkg/apis/wire.ts';
import { Backup } from '../cloud/backup.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

/*
 * A control cluster is restored from a backup of before a scale-up, and the Machines that it does not contain are saved as outages.md says. The
 * tags of the VM of one are forgotten at first. Then the pool is rolled.
 */
const [FEW, MANY] = [2, 5];
const PATIENCE = { timeoutMs: 240_000 };
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';
const EAGER = {
  'machine-safety-orphan-vms-period': '1s',
  'machine-safety-orphan-vms-grace': '1s',
  'machine-safety-grace': '0s',
};
/** Looks at the provider, after which what was going to be deleted has been. */
const LOOKS = 6;

const idsOf = (machines: readonly Machine[]): string[] => machines.map(({ spec }) => spec.providerID ?? '').toSorted();

test('Machines that a backup does not contain are saved by the documented steps; rolled later, each is drained, and no VM is left', async () => {
  await using control = await Site.open();
  await using target = await Site.open();
  await using cloud = await SimulatedCloud.start({ site: target, latencyMs: QUICK });
  await using pool = await Pool.create({ site: control, target, cloud, replicas: FEW, maxSurge: 2 });
  const path = (plural: string): string => `${GROUP}/namespaces/${pool.namespace}/${plural}`;
  await using managers = new AsyncDisposableStack();
  const start = async (more: Readonly<Record<string, string>> = {}): Promise<InProcessManager> => {
    const flags = { ...EAGER, 'target-kubeconfig': target.kubeconfig, ...more };
    return managers.use(await InProcessManager.start({ ...pool.access, flags }));
  };
  const dryRun = { 'machine-safety-orphan-vms-dry-run': 'true' };
  const looked = async (): Promise<void> => {
    const { ListMachines: before = 0 } = cloud.calls;
    await eventually(() => (cloud.calls['ListMachines'] ?? 0) > before + LOOKS, PATIENCE);
  };
  /** The Machines that an Event was about. */
  const told = async (reason: string): Promise<string[]> => {
    const { items } = await control.api.send<{ items: Event[] }>(
      'GET',
      `/api/v1/namespaces/${pool.namespace}/events?limit=1000`,
    );
    const about = items.filter((event) => event.reason === reason);
    return [...new Set(about.map(({ involvedObject }) => involvedObject.name ?? ''))].toSorted();
  };

  // The backup, and what it does not contain.
  let manager = await start();
  await pool.untilUp(FEW, PATIENCE);
  await using backup = await Backup.take(control.plane);
  await pool.scale(MANY);
  await pool.untilUp(MANY, PATIENCE);
  const former = await pool.machines();
  const vms = idsOf(former);

  // Steps 1 and 2.
  await manager.terminate();
  await backup.restore();
  manager = await start(dryRun);
  await looked();
  await manager.terminate();
  const kept = new Set(idsOf(await pool.machines()));
  expect([kept.size, cloud.removed]).toEqual([FEW, []]);

  // Step 3.
  await pool.scale(MANY);
  const { items: sets } = await control.api.send<{ items: KubeObject[] }>('GET', path('machinesets'));
  for (const { metadata } of sets)
    await control.api.send('PATCH', `${path('machinesets')}/${metadata.name}`, { spec: { replicas: MANY } });
  const lost = former.filter(({ spec }) => !kept.has(spec.providerID ?? ''));
  const saved: Machine[] = [];
  for (const { apiVersion, kind, metadata, spec } of lost) {
    const { name, labels } = metadata;
    const again = { apiVersion, kind, metadata: { name, labels }, spec };
    saved.push(await control.api.send<Machine>('POST', path('machines'), again));
  }
  const retag = ({ metadata, spec }: Machine): unknown =>
    cloud.simulation.cloud.retag(spec.providerID ?? '', metadata.uid);
  const [forgotten, ...others] = saved as [Machine, ...Machine[]];
  for (const one of others) retag(one);
  manager = await start(dryRun);
  await pool.untilUp(MANY, PATIENCE);
  await looked();
  expect(idsOf(await pool.machines())).toEqual(vms);
  const { name } = forgotten.metadata;
  await eventually(async () => expect(await told('VMNotFound')).toEqual([name]), PATIENCE);
  expect(await told('VMAdopted')).toEqual(others.map(({ metadata }) => metadata.name).toSorted());
  expect(cloud.removed).toEqual([]);

  // Step 4.
  await manager.terminate();
  await start();
  await looked();
  expect(cloud.removed).toEqual([]);

  // Every machine is replaced, but for that whose VM the driver does not find.
  await pool.roll('2');
  await eventually(async () => {
    const { deletionTimestamp } = (await pool.machine(name)).metadata;
    expect(deletionTimestamp).toBeDefined();
    expect(cloud.removed).toHaveLength(MANY - 1);
  }, PATIENCE);
  await looked();
  const held = await pool.machine(name);
  expect(held.status?.lastOperation?.description).toContain(`the UID of this one is ${held.metadata.uid}`);
  const node = (await pool.nodes()).find(({ metadata }) => metadata.name === held.metadata.labels?.[NODE_LABEL]);
  expect([node !== undefined, node?.spec?.unschedulable ?? false]).toEqual([true, false]);
  expect(cloud.removed).not.toContain(held.spec.providerID);

  retag(held);
  await pool.untilUp(MANY, PATIENCE);
  expect(cloud.removed.toSorted()).toEqual(vms);
  await eventually(
    async () => expect(await told('Drained')).toEqual(former.map(({ metadata }) => metadata.name).toSorted()),
    PATIENCE,
  );
}, 900_000);
