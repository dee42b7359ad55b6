import { revisionHistoryLimitOf, rollbackRevisionOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { MACHINE_FINALIZER, REVISION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { MachineDeployment, MachineDeploymentStatus } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { describeFieldErrors, validateMachineDeployment } from '../../apis/machine/v1alpha1/validation.ts';
import { isBeingDeleted, refOf } from '../../apis/meta.ts';
import { MINUTE_MS } from '../../clock/clock.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch } from '../../kube/patch.ts';
import { machineDeployments, machineSets } from '../../kube/resource.ts';
import { conditionOf } from '../../reconcile/conditions.ts';
import { Finalizer } from '../../reconcile/finalizer.ts';
import { requeue, stop, type StepResult } from '../../reconcile/result.ts';
import { CONTROLLER_INDEX } from '../../indexes/owner-index.ts';
import { invalidAnnotation, invalidSpec } from '../replicas/events.ts';
import { statusChange } from '../replicas/status-change.ts';
import { StatusPace } from '../replicas/status-pace.ts';
import { isAvailable } from '../replicas/machine-state.ts';
import { isUnfreezeRequested } from '../replicas/freeze-marks.ts';
import { applyBrake } from './brake.ts';
import { claimSets } from './claim.ts';
import { cleanUpSets } from './cleanup.ts';
import { finishDeploymentDeletion } from './deletion.ts';
import { selectsAll } from './events.ts';
import { endBegunUpdates, inPlaceUpdate } from './in-place-update.ts';
import { labelAdoptedSets } from './hash-label.ts';
import { newSetChange } from './new-set.ts';
import { NodeMarker } from './node-marker.ts';
import type { MachineDeploymentDeps } from './deps.ts';
import { maintenanceHold } from './maintenance-hold.ts';
import {
  initialProgressOf,
  deadlineCheckMs,
  maintenanceProgress,
  orderProgress,
  pauseProgress,
  rolloutProgressOf,
} from './progressing-condition.ts';
import type { ProgressingUpdate } from './progressing-condition.ts';
import { releaseDeployment } from './release.ts';
import { Replacements } from './replacements.ts';
import { resizeSets } from './resize.ts';
import { rollBack } from './rollback.ts';
import { createSet, recreate, rollingUpdate, settleMarks, type RolloutPass, type RolloutResult } from './rollout.ts';
import { takeHandoff, type HandoffResult } from './scaler-handoff.ts';
import { isScalingEvent, scale, replaceNamed, type ScalingFacts } from './scaling.ts';
import { EMPTY_SET } from './set-facts.ts';
import { grownSize } from './size-rule.ts';
import { canPause, hasOldMachines, isToBegin } from './rollout-begin.ts';
import { rolloutStage } from './rollout-stage.ts';
import { orderHold, type UpdateState } from './update-order.ts';
import { deploymentStatusOf, type Unsupported } from './status.ts';
import { claimedSets, observeWorld, ownedMachines, type World } from './world.ts';

/** Without events a MachineDeployment is looked at again after this time, in case one was missed; the look writes nothing. */
const RESYNC_MS = 10 * MINUTE_MS;

/** What a pass did, for the status. */
interface Acted extends RolloutResult {
  /** A rollout judges its progress; scaling and pausing leave the condition alone. */
  readonly isRollout: boolean;
  /** Why the spec is obeyed in part only. */
  readonly unsupported?: Unsupported;
  /** Whom its rollout waits for. */
  readonly waitsFor?: string | undefined;
}

/** Said of a MachineDeployment whose new template would have to reach Machines that never become Nodes. */
const NOTHING_IN_PLACE: Unsupported = {
  reason: 'StrategyNotSupported',
  message:
    'the new template is not rolled out: without a target cluster, Nodes cannot be updated in place; set spec.strategy.type to RollingUpdate or Recreate',
};

/** Keeps the Machines of each MachineDeployment at its number and rolls them to its template. */
export class MachineDeploymentController {
  readonly #deps: MachineDeploymentDeps;
  readonly #finalizer: Finalizer<MachineDeployment>;
  readonly #pace: StatusPace;
  readonly #marker: NodeMarker;
  readonly #replacements: Replacements;

  constructor(deps: MachineDeploymentDeps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, machineDeployments, MACHINE_FINALIZER);
    this.#marker = new NodeMarker(deps);
    this.#replacements = new Replacements(deps);
    this.#pace = new StatusPace(deps.clock);
  }

  /** One pass over one MachineDeployment. What it throws is retried with backoff. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const cached = this.#deps.machineDeployments.get(key);
    if (cached === undefined) {
      this.#pace.forget(key);
      this.#replacements.forget(key);
      return stop;
    }
    if (isBeingDeleted(cached)) return this.#delete(key, cached, signal);
    if (isUnfreezeRequested(cached)) {
      await releaseDeployment(this.#deps, cached, signal);
      return requeue(0, 'its release to be recorded');
    }

    const errors = validateMachineDeployment(cached);
    if (errors.length > 0) return this.#reject(key, cached, describeFieldErrors(errors), signal);

    const deployment = await this.#withBrake(key, await this.#finalizer.add(cached, signal), signal);
    await claimSets(this.#deps, deployment, signal);
    await labelAdoptedSets(this.#deps, deployment, signal);
    const marked = await this.#withHandoff(deployment, signal);
    const replacements = this.#seeReplacements(key, deployment);
    const acted = marked.isAll
      ? await this.#act(await this.#withNewSetInStep(marked.deployment, signal), signal)
      : { isRollout: false, again: true };
    return this.#report(key, deployment, await this.#settleMarks(deployment, acted, replacements, signal), signal);
  }

  /** Whatever goes wrong, what it creates is bounded. */
  async #withBrake(key: string, deployment: MachineDeployment, signal: AbortSignal): Promise<MachineDeployment> {
    return (await applyBrake(this.#deps, deployment, signal))
      ? (this.#deps.machineDeployments.get(key) ?? deployment)
      : deployment;
  }

  /** The Machines that an autoscaler has chosen are marked before any set shrinks. */
  async #withHandoff(deployment: MachineDeployment, signal: AbortSignal): Promise<HandoffResult> {
    const sets = claimedSets(this.#deps, deployment);
    const machines = ownedMachines(this.#deps, deployment);
    return takeHandoff(this.#deps, deployment, { sets, machines }, this.#deps.clock.now(), signal);
  }

  /** Brings what needs no rollout to the new set, and its revision back to the MachineDeployment. */
  async #withNewSetInStep(deployment: MachineDeployment, signal: AbortSignal): Promise<World> {
    const world = observeWorld(this.#deps, deployment);
    const { newSet, oldSets } = world;
    if (newSet === undefined || isBeingDeleted(newSet)) return world;

    const change = newSetChange(deployment, newSet, oldSets, isScalingEvent(scalingFactsOf(world)));
    if (change !== undefined) {
      await this.#deps.writer.patch('change', machineSets, refOf(newSet), mergePatchIfUnchanged(newSet, change), {
        signal,
      });
      return observeWorld(this.#deps, deployment);
    }
    const revision = newSet.metadata.annotations?.[REVISION_ANNOTATION];
    if (revision === undefined || revision === deployment.metadata.annotations?.[REVISION_ANNOTATION]) return world;
    const patch = mergePatch(deployment, { metadata: { annotations: { [REVISION_ANNOTATION]: revision } } });
    const patched = await this.#deps.writer.patch('change', machineDeployments, refOf(deployment), patch, { signal });
    return observeWorld(this.#deps, patched);
  }

  #seeReplacements(key: string, deployment: MachineDeployment): ReadonlySet<string> {
    const sets = claimedSets(this.#deps, deployment);
    const machinesOf = ({ metadata }: MachineSet): readonly Machine[] =>
      this.#deps.machines.byIndex(CONTROLLER_INDEX, metadata.uid);
    return this.#replacements.see(key, sets.map(machinesOf));
  }

  /** What Nodes carry has a reason, or goes. What is urgent was done before. */
  async #settleMarks(
    deployment: MachineDeployment,
    acted: Acted,
    replacements: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<Acted> {
    const world = observeWorld(this.#deps, deployment);
    // One that waits for its turn has chosen no machines yet, and may wait for long.
    const stage = acted.waitsFor === undefined ? rolloutStage(world) : 'none';
    try {
      const pass = { deps: this.#deps, marker: this.#marker, world, signal };
      return (await settleMarks(pass, { stage, replacements })).hasMore ? { ...acted, again: true } : acted;
    } catch (error) {
      return { ...acted, error: acted.error ?? error };
    }
  }

  async #act(world: World, signal: AbortSignal): Promise<Acted> {
    const { deployment } = world;
    const hasBegun = !isToBegin(world);
    const hold =
      !hasBegun || canPause(world)
        ? orderHold(deployment, this.#others(deployment), this.#updateState, hasBegun)
        : undefined;
    const pass: RolloutPass = { deps: this.#deps, marker: this.#marker, world, signal };
    const isPaused = deployment.spec.paused === true;
    if (!isPaused && rollbackRevisionOf(deployment) !== undefined) return this.#rollBack(pass, hold !== undefined);
    const isHeld = isPaused || hold !== undefined;
    const facts = { ...scalingFactsOf(world), isPaused: isHeld };
    if (isHeld || isScalingEvent(facts)) {
      const hasScaled = await this.#scale(pass, facts);
      if (isHeld) {
        const ended = hasScaled ? {} : await this.#endBegunUpdates(pass, hasBegun);
        return { ...ended, isRollout: false, waitsFor: hold?.message };
      }
      // What the overshoot safety does not let grow must not keep the rest from shrinking.
      if (hasScaled || !world.isFrozen) return { isRollout: false };
    }
    if (await resizeSets(this.#deps, world, replaceNamed(facts), signal)) return { isRollout: false };

    switch (deployment.spec.strategy?.type) {
      case 'RollingUpdate':
        return { ...(await rollingUpdate(pass)), isRollout: true };
      case 'Recreate':
        return { ...(await recreate(pass)), isRollout: true };
      default:
        return this.#inPlace(pass, facts);
    }
  }

  /** Without a target cluster, and without Machines of another template, it is a rollout like any other. */
  async #inPlace(pass: RolloutPass, facts: ScalingFacts): Promise<Acted> {
    if (this.#deps.targets.all().length > 0) return { ...(await inPlaceUpdate(pass)), isRollout: true };
    if (!hasOldMachines(pass.world)) return { ...(await rollingUpdate(pass)), isRollout: true };
    await this.#scale(pass, facts);
    return { isRollout: false, unsupported: NOTHING_IN_PLACE };
  }

  async #endBegunUpdates(pass: RolloutPass, hasBegun: boolean): Promise<RolloutResult> {
    return pass.world.deployment.spec.strategy?.type === 'InPlaceUpdate' ? endBegunUpdates(pass, hasBegun) : {};
  }

  async #scale({ world, signal }: RolloutPass, facts: ScalingFacts): Promise<boolean> {
    const hasScaled = await resizeSets(this.#deps, world, scale(facts), signal);
    if (facts.isPaused) {
      const limit = revisionHistoryLimitOf(world.deployment);
      await cleanUpSets(this.#deps, world.oldSets.map(world.owned), limit, signal);
    }
    return hasScaled;
  }

  #others({ metadata }: MachineDeployment): readonly MachineDeployment[] {
    return this.#deps.machineDeployments.list().filter((other) => other.metadata.namespace === metadata.namespace);
  }

  readonly #updateState = (other: MachineDeployment): UpdateState => {
    const world = observeWorld(this.#deps, other);
    const { newSet, machinesOf } = world;
    return {
      hasOld: hasOldMachines(world),
      hasUpdated: newSet !== undefined && machinesOf(newSet).some(isAvailable),
    };
  };

  /** Without the set of the present template there would be no revision to leave; it grows unless the rollout has to wait. */
  async #rollBack(pass: RolloutPass, isHeld: boolean): Promise<Acted> {
    const { world } = pass;
    if (world.newSet === undefined && !world.isFrozen) {
      const isRolling = world.deployment.spec.strategy?.type !== 'Recreate';
      const { facts, limits } = world;
      return {
        ...(await createSet(pass, isRolling && !isHeld ? grownSize(EMPTY_SET, facts.oldSets, limits) : 0)),
        isRollout: true,
      };
    }
    return { ...(await rollBack(pass)), isRollout: false };
  }

  async #report(key: string, acted: MachineDeployment, outcome: Acted, signal: AbortSignal): Promise<StepResult> {
    const statusWaitMs = await this.#writeStatus(key, acted, undefined, outcome, signal);
    if (outcome.error !== undefined) throw outcome.error;
    const deployment = this.#deps.machineDeployments.get(key) ?? acted;
    const lookMs = outcome.isRollout
      ? deadlineCheckMs(deployment, deployment.status ?? {}, this.#deps.clock.now())
      : undefined;
    const dueMs = [this.#marker.dueInMs(key), this.#replacements.dueInMs(key)];
    const waits = [RESYNC_MS, lookMs, statusWaitMs, ...dueMs, outcome.again === true ? 0 : undefined];
    return requeue(Math.min(...waits.filter((ms) => ms !== undefined)), 'changes of its machine sets');
  }

  /** The spec cannot be obeyed: said once, by condition and Event; the sets stay as they are. */
  async #reject(key: string, deployment: MachineDeployment, errors: string, signal: AbortSignal): Promise<StepResult> {
    const waitMs = await this.#writeStatus(key, deployment, errors, { isRollout: false }, signal);
    return waitMs === undefined ? stop : requeue(waitMs, 'its status to be recorded');
  }

  async #delete(key: string, deployment: MachineDeployment, signal: AbortSignal): Promise<StepResult> {
    if (!this.#finalizer.holds(deployment)) return stop;
    const result = await finishDeploymentDeletion(this.#deps, deployment, signal);
    if (result.kind === 'next') return stop;
    const waitMs = await this.#writeStatus(key, deployment, undefined, { isRollout: false }, signal);
    return waitMs === undefined ? result : requeue(waitMs, 'its machine sets to be deleted');
  }

  /** Writes the status if it changed; returns after which time to come back when it is too early for another write. */
  async #writeStatus(
    key: string,
    acted: MachineDeployment,
    invalid: string | undefined,
    outcome: Acted,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const deployment = this.#deps.machineDeployments.get(key);
    if (deployment === undefined || deployment.metadata.uid !== acted.metadata.uid) return undefined;
    const { clock, writer } = this.#deps;
    const world = observeWorld(this.#deps, deployment);
    const { newSet, oldSets, owned } = world;
    const change = statusChange(
      deployment.status,
      deploymentStatusOf({
        deployment,
        observedGeneration: acted.metadata.generation ?? 0,
        newSet: newSet && owned(newSet),
        oldSets: oldSets.map(owned),
        collisionCount: deployment.status?.collisionCount,
        invalid,
        unsupported: outcome.unsupported,
        nowMs: clock.now(),
        progress: (counts) => this.#progress(world, counts, outcome),
      }),
    );
    if (change === undefined) return undefined;
    const waitMs = this.#pace.waitMs(key);
    if (waitMs > 0) return waitMs;
    this.#pace.written(key);
    await writer.patch('change', machineDeployments, refOf(deployment), statusPatch(deployment, change), { signal });
    this.#reportOnce(deployment, invalid ?? outcome.unsupported?.message);
    return undefined;
  }

  /** What conditions InvalidSpec and InvalidAnnotation have just begun to say is also an Event. */
  #reportOnce(deployment: MachineDeployment, message: string | undefined): void {
    const { conditions } = deployment.status ?? {};
    const annotations = invalidAnnotation(deployment, 'MachineDeployment', conditions);
    if (annotations !== undefined) this.#deps.recorder.event(annotations);
    const told = conditionOf(conditions, 'InvalidSpec')?.message;
    if (message === undefined || message === told) return;
    this.#deps.recorder.event(invalidSpec(deployment, message));
    if (hasEmptySelector(deployment)) this.#deps.recorder.event(selectsAll(deployment));
  }

  #progress(
    world: World,
    counts: MachineDeploymentStatus,
    { announced, isRollout, waitsFor }: Acted,
  ): ProgressingUpdate | undefined {
    const { deployment, newSet } = world;
    const pause = isBeingDeleted(deployment) ? undefined : pauseProgress(deployment);
    if (pause !== undefined) return pause;
    const order = waitsFor !== undefined || isRollout ? orderProgress(deployment, waitsFor) : undefined;
    if (announced !== undefined || order !== undefined) return announced ?? order;
    if (!isRollout) return undefined;
    const name = newSet?.metadata.name;
    const hold = maintenanceHold(world);
    if (hold !== undefined) return maintenanceProgress(deployment, counts, hold);
    const progress = rolloutProgressOf(deployment, counts, name, this.#deps.clock.now());
    const told = progress ?? maintenanceProgress(deployment, counts, undefined);
    return told ?? (name === undefined ? undefined : initialProgressOf(deployment, counts, name));
  }
}

function scalingFactsOf({ facts, limits, deployment, isFrozen }: World): ScalingFacts {
  const { spec } = deployment;
  return {
    ...facts,
    strategy: spec.strategy?.type ?? '',
    limits,
    isPaused: spec.paused === true,
    isFrozen,
  };
}

function hasEmptySelector({ spec }: MachineDeployment): boolean {
  const { matchLabels, matchExpressions } = spec.selector ?? { matchLabels: { absent: '' } };
  return Object.keys(matchLabels ?? {}).length + (matchExpressions ?? []).length === 0;
}
