import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { CREATION_SENT_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { MachineActivities } from './calls/results.ts';
import type { Lister } from '../../cache/lister.ts';
import { toTimestamp, type Clock } from '../../clock/clock.ts';
import type { Drain } from '../../drain/drain.ts';
import { concernedClusters } from '../../driver/concerned-clusters.ts';
import type { Drivers } from '../../driver/drivers.ts';
import type { Gate } from '../../gate/gate.ts';
import type { Trust } from '../../gate/leader-gate.ts';
import type { Outage } from '../../gate/outage.ts';
import type { Reader, Writer } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { mergePatch } from '../../kube/patch.ts';
import { machines as machineResource } from '../../kube/resource.ts';
import type { Logger } from '../../log/logger.ts';
import type { MachineMetrics } from '../../metrics/machine.ts';
import { next, runSteps, stop, type StepResult } from '../../reconcile/result.ts';
import type { Targets } from '../../targets/targets.ts';
import type { SecretContents } from '../class-secrets/secret-contents.ts';
import { BootstrapTokens } from './bootstrap-tokens.ts';
import type { MachineContext, MachineStep, MachineWorld } from './context.ts';
import { awaitTarget } from './deletion/await-target.ts';
import { deleteNode } from './deletion/delete-node.ts';
import { deleteVM } from './deletion/delete-vm.ts';
import { detachVolumes } from './deletion/detach-volumes.ts';
import { drain } from './deletion/drain.ts';
import { findNode } from './deletion/find-node.ts';
import { lastToken } from './deletion/last-token.ts';
import { markTerminating } from './deletion/mark-terminating.ts';
import { releaseFinalizer } from './deletion/release-finalizer.ts';
import { revokeToken } from './deletion/revoke-token.ts';
import { settleCreation } from './deletion/settle-creation.ts';
import type { MachineEvent, MachineEventSink } from '../machines/events.ts';
import type { Fleet } from '../machines/fleet.ts';
import { hooks } from './hooks.ts';
import { inPlaceOutcome } from './in-place/outcome.ts';
import { inPlaceProgress } from './in-place/progress.ts';
import { MachineMemory } from './memory.ts';
import { nodeAccess } from '../machines/node-access.ts';
import type { ReplacementPace } from '../machines/pace.ts';
import { PassNotes } from './pass.ts';
import { preservation } from './preservation/preservation.ts';
import { Retries } from './retries.ts';
import type { MachineSettings } from '../machines/settings.ts';
import { copyOf } from '../machines/status.ts';
import { claim } from './steps/claim.ts';
import { creationTimeout } from './steps/creation-timeout.ts';
import { finalizer } from './steps/finalizer.ts';
import { health } from './steps/health.ts';
import { healthTimeout } from './steps/health-timeout.ts';
import { identity } from './steps/identity.ts';
import { initialize } from './steps/initialize.ts';
import { launch } from './steps/launch.ts';
import { leftToken } from './steps/left-token.ts';
import { nodeDeleted, noteGoneNode } from './steps/node-deleted.ts';
import { nodeSync } from './steps/node-sync.ts';
import { ownNode } from './steps/own-node.ts';
import { pending } from './steps/pending.ts';
import { resolve } from './steps/resolve.ts';
import { settled } from './steps/settled.ts';
import { staleNode } from './steps/stale-node.ts';
import { writeRecord, writeStatus } from './write.ts';
import { isToBeTold } from '../machines/node-refusal.ts';
import { refusedStatus, withoutRecord } from './refused-record.ts';

/** Where a machine will run: the seam for a scheduler that places machines on one of several providers. */
const placed: MachineStep = { name: 'placed', run: () => next };

/** The life of a machine, from its creation on. Every pass runs through the list until a step ends it. */
export const CREATION: readonly MachineStep[] = [
  finalizer,
  ownNode,
  nodeDeleted,
  health,
  leftToken,
  inPlaceOutcome,
  healthTimeout,
  creationTimeout,
  nodeSync,
  inPlaceProgress,
  preservation,
  settled,
  resolve,
  placed,
  launch,
  staleNode,
  claim,
  identity,
  initialize,
  pending,
];

/** The end of a machine. The stage in its status says which step has something to do. */
export const DELETION: readonly MachineStep[] = [
  markTerminating,
  settleCreation,
  awaitTarget,
  ownNode,
  findNode,
  hooks('pre-drain'),
  drain,
  detachVolumes,
  hooks('pre-terminate'),
  revokeToken,
  deleteVM,
  deleteNode,
  lastToken,
  releaseFinalizer,
];

/** What the machine controller is made of. */
export interface MachineParts {
  /** With MACHINE_INDEXES of ../node-index. */
  readonly machines: Lister<Machine>;
  readonly classes: Lister<MachineClass>;
  /** Content of the Secrets that MachineClasses name. */
  readonly secrets: Pick<SecretContents, 'of'>;
  /** Both shared by all who fail machines: what one of them begins counts for all. */
  readonly fleet: Fleet;
  readonly pace: ReplacementPace;
  /** Live reads of the control cluster. */
  readonly reader: Reader;
  readonly writer: Writer;
  readonly targets: Targets;
  readonly activities: MachineActivities;
  readonly drivers: Drivers;
  readonly drain: Drain;
  readonly gate: Gate;
  readonly trust: Trust;
  /** Clusters that are frozen now. */
  readonly outages: () => readonly Outage[];
  readonly recorder: MachineEventSink;
  readonly metrics: MachineMetrics;
  readonly clock: Clock;
  readonly settings: MachineSettings;
  /** Uniform in [0, 1); spreads retries. */
  readonly random?: () => number;
}

/**
 * Turns Machines into VMs and Nodes, and back. A pass takes one copy, runs the steps on it and writes it once: at most one
 * patch of the object and one of its status, each only when something changed.
 */
export class MachineController {
  readonly #parts: MachineParts;
  readonly #world: MachineWorld;
  readonly #tokens: BootstrapTokens;

  constructor(parts: MachineParts) {
    const { clock, settings, writer, targets } = parts;
    this.#parts = parts;
    this.#tokens = new BootstrapTokens({ clock, extraGroups: settings.bootstrapTokenExtraGroups });
    this.#world = {
      ...parts,
      retries: new Retries({ ...parts, resourceExhaustedRetryMs: settings.resourceExhaustedRetryMs }),
      memory: new MachineMemory(),
      readMachine: (machine, signal) => this.#read(machine, signal),
      deleteMachine: async (machine, signal) => {
        const { name, namespace = '', uid } = machine.metadata;
        const ref = { namespace, name };
        const clusters = concernedClusters(machine, targets.of(machine)?.cluster);
        await writer.delete('destroy', machineResource, ref, { uid }, { signal, clusters }).catch(ignoreNotFound);
      },
      markCreationSent: async (machine, signal) => {
        const { name, namespace = '' } = machine.metadata;
        const annotations = { [CREATION_SENT_ANNOTATION]: toTimestamp(clock.now()) };
        const patch = mergePatch(machine, { metadata: { annotations } });
        await writer.patch('change', machineResource, { namespace, name }, patch, { signal });
      },
    };
  }

  /** One pass over one Machine. What it throws is retried with back-off. */
  async reconcile(key: string, signal: AbortSignal, log: Logger): Promise<StepResult> {
    const observed = this.#parts.machines.get(key);
    if (observed === undefined) return stop;

    try {
      return await this.#pass(key, observed, signal, log);
    } finally {
      // Machines may vanish during a pass; what it noted for one afterwards nobody would ever ask for.
      const uid = this.#parts.machines.get(key)?.metadata.uid;
      if (uid !== observed.metadata.uid) {
        this.forget(observed);
        this.#parts.activities.forgetAll(key, uid);
      }
    }
  }

  /** A Node of this Machine is gone, and was last seen like this. One that a cluster has forgotten that was set back was not deleted. */
  nodeGone(machine: Machine, node: Node): void {
    if (this.#parts.outages().some(({ isSetBack }) => isSetBack)) return;
    noteGoneNode(this.#world, machine, node);
  }

  /** Drops what was remembered of a Machine that is gone. */
  forget({ metadata: { uid } }: Machine): void {
    this.#tokens.forget(uid);
    this.#world.retries.forget(uid);
    this.#world.memory.forget(uid);
  }

  async #pass(key: string, observed: Machine, signal: AbortSignal, log: Logger): Promise<StepResult> {
    using pass = new PassNotes();
    const ctx = this.#context(key, observed, pass, signal, log);
    const steps = isBeingDeleted(observed) ? DELETION : CREATION;
    const [run] = await Promise.allSettled([runSteps(steps, ctx)]);

    // Written even after a failed step: the status then says what failed.
    await this.#write(ctx);
    await pass.runAfterwards();
    if (run.status === 'rejected') throw run.reason;
    return pass.resultOf(run.value);
  }

  async #write(ctx: MachineContext): Promise<void> {
    let base: Machine | undefined;
    try {
      base = await writeRecord(this.#parts.writer, ctx);
    } catch (err) {
      const instead = isToBeTold(err) ? withoutRecord(ctx, err) : undefined;
      if (instead === undefined) throw err;
      await this.#writeStatus(instead.ctx, ctx.observed, instead.refusal);
      if (instead.failed) throw err;
      return;
    }
    ctx.memory.refusedRecords.delete(ctx.observed.metadata.uid);
    await this.#writeStatus(ctx, base, undefined);
  }

  async #writeStatus(ctx: MachineContext, base: Machine | undefined, refusal: string | undefined): Promise<void> {
    const tell = (event: MachineEvent): void => this.#parts.recorder.event(event);
    try {
      if (base !== undefined) await writeStatus(this.#parts.writer, ctx, base, refusal);
    } catch (err) {
      const event = isToBeTold(err) ? refusedStatus(ctx, err) : undefined;
      if (event !== undefined) tell(event);
      throw err;
    }
    ctx.pass.complete(ctx.machine, tell);
  }

  #context(key: string, observed: Machine, pass: PassNotes, signal: AbortSignal, log: Logger): MachineContext {
    const target = this.#parts.targets.of(observed);
    return {
      ...this.#world,
      key,
      observed,
      machine: copyOf(observed),
      signal,
      log,
      pass,
      target,
      nodes: target === undefined ? undefined : nodeAccess(target, this.#parts.machines),
      tokens: target === undefined ? undefined : this.#tokens.of(target),
    };
  }

  async #read({ metadata: { name, namespace = '' } }: Machine, signal: AbortSignal): Promise<Machine | undefined> {
    return await this.#parts.reader.get(machineResource, { namespace, name }, { signal }).catch(ignoreNotFound);
  }
}

function ignoreNotFound(err: unknown): undefined {
  if (!isNotFound(err)) throw err;
}
