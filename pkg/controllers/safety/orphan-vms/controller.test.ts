import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { type BuiltMachineClass, machine, machineClass, node } from '../../../../test/builders.ts';
import { ActivityRegistry } from '../../../work/activity/registry.ts';
import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION, MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Distrust } from './blind-accounts.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../../../apis/meta.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { Node } from '../../../apis/wire.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import type { ListedMachine, MachineRequest } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { CONTROL } from '../../../kube/gate/gate.ts';
import { singleTarget, type Target } from '../../../kube/targets/targets.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { activityMetrics } from '../../../base/metrics/activity.ts';
import { orphanVMMetrics } from './metrics.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import { RemovedMachines } from '../removed-machines.ts';
import { DeletedMachines, type DeletedMachine } from '../deleted-machines.ts';
import { VMStates } from '../../machine-facts/vm-states.ts';
import { DistrustedAccounts } from '../distrusted-accounts.ts';
import { OwnerlessVMs } from '../ownerless-vms.ts';
import { noteOfForcedRemoval } from '../../vms/forced-removals.ts';
import { OrphanBrake } from './brake.ts';
import { Collector } from './collector.ts';
import { OrphanVMsController } from './controller.ts';
import { Evidence, type Proof } from './evidence.ts';
import { ForgottenMachines } from './forgotten.ts';
import { LeftBehind } from './left-behind.ts';
import { LeftoverNodes } from './leftover-nodes.ts';
import { dropSettledNotes } from './settled-notes.ts';

const GRACE_MS = 30_000;
const PERIOD_MS = 900_000;
const signal = new AbortController().signal;
const FAILURE = new DriverError('Unavailable', 'no answer');
const VM_ANSWER = { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] };
const VM: ListedMachine = { providerID: 'sim:///m-1', machineName: 'm-1', machineUID: 'uid-of-machine-m-1' };

/** A provider that lists what it is told, and notes what it is to delete. */
class Provider extends FakeDriver {
  listed: readonly ListedMachine[] | Error = [VM];
  readonly deleted: MachineRequest['machine'][] = [];
  /** What deletions fail with. */
  failure: Error | undefined;
  /** Whether deletions have no end. */
  hangs = false;
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
    if (this.failure !== undefined) return Promise.reject(this.failure);
    if (this.hangs) return new Promise(() => undefined);
    return Promise.resolve({ lastKnownState: undefined });
  }
}

/** The orphan loop over one class. `machines` is what the API server has, `isOwned` what the caches say at the last moment. */
class World {
  readonly clock = new FakeClock();
  readonly provider = new Provider();
  /** Of other classes, by name. */
  readonly otherProviders = new Map<string, Provider>();
  readonly removed = new RemovedMachines();
  readonly ownerless = new OwnerlessVMs();
  readonly distrusted = new DistrustedAccounts();
  readonly vmStates = new VMStates();
  /** Since everything was looked at. */
  stateLooks = 0;
  statesDueMs = Infinity;
  readonly gone = new DeletedMachines();
  readonly forgotten: ForgottenMachines;
  machines: Machine[] | Error = [];
  /** What the cache shows of each class. */
  users: readonly Machine[] = [];
  isOwned = false;
  /** UIDs of the Machines of the name that a note has, as the caches show it. */
  namesakes: readonly string[] = [];
  /** Machines of that name in other namespaces with the same target cluster. */
  elsewhere: readonly Machine[] = [];
  /** UID of the one that a live read shows. */
  liveNamesake: string | undefined;
  namesake: Machine | undefined;
  readonly oneClass = machineClass();
  readonly classes: MachineClass[] = [this.oneClass];
  /** What the caches show. */
  readonly nodes = new MemoryInformer<Node>([], NODE_INDEXES);
  readonly client = new MemoryClient();
  readonly owners = new MemoryInformer<Machine>([], MACHINE_INDEXES);
  readonly events: string[] = [];
  readonly messages: string[] = [];
  /** Names of the classes that Events were about. */
  readonly objects: string[] = [];
  readonly warnings: string[] = [];
  /** Fields of the warnings. */
  readonly warned: object[] = [];
  readonly registry = new Registry();
  trustedSinceMs = -GRACE_MS;
  /** Accounts that are not believed. */
  distrust: ReadonlyMap<string, Distrust> = new Map();
  /** Those that are not after GetMachineStatus was asked. */
  contradiction: ReadonlyMap<string, Distrust> = new Map();
  /** Classes whose machines without a VM were asked for. */
  readonly examined: string[] = [];
  /** IDs of the VMs that the last look has shown. */
  shown: readonly string[] = [];
  /** What was settled before the lists of each look. */
  readonly settled: string[] = [];
  /** UIDs of Machines whose VM the provider does not know. */
  suspects: readonly string[] = [];
  /** Those of the last look that may fail. */
  failing: readonly string[] = [];
  /** Those that accounts were judged by, after GetMachineStatus was asked. */
  goneUIDs: readonly string[] = [];
  /** Classes by whose machines accounts were judged although they could not be listed. */
  unseen: readonly string[] = [];
  /** Classes that could not be listed by their driver, and UIDs of their Machines whose VM the provider does not know. */
  readonly silent: string[] = [];
  silentSuspects: readonly string[] = [];
  /** Machines whose VM went with what a forced removal had left. */
  readonly cleaned: string[] = [];
  readonly missingVMs = new Evidence(GRACE_MS);
  /** From when on accounts are judged. */
  blindSinceMs = -Infinity;
  /** Machines whose VM the last look has shown. */
  listed: readonly string[] = [];
  /** VMs without a Machine that were seen by then are none of those because of which accounts are not believed. */
  apartMs = -Infinity;
  /** `size`: how many are suspected. */
  readonly blindAccounts = {
    judge: (_classes: readonly unknown[], _sight: unknown, unseen: readonly { list: { key: string } }[]) => {
      this.unseen = unseen.map(({ list }) => list.key);
      return this.distrust;
    },
    contradict: (_classes: readonly unknown[], gone: ReadonlySet<string>) => {
      this.goneUIDs = [...gone];
      return new Map([...this.contradiction, ...this.distrust]);
    },
    dropBefore: (atMs: number) => void (this.blindSinceMs = atMs),
    noteListed: (machines: readonly Machine[], shown: ReadonlySet<string>) =>
      void (this.listed = machines.filter(({ spec }) => shown.has(spec.providerID ?? '')).map(keyOf)),
    isApart: (_account: string, { first }: Proof) => first.atMs <= this.apartMs,
    size: 0,
  };
  /** What it fails with to drop notes of forced removals. */
  dropFailure: Error | undefined;
  /** What the last pass has asked to wait for. */
  waitingFor: string | undefined;
  readonly #controller: OrphanVMsController;

  constructor(isDryRun = false, { periodMs = PERIOD_MS }: { readonly periodMs?: number } = {}) {
    const { clock, provider, removed, ownerless, classes, registry } = this;
    const log = {
      ...silentLogger,
      warn: (fields: object, message: string) => {
        this.warnings.push(message);
        this.warned.push(fields);
      },
    };
    const metrics = orphanVMMetrics(registry, () => 0);
    const recorder = {
      event: ({ object, reason, message }: { object: MachineClass; reason: string; message: string }) => {
        this.objects.push(object.metadata.name);
        this.events.push(reason);
        this.messages.push(message);
      },
    };
    this.forgotten = new ForgottenMachines({ classes: listerOf(classes), recorder, log: silentLogger });
    const { forgotten } = this;
    const activities = new ActivityRegistry({
      clock,
      log: silentLogger,
      metrics: activityMetrics(registry),
      limits: { create: 1, initialize: 1, status: 1, delete: 1, drain: 1 },
    });
    const collector = new Collector('orphan-vms', {
      activities,
      recorder,
      metrics,
      log: silentLogger,
      isDryRun,
      isOwned: () => this.isOwned,
      namesakeOf: () => this.namesake,
      collected: ({ machineName: name, providerID }) => this.gone.add({ name, nodeName: name, providerID }),
      stays: ({ providerID }) => this.gone.forgetVM(providerID),
    });
    const left = {
      gone: this.gone,
      machines: this.owners,
      targets: singleTarget({ nodes: this.nodes } as unknown as Target),
      log,
    };
    const leftBehind = new LeftBehind('orphan-vms', {
      activities,
      recorder,
      log: silentLogger,
      isDryRun,
      namesakes: () => [...this.namesakes.map((uid) => machine((m) => void (m.metadata.uid = uid))), ...this.elsewhere],
      isVMTaken: () => false,
      liveNamesakes: () => Promise.resolve(this.liveNamesake === undefined ? [] : [this.liveNamesake]),
      collected: ({ name }) => void this.cleaned.push(name),
    });
    const drivers = {
      resolve: ({ metadata: { name } }: MachineClass) => this.otherProviders.get(name) ?? provider,
      all: () => [provider],
    };
    const brakeDeps = {
      classes: listerOf(classes),
      drivers,
      recorder,
      metrics,
      forgotten,
      removed,
      clock,
      graceMs: GRACE_MS,
    };
    this.#controller = new OrphanVMsController({
      drivers,
      secrets: { of: () => Promise.resolve({ data: {}, missing: [], fingerprint: '' }) },
      reader: {
        get: () => Promise.reject(new Error('not asked for')),
        list: () =>
          this.machines instanceof Error
            ? Promise.reject(this.machines)
            : Promise.resolve({ metadata: { resourceVersion: '7' }, items: this.machines as never[] }),
      },
      namespace: 'default',
      classes: listerOf(classes),
      machines: { ...listerOf<Machine>([]), byIndex: () => this.users },
      collector,
      brake: new OrphanBrake({ ...brakeDeps, log: silentLogger, isDryRun }),
      forgotten,
      sets: () => [],
      recorder,
      metrics,
      vanished: {
        settled: (key) => new Map([[key, `settled at look ${this.provider.lists + 1}`]]),
        unlisted: (list, listed, before) => {
          this.shown = [...listed];
          this.settled.push(...before.values());
          return { list, machines: [], expected: 0 };
        },
        examine: ({ list }, sight) => {
          this.examined.push(list.key);
          for (const uid of this.suspects) this.missingVMs.see(uid, list.key, sight);
          return Promise.resolve(
            this.suspects.map((uid) => ({ machine: machine((m) => void (m.metadata.uid = uid)), proof: undefined })),
          );
        },
        fail: (suspects) => {
          this.failing = suspects.map(({ machine: { metadata } }) => metadata.uid);
          return Promise.resolve();
        },
      },
      silentClasses: {
        examine: (unlistable, sight) => {
          this.silent.push(...unlistable.map(({ key }) => key));
          for (const uid of this.silentSuspects) this.missingVMs.see(uid, 'default/class-1', sight);
          return Promise.resolve(this.silentSuspects);
        },
      },
      blindAccounts: this.blindAccounts,
      missingVMs: this.missingVMs,
      orphans: new Evidence(GRACE_MS),
      leftNodes: new LeftoverNodes({ ...left, graceMs: GRACE_MS, isDryRun }),
      leftBehind,
      dropSettledNotes: (seen) =>
        this.dropFailure === undefined
          ? dropSettledNotes({ ...left, leftBehind, writer: this.client }, seen, signal)
          : Promise.reject(this.dropFailure),
      ownerless,
      distrusted: this.distrusted,
      vmStates: this.vmStates,
      states: {
        list: () => {
          this.stateLooks += 1;
          return Promise.resolve(this.statesDueMs);
        },
        seen: () => void (this.stateLooks = 0),
      },
      gone: this.gone,
      removed,
      trust: {
        trustedForMs: () => Math.max(0, clock.monotonicMs() - this.trustedSinceMs),
        graceLeftMs: () => 0,
        blindMs: () => 0,
      },
      clusters: [CONTROL],
      clock,
      log,
      periodMs,
      graceMs: GRACE_MS,
    });
  }

  /** A look at this moment, which may fail. */
  async look(): Promise<void> {
    this.#controller.hurry();
    await Promise.allSettled([this.#controller.reconcile(signal)]);
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** A pass as the queue runs it: when the next one is due. */
  async pass(): Promise<number> {
    const result = await this.#controller.reconcile(signal);
    await new Promise((resolve) => setImmediate(resolve));
    if (result.kind !== 'requeue') return 0;
    this.waitingFor = result.waitingFor;
    return result.afterMs;
  }

  /** The next look is to be soon. */
  hasten(): void {
    this.#controller.hasten();
  }

  async held(): Promise<number> {
    return (await this.registry.getSingleMetric('machinist_orphan_vms_held')?.get())?.values[0]?.value ?? -1;
  }

  /** When everything was looked at for the last time; undefined before. */
  async lastLookMs(): Promise<number | undefined> {
    const gauge = this.registry.getSingleMetric('machinist_orphan_vms_last_look_timestamp_seconds');
    const seconds = (await gauge?.get())?.values[0]?.value;
    return seconds === undefined ? undefined : seconds * 1_000;
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

/** Another Machine, by what differs from the built one. */
function anotherMachine(name: string, providerID: string): Partial<Machine> {
  const { metadata, spec } = machine();
  return { metadata: { ...metadata, name, uid: `uid-of-machine-${name}` }, spec: { ...spec, providerID } };
}

function listerOf<T extends Machine | MachineClass>(objects: readonly T[]) {
  return {
    get: (key: string) => objects.find((one) => keyOf(one) === key),
    list: () => objects,
    byIndex: () => objects,
  };
}

// promise: openstack/cloud/second-look-shows
test('a VM that no Machine has is deleted by its provider id alone, with the second look', async () => {
  const world = new World();

  expect(await world.looksUntilDeleted()).toBe(2);

  // A driver that is told a UID would also find the VM of the Machine that this one is a twin of.
  expect(world.provider.deleted).toEqual([
    { metadata: { name: 'm-1', namespace: 'default' }, spec: { providerID: 'sim:///m-1' } },
  ]);
});

test('the states of VMs that a look has shown are known until one does not show them', async () => {
  const world = new World();
  world.provider.listed = [{ ...VM, state: 'SHUTOFF' }];
  await world.look();
  expect(world.vmStates.get(VM.providerID)?.state).toBe('SHUTOFF');

  world.provider.listed = FAILURE;
  await world.look();
  expect(world.vmStates.get(VM.providerID)?.state).toBe('SHUTOFF');
  world.provider.listed = [];
  await world.look();

  expect(world.vmStates.get(VM.providerID)).toBeUndefined();
});

test('states of VMs are looked at between searches, whose time does not change', async () => {
  const world = new World();
  world.machines = [machine()];
  world.provider.listed = [];
  expect(await world.pass()).toBe(PERIOD_MS);
  expect([world.provider.lists, world.stateLooks]).toEqual([1, 1]);

  world.statesDueMs = 60_000;
  expect(await world.pass()).toBe(60_000);
  world.clock.advance(PERIOD_MS - 10_000);
  expect(await world.pass()).toBe(10_000);
  expect([world.provider.lists, world.stateLooks]).toEqual([1, 3]);
  world.clock.advance(10_000);
  expect(await world.pass()).toBe(60_000);
  expect([world.provider.lists, world.stateLooks]).toEqual([2, 1]);
});

test('a look counts as one only when all classes could be listed; before the first one, the beginning does', async () => {
  const world = new World();
  const begunMs = world.clock.now();
  world.provider.listed = FAILURE;
  await world.look();
  world.clock.advance(GRACE_MS);
  await world.look();
  const before = await world.lastLookMs();
  world.provider.listed = [VM];
  await world.look();

  expect(before).toBe(begunMs);
  expect(await world.lastLookMs()).toBe(begunMs + GRACE_MS);
});

test.each([
  { who: 'that is not believed', distrusted: ['sim/default/secret-1', 'blind'], examined: [], failing: [] },
  {
    who: 'that is doubted, where none fails',
    distrusted: ['sim/default/secret-1', 'doubted'],
    examined: ['default/class-1'],
    failing: [],
  },
  {
    who: 'that is contradicted',
    distrusted: ['sim/default/secret-1', 'contradicted'],
    examined: ['default/class-1'],
    failing: ['uid'],
  },
  {
    who: 'of another account',
    distrusted: ['sim/default/other', 'blind'],
    examined: ['default/class-1'],
    failing: ['uid'],
  },
] as const)('a provider $who is asked for machines without a VM: $examined', async (row) => {
  const world = new World();
  world.suspects = ['uid'];
  world.distrust = new Map([row.distrusted]);

  await world.look();

  expect([world.examined, world.failing, world.goneUIDs]).toEqual([
    row.examined,
    row.failing,
    row.examined.map(() => 'uid'),
  ]);
  expect(world.distrusted.has(row.distrusted[0])).toBe(true);
});

test.each([
  { listScope: 'class', isDistrusted: false },
  { listScope: 'cluster', isDistrusted: true },
] as const)(
  'lists of the scope $listScope of another account than a distrusted one are distrusted: $isDistrusted',
  async (row) => {
    const world = new World();
    world.provider.listScope = row.listScope;
    world.distrust = new Map([['sim/default/other', 'blind']]);

    await world.look();

    expect(world.distrusted.has('sim/default/other')).toBe(true);
    expect(world.distrusted.has('sim/default/secret-1')).toBe(row.isDistrusted);
  },
);

test('when a look began that does not distrust an account is known of classes that it could list, but not of a look that failed', async () => {
  const world = new World();
  const looked = (): number => world.distrusted.lookedMs('default/class-1');
  expect(looked()).toBe(-Infinity);
  await world.look();
  const lookedMs = world.clock.monotonicMs();
  expect([looked(), world.distrusted.lookedMs('default/other')]).toEqual([lookedMs, -Infinity]);

  world.clock.advance(GRACE_MS);
  world.machines = new Error('no answer');
  await world.look();
  expect(looked()).toBe(lookedMs);

  world.machines = [];
  world.provider.listed = FAILURE;
  await world.look();
  expect(looked()).toBe(-Infinity);
});

test('the machines of a class that cannot be listed count for its account, too', async () => {
  const world = new World();
  await world.look();
  expect(world.unseen).toEqual([]);
  world.provider.listed = FAILURE;
  await world.look();

  expect(world.unseen).toEqual(['default/class-1']);
});

test('what GetMachineStatus says in a look counts before a VM without Machine is deleted in it', async () => {
  const world = new World();
  await world.look();
  world.clock.advance(GRACE_MS);
  world.contradiction = new Map([['sim/default/secret-1', 'contradicted']]);

  await world.look();

  expect([world.provider.deleted, world.events]).toEqual([[], ['OrphanVMsHeld']]);
  expect(world.distrusted.has('sim/default/secret-1')).toBe(true);
});

test('machines of a driver that cannot list are asked for by themselves, and looked at again soon', async () => {
  const world = new World();
  world.provider.methods = new Set();
  world.silentSuspects = ['uid'];

  expect(await world.pass()).toBe(GRACE_MS);
  expect([world.silent, world.examined]).toEqual([['default/class-1'], []]);
  expect(world.missingVMs.has('uid')).toBe(true);

  world.silentSuspects = [];
  await world.look();

  expect(world.missingVMs.has('uid')).toBe(false);
});

test.each([
  { what: 'carries no namespace, in a list of a whole cluster', machineNamespace: undefined, shown: [VM.providerID] },
  { what: 'carries another namespace', machineNamespace: 'another', shown: [] },
])('of a VM that $what the machine with its ID has: $shown', async ({ machineNamespace, shown }) => {
  const world = new World();
  world.provider.listScope = 'cluster';
  world.provider.listed = [{ ...VM, machineNamespace }];

  await world.look();

  expect(world.shown).toEqual(shown);
});

test('VMs of another namespace are logged once, until a list is without them', async () => {
  const world = new World();
  world.provider.listScope = 'cluster';
  const foreign = { ...VM, machineNamespace: 'another' };
  const isOf = (fields: object): boolean => 'vms' in fields;
  for (const listed of [[foreign, { ...foreign, providerID: 'sim:///2' }], FAILURE, [foreign]]) {
    world.provider.listed = listed;
    await world.look();
  }

  const once = { class: 'default/class-1', vms: 2, providerID: VM.providerID };
  expect(world.warned.filter(isOf)).toEqual([once]);

  for (const listed of [[], [foreign]]) {
    world.provider.listed = listed;
    await world.look();
  }
  expect(world.warned.filter(isOf)).toEqual([once, { ...once, vms: 1 }]);
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

test('nor do Machines without a VM, and accounts, that were seen before it', async () => {
  const world = new World();
  world.suspects = ['uid'];
  await world.pass();
  expect(world.missingVMs.has('uid')).toBe(true);

  world.clock.advance(1_000);
  world.trustedSinceMs = world.clock.monotonicMs() - 1;
  await world.pass();

  expect(world.missingVMs.has('uid')).toBe(false);
  expect(world.blindSinceMs).toBe(world.trustedSinceMs);
});

test('while VMs are being deleted, it is said that they are waited for', async () => {
  const world = new World();
  world.provider.hangs = true;
  await world.pass();
  expect(world.waitingFor).toBe('the next check of the provider');
  world.clock.advance(GRACE_MS);
  await world.pass();
  world.clock.advance(GRACE_MS);
  await world.pass();

  expect(world.waitingFor).toBe('VMs without a Machine to be deleted');
});

describe('the next look', () => {
  const vanished = machine();
  const note = noteOfForcedRemoval(machine((m) => void (m.spec.providerID = VM.providerID)));
  test.each<{ what: string; change: (world: World) => void; afterMs: number }>([
    { what: 'nothing was found', change: () => undefined, afterMs: PERIOD_MS },
    { what: 'a VM has no Machine', change: ({ provider }) => void (provider.listed = [VM]), afterMs: GRACE_MS },
    { what: 'a Machine has no VM', change: (world) => void (world.suspects = ['uid']), afterMs: GRACE_MS },
    { what: 'a Machine has vanished', change: ({ removed }) => void removed.record(vanished), afterMs: GRACE_MS },
    {
      what: 'a Machine vanishes while its VM is being deleted',
      change: ({ removed }) => {
        removed.deletingVM(vanished.metadata.uid);
        removed.record(vanished);
      },
      afterMs: GRACE_MS,
    },
    {
      what: 'a class that is deleted waits for its last VM',
      change: ({ oneClass: { metadata } }) =>
        void Object.assign(metadata, { deletionTimestamp: 'now', finalizers: [MACHINE_FINALIZER] }),
      afterMs: GRACE_MS,
    },
    {
      what: 'a class that is deleted has Machines',
      change(world) {
        world.users = [vanished];
        Object.assign(world.oneClass.metadata, { deletionTimestamp: 'now', finalizers: [MACHINE_FINALIZER] });
      },
      afterMs: PERIOD_MS,
    },
    { what: 'an account is doubted', change: ({ blindAccounts }) => void (blindAccounts.size = 1), afterMs: GRACE_MS },
    {
      what: 'the VM of a Machine that was let go by force is not listed',
      change(world) {
        Object.assign(world.oneClass.metadata, { annotations: note });
        // Another one of its name is being made, so that nothing else is left to do for the note.
        world.namesakes = ['another'];
      },
      afterMs: GRACE_MS,
    },
    { what: 'a class cannot be listed', change: ({ provider }) => void (provider.listed = FAILURE), afterMs: 60_000 },
    {
      what: 'the clusters cannot be reached',
      change: (world) => void (world.trustedSinceMs = Infinity),
      afterMs: 5_000,
    },
  ])('is due after $afterMs ms when $what, and not before', async ({ change, afterMs }) => {
    const world = new World();
    world.provider.listed = [];
    change(world);

    expect(await world.pass()).toBe(afterMs);

    const { lists } = world.provider;
    world.clock.advance(1_000);
    await world.pass();
    expect(world.provider.lists).toBe(lists);
  });
});

test.each<{ what: string; listed: readonly ListedMachine[] | Error }>([
  { what: 'a VM has no Machine', listed: [VM] },
  { what: 'a class cannot be listed', listed: FAILURE },
])('the next look is never later than the period, also when $what', async ({ listed }) => {
  const world = new World(false, { periodMs: 10_000 });
  world.provider.listed = listed;

  expect(await world.pass()).toBe(10_000);
});

test('a Machine that has vanished counts again where one of its two classes could not be listed', async () => {
  const world = new World();
  const other = new Provider();
  other.listed = FAILURE;
  world.provider.listed = [];
  world.otherProviders.set('class-2', other);
  world.classes.push(machineClass((c) => void (c.metadata.name = 'class-2')));
  world.removed.record(
    machine((m) => void Object.assign(m.metadata.annotations, { 'machine.sapcloud.io/vm-class': 'class-2' })),
  );
  await world.look();

  expect(world.removed.drainMissed()).toHaveLength(1);
});

test('the next look is due a period after the last, however long the process runs', async () => {
  const world = new World();
  world.provider.listed = [];
  world.clock.advance(10 * PERIOD_MS);
  await world.pass();
  world.clock.advance(PERIOD_MS - 1);

  expect([await world.pass(), world.provider.lists]).toEqual([1, 1]);
});

test('a look that is to be soon is one grace after the last, however often it is asked for', async () => {
  const world = new World();
  await world.pass();
  world.clock.advance(1_000);
  world.hasten();

  expect([await world.pass(), world.provider.lists]).toEqual([GRACE_MS - 1_000, 1]);
  world.clock.advance(GRACE_MS - 1_000);
  world.hasten();
  await world.pass();
  world.hasten();
  expect(await world.pass()).toBe(GRACE_MS);
  expect(world.provider.lists).toBe(2);
});

test('a look fails with the API server when notes cannot be dropped', async () => {
  const world = new World();
  world.dropFailure = new Error('no notes');

  await expect(world.pass()).rejects.toThrow('no notes');
});

test('the next look is due soon while what a forced removal has left is being deleted', async () => {
  const world = new World();
  const former = machine((m) => void (m.spec.providerID = VM.providerID));
  Object.assign(world.oneClass.metadata, { annotations: noteOfForcedRemoval(former) });
  world.provider.listed = [];
  world.provider.hangs = true;
  for (let looks = 0; looks < 3; looks++) {
    expect(await world.pass()).toBe(GRACE_MS);
    world.clock.advance(GRACE_MS);
  }
});

test('a VM that one look in between did not show is proved from the beginning', async () => {
  const world = new World();
  await world.look();
  world.clock.advance(GRACE_MS);
  world.provider.listed = [];
  await world.look();
  world.clock.advance(GRACE_MS);
  world.provider.listed = [VM];

  expect(await world.looksUntilDeleted()).toBe(2);
});

test('a Machine whose VM is shown again is under suspicion no more', async () => {
  const world = new World();
  world.suspects = ['uid-1', 'uid-2'];
  await world.look();
  world.suspects = ['uid-2'];
  await world.look();

  expect(world.missingVMs.size).toBe(1);
});

test('Machines are compared with the lists as they were before these', async () => {
  const world = new World();
  await world.look();
  await world.look();

  expect(world.settled).toEqual(['settled at look 1', 'settled at look 2']);
});

describe('a VM that we deleted and that is listed still', () => {
  const gone = (world: World, count: number): void => {
    for (const { machineName: name, providerID } of vms(count)) world.gone.add({ name, nodeName: name, providerID });
  };

  test('counts for no set: it would freeze it', async () => {
    const world = new World();
    gone(world, 3);
    world.provider.listed = vms(4);
    await world.look();

    expect(world.ownerless.list().map(({ providerID }) => providerID)).toEqual(['sim:///3']);
  });

  test('is deleted once more, however many there are, and holds up no other', async () => {
    const world = new World();
    gone(world, 4);
    world.provider.listed = vms(5);

    expect(await world.looksUntilDeleted()).toBe(2);
    expect([world.provider.deleted.length, await world.held()]).toEqual([5, 0]);
  });

  test('although its driver has not found it was not deleted, which is told at each look, and it counts again', async () => {
    const world = new World();
    world.provider.failure = new DriverError('NotFound', 'no such VM');
    expect(await world.looksUntilDeleted()).toBe(2);
    const counted = [];
    for (let looks = 0; looks < 3; looks++) {
      world.clock.advance(GRACE_MS);
      await world.look();
      counted.push(world.ownerless.list().length);
    }
    await world.pass();

    expect(counted).toEqual([0, 1, 1]);
    expect(world.events).toEqual(['OrphanVMDeleted', ...Array.from({ length: 3 }, () => 'OrphanVMDeletionFailed')]);
    expect(world.messages[1]).toMatch(/ListMachines returns it, but DeleteMachine does not find it: .*no such VM/u);
  });

  test('counts for none while its Machine vanishes before the call has ended', async () => {
    const world = new World();
    world.removed.deletingVM(machine().metadata.uid);
    expect(world.removed.record(machine())).toBe('deleting');
    await world.look();

    expect(world.ownerless.list()).toEqual([]);
  });
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
  expect(world.removed.record(machine())).toBe('unexpectedly');
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
  world.removed.record(machine((o) => void (o.spec.providerID = 'sim:///before')));
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

test('a Machine that took the name of one that vanished keeps its VM, also while that of the other is still there', async () => {
  const world = new World();
  world.removed.record(machine((o) => void (o.spec.providerID = 'sim:///before')));
  world.machines = [
    machine((o) => {
      o.metadata.uid = 'uid-of-another';
      o.spec.providerID = '';
      o.status.currentStatus.phase = '';
    }),
  ];
  world.provider.listed = [VM, { ...VM, providerID: 'sim:///before' }];

  await world.look();

  expect(world.ownerless.list()).toEqual([]);
  expect(world.events).toEqual([]);
});

describe('a provider that lists the VM of a Machine under another id', () => {
  const known = machine((o) => void (o.spec.providerID = 'sim:///before'));

  test('is told so, and the VM is neither deleted nor counted', async () => {
    const world = new World();
    world.machines = [known];

    expect(await world.looksUntilDeleted()).toBe(Infinity);

    expect(new Set(world.events)).toEqual(new Set(['ProviderIDMismatch']));
    expect(world.ownerless.list()).toEqual([]);
  });

  test('is logged once, with the number of VMs, until a list shows the right id', async () => {
    const world = new World();
    world.machines = [known, machine((o) => void Object.assign(o, anotherMachine('m-2', 'sim:///before-2')))];
    const second = { providerID: 'sim:///m-2', machineName: 'm-2', machineUID: 'uid-of-machine-m-2' };
    world.provider.listed = [VM, second];
    for (let looks = 0; looks < 2; looks++) await world.look();

    const once = { class: 'default/class-1', vms: 2, machine: 'm-1', providerID: VM.providerID };
    expect(world.warned).toEqual([once]);

    world.provider.listed = FAILURE;
    await world.look();
    world.provider.listed = [VM, second];
    await world.look();
    expect(world.warned.filter((fields) => 'machine' in fields)).toEqual([once]);

    world.provider.listed = [{ ...VM, providerID: 'sim:///before' }];
    await world.look();
    world.provider.listed = [VM];
    await world.look();
    expect(world.warned.at(-1)).toEqual({ ...once, vms: 1 });
  });

  const twins: ListedMachine[] = [VM, { ...VM, providerID: 'sim:///before' }];
  test.each([
    { what: 'the other one', answer: 'sim:///before', deleted: 2 },
    { what: 'this one', answer: 'sim:///m-1', deleted: Infinity },
  ])('beside the one that the Machine knows: GetMachineStatus decides, and says $what', async ({ answer, deleted }) => {
    const world = new World();
    world.machines = [known];
    world.namesake = known;
    world.provider.listed = twins;
    world.provider.getStatus = () => Promise.resolve({ providerID: answer, nodeName: 'm-1', addresses: [] });

    expect(await world.looksUntilDeleted()).toBe(deleted);
  });
});

describe('a second VM of a Machine that was made anew with another class', () => {
  const known = machine((o) => {
    o.spec = { class: { kind: 'MachineClass', name: 'class-2' }, providerID: 'sim-2:///m-1' };
  });
  const ITS_VM: ListedMachine = { ...VM, providerID: 'sim-2:///m-1' };

  /** VM is in the account of class-1, ITS_VM in that of class-2. */
  function start(): { world: World; other: Provider } {
    const world = new World();
    const other = new Provider();
    other.listed = [ITS_VM];
    other.vms.set('m-1', { providerID: ITS_VM.providerID, nodeName: 'm-1', addresses: [] });
    world.otherProviders.set('class-2', other);
    world.classes.push(machineClass((c) => void (c.metadata.name = 'class-2')));
    world.machines = [known];
    world.namesake = known;
    return { world, other };
  }

  test('is deleted when the class of the Machine lists and confirms its own', async () => {
    const { world, other } = start();

    expect(await world.looksUntilDeleted()).toBe(2);
    expect([other.deleted, world.provider.calls]).toEqual([[], []]);
  });

  test.each<{ what: string; change: (given: { world: World; other: Provider }) => void }>([
    { what: 'that class does not list its own', change: ({ other }) => void (other.listed = []) },
    { what: 'that class cannot be listed', change: ({ other }) => void (other.listed = FAILURE) },
    { what: 'that class says that it is the one', change: ({ other }) => other.vms.set('m-1', { ...VM_ANSWER }) },
    {
      what: 'two drivers may show one VM under two ids',
      change: ({ other }) => void Object.assign(other, { provider: 'sim-2' }),
    },
  ])('is left alone when $what', async ({ change }) => {
    const given = start();
    change(given);

    expect(await given.world.looksUntilDeleted()).toBe(Infinity);
    expect(given.other.deleted).toEqual([]);
  });
});

function vms(count: number): ListedMachine[] {
  return Array.from({ length: count }, (_, i) => ({
    providerID: `sim:///${i}`,
    machineName: `lost-${i}`,
    machineUID: undefined,
  }));
}

function release(world: World, until: number, of: MachineClass = world.oneClass): void {
  (of as BuiltMachineClass).metadata.annotations[DELETE_ORPHAN_VMS_UNTIL_ANNOTATION] = toTimestamp(until);
}

describe('the VM of a Machine that a restore of the control cluster has forgotten', () => {
  const another: ListedMachine = { providerID: 'sim:///other', machineName: 'other', machineUID: undefined };
  const known = machine((o) => void (o.spec.providerID = VM.providerID));

  test('is held although it is the only one, counted and told of, until somebody says that it is to go', async () => {
    const world = new World();
    world.forgotten.add([known]);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(world.events).toEqual(['MachinesForgotten', ...Array.from({ length: 8 }, () => 'OrphanVMsHeld')]);
    expect(world.messages.at(-1)).toMatch(/restored to an earlier state; they are kept.* annotate --overwrite /);
    expect(await world.held()).toBe(1);

    release(world, world.clock.now() + 2 * GRACE_MS);
    expect(await world.looksUntilDeleted()).toBe(1);
    expect(await world.held()).toBe(0);
  });

  test('holds up no other VM of its class', async () => {
    const world = new World();
    world.forgotten.add([known]);
    world.provider.listed = [VM, another];

    expect(await world.looksUntilDeleted()).toBe(2);

    expect(world.provider.deleted.map(({ spec }) => spec?.providerID)).toEqual([another.providerID]);
    expect(await world.held()).toBe(1);
  });

  test('is as any other once its Machine was made again', async () => {
    const world = new World();
    world.forgotten.add([known]);
    world.machines = [known];
    await world.look();

    world.machines = [];

    expect(await world.looksUntilDeleted()).toBe(2);
  });
});

describe('too many VMs without a Machine at once', () => {
  test('are held, told of at each look, and deleted when somebody says so', async () => {
    const world = new World();
    world.provider.listed = vms(4);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(world.events).toEqual(Array.from({ length: 8 }, () => 'OrphanVMsHeld'));
    expect(await world.held()).toBe(4);

    release(world, world.clock.now() + 2 * GRACE_MS);
    await world.look();
    expect(world.provider.deleted).toHaveLength(4);
    expect(await world.held()).toBe(0);
  });

  test('are held again when the permission has passed', async () => {
    const world = new World();
    release(world, world.clock.now() + GRACE_MS);
    world.provider.listed = vms(4);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
  });

  describe('of many small classes with the same credentials, few of each', () => {
    const NAMES = Array.from({ length: 15 }, (_, i) => `pool-${i}`);
    const vmOf = (name: string, i: number): ListedMachine => {
      const machineName = `${name}-x${i}`;
      return { providerID: `sim:///${machineName}`, machineName, machineUID: undefined, machineNamespace: 'default' };
    };
    const classOf = (name: string, secret: string): MachineClass =>
      machineClass((c) => {
        c.metadata.name = name;
        c.secretRef = { name: secret, namespace: 'default' };
      });

    /** Classes of 4 VMs each, of which `lost` have no Machine. */
    function start(listScope: 'class' | 'cluster', { lost = 3, secretOf = () => 'secret-1' }: Start = {}): World {
      const world = new World();
      world.classes.splice(0, 1, ...NAMES.map((name) => classOf(name, secretOf(name))));
      const all = NAMES.flatMap((name) => [0, 1, 2, 3].map((i) => vmOf(name, i)));
      for (const name of NAMES) {
        const provider = Object.assign(new Provider(), { listScope });
        provider.listed = listScope === 'cluster' ? all : all.filter((vm) => vm.machineName.startsWith(`${name}-`));
        // What is deleted is counted in one place.
        provider.delete = (request) => world.provider.delete(request);
        world.otherProviders.set(name, provider);
      }
      world.machines = NAMES.flatMap((name) =>
        Array.from({ length: 4 - lost }, (_, i) => {
          const { machineName, providerID } = vmOf(name, i);
          return machine((m) => {
            Object.assign(m.metadata, { name: machineName, uid: `uid-of-${machineName}` });
            m.spec = { class: { kind: 'MachineClass', name }, providerID };
          });
        }),
      );
      return world;
    }
    interface Start {
      readonly lost?: number;
      readonly secretOf?: (name: string) => string;
    }

    test.each([{ listScope: 'class' }, { listScope: 'cluster' }] as const)(
      'are held together, and released class by class, with lists of scope $listScope',
      async ({ listScope }) => {
        const world = start(listScope);

        expect(await world.looksUntilDeleted()).toBe(Infinity);
        expect([await world.held(), new Set(world.objects)]).toEqual([45, new Set(NAMES)]);
        expect(world.messages.at(-1)).toMatch(/^More than 10 % of the VMs of all classes .* annotate --overwrite /);

        release(world, world.clock.now() + 100 * GRACE_MS, world.classes[0]);
        await world.look();
        expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name))).toEqual(
          new Set([1, 2, 3].map((i) => `pool-0-x${i}`)),
        );
        expect(await world.held()).toBe(42);
      },
    );

    test('are deleted when they are few of all', async () => {
      const few = start('cluster', { lost: 0 });
      few.machines = (few.machines as Machine[]).filter(({ metadata }) => !/-[0-5]-x0$/u.test(metadata.name));

      expect(await few.looksUntilDeleted()).toBe(2);
    });

    test.each([{ listScope: 'class' }, { listScope: 'cluster' }] as const)(
      'are held, too, when each class has a Secret of its own, which may be for the same account, with lists of scope $listScope',
      async ({ listScope }) => {
        const world = start(listScope, { secretOf: (name) => name });

        expect(await world.looksUntilDeleted()).toBe(Infinity);
        expect(await world.held()).toBe(45);
      },
    );

    /** One look, in which only some classes can be listed. */
    async function lookAt(world: World, names: readonly string[]): Promise<void> {
      const others = NAMES.filter((name) => !names.includes(name)).map((name) => world.otherProviders.get(name));
      const before = others.map((provider) => provider?.listed);
      for (const provider of others) Object.assign(provider ?? {}, { listed: FAILURE });
      world.clock.advance(GRACE_MS);
      await world.look();
      for (const [i, provider] of others.entries()) Object.assign(provider ?? {}, { listed: before[i] });
    }

    test('stay held when only one class can be listed in each look', async () => {
      const world = start('class');
      await world.looksUntilDeleted();

      for (const name of NAMES) await lookAt(world, [name]);

      expect([world.provider.deleted, await world.held()]).toEqual([[], 45]);
    });

    test('count as their class was listed last while it cannot be listed, also before they are proved', async () => {
      const world = start('class');
      await world.look();

      for (const name of NAMES) await lookAt(world, [name]);

      expect(world.provider.deleted).toEqual([]);
    });

    test('are deleted up to the limit only, for a day, when no two classes can be listed at once', async () => {
      const world = start('class');
      for (const name of NAMES) for (let i = 0; i < 3; i++) await lookAt(world, [name]);

      expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name))).toEqual(
        new Set([1, 2, 3].map((i) => `pool-0-x${i}`)),
      );
      expect(await world.held()).toBe(42);
    });

    function namesOf(world: World): readonly string[] {
      return world.provider.deleted.map(({ metadata }) => metadata.name);
    }

    /** The first VM of a class loses its Machine. */
    function lose(world: World, name: string): void {
      world.machines = (world.machines as Machine[]).filter(({ metadata }) => metadata.name !== `${name}-x0`);
    }

    test.each([
      { what: 'could not be listed', listed: NAMES },
      { what: 'can never be listed', listed: NAMES.slice(0, -1) },
    ])('count for a day, and hold others no longer, when they were deleted while a class $what', async (row) => {
      const world = start('class', { lost: 0 });
      const loseInTurn = async (names: readonly string[], listed: readonly string[]): Promise<void> => {
        for (const name of names) {
          lose(world, name);
          for (let i = 0; i < 2; i++) await lookAt(world, listed);
          const provider = world.otherProviders.get(name) as Provider;
          const isDeleted = world.provider.deleted.some(({ metadata }) => metadata.name === `${name}-x0`);
          if (isDeleted) provider.listed = (provider.listed as readonly ListedMachine[]).slice(1);
        }
      };
      await loseInTurn(NAMES.slice(0, 7), NAMES.slice(0, -1));
      expect([world.provider.deleted.length, await world.held()]).toEqual([5, 2]);

      world.clock.advance(86_400_000);
      for (let i = 0; i < 2; i++) await lookAt(world, row.listed);
      expect([new Set(namesOf(world)).size, await world.held()]).toEqual([7, 0]);
    });

    test('are held although those of the other accounts are not believed in the same look, whichever these are', async () => {
      const world = start('class', { lost: 1, secretOf: (name) => name });
      await world.look();

      for (const believed of NAMES) {
        const others = NAMES.filter((name) => name !== believed);
        world.distrust = new Map(others.map((name) => [`sim/default/${name}`, 'contradicted']));
        await lookAt(world, NAMES);
      }

      expect([namesOf(world), await world.held()]).toEqual([[], 15]);
    });

    test('are held beside what classes have shown once that cannot be listed since, and not for longer than these exist', async () => {
      const world = start('class', { lost: 0 });
      lose(world, 'pool-0');
      const isOther = ({ metadata }: Machine): boolean => /^pool-1[34]-x[0-2]$/u.test(metadata.name);
      world.machines = (world.machines as Machine[]).filter((one) => !isOther(one));
      await world.look();
      for (let i = 0; i < 3; i++) await lookAt(world, NAMES.slice(0, 13));
      expect([namesOf(world), await world.held()]).toEqual([[], 1]);
      expect(world.messages.at(-1)).toMatch(/^More than 10 % of the VMs of all classes .* annotate --overwrite /);

      world.classes.splice(13);
      await lookAt(world, NAMES.slice(0, 13));

      expect([namesOf(world), await world.held()]).toEqual([['pool-0-x0'], 0]);
    });

    test('are held with what cannot be proved yet, because its class could not be listed until just now', async () => {
      const world = start('class', { lost: 0 });
      for (const name of NAMES.slice(0, 9)) lose(world, name);
      await lookAt(world, NAMES.slice(3));

      for (let i = 0; i < 3; i++) await lookAt(world, NAMES);

      expect([world.provider.deleted, await world.held()]).toEqual([[], 9]);
    });

    test('do not count once they are gone when all classes could be listed for long enough', async () => {
      const world = start('class', { lost: 0 });
      await lookAt(world, NAMES.slice(3));
      for (let i = 0; i < 2; i++) await lookAt(world, NAMES);
      for (const name of NAMES.slice(0, 9)) {
        lose(world, name);
        for (let i = 0; i < 2; i++) await lookAt(world, NAMES);
      }

      expect([new Set(world.provider.deleted.map((one) => one.metadata.name)).size, await world.held()]).toEqual([
        9, 0,
      ]);
    });

    test('count for all of their classes while some of these cannot be listed', async () => {
      const world = start('class', { lost: 0 });
      for (const name of NAMES.slice(0, 5)) lose(world, name);
      await world.look();

      await lookAt(world, NAMES.slice(0, 5));

      expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name)).size).toBe(5);
    });

    test('are held for their account, too, where it is a small part of what the driver has', async () => {
      const world = start('class', { lost: 0, secretOf: (name) => (name < 'pool-2' ? 'small' : 'secret-1') });
      // Of 5 classes with 4 VMs each.
      for (const name of ['pool-0', 'pool-1', 'pool-10', 'pool-11']) lose(world, name);

      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([Infinity, 4]);
    });

    test('do not count for others when their own class holds what is left of too many', async () => {
      const world = start('class', { lost: 0 });
      const all = world.machines as Machine[];
      world.machines = all.filter(({ metadata }) => !metadata.name.startsWith('pool-0-'));
      await world.looksUntilDeleted();
      expect(await world.held()).toBe(4);
      world.machines = all.filter(({ metadata }) => !/^pool-0-x[0-2]$/u.test(metadata.name));
      for (const name of NAMES.slice(1, 7)) lose(world, name);

      await world.looksUntilDeleted();

      expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name)).size).toBe(6);
      expect(await world.held()).toBe(3);
    });

    test('count for others as long as they are held together', async () => {
      const world = start('class', { lost: 0 });
      for (const name of NAMES.slice(0, 7)) lose(world, name);
      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([Infinity, 7]);
      lose(world, 'pool-7');

      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([Infinity, 8]);
    });

    test('stay held when one of their classes is released, although the rest is not too many', async () => {
      const world = start('class', { lost: 0 });
      for (const name of NAMES.slice(0, 7)) lose(world, name);
      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([Infinity, 7]);

      release(world, world.clock.now() + 2 * GRACE_MS, world.classes[0]);
      await world.look();
      world.clock.advance(GRACE_MS);
      await world.look();

      expect(new Set(world.provider.deleted.map(({ metadata }) => metadata.name))).toEqual(new Set(['pool-0-x0']));
      expect(await world.held()).toBe(6);
      expect(world.messages.at(-1)).toMatch(
        /^VMs of this class have no Machine, and there were too many at once before/,
      );
    });

    test('do not count when a record explains them', async () => {
      const world = start('class', { lost: 1 });
      for (const name of NAMES) {
        const { machineName } = vmOf(name, 3);
        const gone = machine((m) => {
          Object.assign(m.metadata, { name: machineName, uid: machineName, deletionTimestamp: '2026-01-01T00:00:00Z' });
        });
        world.removed.deletingVM(machineName);
        world.removed.deletedVM(machineName);
        expect(world.removed.record(gone)).toBe('in-order');
      }

      expect(await world.looksUntilDeleted()).toBe(2);
      expect(await world.held()).toBe(0);
    });
  });

  describe('in lists of a whole cluster, which 40 other machines are in, too,', () => {
    const OURS = { machineNamespace: 'default' };
    const owned = (i: number): Machine => {
      const { metadata, spec, ...rest } = machine();
      const named = { ...metadata, name: `big-${i}`, uid: `uid-of-big-${i}` };
      return { ...rest, metadata: named, spec: { ...spec, providerID: `sim:///big-${i}` } };
    };
    const shownOf = ({ metadata, spec }: Machine): ListedMachine => ({
      providerID: spec.providerID ?? '',
      machineName: metadata.name,
      machineUID: metadata.uid,
      ...OURS,
    });

    /** Classes class-1, which is big, and class-2, of whose set there is one Machine if any. */
    function start(lost: readonly ListedMachine[], hasOther = false): World {
      const world = new World();
      world.provider.listScope = 'cluster';
      world.classes.push(machineClass((c) => void (c.metadata.name = 'class-2')));
      const other = machine((m) => {
        Object.assign(m.metadata, { name: 'lost-x', uid: 'uid-of-lost-x' });
        m.spec = { class: { kind: 'MachineClass', name: 'class-2' }, providerID: 'sim:///lost-x' };
      });
      world.machines = [...Array.from({ length: 40 }, (_, i) => owned(i)), ...(hasOther ? [other] : [])];
      world.provider.listed = [...world.machines.map(shownOf), ...lost.map((vm) => ({ ...vm, ...OURS }))];
      return world;
    }

    test('are held by the limit of their class alone, and released by it', async () => {
      const world = start(vms(4), true);
      expect(await world.looksUntilDeleted()).toBe(Infinity);
      expect([await world.held(), new Set(world.objects)]).toEqual([4, new Set(['class-2'])]);

      release(world, world.clock.now() + 100 * GRACE_MS);
      expect(await world.looksUntilDeleted()).toBe(Infinity);
      release(world, world.clock.now() + 2 * GRACE_MS, world.classes[1]);
      expect(await world.looksUntilDeleted()).toBe(1);
    });

    test('are held, too, when no Machine tells of which class they are', async () => {
      const world = start(vms(4));

      expect(await world.looksUntilDeleted()).toBe(Infinity);
      expect(await world.held()).toBe(4);
      expect(world.messages.at(-1)).toMatch(/^Too many VMs in the lists of the whole cluster.* annotate --overwrite /);

      world.provider.listed = FAILURE;
      await world.look();
      expect(await world.held()).toBe(4);
    });

    test('are not released by the class through which they are reached while their own cannot be listed', async () => {
      const world = start(vms(4), true);
      const other = Object.assign(new Provider(), { listScope: 'cluster', listed: FAILURE });
      world.otherProviders.set('class-2', other);
      release(world, world.clock.now() + 100 * GRACE_MS);

      expect(await world.looksUntilDeleted()).toBe(Infinity);
      expect([await world.held(), new Set(world.objects)]).toEqual([4, new Set(['class-2'])]);

      release(world, world.clock.now() + 2 * GRACE_MS, world.classes[1]);
      expect(await world.looksUntilDeleted()).toBe(1);
    });

    test('are explained by the notes of their class, also while that cannot be listed', async () => {
      const world = start(vms(4), true);
      world.otherProviders.set('class-2', Object.assign(new Provider(), { listScope: 'cluster', listed: FAILURE }));
      const notes = vms(4).map(({ machineName, providerID }) => {
        const { metadata, spec, ...rest } = machine();
        const named = { ...metadata, name: machineName, uid: `uid-of-${machineName}` };
        return noteOfForcedRemoval({ ...rest, metadata: named, spec: { ...spec, providerID } });
      });
      Object.assign(world.classes[1]?.metadata ?? {}, { annotations: Object.assign({}, ...notes) });

      expect([await world.looksUntilDeleted(), await world.held()]).toEqual([2, 0]);
    });

    test('are deleted when their class has so many', async () => {
      const lost = vms(4).map((vm, i) => ({ ...vm, machineName: `big-lost${i}` }));

      expect(await start(lost).looksUntilDeleted()).toBe(2);
    });
  });

  test('are held no more when all of them are gone at once', async () => {
    const world = new World();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();

    world.provider.listed = [];
    await world.look();

    expect(await world.held()).toBe(0);
  });

  test.each([
    { what: 'no more when their class is gone', change: (world: World) => void world.classes.pop(), held: 0 },
    {
      what: 'while their class cannot be listed',
      change: (world: World) => void (world.provider.listed = FAILURE),
      held: 4,
    },
  ])('are held $what', async ({ change, held }) => {
    const world = new World();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();

    change(world);
    await world.look();

    expect(await world.held()).toBe(held);
  });

  /** Machines with their VMs, which are listed beside those without. */
  function withVMs(count: number): { machines: Machine[]; listed: ListedMachine[] } {
    const listed = vms(count).map((vm, i) => ({ ...vm, machineName: `m-${i}`, providerID: `sim:///owned-${i}` }));
    const machines = listed.map(({ machineName, providerID }) => ({
      ...machine(),
      ...anotherMachine(machineName, providerID),
    }));
    return { machines, listed };
  }

  test.each<{ what: string; change: (world: World) => void | Promise<void>; held: number }>([
    { what: 'some of them are gone', change: (world) => void (world.provider.listed = vms(3)), held: 3 },
    {
      what: 'a list has omitted them, and shows some of them again',
      async change(world) {
        world.provider.listed = [];
        await world.look();
        expect(await world.held()).toBe(0);
        world.provider.listed = vms(3);
      },
      held: 3,
    },
    {
      what: 'one of them has its Machine again',
      change: (world) => void (world.machines = [{ ...machine(), ...anotherMachine('lost-0', 'sim:///0') }]),
      held: 3,
    },
    {
      what: 'their class has got so many others that they are few',
      change(world) {
        const { machines, listed } = withVMs(40);
        Object.assign(world, { machines });
        world.provider.listed = [...vms(4), ...listed];
      },
      held: 4,
    },
    {
      what: 'an outage has begun their proof anew',
      change: (world) => void (world.trustedSinceMs = world.clock.monotonicMs()),
      held: 4,
    },
    {
      what: 'a permission has passed before they could be deleted',
      async change(world) {
        release(world, world.clock.now() + GRACE_MS);
        world.provider.failure = FAILURE;
        await world.look();
        expect(world.provider.deleted.splice(0)).toHaveLength(4);
        world.clock.advance(GRACE_MS);
        world.provider.listed = vms(3);
      },
      held: 3,
    },
  ])('stay held, those that are left, when $what, until somebody says so', async ({ change, held }) => {
    const world = new World();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();

    await change(world);
    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(await world.held()).toBe(held);

    release(world, world.clock.now() + 2 * GRACE_MS);
    expect(await world.looksUntilDeleted()).toBeLessThan(3);
    expect(await world.held()).toBe(0);
  });

  test('are as any others once they had their Machines again', async () => {
    const world = new World();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();
    world.machines = vms(4).map((vm) => ({ ...machine(), ...anotherMachine(vm.machineName, vm.providerID) }));
    await world.look();
    expect(await world.held()).toBe(0);

    world.machines.splice(0, 1);

    expect(await world.looksUntilDeleted()).toBe(2);
  });

  test('are held no more when a record explains them', async () => {
    const world = new World();
    world.provider.listed = vms(4);
    await world.looksUntilDeleted();

    const notes = vms(4).map(({ machineName, providerID }) =>
      noteOfForcedRemoval({ ...machine(), ...anotherMachine(machineName, providerID) }),
    );
    Object.assign(world.oneClass.metadata, { annotations: Object.assign({}, ...notes) });
    world.namesakes = ['u-new'];

    expect([await world.looksUntilDeleted(), await world.held()]).toEqual([1, 0]);
  });

  describe('do not include those that were few when they came, and cannot be deleted,', () => {
    async function start(): Promise<World> {
      const world = new World();
      world.provider.listed = vms(3);
      world.provider.failure = FAILURE;
      expect(await world.looksUntilDeleted()).toBe(2);
      return world;
    }

    /** Names of what is to be deleted from now on. */
    async function deletedOf(world: World, count: number): Promise<ReadonlySet<string>> {
      world.provider.listed = vms(count);
      world.provider.deleted.splice(0);
      for (let i = 0; i < 3; i++) {
        world.clock.advance(GRACE_MS);
        await world.look();
      }
      return new Set(world.provider.deleted.map(({ metadata }) => metadata.name));
    }
    const THREE = ['lost-0', 'lost-1', 'lost-2'];

    test('so that others go as well', async () => {
      const world = await start();

      expect(await deletedOf(world, 4)).toEqual(new Set([...THREE, 'lost-3']));
      expect(await world.held()).toBe(0);
    });

    test('which are tried on although too many others come', async () => {
      const world = await start();

      expect(await deletedOf(world, 7)).toEqual(new Set(THREE));
      expect(await world.held()).toBe(4);
    });

    test('although the provider has deleted them, and lists them still', async () => {
      const world = new World();
      world.provider.listed = vms(3);
      await world.looksUntilDeleted();
      world.provider.failure = new DriverError('NotFound', 'no such VM');
      world.clock.advance(GRACE_MS);
      await world.look();

      // The fourth is proved in the look that finds out that the others stay.
      expect(await deletedOf(world, 4)).toEqual(new Set([...THREE, 'lost-3']));
      expect(world.events).toContain('OrphanVMDeletionFailed');
      expect(await world.held()).toBe(0);
    });

    test.each<{ what: string; change: (world: World) => void }>([
      {
        what: 'their list was not believed',
        change(world) {
          world.distrust = new Map([['sim/default/secret-1', 'doubted']]);
          world.provider.listed = vms(4);
        },
      },
      {
        what: 'they had Machines',
        change: (world) =>
          void (world.machines = vms(3).map((vm) => ({
            ...machine(),
            ...anotherMachine(vm.machineName, vm.providerID),
          }))),
      },
    ])('unless meanwhile $what', async ({ change }) => {
      const world = await start();
      change(world);
      await world.look();
      world.distrust = new Map();
      world.machines = [];

      expect(await deletedOf(world, 4)).toEqual(new Set());
      expect(await world.held()).toBe(4);
    });
  });
});

describe('a provider that does not show VMs of machines that work', () => {
  const ACCOUNT = 'sim/default/secret-1';

  test.each<{ verdict: Distrust }>([{ verdict: 'blind' }, { verdict: 'doubted' }, { verdict: 'contradicted' }])(
    'loses none of those that it shows instead, from the look on in which it is $verdict; that is counted and told of',
    async ({ verdict }) => {
      const world = new World();
      await world.look();
      world.clock.advance(GRACE_MS);
      world.distrust = new Map([[ACCOUNT, verdict]]);

      expect(await world.looksUntilDeleted()).toBe(Infinity);
      expect(new Set(world.events)).toEqual(new Set(['OrphanVMsHeld']));
      expect(world.messages.at(-1)).toMatch(/does not list the VMs of Machines with the same credentials/);
      expect(await world.held()).toBe(1);

      world.distrust = new Map();
      expect(await world.looksUntilDeleted()).toBe(1);
      expect(await world.held()).toBe(0);
    },
  );

  test('is known to have shown the VMs of others in the same look', async () => {
    const world = new World();
    world.machines = [
      machine((m) => void (m.spec.providerID = VM.providerID)),
      machine((m) => void Object.assign(m, anotherMachine('m-2', 'sim:///m-2'))),
    ];
    await world.look();

    expect(world.listed).toEqual(['default/m-1']);
  });

  test('loses one that was proved while the machines were shown, also beside others that are held', async () => {
    const world = new World();
    world.apartMs = world.clock.monotonicMs();
    world.distrust = new Map([[ACCOUNT, 'contradicted']]);
    await world.look();
    world.clock.advance(GRACE_MS);
    world.provider.listed = [{ ...VM, providerID: 'sim:///later', machineName: 'later' }, VM];

    expect(await world.looksUntilDeleted()).toBe(1);
    world.clock.advance(GRACE_MS);
    await world.look();
    expect(new Set(world.provider.deleted.map(({ spec }) => spec?.providerID))).toEqual(new Set([VM.providerID]));
    expect([await world.held(), world.events]).toEqual([1, ['OrphanVMDeleted', 'OrphanVMsHeld']]);
  });

  test('has the limit told of as long as that holds others', async () => {
    const world = new World();
    world.apartMs = world.clock.monotonicMs();
    world.distrust = new Map([[ACCOUNT, 'contradicted']]);
    world.provider.listed = vms(4);
    await world.look();
    world.provider.listed = [VM, ...vms(4)];
    for (let i = 0; i < 2; i++) {
      world.clock.advance(GRACE_MS);
      await world.look();
    }

    expect([world.provider.deleted, await world.held()]).toEqual([[], 5]);
    expect(world.messages.at(-1)).toMatch(/^More than 10 % of the VMs of this class.* annotate --overwrite /);
  });

  test('has none of those reported as without a Machine in a dry run', async () => {
    const world = new World(true);
    await world.looksUntilDeleted();
    expect(world.events).toEqual(['OrphanVMFound']);

    const doubted = new World(true);
    doubted.distrust = new Map([[ACCOUNT, 'doubted']]);
    await doubted.looksUntilDeleted();
    expect(new Set(doubted.events)).toEqual(new Set(['OrphanVMsHeld']));
  });

  test('loses none by a permission either, which was given for what another list had shown', async () => {
    const world = new World();
    world.distrust = new Map([[ACCOUNT, 'blind']]);
    world.provider.listed = vms(4);
    release(world, world.clock.now() + 100 * GRACE_MS);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(world.messages.at(-1)).not.toMatch(/annotate/);
    expect(await world.held()).toBe(4);
  });

  test('loses none that we deleted before', async () => {
    const world = new World();
    world.distrust = new Map([[ACCOUNT, 'blind']]);
    world.gone.add({ name: 'm-1', nodeName: 'm-1', providerID: VM.providerID });

    expect(await world.looksUntilDeleted()).toBe(Infinity);
  });

  test('loses none that a list of another account shows, too', async () => {
    const world = new World();
    world.classes.push(
      machineClass((c) => {
        c.metadata.name = 'class-2';
        c.secretRef = { name: 'secret-2', namespace: 'default' };
      }),
    );
    world.distrust = new Map([['sim/default/secret-2', 'blind']]);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
  });

  test.each([
    { what: 'no other account', account: 'sim/default/other', scope: 'class', looks: 2 },
    {
      what: 'other accounts of its driver in lists of the whole cluster',
      account: 'sim/default/other',
      scope: 'cluster',
      looks: Infinity,
    },
    { what: 'no other driver', account: 'simple/default/other', scope: 'cluster', looks: 2 },
  ] as const)('holds up $what', async ({ account, scope, looks }) => {
    const world = new World();
    world.provider.listScope = scope;
    world.provider.listed = [{ ...VM, machineNamespace: 'default' }];
    world.distrust = new Map([[account, 'blind']]);

    expect(await world.looksUntilDeleted()).toBe(looks);
  });
});

describe('VMs that are explained by a record', () => {
  const lost = (i: number): Machine =>
    machine((m) => {
      Object.assign(m.metadata, { name: `lost-${i}`, uid: `uid-${i}`, deletionTimestamp: '2026-01-01T00:00:00Z' });
      m.spec.providerID = '';
      m.status.currentStatus.phase = 'Terminating';
    });
  /** Machines whose deletion has ended before their creation did; this process saw both. */
  const deleted = ({ removed }: World, count: number): void => {
    for (let i = 0; i < count; i++) {
      removed.creatingVM(`uid-${i}`);
      removed.deletingVM(`uid-${i}`);
      removed.deletedVM(`uid-${i}`);
      expect(removed.record(lost(i))).toBe('in-order');
    }
  };
  const tagged = (count: number): ListedMachine[] => vms(count).map((vm, i) => ({ ...vm, machineUID: `uid-${i}` }));

  test.each([
    { what: 'by UID', listed: tagged(10) },
    { what: 'by name where none is tagged', listed: vms(10) },
  ])('are deleted however many, each by its own proof: $what', async ({ listed }) => {
    const world = new World();
    deleted(world, 10);
    world.provider.listed = listed;

    expect(await world.looksUntilDeleted()).toBe(2);

    expect(world.provider.deleted).toHaveLength(10);
    expect([world.events.includes('OrphanVMsHeld'), await world.held()]).toEqual([false, 0]);
  });

  test('go although too many others are held, and do not hold up few', async () => {
    const world = new World();
    deleted(world, 5);
    world.provider.listed = vms(9);
    expect(await world.looksUntilDeleted()).toBe(2);
    expect([world.provider.deleted.length, await world.held()]).toEqual([5, 4]);

    const few = new World();
    deleted(few, 5);
    few.provider.listed = vms(8);
    await few.looksUntilDeleted();
    expect([few.provider.deleted.length, await few.held()]).toEqual([8, 0]);
  });

  test.each<{ what: string; change: (world: World) => void; listed?: readonly ListedMachine[] }>([
    { what: 'that the cluster was set back', change: ({ removed }) => removed.forgetFinished() },
    {
      what: 'that later Machines of their names were taken away',
      change: ({ removed }) => void Array.from({ length: 4 }, (_, i) => removed.record(again(i))),
    },
    { what: 'that a restore forgot the Machines', change: ({ forgotten }) => forgotten.add([0, 1, 2, 3].map(lost)) },
    {
      what: 'that they carry the UIDs of others',
      change: () => undefined,
      listed: vms(4).map((vm) => ({ ...vm, machineUID: `of another ${vm.machineName}` })),
    },
  ])('are held all the same when it may be wrong: $what', async ({ change, listed = vms(4) }) => {
    const world = new World();
    deleted(world, 4);
    change(world);
    world.provider.listed = listed;

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(await world.held()).toBe(4);
  });

  test('do not lose their hold to too many others when a restore forgot their Machines', async () => {
    const world = new World();
    deleted(world, 1);
    world.forgotten.add([lost(0)]);
    world.provider.listed = vms(5);

    expect(await world.looksUntilDeleted()).toBe(Infinity);
    expect(await world.held()).toBe(5);
  });

  test('also by the notes of forced removals, which name the very VM', async () => {
    const world = new World();
    const notes = [0, 1, 2, 3].map((i) => noteOfForcedRemoval({ ...lost(i), spec: { providerID: `sim:///${i}` } }));
    Object.assign(world.oneClass.metadata, { annotations: Object.assign({}, ...notes) });
    // Something of the machines cannot be deleted by name, such as a port.
    world.namesakes = ['u-new'];
    world.provider.listed = vms(4);

    expect(await world.looksUntilDeleted()).toBe(2);
    expect(world.provider.deleted).toHaveLength(4);
  });

  function again(i: number): Machine {
    const later = structuredClone(lost(i)) as Machine & { metadata: { uid: string; deletionTimestamp?: string } };
    later.metadata.uid = `later-${i}`;
    delete later.metadata.deletionTimestamp;
    return later;
  }
});

test.each([
  { what: 'cannot be listed', listed: FAILURE },
  { what: 'lists VMs of another namespace', listed: [{ ...VM, machineNamespace: 'another' }] },
])('a class that $what is told of once, and again when it was deleted meanwhile', async ({ listed }) => {
  const world = new World();
  world.provider.listed = listed;
  await world.look();
  await world.look();
  expect(world.warnings).toHaveLength(1);

  world.classes.pop();
  await world.look();
  world.classes.push(world.oneClass);
  await world.look();

  expect(world.warnings).toHaveLength(2);
});

describe('the Node of a Machine that was let go by force', () => {
  const noted = (world: World): DeletedMachine[] => {
    const late: DeletedMachine[] = [];
    world.gone.onLate((one) => void late.push(one));
    const former = machine((m) => {
      m.metadata.labels = { node: 'n-1' };
      m.spec.providerID = VM.providerID;
    });
    Object.assign(world.oneClass.metadata, { annotations: noteOfForcedRemoval(former) });
    return late;
  };

  const nodeOf = (providerID: string, ready: 'True' | 'Unknown'): Node =>
    node((n) => {
      n.metadata.name = 'n-1';
      n.spec = { providerID };
      n.status.conditions = [{ type: 'Ready', status: ready }];
    });

  test.each<{ what: string; shown: (world: World) => void }>([
    { what: 'it is there still, not ready', shown: ({ nodes }) => nodes.put(nodeOf(VM.providerID, 'Unknown')) },
    { what: 'a Node of its name shows another VM', shown: ({ nodes }) => nodes.put(nodeOf('sim:///m-2', 'True')) },
    {
      what: 'a Node of its name is that of another Machine',
      shown({ nodes, owners }) {
        nodes.put(nodeOf('', 'True'));
        owners.put(machine((m) => void (m.metadata.labels = { node: 'n-1' })));
      },
    },
  ])('goes although $what', async ({ shown }) => {
    const world = new World();
    const late = noted(world);
    world.provider.listed = [];
    shown(world);
    await world.look();
    world.clock.advance(GRACE_MS);
    await world.look();

    expect(late).toHaveLength(1);
  });

  test('stays when what the first of two looks showed cannot be trusted any more', async () => {
    const world = new World();
    const late = noted(world);
    world.namesakes = ['another'];
    world.provider.listed = [];
    await world.look();
    world.clock.advance(GRACE_MS);
    world.trustedSinceMs = world.clock.monotonicMs() - 1;
    await world.look();

    expect(late).toEqual([]);
  });

  test('goes when two looks in a row do not show its VM, whoever deleted that', async () => {
    const world = new World();
    const late = noted(world);
    world.provider.listed = [];
    await world.look();
    expect(late).toEqual([]);

    world.clock.advance(GRACE_MS);
    await world.look();
    await world.look();

    expect(late).toEqual([{ name: 'm-1', nodeName: 'n-1', providerID: VM.providerID }]);
  });

  // promise: deletion-policies/node-ready-stays-although
  test.each<{ what: string; isDryRun?: boolean; change: (world: World) => void }>([
    { what: 'its VM is listed', change: (world) => void (world.provider.listed = [VM]) },
    { what: 'its class cannot be listed', change: (world) => void (world.provider.listed = FAILURE) },
    {
      what: 'another Machine has its VM',
      change: (world) => void (world.machines = [machine((m) => void (m.spec.providerID = VM.providerID))]),
    },
    { what: 'it is ready itself', change: (world) => world.nodes.put(nodeOf(VM.providerID, 'True')) },
    { what: 'it is ready and shows no VM', change: (world) => world.nodes.put(nodeOf('', 'True')) },
    { what: 'nothing is to be removed', isDryRun: true, change: () => undefined },
  ])('stays while $what', async ({ change, isDryRun = false }) => {
    const world = new World(isDryRun);
    const late = noted(world);
    world.provider.listed = [];
    change(world);

    for (let i = 0; i < 3; i++) {
      await world.look();
      world.clock.advance(GRACE_MS);
    }

    expect(late).toEqual([]);
  });

  describe('and the note of it on a class', () => {
    const KEPT = expect.stringMatching(
      /^Could not delete the remaining resources of Machine m-1, which was removed by force: another Machine has this name .* remove annotation forced-removal\.safety\.machine\.sapcloud\.io\//,
    );
    /** Another Machine needs the class. */
    const inUse = (world: World): DeletedMachine[] => {
      world.machines = [machine((m) => void Object.assign(m.metadata, { name: 'm-2', uid: 'uid-of-m-2' }))];
      world.machines[0]!.spec.providerID = 'sim:///m-2';
      return noted(world);
    };
    const looks = async (world: World, listed: readonly ListedMachine[] = []): Promise<void> => {
      world.provider.listed = listed;
      for (let i = 0; i < 3; i++) {
        await world.look();
        world.clock.advance(GRACE_MS);
      }
    };

    test('goes, or is tried again to go, once VM and Node are gone: a class bears so many only', async () => {
      const world = new World();
      inUse(world);
      world.client.failures.push(new Error('refused'));

      await looks(world);

      const [key = ''] = Object.keys(world.oneClass.metadata.annotations ?? {});
      const { uid } = world.oneClass.metadata;
      expect(world.client.writes).toMatchObject([
        { verb: 'patch', what: 'machineclasses/class-1', uid, body: { metadata: { annotations: { [key]: null } } } },
        { verb: 'patch', what: 'machineclasses/class-1' },
      ]);
    });

    test.each<{ what: string; change: (world: World) => void }>([
      { what: 'there', change: ({ nodes }) => nodes.put(nodeOf(VM.providerID, 'Unknown')) },
      { what: 'ready', change: ({ nodes }) => nodes.put(nodeOf(VM.providerID, 'True')) },
    ])('stays while the Node is $what', async ({ change }) => {
      const world = new World();
      inUse(world);
      change(world);

      await looks(world);

      expect(world.client.writes).toEqual([]);
    });

    // promise: deletion-policies/left-beside-vm-list
    // promise: openstack/deletion/first-search-vms
    test('goes with ports and disks that no list shows: the driver deletes by name and UID once more', async () => {
      const world = new World();
      noted(world);
      world.provider.listed = FAILURE;
      await world.look();
      expect(world.provider.deleted).toEqual([]);

      await looks(world);

      const { uid } = machine().metadata;
      expect(world.provider.deleted).toEqual([
        { metadata: { name: 'm-1', namespace: 'default', uid }, spec: { providerID: VM.providerID } },
      ]);
      expect(world.client.writes).not.toEqual([]);
    });

    test('has its VM deleted with its Node when a list shows the VM, and once only while a class cannot be listed', async () => {
      const world = new World();
      noted(world);
      world.provider.listed = [VM];
      await world.look();
      await world.look();
      expect(world.cleaned).toEqual(['m-1']);
      const { length } = world.provider.deleted;

      world.provider.listed = FAILURE;
      await world.look();
      world.provider.listed = [VM];
      await world.look();

      expect(world.provider.deleted.filter(({ metadata }) => metadata.uid !== undefined)).toHaveLength(length);
    });

    test('goes although nobody ever knew the VM, once the driver says that there is none and none is listed', async () => {
      const world = new World();
      const former = machine((m) => delete m.spec.providerID);
      Object.assign(world.oneClass.metadata, { annotations: noteOfForcedRemoval(former) });
      world.provider.failure = new DriverError('NotFound', 'nothing');
      await world.look();
      await world.look();
      expect(world.client.writes).toEqual([]);

      await looks(world);

      expect(world.provider.deleted[0]).toMatchObject({ metadata: { uid: former.metadata.uid }, spec: {} });
      expect(world.client.writes).not.toEqual([]);
    });

    test('stays while the driver cannot delete what is left, which is told and tried again', async () => {
      const world = new World();
      inUse(world);
      world.provider.failure = FAILURE;

      await looks(world);
      expect(world.client.writes).toEqual([]);
      expect(world.messages).toContainEqual(
        expect.stringMatching(
          /^Could not delete the remaining resources of Machine m-1, which was removed by force: .*no answer/,
        ),
      );
      world.provider.failure = undefined;
      await looks(world);

      expect(world.messages).toContain('Deleted the remaining resources of Machine m-1, which was removed by force.');
      expect(world.client.writes).not.toEqual([]);
    });

    describe('whose name another Machine has by now', () => {
      const OTHER: ListedMachine = { providerID: 'sim:///other', machineName: 'm-1', machineUID: 'u-new' };
      const namesake = machine((m) => {
        m.metadata.uid = 'u-new';
        m.spec.providerID = OTHER.providerID;
      });

      function named(): World {
        const world = new World();
        noted(world);
        Object.assign(world, { machines: [namesake], namesakes: ['u-new'], liveNamesake: 'u-new' });
        return world;
      }

      test('leaves the Node alone, which may be of that one', async () => {
        const world = named();

        await looks(world, [OTHER, VM]);

        expect(world.provider.deleted.map(({ metadata }) => metadata.uid)).toContain(machine().metadata.uid);
        expect(world.cleaned).toEqual([]);
      });

      test('goes, once the VM of that one is listed with its UID', async () => {
        const world = named();

        await looks(world, [OTHER]);

        const { uid } = machine().metadata;
        expect(world.provider.deleted.map(({ metadata }) => metadata.uid)).toContain(uid);
        expect(world.provider.deleted.map(({ metadata }) => metadata.uid)).not.toContain('u-new');
      });

      test.each<{ what: string; vm?: ListedMachine; change?: (world: World) => void }>([
        { what: 'the VM of that one has no UID', vm: { ...OTHER, machineUID: undefined } },
        { what: 'the VM of that one is not listed', vm: { ...OTHER, providerID: 'sim:///third' } },
        { what: 'a third one has it in the caches', change: (world) => void (world.namesakes = ['u-new', 'u-3']) },
        { what: 'a third one has it at the API server', change: (world) => void (world.liveNamesake = 'u-3') },
      ])('has nothing deleted by name while $what', async ({ vm = OTHER, change }) => {
        const world = named();
        change?.(world);

        await looks(world, [vm]);

        expect(world.provider.deleted.filter(({ metadata }) => metadata.uid === machine().metadata.uid)).toEqual([]);
      });
    });

    describe('whose name a Machine in another namespace with the same target cluster has', () => {
      const ELSEWHERE: ListedMachine = {
        providerID: 'sim:///other',
        machineName: 'm-1',
        machineUID: 'u-new',
        machineNamespace: 'other',
      };

      function named(): World {
        const world = new World();
        noted(world);
        const namesake = machine((m) => {
          Object.assign(m.metadata, { namespace: 'other', uid: 'u-new' });
          m.spec.providerID = ELSEWHERE.providerID;
        });
        return Object.assign(world, { elsewhere: [namesake], liveNamesake: 'u-new' });
      }

      test('goes, once the VM of that one is listed with its UID', async () => {
        const world = named();

        await looks(world, [ELSEWHERE]);
        // What is done already is not kept for a new one.
        Object.assign(world, { namesakes: ['u-3'] });
        await looks(world, [ELSEWHERE]);

        expect(world.provider.deleted.map(({ metadata }) => metadata.uid)).toEqual([machine().metadata.uid]);
        expect(world.client.writes).not.toEqual([]);
        expect(world.messages).not.toContainEqual(KEPT);
      });

      test.each<{ what: string; listed: readonly ListedMachine[] }>([
        { what: 'not listed', listed: [] },
        { what: 'listed without UID', listed: [{ ...ELSEWHERE, machineUID: undefined }] },
      ])('stays while the VM of that one is $what, which is told from the second look on', async ({ listed }) => {
        const world = named();
        world.provider.listed = listed;

        await world.look();
        expect(world.messages).not.toContainEqual(KEPT);
        world.clock.advance(GRACE_MS);
        await world.look();

        expect(world.provider.deleted).toEqual([]);
        expect(world.messages).toContainEqual(KEPT);
      });
    });

    test.each<{ what: string; isDryRun?: boolean; change: (world: World) => void }>([
      { what: 'the caches show a Machine of its name', change: (world) => void (world.namesakes = ['u-new']) },
      {
        what: 'the API server shows a Machine of its name that the caches do not show yet',
        change: (world) => void (world.liveNamesake = 'u-new'),
      },
      {
        what: 'there is a Machine of its name',
        change: (world) => void (world.machines = [machine((m) => void (m.spec.providerID = 'sim:///other'))]),
      },
      {
        what: 'another Machine has its VM',
        change: (world) => void (world.machines = [machine((m) => void (m.metadata.name = 'm-2'))]),
      },
      { what: 'nothing is to be removed', isDryRun: true, change: () => undefined },
    ])('has nothing deleted by name while $what', async ({ change, isDryRun = false }) => {
      const world = new World(isDryRun);
      noted(world);
      change(world);

      await looks(world);

      expect(world.provider.deleted).toEqual([]);
    });

    test('stays until the VM is not listed any more, although it was deleted', async () => {
      const world = new World();
      inUse(world);
      world.gone.add({ name: 'm-1', nodeName: 'n-1', providerID: VM.providerID });
      await world.look();
      expect(world.client.writes).toEqual([]);

      await looks(world);

      expect(world.client.writes).not.toEqual([]);
    });
  });
});
