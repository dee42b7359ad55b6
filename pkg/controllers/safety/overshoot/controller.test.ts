import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, type BuiltMachineSet } from '../../../../test/builders.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { FREEZE_LABEL, UNFREEZE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machineSets } from '../../../kube/client/resource.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../../operator/indexes/owner-index.ts';
import { OvershootController } from './controller.ts';

const PERIOD_MS = 60_000;
const signal = new AbortController().signal;

function set(name: string, change?: (s: BuiltMachineSet) => void): MachineSet {
  return machineSet((s) => {
    s.metadata.name = name;
    change?.(s);
  });
}

function machinesOf(owner: MachineSet, count: number): Machine[] {
  return Array.from({ length: count }, (_unused, i) =>
    machine((m) => {
      m.metadata.name = `${owner.metadata.name}-${i}`;
      m.metadata.ownerReferences = [controllerReference(owner, 'machine.sapcloud.io/v1alpha1', 'MachineSet')];
    }),
  );
}

function scene(
  sets: readonly MachineSet[],
  machines: readonly Machine[],
  ownerless: readonly string[] = [],
  deployments: readonly MachineDeployment[] = [],
) {
  const clock = new FakeClock();
  const writer = new MemoryClient();
  writer.put(machineSets, ...sets);
  const indexes = { [CONTROLLER_INDEX]: controllerIndex };
  const controller = new OvershootController({
    machines: new MemoryInformer(machines, indexes),
    machineSets: new MemoryInformer(sets, indexes),
    machineDeployments: new MemoryInformer(deployments),
    ownerless: { list: () => ownerless.map((machineName) => ({ machineName, providerID: `sim:///${machineName}` })) },
    writer,
    recorder: { event: () => undefined },
    clock,
    log: silentLogger,
    margins: { up: 2, down: 1 },
    periodMs: PERIOD_MS,
  });
  const frozen = (): string[] =>
    writer.writes.filter(({ body }) => JSON.stringify(body).includes('"freeze":"True"')).map(({ what }) => what);
  return { clock, controller, writer, frozen };
}

test.each([
  { title: 'at its limit is frozen', count: 4, ownerless: [], change: undefined, isFrozen: true },
  { title: 'below it is not', count: 3, ownerless: [], change: undefined, isFrozen: false },
  { title: 'counts VMs that no Machine has', count: 3, ownerless: ['a-x'], change: undefined, isFrozen: true },
  {
    title: 'that is being deleted is left alone',
    count: 4,
    ownerless: [],
    change: (s: BuiltMachineSet) => void (s.metadata.deletionTimestamp = 'now'),
    isFrozen: false,
  },
])('a set of one machine $title', async ({ count, ownerless, change, isFrozen }) => {
  const one = set('a', change);
  const { controller, frozen } = scene([one], machinesOf(one, count), ownerless);

  await controller.reconcile(signal);

  expect(frozen()).toEqual(isFrozen ? ['machinesets/a'] : []);
});

test('a set that cannot be written is tried again, and holds no other back', async () => {
  const [one, two] = [set('a'), set('b')];
  const { controller, writer, frozen } = scene([one, two], [...machinesOf(one, 4), ...machinesOf(two, 4)]);
  writer.failures.push(new ApiError(409, 'Conflict', 'changed'));

  await expect(controller.reconcile(signal)).rejects.toThrow('changed');

  expect(frozen()).toEqual(['machinesets/b']);
});

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const owner = machineDeployment((d) => void (d.spec.replicas = 1));
const owned = set('a', (s) => {
  s.metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineDeployment')];
});

test.each([
  { what: 'a set that a user has released', uid: owned.metadata.uid },
  { what: 'a set whose MachineDeployment a user has released', uid: owner.metadata.uid },
])('$what is left alone for one period', async ({ uid }) => {
  const { clock, controller, frozen } = scene([owned], machinesOf(owned, 9), [], [owner]);
  controller.released(uid);

  await controller.reconcile(signal);
  expect(frozen()).toEqual([]);

  clock.advance(PERIOD_MS);
  await controller.reconcile(signal);
  expect(frozen()).toContain('machinesets/a');
});

test.each([
  { what: 'set', isSet: true, machines: 9 },
  { what: 'set', isSet: true, machines: 0 },
  { what: 'MachineDeployment with its sets', isSet: false, machines: 9 },
  { what: 'MachineDeployment with its sets', isSet: false, machines: 0 },
])('a $what of $machines machines whose release is asked for is left to its own controller', async (row) => {
  const ask = (one: Pick<BuiltMachineSet, 'metadata'>): void => {
    one.metadata.annotations[UNFREEZE_ANNOTATION] = 'True';
  };
  const deployment = machineDeployment((d) => {
    d.metadata.labels[FREEZE_LABEL] = 'True';
    if (!row.isSet) ask(d);
  });
  const one = set('a', (s) => {
    s.metadata.ownerReferences = owned.metadata.ownerReferences ?? [];
    s.metadata.labels[FREEZE_LABEL] = 'True';
    if (row.isSet) ask(s);
  });
  const { controller, writer } = scene([one], machinesOf(one, row.machines), [], row.isSet ? [] : [deployment]);

  await controller.reconcile(signal);

  expect(writer.writes).toEqual([]);
});
