import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { TestCell } from '../cloud/cell.ts';
import type { WorkInProgress } from '../../pkg/health/work-in-progress.ts';
import { CELL_LEASES, cellsControl, CellsManager } from '../cloud/cells-manager.ts';
import type { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

/*
 * Who may write everything in one namespace, and in its target cluster, names what belongs to another one wherever an object names something.
 */
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };
const SELECTED = { labels: { cell: '' } };

let control: Site;
let tenant: TestCell;
let victim: TestCell;
let manager: CellsManager;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  control = stack.use(await cellsControl());
  tenant = stack.use(await TestCell.create(control, 'tenant', { replicas: 0 }));
  victim = stack.use(await TestCell.create(control, 'victim', { replicas: 1 }));
  manager = stack.use(
    await CellsManager.start({
      kubeconfig: control.kubeconfig,
      namespace: CELL_LEASES,
      drivers: [tenant, victim].map(({ driver }) => driver).join(','),
      flags: {},
    }),
  );
  await tenant.mark(control, SELECTED);
  await victim.mark(control, SELECTED);
  await victim.pool.untilUp(1);
});

afterAll(async () => {
  await stack.disposeAsync();
});

/** What the victim has, which nobody touches. */
async function possessions() {
  const vms = await victim.cloud.vms();
  const nodes = await victim.pool.nodes();
  const machines = await victim.pool.machines();
  return {
    vms: vms.map(({ providerID }) => providerID),
    nodes: nodes.map(({ metadata, spec }) => ({ uid: metadata.uid, spec })),
    machines: machines.map(({ metadata, spec }) => ({ uid: metadata.uid, spec })),
  };
}

test('the Secret of another namespace is not used', async () => {
  const own = await tenant.pool.machineClass();
  const { secretRef } = (await victim.pool.machineClass()) as { secretRef?: { name: string } };
  await tenant.pool.changeClass({ secretRef: { ...secretRef, namespace: victim.namespace }, provider: 'victim' });
  const before = await possessions();

  const name = await tenant.pool.postMachine();

  await eventually(
    async () =>
      expect((await tenant.pool.machine(name)).status?.lastOperation?.description).toContain(
        'is in another namespace, which is not allowed',
      ),
    PATIENCE,
  );
  await tenant.pool.deleteMachine(name);
  await tenant.pool.untilEmpty();
  expect(await possessions()).toEqual(before);
  expect(tenant.cloud.created).toEqual([]);
  const { secretRef: former, provider } = own as { secretRef?: object; provider?: string };
  await tenant.pool.changeClass({ secretRef: former, provider });
});

test('the VM and the Node of another namespace are not touched by a Machine that names them', async () => {
  const before = await possessions();
  const [providerID = ''] = before.vms;
  const [node] = await victim.pool.nodes();
  const body = { metadata: { name: node?.metadata.name }, spec: { providerID } };
  await tenant.target.api.send('POST', '/api/v1/nodes', body);

  const name = await tenant.pool.postMachine({ providerID });
  await tenant.pool.label(name, { node: node?.metadata.name ?? '' });
  await eventually(async () => expect((await tenant.pool.machine(name)).metadata.finalizers).not.toEqual([]), PATIENCE);
  await tenant.pool.deleteMachine(name);
  await eventually(async () => expect(await tenant.pool.machines()).toEqual([]), PATIENCE);

  expect(await possessions()).toEqual(before);
});

test('settings of a namespace reach no further than its own Machines', async () => {
  const before = await possessions();
  const names = ['namespace', 'control-kubeconfig', 'driver', 'cells', 'kube-api-qps'];
  for (const name of names) {
    const setting = `cell.machine.sapcloud.io/${name}`;
    await tenant.mark(control, { annotations: { [setting]: victim.namespace } });
    await eventually(async () => {
      const { cells } = JSON.parse(await manager.page('/work')) as WorkInProgress;
      const troubles = cells?.states.find(({ cell }) => cell === tenant.namespace)?.troubles ?? [];
      expect(troubles.join('\n')).toContain(`annotation ${setting} is not a setting`);
    }, PATIENCE);
    await tenant.mark(control, { annotations: { [setting]: null } });
  }

  expect(await possessions()).toEqual(before);
});
