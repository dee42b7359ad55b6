import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, machineClass, node, type BuiltMachine } from '../../../../test/builders.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { MINUTE_MS, toTimestamp } from '../../../clock/clock.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { DriverError } from '../../../driver/error.ts';
import { machines as machineResource, nodes } from '../../../kube/resource.ts';
import { silentLogger } from '../../../log/logger.ts';
import { orphanVMMetrics } from './metrics.ts';
import type { Target } from '../../../targets/targets.ts';
import { CLASS_INDEX, classIndex } from '../../../indexes/class-index.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import { ReplacementPace } from '../../machines/pace.ts';
import { Evidence } from './evidence.ts';
import { VanishedVMs } from './vanished-vms.ts';

const GRACE_MS = 60_000;
const KEY = 'default/class-1';
const signal = new AbortController().signal;

/** Machines whose VMs the provider does not know, of one set of which one may be replaced at once; looked at twice. */
class World {
  readonly client = new MemoryClient();
  readonly targetClient = new MemoryClient();
  readonly driver = new FakeDriver();
  readonly machines: MemoryInformer<Machine>;
  readonly #vanished: VanishedVMs;
  graceLeftMs = 0;
  mayReplace = true;
  readonly clock = new FakeClock();
  readonly pace = new ReplacementPace({ clock: this.clock });

  constructor(seen: readonly Machine[] = [machine()]) {
    this.machines = new MemoryInformer(seen, { [CLASS_INDEX]: classIndex });
    for (const one of seen) this.client.put(machineResource, one);
    this.driver.notFound = () => new DriverError('NotFound', 'no such VM');
    const target = { cluster: 'target', reader: this.targetClient } as unknown as Target;
    const deps = {
      machines: this.machines,
      reader: this.client,
      writer: this.client,
      targets: { of: () => target, all: () => [target] },
      trust: { trustedForMs: () => Infinity, blindMs: () => 0, graceLeftMs: () => this.graceLeftMs },
      classes: { get: () => undefined },
      budget: {
        tryAcquire: () => (this.mayReplace ? { [Symbol.dispose]: () => undefined } : undefined),
        poolOf: ({ metadata: { uid } }: Machine) => ({
          key: 'set',
          limit: 1,
          others: this.machines.list().filter(({ metadata }) => metadata.uid !== uid),
        }),
      },
      pace: this.pace,
      recorder: { event: () => undefined },
      metrics: orphanVMMetrics(new Registry(), () => 0),
      clock: this.clock,
      log: silentLogger,
      settings: { nodeConditions: [], healthTimeoutMs: 10 * MINUTE_MS, zoneUnhealthyThreshold: 0.5 },
    };
    this.#vanished = new VanishedVMs(deps, new Evidence(GRACE_MS));
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

describe('machines of one set and one zone whose VMs the provider does not know', () => {
  const START = new FakeClock().now();
  const group = (phases: readonly MachinePhase[]): Machine[] =>
    phases.map((phase, i) =>
      machine((m) => {
        m.metadata.name = `m-${i}`;
        m.metadata.uid = `uid-${i}`;
        m.spec.providerID = `sim:///${i}`;
        m.status.currentStatus = { phase, lastUpdateTime: toTimestamp(START) };
        m.status.conditions = [{ type: 'Ready', status: phase === 'Running' ? 'True' : 'Unknown' }];
      }),
    );
  /** Names of those that were failed so far; the cache shows it. */
  const failed = ({ client, machines }: World): readonly string[] => {
    const names = new Set(client.writes.map(({ what }) => what.split('/')[1] ?? ''));
    for (const name of names) {
      const one = structuredClone(machines.get(`default/${name}`)) as BuiltMachine;
      one.metadata.resourceVersion = '99';
      one.status.currentStatus.phase = 'Failed';
      machines.put(one);
    }
    return [...names];
  };

  test.each<{ what: string; phases: readonly MachinePhase[]; first: number; later: number }>([
    { what: 'half of the zone is Unknown', phases: ['Unknown', 'Unknown', 'Running', 'Running'], first: 0, later: 0 },
    {
      what: 'less than half of it is',
      phases: ['Unknown', 'Unknown', 'Unknown', 'Running', 'Running', 'Running', 'Running'],
      first: 1,
      later: 2,
    },
    { what: 'one of it is', phases: ['Unknown', 'Running', 'Running'], first: 1, later: 1 },
    { what: 'none is Unknown yet', phases: ['Running', 'Running', 'Running'], first: 0, later: 0 },
  ])('$what: $first fail at once, $later after a health timeout', async ({ phases, first, later }) => {
    const world = new World(group(phases));

    await world.looks();
    expect(failed(world)).toHaveLength(first);
    await world.look(2 * GRACE_MS);
    expect(failed(world)).toHaveLength(first);
    world.clock.advance(10 * MINUTE_MS);
    await world.look(3 * GRACE_MS);

    expect(failed(world)).toHaveLength(later);
  });

  test('wait for those that the machine controller replaces', async () => {
    const world = new World(group(['Unknown', 'Unknown', 'Running', 'Running', 'Running']));
    const pool = { key: 'set', unhealthy: 2, limit: 1 };
    world.pace.begin({
      uid: 'another',
      pool,
      zone: { key: 'another', together: 1 },
      healthTimeoutMs: 10 * MINUTE_MS,
    });

    await world.looks();

    expect(failed(world)).toEqual([]);
  });
});

function another(change: (m: BuiltMachine) => unknown): Machine {
  return machine((m) => void change(m));
}
