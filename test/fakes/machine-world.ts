import { MINUTE } from '../durations.ts';
import { MACHINE_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { NodeLabelPolicy } from '../../pkg/apis/machine/v1alpha1/node-label-policy.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../../pkg/apis/meta.ts';
import type { Secret } from '../../pkg/apis/wire.ts';
import { ActivityRegistry } from '../../pkg/work/activity/registry.ts';
import { Store } from '../../pkg/kube/cache/store.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { FakeClock } from './fake-clock.ts';
import type { ClassSecrets } from '../../pkg/controllers/class-secrets/secret-contents.ts';
import { secretIndex } from '../../pkg/operator/indexes/secret-references.ts';
import { MACHINE_INDEXES } from '../../pkg/operator/indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../pkg/operator/indexes/owner-index.ts';
import type { TokenAccess } from '../../pkg/controllers/machine/tokens/bootstrap-tokens.ts';
import type { ActivityResults } from '../../pkg/controllers/machine/calls/results.ts';
import { type MachineContext, MachineNotes, type MachineStep } from '../../pkg/controllers/machine/context.ts';
import { MachineController } from '../../pkg/controllers/machine/controller.ts';
import type { MachineStepsDeps } from '../../pkg/controllers/machine/collaborators.ts';
import { machineSteps, type MachineSteps } from '../../pkg/controllers/machine/steps.ts';
import type { MachineEvent } from '../../pkg/controllers/machine-facts/events.ts';
import { ReplacementBudget } from '../../pkg/controllers/machine-facts/replacement-budget.ts';
import { ReplacementPace } from '../../pkg/controllers/machine-facts/pace.ts';
import type { MachineSettings } from '../../pkg/controllers/machine-facts/settings.ts';
import { copyOf } from '../../pkg/controllers/machine-facts/status.ts';
import type { Cluster, GateClosedError } from '../../pkg/kube/gate/gate.ts';
import type { Outage } from '../../pkg/kube/gate/outage.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import { machines as machineResource } from '../../pkg/kube/client/resource.ts';
import { type LogFields, type Logger, silentLogger } from '../../pkg/base/log/logger.ts';
import type { MachineMetrics } from '../../pkg/controllers/machine/metrics.ts';
import type { StepResult } from '../../pkg/work/reconcile/result.ts';
import { MemoryClient } from '../memory-client.ts';
import { FakeDrain } from './drain.ts';
import { FakeDriver } from './driver.ts';
import { SETTINGS } from './machine-settings.ts';
import { FakeNodes } from './nodes.ts';
import { VMStates } from '../../pkg/controllers/machine-facts/vm-states.ts';
import { NodesInTarget } from '../../pkg/controllers/machine-facts/nodes-in-target.ts';
import { Zones } from '../../pkg/controllers/machine-facts/zones.ts';

const KEY = 'default/m-1';

/** Both writes of a pass. */
const LOST = Array.from({ length: 2 }, () => new ApiError(409, 'Conflict', 'somebody else wrote'));

/** One pass, as a test sees it. */
export interface PassSeen {
  readonly result: StepResult;
  readonly machine: Machine;
  /** Patches that were sent: of the object, of the status. */
  readonly writes: readonly ('main' | 'status')[];
  readonly events: readonly MachineEvent[];
  readonly error: unknown;
}

/**
 * The machine controller with all that it works with, in memory: everything that is ours is as in production, the cloud and the clusters
 * do as told.
 */
export class FakeWorld {
  /** What passes have told at level info. */
  readonly infos: string[] = [];
  /** What passes have warned of. */
  readonly warnings: { readonly message: string; readonly fields: LogFields }[] = [];
  readonly clock = new FakeClock();
  readonly pace = new ReplacementPace({ clock: this.clock });
  readonly machines = new Store<Machine>({ ...MACHINE_INDEXES, [CONTROLLER_INDEX]: controllerIndex });
  readonly owners = {
    sets: new Store<MachineSet>({ [CONTROLLER_INDEX]: controllerIndex }),
    deployments: new Store<MachineDeployment>(),
  };
  readonly budget = new ReplacementBudget({ machines: this.machines, owners: {}, clock: this.clock });
  readonly classes = new Store<MachineClass>();
  readonly labelPolicies = new Store<NodeLabelPolicy>();
  readonly secrets = new Store<Secret>();
  readonly nodes = new FakeNodes();
  readonly driver = new FakeDriver();
  /** Another account of the provider: of classes whose provider is `sim-2`. */
  readonly otherDriver = new FakeDriver();
  readonly drains = new FakeDrain();
  readonly deletedMachines: string[] = [];
  /** What the next deletions of Machines fail with. */
  readonly deleteFailures: Error[] = [];
  /** Classes that note that a Machine was let go by force. */
  readonly notedRemovals: string[] = [];
  /** What that fails with. */
  noteFailure: Error | undefined;
  readonly tokenCalls: string[] = [];
  /** What every reading of a class's Secrets fails with. */
  secretFailure: Error | undefined;
  /** What happens elsewhere while they are read. */
  whileSecrets: () => void = () => undefined;
  /** What every making of a token fails with, and every look for one. */
  tokenFailure: Error | undefined;
  /** What happens elsewhere while a token is made. */
  whileToken: () => void = () => undefined;
  /** What the next deletions of tokens fail with. */
  readonly tokenFailures: Error[] = [];
  readonly measured: string[] = [];
  /** Why machines failed, as counted. */
  readonly failures: string[] = [];
  readonly events: MachineEvent[] = [];
  readonly liveMachines = new Map<string, Machine | undefined>();
  activities: ActivityRegistry<ActivityResults>;
  steps: MachineSteps;
  hasTarget = true;
  /** Writes fail, as with a conflict: nothing of a pass is kept. */
  losesWrites = false;
  closedGate: GateClosedError | undefined;
  graceLeftMs = 0;
  outages: readonly Outage[] = [];
  blindMs = 0;
  trustedForMs: (clusters: readonly Cluster[]) => number = () => 24 * 60 * MINUTE;
  /** What becomes of VMs that no Machine has. */
  leftVMs: MachineStepsDeps['leftVMs'] = 'deleted';
  readonly vmStates = new VMStates();
  /** Whether the VM of a Machine counted as gone, by its UID. */
  readonly judgements = new Map<string, boolean>();
  holdsScaleDown = true;
  /** See MachineStepsDeps; from the next restart on. */
  namesakes: MachineStepsDeps['namesakes'];
  readonly settings: { -readonly [name in keyof MachineSettings]: MachineSettings[name] } = { ...SETTINGS };
  readonly targets: MachineStepsDeps['targets'] = { of: () => (this.hasTarget ? this.nodes.target : undefined) };
  readonly zones = new Zones(this);
  writes = 0;
  /** What passes are written with. */
  readonly writer = new MemoryClient();
  controller: MachineController;
  /** That of the last pass over each. */
  readonly #contexts = new Map<string, MachineContext>();

  readonly #log: Logger = {
    ...silentLogger,
    info: (_fields, message) => void this.infos.push(message),
    warn: (fields, message) => void this.warnings.push({ message, fields }),
  };

  readonly nodesInTarget = new NodesInTarget({ machines: this.machines, targets: this.targets, log: this.#log });

  constructor() {
    this.nodes.machines = this.machines;
    this.writer.shows(machineResource, this.machines);
    this.activities = this.#newActivities();
    this.steps = machineSteps(this.deps);
    this.controller = this.#controllerOf(this.steps);
  }

  /** What a restart loses. */
  restart(): void {
    this.activities = this.#newActivities();
    this.steps = machineSteps(this.deps);
    this.controller = this.#controllerOf(this.steps);
  }

  /** The life of a machine. */
  get upkeep(): readonly MachineStep[] {
    return this.steps.upkeep;
  }

  /** The end of a machine. */
  get deletion(): readonly MachineStep[] {
    return this.steps.deletion;
  }

  /** The step of that name alone. */
  only(name: string): readonly MachineStep[] {
    return this.upkeep.filter((step) => step.name === name);
  }

  /** One pass of the controller over a Machine. */
  async reconcile(key = KEY): Promise<PassSeen> {
    return await this.#passOf(this.controller, key);
  }

  /** The same with some of the steps alone. */
  async pass(steps: readonly MachineStep[], key = KEY): Promise<PassSeen> {
    return await this.#passOf(this.#controllerOf({ ...this.steps, upkeep: steps, deletion: steps }), key);
  }

  async #passOf(controller: MachineController, key: string): Promise<PassSeen> {
    if (this.machines.get(key) === undefined) throw new Error(`no machine ${key}`);
    const [writesBefore, eventsBefore] = [this.writer.writes.length, this.events.length];
    if (this.losesWrites) this.writer.failures.push(...LOST);
    const [run] = await Promise.allSettled([controller.reconcile(key, new AbortController().signal, this.#log)]);
    if (this.losesWrites) this.writer.failures.length = 0;
    const writes = this.writer.writes.slice(writesBefore);
    this.writes += this.losesWrites ? 0 : writes.length;
    const ctx = this.#contexts.get(key);
    if (ctx === undefined) throw new Error('the pass ran no step');
    const isDone = run.status === 'fulfilled';
    return {
      result: isDone ? run.value : { kind: 'next' as const },
      machine: ctx.machine,
      writes: writes.map(({ what }) => (what.endsWith('/status') ? 'status' : 'main')),
      events: this.events.slice(eventsBefore),
      error: isDone ? undefined : (run.reason as unknown),
    };
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

  /** A pass over a Machine. */
  context(observed: Machine, pass = new MachineNotes()): MachineContext {
    return {
      key: keyOf(observed),
      observed,
      machine: copyOf(observed),
      signal: new AbortController().signal,
      log: this.#log,
      pass,
      nodes: this.hasTarget ? this.nodes : undefined,
    };
  }

  /** What the steps are made from. */
  get deps(): MachineStepsDeps {
    const { clock, settings, machines, classes, labelPolicies, activities } = this;
    return {
      clock,
      settings,
      machines,
      classes,
      labelPolicies,
      targets: this.targets,
      secrets: {
        of: (machineClass) => {
          this.whileSecrets();
          return this.secretFailure === undefined
            ? Promise.resolve(this.#secretsOf(machineClass))
            : Promise.reject(this.secretFailure);
        },
      },
      activities,
      random: () => 1,
      namesakes: this.namesakes,
      bootstrapTokens: { of: () => this.#tokens(), forget: () => undefined },
      drivers: {
        resolve: ({ provider }) =>
          provider === 'sim' ? this.driver : provider === 'sim-2' ? this.otherDriver : undefined,
        all: () => [this.driver],
      },
      drain: this.drains.run,
      gate: { admit: () => this.#admit() },
      trust: {
        trustedForMs: (clusters) => this.trustedForMs(clusters),
        graceLeftMs: () => this.graceLeftMs,
        blindMs: () => this.blindMs,
      },
      outages: () => this.outages,
      metrics: this.#metrics(),
      zones: this.zones,
      nodesInTarget: this.nodesInTarget,
      budget: this.budget,
      pace: this.pace,
      owners: this.owners,
      leftVMs: this.leftVMs,
      vmStates: this.vmStates,
      judgedVM: (uid, isGone) => void this.judgements.set(uid, isGone),
      holdsScaleDownDuringRollout: this.holdsScaleDown,
      readMachine: (machine) => {
        const key = keyOf(machine);
        return Promise.resolve(this.liveMachines.has(key) ? this.liveMachines.get(key) : machines.get(key));
      },
      isClassProtected: ({ metadata: { namespace = '' }, spec }) => {
        const finalizers = this.classes.get(`${namespace}/${spec.class?.name ?? ''}`)?.metadata.finalizers;
        return Promise.resolve(finalizers?.includes(MACHINE_FINALIZER) ?? false);
      },
      markCreationSent: (machine, className) => {
        this.annotate(machine, {
          'machine.sapcloud.io/creation-sent-at': toTimestamp(this.clock.now()),
          'machine.sapcloud.io/vm-class': className,
        });
        return Promise.resolve();
      },
      noteForcedRemoval: ({ metadata: { name } }) => {
        this.notedRemovals.push(name);
        return this.noteFailure === undefined ? Promise.resolve() : Promise.reject(this.noteFailure);
      },
      deleteUnchanged: (machine) => {
        const key = keyOf(machine);
        const now = machines.get(key);
        if (now?.metadata.resourceVersion !== machine.metadata.resourceVersion)
          return Promise.reject(new ApiError(409, 'Conflict', 'the Machine has changed'));
        const failure = this.deleteFailures.shift();
        if (failure !== undefined) return Promise.reject(failure);
        this.deletedMachines.push(machine.metadata.uid);
        return Promise.resolve();
      },
      deleteMachine: (machine) => {
        const failure = this.deleteFailures.shift();
        if (failure !== undefined) return Promise.reject(failure);
        this.deletedMachines.push(machine.metadata.uid);
        return Promise.resolve();
      },
    };
  }

  #admit(): Promise<{ remainingMs: number; fencingToken: bigint }> {
    if (this.closedGate !== undefined) return Promise.reject(this.closedGate);
    return Promise.resolve({ remainingMs: Number.POSITIVE_INFINITY, fencingToken: 1n });
  }

  #tokens(): TokenAccess {
    const call = (what: string): Promise<string> => {
      this.tokenCalls.push(what);
      this.whileToken();
      return Promise.resolve('abcdef.0123456789abcdef');
    };
    return {
      ensure: () => (this.tokenFailure === undefined ? call('ensure') : Promise.reject(this.tokenFailure)),
      forgo: () => void this.tokenCalls.push('forgo'),
      find: () => (this.tokenFailure === undefined ? call('find') : Promise.reject(this.tokenFailure)),
      remove: async () => {
        await call('remove');
        const failure = this.tokenFailures.shift();
        if (failure !== undefined) throw failure;
      },
    };
  }

  #metrics(): MachineMetrics {
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
      failed: (reason) => void this.failures.push(reason),
      failedToJoin: note('failedToJoin'),
    };
  }

  /** What anybody may do to a Machine meanwhile. */
  annotate(machine: Machine, annotations: Record<string, string>): void {
    const current = this.machines.get(keyOf(machine));
    if (current === undefined) return;
    const all = { ...current.metadata.annotations, ...annotations };
    this.writer.wrote(machineResource, { ...current, metadata: { ...current.metadata, annotations: all } });
  }

  /** A controller with these steps, which share what they remember with those of all others until a restart. */
  #controllerOf(steps: MachineSteps): MachineController {
    const { machines, activities, writer, clock } = this;
    const seen = (step: MachineStep): MachineStep => ({
      ...step,
      run: (ctx) => {
        this.#contexts.set(ctx.key, ctx);
        return step.run(ctx);
      },
    });
    return new MachineController({
      machines,
      activities,
      writer,
      clock,
      steps: { ...steps, upkeep: steps.upkeep.map(seen), deletion: steps.deletion.map(seen) },
      nodesOf: () => (this.hasTarget ? this.nodes : undefined),
      outages: () => this.outages,
      recorder: { event: (event: MachineEvent) => void this.events.push(event) },
    });
  }

  #newActivities(): ActivityRegistry<ActivityResults> {
    return new ActivityRegistry<ActivityResults>({
      clock: this.clock,
      log: silentLogger,
      metrics: { track: () => undefined, settled: () => undefined },
      limits: { create: 10, initialize: 10, status: 10, delete: 10, drain: 10 },
    });
  }
}
