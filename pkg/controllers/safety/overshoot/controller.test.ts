import { expect, test } from '@jest/globals';

import { machine, machineSet, type BuiltMachineSet } from '../../../../test/builders.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { UNFREEZE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { FakeClock } from '../../../clock/fake-clock.ts';
import { ApiError } from '../../../kube/errors.ts';
import { machineSets } from '../../../kube/resource.ts';
import { silentLogger } from '../../../log/logger.ts';
import { controllerReference } from '../../../reconcile/ownership.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../machine-set/controller-index.ts';
import { CreationBrake } from '../../machine-set/creation-brake.ts';
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

function scene(sets: readonly MachineSet[], machines: readonly Machine[], ownerless: readonly string[] = []) {
  const clock = new FakeClock();
  const writer = new MemoryClient();
  writer.put(machineSets, ...sets);
  const indexes = { [CONTROLLER_INDEX]: controllerIndex };
  const cache = new MemoryInformer(sets, indexes);
  const controller = new OvershootController({
    machines: new MemoryInformer(machines, indexes),
    machineSets: cache,
    machineDeployments: new MemoryInformer<MachineDeployment>(),
    ownerless: { list: () => ownerless.map((machineName) => ({ machineName, providerID: `sim:///${machineName}` })) },
    writer,
    recorder: { event: () => undefined },
    clock,
    brake: new CreationBrake({ clock }),
    log: silentLogger,
    margins: { up: 2, down: 1 },
    periodMs: PERIOD_MS,
  });
  const frozen = (): string[] =>
    writer.writes.filter(({ body }) => JSON.stringify(body).includes('"freeze":"True"')).map(({ what }) => what);
  return { clock, cache, controller, writer, frozen };
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

test('a set that a user has released is left alone for one period', async () => {
  const asked = set('a', (s) => void (s.metadata.annotations = { [UNFREEZE_ANNOTATION]: 'True' }));
  const { clock, cache, controller, writer, frozen } = scene([asked], machinesOf(asked, 4));
  writer.failures.push(new ApiError(409, 'Conflict', 'changed'));
  await controller.reconcile(signal).catch(() => undefined);
  cache.put(set('a', (s) => void (s.metadata.resourceVersion = '2')));

  await controller.reconcile(signal);
  expect(frozen()).toEqual([]);

  clock.advance(PERIOD_MS);
  await controller.reconcile(signal);
  expect(frozen()).toEqual(['machinesets/a']);
});
