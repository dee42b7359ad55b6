import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, machineDeployment, machineSet } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { rolloutMetrics } from './rollout-metrics.ts';

/** What a process shows of its MachineDeployments. */
class World {
  readonly clock = new FakeClock();
  deployments: MachineDeployment[] = [];
  sets: MachineSet[] = [];
  readonly machines = new Map<string, Machine[]>();
  #registry = new Registry();

  constructor() {
    this.restart();
  }

  /** Shows them by a process that remembers nothing. */
  restart(): void {
    this.#registry = new Registry();
    rolloutMetrics(this.#registry, {
      machineDeployments: { list: () => this.deployments },
      machineSets: { list: () => this.sets },
      machines: { byIndex: (_index, uid) => this.machines.get(uid) ?? [] },
      clock: this.clock,
    });
  }

  /** Makes a set, now. */
  make(name: string, revision: number): void {
    const set = machineSet((s) => {
      s.metadata.name = name;
      s.metadata.uid = name;
      s.metadata.creationTimestamp = toTimestamp(this.clock.now());
      s.metadata.annotations = { 'deployment.kubernetes.io/revision': String(revision) };
      s.metadata.ownerReferences = [controllerReference(machineDeployment(), API_VERSION, 'MachineDeployment')];
    });
    this.sets = [...this.sets, set];
  }

  /** Makes a Machine of a set, now. */
  addMachine(set: string): void {
    const made = machine((m) => void (m.metadata.creationTimestamp = toTimestamp(this.clock.now())));
    this.machines.set(set, [...(this.machines.get(set) ?? []), made]);
  }

  rolls(isRolling: boolean): void {
    this.deployments = [machineDeployment((d) => void (d.status.updatedReplicas = isRolling ? 0 : 1))];
  }

  async value(name: string): Promise<number | undefined> {
    const gauge = this.#registry.getSingleMetric(`machinist_machine_deployment_${name}`);
    return (await gauge?.get())?.values[0]?.value;
  }

  age(): Promise<number | undefined> {
    return this.value('rollout_age_seconds');
  }
}

test('a rollout is as old as the newest MachineSet, also for a process that has not seen its beginning', async () => {
  const world = new World();
  world.make('first', 1);
  world.clock.advance(3_600_000);
  world.make('second', 2);
  world.clock.advance(60_000);
  world.rolls(true);
  const during = await world.age();
  world.rolls(false);

  expect(during).toBe(60);
  expect(await world.age()).toBe(0);
});

test('a rollout back to an earlier MachineSet began after the last look without one', async () => {
  const world = new World();
  world.make('first', 3);
  world.clock.advance(3_600_000);
  world.rolls(false);
  await world.age();
  world.rolls(true);
  world.clock.advance(30_000);
  const during = await world.age();
  world.deployments = [];

  expect(during).toBe(30);
  expect(await world.age()).toBeUndefined();
});

test.each([
  { what: 'a rollout to a new template', first: 1, second: 2, made: ['second'], age: 90 },
  { what: 'a rollout to a new template that has no Machines yet', first: 1, second: 2, made: [], age: 90 },
  { what: 'a rollout back', first: 3, second: 2, made: ['first'], age: 90 },
  { what: 'a rollout back that has no Machines yet', first: 3, second: 2, made: [], age: 30 },
])('a process that was started after 60 s of $what shows $age s after 90', async ({ first, second, made, age }) => {
  const world = new World();
  world.make('first', first);
  world.clock.advance(3_600_000);
  const isBack = first > second;
  if (isBack) {
    world.make('second', second);
    world.addMachine('second');
    world.clock.advance(3_600_000);
  } else {
    world.addMachine('first');
    world.make('second', second);
  }
  for (const set of made) world.addMachine(set);
  world.rolls(true);
  world.clock.advance(60_000);
  world.restart();
  await world.age();
  world.clock.advance(30_000);
  for (const set of made) world.addMachine(set);

  expect(await world.age()).toBe(age);
});

test('a process that was started during a rollout back does not take it for younger when Machines of its beginning are gone', async () => {
  const world = new World();
  world.make('first', 3);
  world.make('second', 2);
  world.addMachine('second');
  world.addMachine('first');
  world.clock.advance(60_000);
  world.addMachine('first');
  world.rolls(true);
  await world.age();
  world.clock.advance(60_000);
  world.machines.set('first', world.machines.get('first')?.slice(1) ?? []);

  expect(await world.age()).toBe(120);
});

test('the label shows a freeze', async () => {
  const world = new World();
  world.rolls(false);
  const before = await world.value('frozen');
  world.deployments = [machineDeployment((d) => void (d.metadata.labels = { freeze: 'True' }))];

  expect([before, await world.value('frozen')]).toEqual([0, 1]);
});
