import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { otherIDOf } from '../../packages/providers/sim/vm.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { Workload } from '../cloud/workload.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 90_000 };
const MACHINES = process.env['MACHINIST_FAULTS'] === 'long' ? 50 : 4;
/** The loops look often and trust what they see at once; anyone who is unhealthy is replaced soon. */
const FLAGS = {
  'machine-safety-orphan-vms-period': '1s',
  'machine-safety-orphan-vms-grace': '1s',
  'machine-safety-grace': '0s',
  'machine-health-timeout': '5s',
};

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

async function isThere(node: string): Promise<boolean> {
  return (await site.api.request(`/api/v1/nodes/${node}`)).status === 200;
}

async function untilGone(node: string): Promise<void> {
  await eventually(async () => !(await isThere(node)), { ...PATIENCE, describe: `Node ${node} to go` });
}

async function register(name: string, providerID: string): Promise<void> {
  await site.api.send('POST', '/api/v1/nodes', { metadata: { name }, spec: { providerID } });
}

test(`${MACHINES} machines whose Nodes show provider ids of another form than the driver's lose no VM, and leave no Node`, async () => {
  await using cloud = await SimulatedCloud.start({ site, otherNodeIDs: true });
  await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
  const workload = await Workload.open(site.api, pool.namespace);
  await using _manager = await InProcessManager.start({ ...pool.access, flags: FLAGS });
  const { simulation } = cloud;
  const count = (): unknown => ({ made: cloud.created.length, deleted: cloud.deleted });
  const vmOf = (machine: string): string =>
    cloud.created.find(({ machineName }) => machineName === machine)?.providerID ?? '';

  // Created.
  const [lost = '', drained = '', ...others] = await pool.untilUp(MACHINES, PATIENCE);
  const shown = (await pool.nodes()).map(({ spec }) => spec?.providerID ?? '').toSorted();
  expect(shown).toEqual(cloud.created.map(({ providerID }) => otherIDOf(providerID)).toSorted());

  // Somebody takes the Node from a healthy machine.
  await pool.label(drained, { node: 'nowhere' });
  const nodeOf = async (): Promise<string | undefined> => (await pool.machine(drained)).metadata.labels?.['node'];
  await eventually(async () => (await nodeOf()) === drained, { ...PATIENCE, describe: 'its own Node' });
  expect(count()).toEqual({ made: MACHINES, deleted: 0 });

  // One fails, and no other is replaced.
  simulation.cloud.change(vmOf(lost), { power: 'off' });
  await untilGone(lost);
  expect(await pool.untilUp(MACHINES, PATIENCE)).toEqual(expect.arrayContaining([drained, ...others]));
  expect(count()).toEqual({ made: MACHINES + 1, deleted: 1 });

  // One is deleted, and its pods leave first.
  await workload.pod(drained);
  await pool.deleteMachine(drained);
  await untilGone(drained);
  expect(await workload.pods()).toEqual([]);
  expect(await pool.untilUp(MACHINES, PATIENCE)).toEqual(expect.arrayContaining(others));
  expect(count()).toEqual({ made: MACHINES + 2, deleted: 2 });

  // One is deleted before its Node joins, which nobody marks as its any more.
  const { settings } = simulation.driver;
  simulation.driver.settings = { ...settings, latencyMs: { ...settings.latencyMs, join: 600_000 } };
  const late = await pool.postMachine();
  await eventually(async () => (await pool.machine(late)).status?.currentStatus?.phase === 'Pending', PATIENCE);
  simulation.driver.settings = settings;
  cloud.setFaults([{ method: 'DeleteMachine', effect: 'fail', machines: late }]);
  const deletions = cloud.calls['DeleteMachine'] ?? 0;
  await pool.deleteMachine(late);
  await eventually(() => (cloud.calls['DeleteMachine'] ?? 0) > deletions, PATIENCE);
  await register(late, otherIDOf(vmOf(late)));
  cloud.setFaults([]);
  await untilGone(late);
  await eventually(() => expect(count()).toEqual({ made: MACHINES + 3, deleted: 3 }), PATIENCE);

  // A Node joins when its machine is gone; that of another cloud has the same last segment.
  const stranger = `stranger-${pool.namespace}`;
  await register(stranger, `sim://v2/elsewhere/${vmOf(late).split('/').at(-1)}`);
  await register(late, otherIDOf(vmOf(late)));
  await untilGone(late);

  // A VM appears that nobody asked for, with its Node, and is listed then.
  cloud.setFaults([{ method: 'ListMachines', effect: 'fail' }]);
  const machineName = `orphan-${pool.namespace}`;
  const orphan = simulation.cloud.plant({ ...pool.identity, machineName, join: true });
  await eventually(() => isThere(orphan.machineName), { ...PATIENCE, describe: 'the Node of the orphan' });
  cloud.setFaults([]);
  await untilGone(orphan.machineName);
  expect(await pool.untilUp(MACHINES, PATIENCE)).toEqual(expect.arrayContaining(others));
  expect(count()).toEqual({ made: MACHINES + 4, deleted: 4 });
  expect(await isThere(stranger)).toBe(true);

  await pool.delete();
  await pool.untilGone(PATIENCE);
  expect(count()).toEqual({ made: MACHINES + 4, deleted: MACHINES + 4 });
}, 400_000);
