import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyOf } from '../../apis/meta.ts';
import type { Node, Secret, VolumeAttachment } from '../../apis/wire.ts';
import { ActivityRegistry } from '../../activity/registry.ts';
import type { ActivityResults } from './calls/results.ts';
import { Store } from '../../cache/store.ts';
import { toTimestamp } from '../../clock/clock.ts';
import { FakeClock } from '../../clock/fake-clock.ts';
import type { DrainOutcome, DrainProgress, DrainRequest } from '../../drain/drain.ts';
import type { Capabilities, CreatedMachine, MachineRequest, VirtualMachine } from '../../driver/driver.ts';
import type { MachineDriver } from '../../driver/gated-driver.ts';
import type { Cluster, GateClosedError } from '../../gate/gate.ts';
import type { Outage } from '../../gate/outage.ts';
import { silentLogger } from '../../log/logger.ts';
import { runSteps, type StepResult } from '../../reconcile/result.ts';
import type { Target } from '../../targets/targets.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../../indexes/machine-indexes.ts';
import type { MachineContext, MachineStep } from './context.ts';
import type { MachineEvent } from '../machines/events.ts';
import type { ClassSecrets } from '../class-secrets/secret-contents.ts';
import { secretIndex } from '../../indexes/secret-references.ts';
import { Fleet } from '../machines/fleet.ts';
import { MachineMemory } from './memory.ts';
import type { NodeAccess } from '../machines/node-access.ts';
import { goesWith } from '../machines/node-owner.ts';
import { ReplacementPace } from '../machines/pace.ts';
import { PassNotes } from './pass.ts';
import { Retries } from './retries.ts';
import type { MachineSettings } from '../machines/settings.ts';
import { copyOf } from '../machines/status.ts';
import { mainPatch } from './write.ts';
import { statusChange } from '../machines/status-change.ts';

const MINUTE = 60_000;

/** The defaults of the flags. */
export const SETTINGS: MachineSettings = {
  creationTimeoutMs: 20 * MINUTE,
  healthTimeoutMs: 10 * MINUTE,
  drainTimeoutMs: 120 * MINUTE,
  inPlaceUpdateTimeoutMs: 20 * MINUTE,
  preserveTimeoutMs: 96 * 60 * MINUTE,
  maxEvictRetries: 360,
  pvDetachTimeoutMs: 2 * MINUTE,
  pvReattachTimeoutMs: 90_000,
  nodeConditions: ['KernelDeadlock', 'ReadonlyFilesystem', 'DiskPressure', 'NetworkUnavailable'],
  bootstrapTokenExtraGroups: '',
  resourceExhaustedRetryMs: 10 * MINUTE,
  zoneUnhealthyThreshold: 0.5,
};

/** A driver whose answers a test sets, and whose calls it counts. Creating makes VMs that the other calls know. */
export class FakeDriver implements MachineDriver {
  readonly provider = 'sim';
  readonly calls: string[] = [];
  readonly vms = new Map<string, VirtualMachine>();
  /** What the next calls throw; shifted one by one. */
  failures: Partial<Record<string, unknown[]>> = {};
  methods: Set<'InitializeMachine' | 'ListMachines' | 'GetVolumeIDs'> = new Set();
  idempotentCreate = true;
  userData = '';
  /** Calls wait for this before they answer. */
  hold: Promise<void> = Promise.resolve();

  capabilities(): Promise<Capabilities> {
    const { methods, idempotentCreate } = this;
    return Promise.resolve({ contractVersion: 'v1', name: 'sim', idempotentCreate, listScope: 'class', methods });
  }

  async getStatus({ machine }: MachineRequest): Promise<VirtualMachine> {
    await this.#called('status');
    return this.#found(machine.metadata.name);
  }

  async create({ machine, secretData }: MachineRequest, _signal?: AbortSignal): Promise<CreatedMachine> {
    await this.#called('create');
    const { name } = machine.metadata;
    this.userData = Buffer.from(secretData['userData'] ?? []).toString();
    const vm = { providerID: `sim:///${name}`, nodeName: name, addresses: [] };
    this.vms.set(name, vm);
    return { ...vm, lastKnownState: undefined };
  }

  async initialize({ machine }: MachineRequest): Promise<VirtualMachine> {
    await this.#called('initialize');
    return this.#found(machine.metadata.name);
  }

  async delete({ machine }: MachineRequest): Promise<{ lastKnownState: string | undefined }> {
    await this.#called('delete');
    this.vms.delete(machine.metadata.name);
    return { lastKnownState: undefined };
  }

  list(): Promise<readonly never[]> {
    return Promise.resolve([]);
  }

  volumeIDs(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  /** What GetMachineStatus throws for an unknown machine; set by tests that import DriverError. */
  notFound: () => unknown = () => new Error('set driver.notFound');

  #found(name: string): VirtualMachine {
    const vm = this.vms.get(name);
    if (vm === undefined) throw this.notFound();
    return vm;
  }

  async #called(call: string): Promise<void> {
    this.calls.push(call);
    await this.hold;
    const failure = this.failures[call]?.shift();
    if (failure !== undefined) throw failure;
  }
}

/** Nodes in memory; what is done to them is noted in `done`. */
export class FakeNodes implements NodeAccess {
  readonly cluster: Cluster = 'target';
  /** Those of the world. */
  machines = new Store<Machine>(MACHINE_INDEXES);
  readonly cache = new Store<Node>(NODE_INDEXES);
  /** What a live read finds where it differs from the cache. */
  readonly live = new Map<string, Node | undefined>();
  readonly volumes: VolumeAttachment[] = [];
  readonly done: string[] = [];
  readonly patches: Record<string, unknown>[] = [];
  failure: unknown;
  /** What deletions of VolumeAttachments fail with. */
  detachFailure: unknown;
  /** Whether patches change the cached Node, as the API server would. */
  keepsPatches = false;
  #version = 100;

  get(name: string): Node | undefined {
    return this.cache.get(name);
  }

  ofMachine(machine: Machine): readonly Node[] {
    return this.cache.list().filter((node) => {
      const isNamed = node.metadata.name === machine.metadata.labels?.['node'];
      const isShown = node.metadata.labels?.['node.gardener.cloud/machine-name'] === machine.metadata.name;
      const isVM = (node.spec?.providerID ?? '') !== '' && node.spec?.providerID === machine.spec.providerID;
      return (isNamed || isShown || isVM) && goesWith(node, machine, this.machines);
    });
  }

  ofVM(providerID: string): readonly Node[] {
    return this.cache.list().filter(({ spec }) => providerID !== '' && spec?.providerID === providerID);
  }

  read(name: string): Promise<Node | undefined> {
    this.done.push(`read ${name}`);
    return Promise.resolve(this.live.has(name) ? this.live.get(name) : this.cache.get(name));
  }

  patch(node: Node, change: Record<string, unknown>): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    this.done.push(`patch ${node.metadata.name}`);
    this.patches.push(change);
    if (this.keepsPatches) this.#keep(node, change);
    return Promise.resolve();
  }

  patchStatus(node: Node, status: Record<string, unknown>): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    this.done.push(`status ${node.metadata.name}`);
    if (this.keepsPatches) this.#keep(node, { status });
    return Promise.resolve();
  }

  remove(node: Node): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    this.done.push(`remove ${node.metadata.name}`);
    this.cache.remove(node.metadata.name);
    return Promise.resolve();
  }

  attachments(nodeName: string): readonly VolumeAttachment[] {
    return this.volumes.filter(
      ({ spec, metadata }) => spec.nodeName === nodeName && metadata.deletionTimestamp === undefined,
    );
  }

  detach(attachment: VolumeAttachment): Promise<void> {
    if (this.detachFailure !== undefined) return Promise.reject(this.detachFailure);
    this.done.push(`detach ${attachment.metadata.name}`);
    this.volumes.splice(this.volumes.indexOf(attachment), 1);
    return Promise.resolve();
  }

  /** Merges what strategic merge patches of ours contain: maps by key, conditions by type, taints as one list. */
  #keep(node: Node, change: Record<string, unknown>): void {
    const now = this.cache.get(node.metadata.name);
    if (now === undefined || now.metadata.uid !== node.metadata.uid) return;
    const {
      metadata = {},
      spec = {},
      status = {},
    } = change as {
      metadata?: { labels?: Changes; annotations?: Changes; finalizers?: string[] };
      spec?: object;
      status?: { conditions?: { type: string; status: string }[] };
    };
    const conditions = new Map((now.status?.conditions ?? []).map((one) => [one.type, one]));
    for (const one of status.conditions ?? []) conditions.set(one.type, { ...conditions.get(one.type), ...one });
    this.#version += 1;
    this.cache.put({
      ...now,
      metadata: {
        ...now.metadata,
        resourceVersion: String(this.#version),
        labels: merged(now.metadata.labels, metadata.labels),
        annotations: merged(now.metadata.annotations, metadata.annotations),
        finalizers: [...new Set([...(now.metadata.finalizers ?? []), ...(metadata.finalizers ?? [])])],
      },
      spec: { ...now.spec, ...spec },
      status: { ...now.status, conditions: [...conditions.values()] },
    });
  }
}

type Changes = Record<string, string | null>;

function merged(values: Record<string, string> = {}, changes: Changes = {}): Record<string, string> {
  const entries = Object.entries({ ...values, ...changes });
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== null));
}

/** A drain that a test ends. */
export class FakeDrain {
  readonly requests: DrainRequest[] = [];
  #ends: { resolve: (outcome: DrainOutcome) => void; reject: (err: unknown) => void }[] = [];
  report: (progress: DrainProgress) => void = () => undefined;

  readonly run = (
    request: DrainRequest,
    signal: AbortSignal,
    report: (progress: DrainProgress) => void = () => undefined,
  ): Promise<DrainOutcome> => {
    this.requests.push(request);
    this.report = report;
    return new Promise((resolve, reject) => {
      this.#ends.push({ resolve, reject });
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  };

  end(outcome: DrainOutcome): void {
    this.#ends.shift()?.resolve(outcome);
  }

  fail(err: unknown): void {
    this.#ends.shift()?.reject(err);
  }
}

/** One pass, as a test sees it. */
export interface PassSeen {
  readonly result: StepResult;
  readonly machine: Machine;
  /** Patches that the controller would have sent: of the object, of the status. */
  readonly writes: readonly ('main' | 'status')[];
  readonly events: readonly MachineEvent[];
  readonly error: unknown;
}

/** All that steps see, in memory; everything that is ours behaves as in production, the cloud and the clusters do as told. */
export class FakeWorld {
  readonly clock = new FakeClock();
  readonly pace = new ReplacementPace({ clock: this.clock });
  readonly machines = new Store<Machine>(MACHINE_INDEXES);
  readonly fleet = new Fleet({ machines: this.machines });
  readonly classes = new Store<MachineClass>();
  readonly secrets = new Store<Secret>();
  readonly nodes = new FakeNodes();
  readonly driver = new FakeDriver();
  readonly drains = new FakeDrain();
  readonly deletedMachines: string[] = [];
  readonly tokenCalls: string[] = [];
  /** What every reading of a class's Secrets fails with. */
  secretFailure: Error | undefined;
  /** What every making of a token fails with. */
  tokenFailure: Error | undefined;
  /** What happens elsewhere while a token is made. */
  whileToken: () => void = () => undefined;
  /** What the next deletions of tokens fail with. */
  readonly tokenFailures: Error[] = [];
  readonly measured: string[] = [];
  readonly events: MachineEvent[] = [];
  readonly liveMachines = new Map<string, Machine | undefined>();
  activities: ActivityRegistry<ActivityResults>;
  memory = new MachineMemory();
  retries: Retries;
  hasTarget = true;
  /** Writes fail, as with a conflict: nothing of a pass is kept. */
  losesWrites = false;
  closedGate: GateClosedError | undefined;
  graceLeftMs = 0;
  outages: readonly Outage[] = [];
  blindMs = 0;
  trustedForMs: (clusters: readonly Cluster[]) => number = () => 24 * 60 * MINUTE;
  settings = SETTINGS;
  writes = 0;
  #version = 100;

  constructor() {
    this.nodes.machines = this.machines;
    this.activities = this.#newActivities();
    this.retries = this.#newRetries();
  }

  /** What a restart loses. */
  restart(): void {
    this.memory = new MachineMemory();
    this.retries = this.#newRetries();
    this.activities = this.#newActivities();
  }

  /** Runs steps on a copy of the Machine and keeps what they changed, as the controller does. */
  async pass(steps: readonly MachineStep[], key = 'default/m-1'): Promise<PassSeen> {
    const observed = this.machines.get(key);
    if (observed === undefined) throw new Error(`no machine ${key}`);
    using pass = new PassNotes();
    const ctx = this.context(observed, pass);
    const [run] = await Promise.allSettled([runSteps(steps, ctx)]);
    const events: MachineEvent[] = [];
    const writes = this.losesWrites ? [] : this.#write(observed, ctx.machine);
    if (!this.losesWrites) pass.complete(ctx.machine, (event) => events.push(event));
    const [after] = await Promise.allSettled([this.losesWrites ? undefined : pass.runAfterwards()]);
    this.events.push(...events);
    const result = run.status === 'fulfilled' ? pass.resultOf(run.value) : { kind: 'next' as const };
    const failed = [run, after].find((one) => one.status === 'rejected');
    const error = failed?.status === 'rejected' ? (failed.reason as unknown) : undefined;
    return { result, machine: ctx.machine, writes, events, error };
  }

  /** Lets activities that have nothing to wait for end. */
  async settle(): Promise<void> {
    for (let i = 0; i < 30; i++) await Promise.resolve();
  }

  /** What SecretContents reads live, from `secrets`. */
  #secretsOf(machineClass: MachineClass): ClassSecrets {
    const keys = secretIndex(machineClass);
    const found = keys.map((key) => this.secrets.get(key)).filter((secret) => secret !== undefined);
    const entries = found.flatMap(({ data }) => Object.entries(data ?? {}));
    return {
      data: Object.fromEntries(entries.map(([name, value]) => [name, Buffer.from(value, 'base64')])),
      missing: keys.filter((key) => this.secrets.get(key) === undefined),
      fingerprint: JSON.stringify(entries),
    };
  }

  context(observed: Machine, pass: PassNotes): MachineContext {
    const target = this.hasTarget ? ({ cluster: 'target' } as Target) : undefined;
    const { clock, settings, machines, classes, activities, retries, memory } = this;
    return {
      clock,
      settings,
      machines,
      classes,
      targets: { of: () => target },
      secrets: {
        of: (machineClass) =>
          this.secretFailure === undefined
            ? Promise.resolve(this.#secretsOf(machineClass))
            : Promise.reject(this.secretFailure),
      },
      activities,
      retries,
      memory,
      drivers: { resolve: ({ provider }) => (provider === 'sim' ? this.driver : undefined), all: () => [this.driver] },
      drain: this.drains.run,
      gate: { admit: () => this.#admit() },
      trust: {
        trustedForMs: (clusters) => this.trustedForMs(clusters),
        graceLeftMs: () => this.graceLeftMs,
        blindMs: () => this.blindMs,
      },
      outages: () => this.outages,
      metrics: this.#metrics(),
      fleet: this.fleet,
      pace: this.pace,
      readMachine: (machine) => {
        const key = keyOf(machine);
        return Promise.resolve(this.liveMachines.has(key) ? this.liveMachines.get(key) : machines.get(key));
      },
      markCreationSent: (machine) => {
        this.annotate(machine, { 'machine.sapcloud.io/creation-sent-at': toTimestamp(this.clock.now()) });
        return Promise.resolve();
      },
      deleteMachine: (machine) => {
        this.deletedMachines.push(machine.metadata.uid);
        return Promise.resolve();
      },
      key: keyOf(observed),
      observed,
      machine: copyOf(observed),
      signal: new AbortController().signal,
      log: silentLogger,
      pass,
      target,
      nodes: target === undefined ? undefined : this.nodes,
      tokens: target === undefined ? undefined : this.#tokens(),
    };
  }

  #admit(): Promise<{ remainingMs: number; fencingToken: bigint }> {
    if (this.closedGate !== undefined) return Promise.reject(this.closedGate);
    return Promise.resolve({ remainingMs: Number.POSITIVE_INFINITY, fencingToken: 1n });
  }

  #tokens(): NonNullable<MachineContext['tokens']> {
    const call = (what: string): Promise<string> => {
      this.tokenCalls.push(what);
      this.whileToken();
      return Promise.resolve('abcdef.0123456789abcdef');
    };
    return {
      ensure: () => (this.tokenFailure === undefined ? call('ensure') : Promise.reject(this.tokenFailure)),
      find: () => call('find'),
      remove: async () => {
        await call('remove');
        const failure = this.tokenFailures.shift();
        if (failure !== undefined) throw failure;
      },
    };
  }

  #metrics(): MachineContext['metrics'] {
    const note =
      (what: string) =>
      (_machine: Machine, ...rest: unknown[]): void => {
        this.measured.push([what, ...rest.filter((one) => typeof one === 'number')].join(' '));
      };
    return {
      created: note('created'),
      initialized: note('initialized'),
      joined: note('joined'),
      deleted: note('deleted'),
      drained: note('drained'),
      failedToJoin: note('failedToJoin'),
    };
  }

  /** As the API server would: a Machine that is deleted goes with its last finalizer. */
  #write(observed: Machine, machine: Machine): ('main' | 'status')[] {
    const writes: ('main' | 'status')[] = [];
    if (mainPatch(observed, machine, false) !== undefined) writes.push('main');
    const isGone = isBeingDeleted(machine) && machine.metadata.finalizers?.length === 0;
    if (!isGone && statusChange(observed, machine) !== undefined) writes.push('status');
    this.writes += writes.length;
    if (isGone) this.machines.remove(keyOf(machine));
    else if (writes.length > 0) {
      this.#version += 1;
      const metadata = { ...machine.metadata, resourceVersion: String(this.#version) };
      this.machines.put({ ...machine, metadata });
    }
    return writes;
  }

  /** What anybody may do to a Machine meanwhile. */
  annotate(machine: Machine, annotations: Record<string, string>): void {
    const current = this.machines.get(keyOf(machine));
    if (current === undefined) return;
    this.#version += 1;
    const all = { ...current.metadata.annotations, ...annotations };
    this.machines.put({
      ...current,
      metadata: { ...current.metadata, annotations: all, resourceVersion: String(this.#version) },
    });
  }

  #newActivities(): ActivityRegistry<ActivityResults> {
    return new ActivityRegistry<ActivityResults>({
      clock: this.clock,
      log: silentLogger,
      metrics: { track: () => undefined, settled: () => undefined },
      limits: { create: 10, initialize: 10, status: 10, delete: 10, drain: 10 },
      enqueue: () => undefined,
    });
  }

  #newRetries(): Retries {
    return new Retries({
      clock: this.clock,
      resourceExhaustedRetryMs: this.settings.resourceExhaustedRetryMs,
      random: () => 1,
    });
  }
}
