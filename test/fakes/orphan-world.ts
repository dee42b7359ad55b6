import { Registry } from 'prom-client';

import { type BuiltMachineClass, machine, machineClass } from '../builders.ts';
import { ActivityRegistry } from '../../pkg/work/activity/registry.ts';
import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Distrust } from '../../pkg/controllers/safety/orphan-vms/blind-accounts.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../../pkg/apis/meta.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { MemoryClient } from '../memory-client.ts';
import { MemoryInformer } from '../memory-informer.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../../pkg/operator/indexes/machine-indexes.ts';
import { FakeClock } from './fake-clock.ts';
import type { ListedMachine, MachineRequest } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { CONTROL } from '../../pkg/kube/gate/gate.ts';
import { singleTarget, type Target, type Targets } from '../../pkg/kube/targets/targets.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { activityMetrics } from '../../pkg/base/metrics/activity.ts';
import { orphanVMMetrics } from '../../pkg/controllers/safety/orphan-vms/metrics.ts';
import { FakeDriver } from './driver.ts';
import { RemovedMachines } from '../../pkg/controllers/safety/removed-machines.ts';
import { DeletedMachines } from '../../pkg/controllers/safety/deleted-machines.ts';
import { VMStates } from '../../pkg/controllers/machine-facts/vm-states.ts';
import { DistrustedAccounts } from '../../pkg/controllers/safety/distrusted-accounts.ts';
import { OwnerlessVMs } from '../../pkg/controllers/safety/ownerless-vms.ts';
import { OrphanBrake } from '../../pkg/controllers/safety/orphan-vms/brake.ts';
import { Collector } from '../../pkg/controllers/safety/orphan-vms/collector.ts';
import { OrphanVMsController, type OrphanVMsDeps } from '../../pkg/controllers/safety/orphan-vms/controller.ts';
import { Evidence } from '../../pkg/controllers/safety/orphan-vms/evidence.ts';
import { ForgottenMachines } from '../../pkg/controllers/safety/orphan-vms/forgotten.ts';
import { LeftBehind } from '../../pkg/controllers/safety/orphan-vms/left-behind.ts';
import { LeftoverNodes } from '../../pkg/controllers/safety/orphan-vms/leftover-nodes.ts';
import { dropSettledNotes } from '../../pkg/controllers/safety/orphan-vms/settled-notes.ts';

export const GRACE_MS = 30_000;
export const PERIOD_MS = 900_000;
const signal = new AbortController().signal;
export const FAILURE = new DriverError('Unavailable', 'no answer');
export const VM: ListedMachine = { providerID: 'sim:///m-1', machineName: 'm-1', machineUID: 'uid-of-machine-m-1' };

/** A provider that lists what it is told, and notes what it is to delete. */
export class Provider extends FakeDriver {
  listed: readonly ListedMachine[] | Error = [VM];
  readonly deleted: MachineRequest['machine'][] = [];
  /** What deletions fail with. */
  failure: Error | undefined;
  /** Whether deletions have no end. */
  hangs = false;
  lists = 0;
  /** Told of each list that is asked for. */
  beforeList: () => void = () => undefined;
  override methods = new Set(['ListMachines'] as const);

  override list(): Promise<readonly never[]> {
    this.lists += 1;
    this.beforeList();
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

/** What parts are made with. */
type Given = Pick<OrphanVMsDeps, 'recorder' | 'metrics' | 'clock' | 'trust' | 'missingVMs' | 'graceMs' | 'log'> & {
  readonly targets: Targets;
};

interface Options {
  readonly periodMs?: number;
  /** What is not faked. */
  readonly parts?: (given: Given) => Partial<OrphanVMsDeps>;
}

/** The orphan loop over one class. `machines` is what the API server has, `isOwned` what the caches say at the last moment. */
export class OrphanWorld {
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
  /** What looks end with while these are asked for. */
  examineFailure: Error | undefined;
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
    apartMs: () => this.apartMs,
    size: 0,
  };
  /** What it fails with to drop notes of forced removals. */
  dropFailure: Error | undefined;
  /** What the last pass has asked to wait for. */
  waitingFor: string | undefined;
  readonly #controller: OrphanVMsController;

  constructor(isDryRun = false, { periodMs = PERIOD_MS, parts }: Options = {}) {
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
      clock,
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
    const trust = {
      trustedForMs: () => Math.max(0, clock.monotonicMs() - this.trustedSinceMs),
      graceLeftMs: () => 0,
      blindMs: () => 0,
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
        examine: (unlisted, sight) => {
          const keys = unlisted.map(({ list }) => list.key);
          this.examined.push(...keys);
          if (this.examineFailure !== undefined) return Promise.reject(this.examineFailure);
          for (const uid of this.suspects) this.missingVMs.see(uid, keys[0] ?? '', sight);
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
      trust,
      clusters: [CONTROL],
      clock,
      log,
      periodMs,
      graceMs: GRACE_MS,
      ...parts?.({ ...left, recorder, metrics, clock, trust, missingVMs: this.missingVMs, graceMs: GRACE_MS }),
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

  /** The next look is to be now. */
  hurry(): void {
    this.#controller.hurry();
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
export function anotherMachine(name: string, providerID: string): Partial<Machine> {
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

/** So many VMs without a Machine. */
export function vms(count: number): ListedMachine[] {
  return Array.from({ length: count }, (_, i) => ({
    providerID: `sim:///${i}`,
    machineName: `lost-${i}`,
    machineUID: undefined,
  }));
}

/** Allows the deletion of all VMs of a class that have no Machine. */
export function release(world: OrphanWorld, until: number, of: MachineClass = world.oneClass): void {
  (of as BuiltMachineClass).metadata.annotations[DELETE_ORPHAN_VMS_UNTIL_ANNOTATION] = toTimestamp(until);
}
