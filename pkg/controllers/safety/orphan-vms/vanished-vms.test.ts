import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, machineClass, node, type BuiltMachine } from '../../../../test/builders.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { FakeClock } from '../../../clock/fake-clock.ts';
import { DriverError } from '../../../driver/error.ts';
import { machines as machineResource, nodes } from '../../../kube/resource.ts';
import { silentLogger } from '../../../log/logger.ts';
import { safetyMetrics } from '../../../metrics/safety.ts';
import type { Target } from '../../../targets/targets.ts';
import { CLASS_INDEX, classIndex } from '../../indexes/class-index.ts';
import { FakeDriver } from '../../machine/fake-world.ts';
import { Evidence } from './evidence.ts';
import { VanishedVMs } from './vanished-vms.ts';

const GRACE_MS = 60_000;
const KEY = 'default/class-1';
const signal = new AbortController().signal;

/** One Machine whose VM the provider does not know; looked at twice. */
class World {
  readonly client = new MemoryClient();
  readonly targetClient = new MemoryClient();
  readonly driver = new FakeDriver();
  readonly machines: MemoryInformer<Machine>;
  readonly #vanished: VanishedVMs;
  graceLeftMs = 0;
  mayReplace = true;

  constructor(seen: Machine = machine()) {
    this.machines = new MemoryInformer([seen], { [CLASS_INDEX]: classIndex });
    this.client.put(machineResource, seen);
    this.driver.notFound = () => new DriverError('NotFound', 'no such VM');
    const target = { cluster: 'target', reader: this.targetClient } as unknown as Target;
    const parts = {
      machines: this.machines,
      reader: this.client,
      writer: this.client,
      targets: { of: () => target, all: () => [target] },
      trust: { trustedForMs: () => Infinity, blindMs: () => 0, graceLeftMs: () => this.graceLeftMs },
      fleet: { condemn: () => (this.mayReplace ? { [Symbol.dispose]: () => undefined } : undefined) },
      recorder: { event: () => undefined },
      metrics: safetyMetrics(new Registry(), () => 0),
      clock: new FakeClock(),
      log: silentLogger,
      settings: { nodeConditions: [] },
    };
    this.#vanished = new VanishedVMs(parts, new Evidence(GRACE_MS));
  }

  /** One look; `before` is what was settled when it began. */
  async look(atMs: number, before = this.#vanished.settled(KEY)): Promise<readonly string[]> {
    const { driver } = this;
    const list = { key: KEY, machineClass: machineClass(), driver, secretData: {}, vms: [], foreign: [] };
    const sight = { atMs, wallMs: atMs, vms: 0, machines: 1 };
    return await this.#vanished.examine(list, new Set(), before, sight, signal);
  }

  async looks(): Promise<void> {
    await this.look(0);
    await this.look(GRACE_MS);
  }
}

describe('a machine whose VM the provider does not know', () => {
  test('fails with the second look, as it was read live, while its clusters are known to live', async () => {
    const world = new World();
    await world.look(0);
    expect(world.client.writes).toEqual([]);

    await world.look(GRACE_MS);

    const { uid, resourceVersion } = machine().metadata;
    const guard = { intent: 'destroy', uid, resourceVersion, clusters: ['control', 'target'] };
    const body = { status: { currentStatus: { phase: 'Failed' } } };
    expect(world.client.writes).toMatchObject([{ what: 'machines/m-1/status', ...guard, body }]);
  });

  test.each<{ but: string; change: (world: World) => void }>([
    { but: 'an outage has just ended', change: (world) => void (world.graceLeftMs = 1) },
    { but: 'enough others are being replaced', change: (world) => void (world.mayReplace = false) },
    { but: 'its Node works', change: ({ targetClient }) => targetClient.put(nodes, node()) },
    {
      but: 'another one has its name by now',
      change: ({ client }) =>
        client.put(
          machineResource,
          another((m) => (m.metadata.uid = 'of another')),
        ),
    },
    {
      but: 'it has another VM by now',
      change: ({ client }) =>
        client.put(
          machineResource,
          another((m) => (m.spec.providerID = 'sim:///new')),
        ),
    },
    {
      but: 'it is being deleted by now',
      change: ({ client }) =>
        client.put(
          machineResource,
          another((m) => (m.metadata.deletionTimestamp = 'now')),
        ),
    },
    {
      but: 'the provider fails to tell',
      change: ({ driver }) => void (driver.notFound = () => new DriverError('Unavailable', 'no answer')),
    },
  ])('is left alone when $but', async ({ change }) => {
    const world = new World();
    change(world);

    await world.looks();

    expect(world.client.writes).toEqual([]);
  });

  test('is not asked for when it got that VM while the list was taken', async () => {
    const world = new World();

    expect(await world.look(0, new Map([[machine().metadata.uid, 'sim:///before']]))).toEqual([]);
    expect(world.driver.calls).toEqual([]);
  });
});

function another(change: (m: BuiltMachine) => unknown): Machine {
  return machine((m) => void change(m));
}
