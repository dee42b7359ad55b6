import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, machineClass, node, type BuiltMachine } from '../../../../test/builders.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { MINUTE_MS, toTimestamp } from '../../../base/clock/clock.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machines as machineResource, nodes } from '../../../kube/client/resource.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { orphanVMMetrics } from './metrics.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { MACHINE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { CLASS_INDEX, classIndex } from '../../../operator/indexes/class-index.ts';
import { MACHINE_NAME_LABEL, VM_CLASS_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import type { MachineEventSink } from '../../machine-facts/events.ts';
import { ReplacementPace } from '../../machine-facts/pace.ts';
import { hold, type ReplacementHoldKind } from '../../machine-facts/replacement-hold.ts';
import { Zones } from '../../machine-facts/zones.ts';
import type { Unlisted } from './blind-accounts.ts';
import { Evidence } from './evidence.ts';
import { VanishedVMs } from './vanished-vms.ts';

const GRACE_MS = 60_000;
const HALF_MINUTE_MS = 30_000;
const KEY = 'default/class-1';
const signal = new AbortController().signal;

/** Machines whose VMs the provider does not know, of one set of which one may be replaced at once; looked at twice. */
class World {
  readonly client = new MemoryClient();
  readonly targetClient = new MemoryClient();
  readonly driver = new FakeDriver();
  readonly machines: MemoryInformer<Machine>;
  readonly #vanished: VanishedVMs;
  target: Target | undefined;
  graceLeftMs = 0;
  mayReplace = true;
  /** `max-replacements` of its MachineDeployment. */
  limit = 1;
  readonly events: string[] = [];
  readonly clock = new FakeClock();
  readonly pace = new ReplacementPace({ clock: this.clock });

  constructor(seen: readonly Machine[] = [machine()]) {
    this.machines = new MemoryInformer(seen, { ...MACHINE_INDEXES, [CLASS_INDEX]: classIndex });
    for (const one of seen) this.client.put(machineResource, one);
    this.driver.notFound = () => new DriverError('NotFound', 'no such VM');
    this.target = { cluster: 'target', reader: this.targetClient } as unknown as Target;
    const targets = { of: () => this.target, all: () => (this.target === undefined ? [] : [this.target]) };
    const deps = {
      machines: this.machines,
      reader: this.client,
      writer: this.client,
      targets,
      trust: { trustedForMs: () => Infinity, blindMs: () => 0, graceLeftMs: () => this.graceLeftMs },
      zones: new Zones({
        machines: this.machines,
        classes: new MemoryInformer<MachineClass>(),
        targets,
        settings: { zoneUnhealthyThreshold: 0.5, nodeConditions: [] },
      }),
      budget: {
        tryAcquire: () => (this.mayReplace ? { [Symbol.dispose]: () => undefined } : undefined),
        poolOf: () => ({ key: 'set', limit: this.limit, machines: this.machines.list() }),
      },
      pace: this.pace,
      machineEvents: {
        event: ({ object, reason, message }: Parameters<MachineEventSink['event']>[0]) =>
          void this.events.push(`${object.metadata.name} ${reason} ${message}`),
      },
      metrics: orphanVMMetrics(new Registry(), () => 0),
      clock: this.clock,
      graceMs: GRACE_MS,
      log: silentLogger,
      settings: { nodeConditions: [], healthTimeoutMs: 10 * MINUTE_MS },
    };
    this.#vanished = new VanishedVMs(deps, new Evidence(GRACE_MS));
  }

  /** One look; `before` is what was settled when it began. */
  async look(
    atMs: number,
    before = this.#vanished.settled(KEY),
    { isDoubted = false } = {},
  ): Promise<readonly string[]> {
    const list = this.#list(KEY);
    const sight = { atMs, wallMs: atMs, vms: 0, machines: 1 };
    const suspects = await this.#vanished.examine([this.#vanished.unlisted(list, new Set(), before)], sight, signal);
    if (!isDoubted) await this.#vanished.fail(suspects, signal);
    return suspects.map((one) => one.machine.metadata.name);
  }

  /** Asks for Machines of classes of one account. */
  async asksOf(byClass: ReadonlyMap<string, readonly Machine[]>): Promise<number> {
    const unlisted = [...byClass].map(([key, machines]) => ({
      list: this.#list(key),
      machines,
      expected: machines.length,
    }));
    const sight = { atMs: 0, wallMs: 0, vms: 0, machines: 0 };
    return (await this.#vanished.examine(unlisted, sight, signal)).length;
  }

  /** The list of a class that shows nothing. */
  #list(key: string) {
    const { driver } = this;
    return {
      key,
      machineClass: machineClass(),
      driver,
      secretData: {},
      scope: 'class' as const,
      vms: [],
      foreign: [],
    };
  }

  /** What a look finds that shows these VMs. */
  sees(listed: ReadonlySet<string>): { unlisted: Unlisted } {
    return { unlisted: this.#vanished.unlisted(this.#list(KEY), listed, this.#vanished.settled(KEY)) };
  }

  /** Asks for its only machine by itself, in two looks, with the driver that cannot list. */
  async asks(): Promise<void> {
    const access = { key: KEY, machineClass: machineClass(), driver: this.driver, secretData: {} };
    for (const atMs of [0, GRACE_MS]) {
      for (const one of this.#vanished.withoutNode(KEY))
        await this.#vanished.ask(access, one, { atMs, wallMs: atMs, vms: 0, machines: 1 }, signal);
    }
  }

  async looks(): Promise<void> {
    await this.look(0);
    await this.look(GRACE_MS);
  }
}

test.each<{ what: string; change: (world: World) => void; suspects: readonly string[] }>([
  { what: 'does not know its VM', change: () => undefined, suspects: ['m-1'] },
  {
    what: 'finds it',
    change: ({ driver }) => void driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] }),
    suspects: [],
  },
  {
    what: 'does not answer',
    change: ({ driver }) => void (driver.notFound = () => new DriverError('Unavailable', 'no answer')),
    suspects: [],
  },
  {
    what: 'tells nothing of single machines',
    change: ({ driver }) => void (driver.notFound = () => new DriverError('Unimplemented', 'no such method')),
    suspects: ['m-1'],
  },
  {
    what: 'says that it is not initialized',
    change: ({ driver }) => void (driver.notFound = () => new DriverError('Uninitialized', 'not yet')),
    suspects: [],
  },
])(
  'of the machines that no list shows those are under suspicion of which the provider $what: $suspects',
  async (row) => {
    const world = new World();
    row.change(world);

    expect(await world.look(0)).toEqual(row.suspects);
  },
);

describe('a machine whose VM the provider does not know', () => {
  test('of another class is asked for with that, although it names this one by now', async () => {
    const world = new World([machine((m) => void (m.metadata.annotations[VM_CLASS_ANNOTATION] = 'class-2'))]);
    await world.looks();

    expect([world.client.writes, world.driver.calls]).toEqual([[], []]);
  });

  test('fails with the second look, as it was read live, while its clusters are known to live', async () => {
    const world = new World();
    await world.look(0);
    expect(world.client.writes).toEqual([]);

    await world.look(GRACE_MS);

    const { uid, resourceVersion } = machine().metadata;
    const guard = { intent: 'destroy', uid, resourceVersion, clusters: ['control', 'target'] };
    const lastOperation = { type: 'HealthCheck', state: 'Failed', errorCode: 'NotFound' };
    const body = { status: { currentStatus: { phase: 'Failed' }, lastOperation } };
    expect(world.client.writes).toMatchObject([{ what: 'machines/m-1/status', ...guard, body }]);
  });

  test('does not fail with the second look when it was found in between, in one that did not come to its end', async () => {
    const world = new World();
    await world.look(0);
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
    await world.look(1_000);
    world.driver.vms.clear();
    await world.look(GRACE_MS);

    expect(world.client.writes).toEqual([]);
  });

  test('does not fail while its provider is doubted, and does with the next look that is believed', async () => {
    const world = new World();
    await world.look(0);

    expect(await world.look(GRACE_MS, undefined, { isDoubted: true })).toHaveLength(1);
    expect(world.client.writes).toEqual([]);
    await world.look(2 * GRACE_MS);
    expect(world.client.writes).toHaveLength(1);
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
      but: 'the provider tells nothing of single machines',
      change: ({ driver }) => void (driver.notFound = () => new DriverError('Unimplemented', 'no such method')),
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

  test('is one of those that the lists had to show', () => {
    const { unlisted } = new World().sees(new Set(['sim:///m-1']));

    expect(unlisted).toMatchObject({ machines: [], expected: 1 });
  });

  test('fails although the Node of another machine works, which its label names', async () => {
    const other = machine((m) => {
      Object.assign(m.metadata, { name: 'other', uid: 'uid-of-other', labels: {} });
      m.spec.class = { kind: 'MachineClass', name: 'of-another-kind' };
    });
    const world = new World();
    world.machines.put(other);
    world.targetClient.put(
      nodes,
      node((n) => void (n.metadata.labels[MACHINE_NAME_LABEL] = 'other')),
    );

    await world.looks();

    expect(world.client.writes.map(({ what }) => what)).toEqual([`machines/${machine().metadata.name}/status`]);
  });

  test.each(['Pending', 'Available'] as const)('and which is %s has had twice the grace to show it', async (phase) => {
    const { clock } = new World();
    const status = { phase, lastUpdateTime: toTimestamp(clock.now()) };
    const world = new World([machine((m) => void (m.status.currentStatus = status))]);

    expect(await world.look(0)).toEqual(['m-1']);
    world.clock.advance(2 * GRACE_MS - 1);
    expect(await world.look(2 * GRACE_MS - 1)).toEqual(['m-1']);
    expect(world.client.writes).toEqual([]);

    world.clock.advance(1);
    await world.look(2 * GRACE_MS);
    expect(world.client.writes.map(({ what }) => what)).toEqual(['machines/m-1/status']);
  });

  test('fails without a target cluster, too: then the provider is the only witness', async () => {
    const world = new World();
    world.target = undefined;

    await world.looks();

    const guard = { intent: 'destroy', clusters: ['control'] };
    expect(world.client.writes).toMatchObject([{ what: 'machines/m-1/status', ...guard }]);
  });

  test('fails without a target cluster when the driver cannot list either, and says what was asked', async () => {
    const world = new World();
    world.target = undefined;

    await world.asks();

    expect(world.driver.calls).toEqual(['status', 'status']);
    const description =
      'VM sim:///m-1 no longer exists: GetMachineStatus returned NotFound in the checks of 00:00:00 and 00:01:00: 60 s apart';
    expect(world.client.writes).toMatchObject([{ body: { status: { lastOperation: { description } } } }]);
  });

  test('is not asked for by itself where its Node tells', async () => {
    const world = new World();

    await world.asks();

    expect([world.driver.calls, world.client.writes]).toEqual([[], []]);
  });

  test('stays when its Node cannot be read', async () => {
    const world = new World();
    const refused = new ApiError(503, 'ServiceUnavailable', 'etcd is away');
    world.target = { cluster: 'target', reader: { get: () => Promise.reject(refused) } } as unknown as Target;

    await expect(world.looks()).rejects.toBe(refused);
    expect(world.client.writes).toEqual([]);
  });

  test('is one of fifty at most that are asked for at once', async () => {
    const many = Array.from({ length: 60 }, (_, i) =>
      machine((m) => void Object.assign(m.metadata, { name: `m-${i}`, uid: `uid-${i}` })),
    );
    const world = new World(many);

    expect(await world.look(0)).toHaveLength(50);
    expect(world.driver.calls).toHaveLength(50);
  });

  test('is one of fifty at most of its account, the classes of which have equal shares, and of those that half a minute is enough for', async () => {
    const world = new World();
    const { driver } = world;
    const asked: string[] = [];
    let answer: () => void = () => undefined;
    driver.hold = new Promise((resolve) => {
      answer = resolve;
    });
    const getStatus = driver.getStatus.bind(driver);
    driver.getStatus = async (request) => {
      asked.push(request.machine.metadata.name);
      return await getStatus(request);
    };
    const of = (key: string): Machine[] =>
      Array.from({ length: 60 }, (_, i) =>
        machine((m) => void Object.assign(m.metadata, { name: key, uid: `uid-of-${key}-${i}` })),
      );
    const suspects = world.asksOf(new Map(['a', 'b'].map((key) => [key, of(key)])));
    for (let i = 0; i < 200; i++) await Promise.resolve();
    const atOnce = ['a', 'b'].map((key) => asked.filter((one) => one === key).length);
    world.clock.advance(HALF_MINUTE_MS);
    answer();

    expect([atOnce, await suspects, asked.length]).toEqual([[25, 25], 50, 50]);
  });

  test('is not asked for when it got that VM while the list was taken', async () => {
    const world = new World();

    expect(await world.look(0, new Map([[machine().metadata.uid, 'sim:///before']]))).toEqual([]);
    expect(world.driver.calls).toEqual([]);
  });
});

describe('a machine whose VM is gone says in each look why it is not replaced', () => {
  test.each<{ what: string; limit: number; why: ReplacementHoldKind }>([
    { what: 'as many others as allowed are being replaced', limit: 1, why: 'limit' },
    { what: 'no replacement is allowed', limit: 0, why: 'stopped' },
  ])('while $what', async ({ limit, why }) => {
    const world = new World();
    Object.assign(world, { mayReplace: false, limit });

    await world.looks();
    await world.look(2 * GRACE_MS);

    const said = `m-1 ReplacementDelayed VM sim:///m-1 no longer exists. Not replaced yet: ${hold(why).text}`;
    expect(world.events).toEqual([said, said]);
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
    {
      what: 'half of the zone is Unknown',
      phases: ['Unknown', 'Unknown', 'Unknown', 'Running', 'Running', 'Running'],
      first: 1,
      later: 2,
    },
    { what: 'all of it is', phases: ['Unknown', 'Unknown', 'Unknown'], first: 1, later: 2 },
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

  test('fail at the same pace without a target cluster, where no Node says that they work', async () => {
    const world = new World(group(['Available', 'Available', 'Available', 'Available', 'Available', 'Available']));
    world.target = undefined;
    world.clock.advance(2 * GRACE_MS);

    await world.looks();
    expect(failed(world)).toHaveLength(1);
    await world.look(2 * GRACE_MS);
    expect(failed(world)).toHaveLength(1);
    world.clock.advance(10 * MINUTE_MS);
    await world.look(3 * GRACE_MS);

    expect(failed(world)).toHaveLength(2);
  });

  test('wait for those that the machine controller replaces', async () => {
    const world = new World(group(['Unknown', 'Unknown', 'Running', 'Running', 'Running']));
    const pool = { key: 'set', isAlone: false, limit: 1 };
    world.pace.begin({
      uid: 'another',
      pool,
      zone: { key: 'another', together: 1 },
      healthTimeoutMs: 10 * MINUTE_MS,
    });

    await world.looks();

    expect(failed(world)).toEqual([]);
    const why = `no longer exists. Not replaced yet: ${hold('pace').text}`;
    expect(world.events).toEqual([
      expect.stringContaining(`m-0 ReplacementDelayed VM sim:///0 ${why}`),
      expect.stringContaining(`m-1 ReplacementDelayed VM sim:///1 ${why}`),
    ]);
  });
});

function another(change: (m: BuiltMachine) => unknown): Machine {
  return machine((m) => void change(m));
}
