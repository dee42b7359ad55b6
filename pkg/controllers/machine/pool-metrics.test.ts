import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, machineDeployment, machineSet } from '../../../test/builders.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { toTimestamp } from '../../base/clock/clock.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { poolMetrics } from './pool-metrics.ts';

const SET = machineSet((s) => {
  s.metadata.ownerReferences = [controllerReference(machineDeployment(), API_VERSION, 'MachineDeployment')];
});
const owned = (change: (m: ReturnType<typeof machine>) => void = () => undefined): Machine =>
  machine((m) => {
    m.metadata.ownerReferences = [controllerReference(SET, API_VERSION, 'MachineSet')];
    change(m);
  });

async function linesOf(machines: readonly Machine[], sets: readonly MachineSet[], clock = new FakeClock()) {
  const registry = new Registry();
  const machineSets = {
    get: (key: string) => sets.find(({ metadata }) => key === `${metadata.namespace ?? ''}/${metadata.name}`),
  };
  poolMetrics(registry, { machines: { list: () => machines }, machineSets, clock });
  const text = await registry.metrics();
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

test('machines are counted by the MachineDeployment that owns their MachineSet, and by phase', async () => {
  const fresh = owned((m) => delete (m as { status?: unknown }).status);
  const failed = owned((m) => void (m.status.currentStatus.phase = 'Failed'));

  expect(await linesOf([owned(), owned(), failed, fresh], [SET])).toEqual([
    'machinist_machines{namespace="default",machine_deployment="deployment-1",phase="Running"} 2',
    'machinist_machines{namespace="default",machine_deployment="deployment-1",phase="Failed"} 1',
    'machinist_machines{namespace="default",machine_deployment="deployment-1",phase=""} 1',
  ]);
});

test.each([
  { what: 'nobody', of: machine(), pool: '' },
  { what: 'a MachineSet that is not read', of: owned(), pool: '' },
  {
    what: 'one, too, that says its MachineDeployment',
    of: owned((m) => void (m.metadata.labels['name'] = 'p')),
    pool: 'p',
  },
])('a machine of $what is of MachineDeployment "$pool"', async ({ of, pool }) => {
  expect(await linesOf([of], [])).toEqual([
    `machinist_machines{namespace="default",machine_deployment="${pool}",phase="Running"} 1`,
  ]);
});

test('machines count as preserved until that expires', async () => {
  const clock = new FakeClock();
  const until = toTimestamp(clock.now() + 60_000);
  const kept = owned((m) => void (m.status.currentStatus.preserveExpiryTime = until));
  const preserved = async (): Promise<string[]> =>
    (await linesOf([kept, owned()], [SET], clock)).filter((line) => line.startsWith('machinist_machines_preserved'));

  const during = await preserved();
  clock.advance(60_000);

  expect(during).toEqual(['machinist_machines_preserved{namespace="default",machine_deployment="deployment-1"} 1']);
  expect(await preserved()).toEqual([]);
});

test('machines count as in maintenance from the request on, until their Node is given back', async () => {
  const asked = owned((m) => void (m.metadata.annotations = { 'machine.sapcloud.io/maintenance': 'true' }));
  const ending = owned((m) => void (m.metadata.annotations = { 'machine.sapcloud.io/maintenance-since': 'then' }));

  const lines = await linesOf([asked, ending, owned()], [SET]);

  expect(lines.filter((line) => line.startsWith('machinist_machines_in_maintenance'))).toEqual([
    'machinist_machines_in_maintenance{namespace="default",machine_deployment="deployment-1"} 2',
  ]);
});
