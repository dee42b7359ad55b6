import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, machineClass } from '../../../../test/builders.ts';
import { ActivityRegistry } from '../../../activity/registry.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { FakeClock } from '../../../clock/fake-clock.ts';
import type { ListedMachine, MachineRequest } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { CONTROL } from '../../../gate/gate.ts';
import { silentLogger } from '../../../log/logger.ts';
import { activityMetrics } from '../../../metrics/activity.ts';
import { safetyMetrics } from '../../../metrics/safety.ts';
import { FakeDriver } from '../../machine/fake-world.ts';
import { Departures } from '../departures.ts';
import { GoneMachines } from '../gone-machines.ts';
import { OwnerlessVMs } from '../ownerless-vms.ts';
import { Collector } from './collector.ts';
import { OrphanVMsController } from './controller.ts';
import { Evidence } from './evidence.ts';

const GRACE_MS = 60_000;
const signal = new AbortController().signal;
const FAILURE = new DriverError('Unavailable', 'no answer');
const VM: ListedMachine = { providerID: 'sim:///m-1', machineName: 'm-1', machineUID: 'uid-of-machine-m-1' };

/** A provider that lists what it is told, and notes what it is to delete. */
class Provider extends FakeDriver {
  listed: readonly ListedMachine[] | Error = [VM];
  readonly deleted: MachineRequest['machine'][] = [];
  lists = 0;
  override methods = new Set(['ListMachines'] as const);

  override list(): Promise<readonly never[]> {
    this.lists += 1;
    // The fake lists nothing by its type.
    return this.listed instanceof Error
      ? Promise.reject(this.listed)
      : Promise.resolve(this.listed as readonly never[]);
  }

  override delete({ machine: stub }: MachineRequest): Promise<{ lastKnownState: string | undefined }> {
    this.deleted.push(stub);
    return Promise.resolve({ lastKnownState: undefined });
  }
}

/** The orphan loop over one class. `machines` is what the API server has, `isOwned` what the caches say at the last moment. */
class World {
  readonly clock = new FakeClock();
  readonly provider = new Provider();
  readonly departures = new Departures();
  readonly ownerless = new OwnerlessVMs();
  machines: Machine[] | Error = [];
  isOwned = false;
  trustedSinceMs = -GRACE_MS;
  readonly #controller: OrphanVMsController;

  constructor() {
    const { clock, provider, departures, ownerless } = this;
    const oneClass = machineClass();
    const registry = new Registry();
    const activities = new ActivityRegistry({
      clock,
      log: silentLogger,
      metrics: activityMetrics(registry),
      limits: { create: 1, initialize: 1, status: 1, delete: 1, drain: 1, detach: 1 },
      enqueue: () => undefined,
    });
    const collector = new Collector('orphan-vms', {
      activities,
      recorder: { event: () => undefined },
      metrics: safetyMetrics(registry, () => 0),
      log: silentLogger,
      isDryRun: false,
      isOwned: () => this.isOwned,
      collected: () => undefined,
    });
    this.#controller = new OrphanVMsController({
      drivers: { resolve: () => provider, all: () => [provider] },
      secrets: { of: () => Promise.resolve({ data: {}, missing: [], fingerprint: '' }) },
      reader: {
        get: () => Promise.reject(new Error('not asked for')),
        list: () =>
          this.machines instanceof Error
            ? Promise.reject(this.machines)
            : Promise.resolve({ metadata: { resourceVersion: '7' }, items: this.machines as never[] }),
      },
      namespace: 'default',
      classes: listerOf<MachineClass>([oneClass]),
      machines: listerOf<Machine>([]),
      collector,
      vanished: { settled: () => new Map(), examine: () => Promise.resolve([]) },
      missingVMs: new Evidence(GRACE_MS),
      orphans: new Evidence(GRACE_MS),
      ownerless,
      gone: new GoneMachines(),
      departures,
      trust: {
        trustedForMs: () => clock.monotonicMs() - this.trustedSinceMs,
        graceLeftMs: () => 0,
      },
      clusters: [CONTROL],
      clock,
      log: silentLogger,
      periodMs: GRACE_MS,
      graceMs: GRACE_MS,
    });
  }

  /** A look at this moment, which may fail. */
  async look(): Promise<void> {
    this.#controller.hurry();
    await Promise.allSettled([this.#controller.reconcile(signal)]);
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Looks, each a grace after the one before, until the VM is deleted; resolves with how many it took. */
  async looksUntilDeleted(): Promise<number> {
    for (let looks = 1; looks < 10; looks++) {
      await this.look();
      if (this.provider.deleted.length > 0) return looks;
      this.clock.advance(GRACE_MS);
    }
    return Infinity;
  }
}

function listerOf<T extends Machine | MachineClass>(objects: readonly T[]) {
  return { get: () => objects[0], list: () => objects, byIndex: () => objects };
}

test('a VM that no Machine has is deleted by its provider id alone, with the second look', async () => {
  const world = new World();

  expect(await world.looksUntilDeleted()).toBe(2);

  // A driver that is told a UID would also find the VM of the Machine that this one is a twin of.
  expect(world.provider.deleted).toEqual([
    { metadata: { name: 'm-1', namespace: 'default' }, spec: { providerID: 'sim:///m-1' } },
  ]);
});

test('a VM that has got a Machine since the last look is not deleted', async () => {
  const world = new World();
  world.isOwned = true;

  expect(await world.looksUntilDeleted()).toBe(Infinity);
});

test('what was seen before the present trust began proves nothing', async () => {
  const world = new World();
  await world.look();
  world.clock.advance(GRACE_MS);
  world.trustedSinceMs = world.clock.monotonicMs() - 1;

  expect(await world.looksUntilDeleted()).toBe(2);
});

test('nothing is asked of the provider while it cannot be trusted what is seen', async () => {
  const world = new World();
  world.trustedSinceMs = world.clock.monotonicMs();

  await world.look();

  expect(world.provider.lists).toBe(0);
});

test.each([
  { what: 'Machines cannot be read', machines: FAILURE, listed: [VM], more: 3 },
  { what: 'its class cannot be listed', machines: [], listed: FAILURE, more: 3 },
  { what: 'nothing fails', machines: [], listed: [VM], more: 2 },
])('the VM of a Machine that vanished counts as owned in one whole look: $what', async (row) => {
  const { machines, listed, more } = row;
  const world = new World();
  expect(world.departures.left(machine())).toBe('unexpectedly');
  world.machines = machines;
  world.provider.listed = listed;

  await world.look();
  world.clock.advance(GRACE_MS);
  world.machines = [];
  world.provider.listed = [VM];

  expect(await world.looksUntilDeleted()).toBe(more);
});

test('a Machine that took the name of one that vanished keeps what is being made for it', async () => {
  const world = new World();
  world.departures.left(machine((o) => void (o.spec.providerID = 'sim:///before')));
  world.machines = [
    machine((o) => {
      o.metadata.uid = 'uid-of-another';
      o.spec.providerID = '';
      o.status.currentStatus.phase = '';
    }),
  ];

  await world.look();

  expect(world.ownerless.list()).toEqual([]);
});
