import { expect, test } from '@jest/globals';

import type { Driver } from '../../pkg/driver/driver.ts';
import { CELL_LEASES, cellsControl, CellsManager } from '../cloud/cells-manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { driverWith } from '../drivers/driver-with.ts';
import { eventually } from '../expect/eventually.ts';

const TEST_MS = 300_000;
const PATIENCE = { timeoutMs: 90_000, intervalMs: 100 };
const PROVIDER = 'shared';
/** The loop looks often, and trusts what it sees at once. */
const EAGER = {
  'machine-safety-orphan-vms-period': '1s',
  'machine-safety-orphan-vms-grace': '1s',
  'machine-safety-grace': '0s',
};

/** What a driver was asked. */
interface Asked {
  /** Namespaces whose VMs it had to list. */
  readonly lists: string[];
  /** Provider IDs of VMs that it had to delete. */
  readonly deletions: string[];
}

/** A driver that lists the VMs of the whole account for whichever class. */
function listingAll(driver: Driver, cloud: SimulatedCloud, { lists, deletions }: Asked): Driver {
  const listMachines: Driver['listMachines'] = async ({ machineClass }) => {
    lists.push(machineClass.metadata.namespace ?? '');
    return (await cloud.vms()).map(({ providerID, machineName, machineUID, namespace: machineNamespace }) => ({
      providerID,
      machineName,
      machineUID,
      machineNamespace,
    }));
  };
  const deleteMachine: Driver['deleteMachine'] = async (request, call) => {
    deletions.push(request.machine.spec.providerID ?? '');
    return await driver.deleteMachine(request, call);
  };
  return driverWith(driver, { listMachines, deleteMachine });
}

test(
  'cells with one account of a provider leave the VMs of each other alone, and collect orphans of their own',
  async () => {
    await using control = await cellsControl();
    await using target = await Site.drawnTarget();
    await using cloud = await SimulatedCloud.start({ site: target });
    const asked: Asked = { lists: [], deletions: [] };
    const address = await cloud.serveAnother((driver) => listingAll(driver, cloud, asked));
    const create = async (): Promise<Pool> =>
      await Pool.create({ site: control, cloud, target, provider: PROVIDER, replicas: 2 });
    await using one = await create();
    await using other = await create();
    const pools = [one, other];
    await using _manager = await CellsManager.start({
      kubeconfig: control.kubeconfig,
      namespace: CELL_LEASES,
      drivers: `${PROVIDER}=${address}`,
      flags: { 'target-kubeconfig': 'none', 'cell-kubeconfig-secret': '', ...EAGER },
    });
    for (const { namespace } of pools) {
      await control.api.send('PATCH', `/api/v1/namespaces/${namespace}`, { metadata: { labels: { cell: '' } } });
    }
    await eventually(async () => {
      const machines = (await Promise.all(pools.map((pool) => pool.machines()))).flat();
      expect(machines.map(({ status }) => status?.currentStatus?.phase)).toEqual(Array(4).fill('Available'));
    }, PATIENCE);
    const ids = async (): Promise<readonly string[]> => (await cloud.vms()).map((vm) => vm.providerID).toSorted();
    const made = await ids();

    const orphan = cloud.simulation.cloud.plant({ ...one.identity, machineName: 'nobody' });
    await eventually(() => expect(cloud.removed).toEqual([orphan.providerID]), PATIENCE);
    const before = asked.lists.length;
    await eventually(() => {
      const since = asked.lists.slice(before);
      for (const { namespace } of pools) expect(since.filter((name) => name === namespace).length).toBeGreaterThan(3);
    }, PATIENCE);

    expect(asked.deletions).toEqual([orphan.providerID]);
    expect(made).toHaveLength(4);
    expect(await ids()).toEqual(made);
  },
  TEST_MS,
);
