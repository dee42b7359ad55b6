import { hasFinalizer, ORPHAN_FINALIZER } from '../../apis/finalizers.ts';
import { MACHINE_FINALIZER, REVISION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { validateMachineDeployment } from '../../apis/machine/v1alpha1/validation.ts';
import { isBeingDeleted, refOf, keyOf } from '../../apis/meta.ts';
import { ignoreNotFound } from '../../kube/client/errors.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../kube/client/patch.ts';
import { machineDeployments, machineSets } from '../../kube/client/resource.ts';
import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import { Finalizer } from '../../work/reconcile/finalizer.ts';
import { ReportedOnce } from '../../work/reconcile/reported-once.ts';
import { stop, waitFor, requeue, next, type StepResult } from '../../work/reconcile/result.ts';
import { atOnce } from '../replicas/at-once.ts';
import { concernedTargets } from '../replicas/concerned-targets.ts';
import { CREATION_LIMIT_REACHED, describeStop, isSpent } from '../replicas/creation-brake.ts';
import { reachedCreationLimit } from '../replicas/events.ts';
import { isFreezeMarked, deploymentFreeze, setFreeze } from '../replicas/freeze-marks.ts';
import { rolloutLimitsOf } from '../replicas/limits.ts';
import { addFinalizer, OwnerController } from '../replicas/owner-controller.ts';
import { OwnerStatuses } from '../replicas/owner-status.ts';
import { PatientChanges } from '../replicas/patient-changes.ts';
import { releaseSet } from '../replicas/release.ts';
import type { Collaborators, DeploymentPass, DeploymentStep, MachineDeploymentDeps } from './step.ts';
import { countMoved, endBegunUpdates, inPlaceUpdate, openOldSets } from './in-place/in-place-update.ts';
import { Moves } from './in-place/moves.ts';
import { NodeMarker } from './node-marks/node-marker.ts';
import { Replacements } from './node-marks/replacements.ts';
import { observeAgain, observeDeployment, type Observed } from './observed.ts';
import { nodeMarks } from './rollout/node-marks.ts';
import { hasBegunInPlace, scaleOldSets } from './rollout/old-sets.ts';
import { deadlineCheckMs, orderProgress } from './rollout/progressing-condition.ts';
import { scaleAsRolledBack } from './rollout/refused-rollback.ts';
import { rollBackOnRequest } from './rollout/rollback.ts';
import { isToBegin, hasOldMachines } from './rollout/rollout-begin.ts';
import { AGAIN, type RolloutDeps, recreate, rollingUpdate } from './rollout/rollout.ts';
import { orderHoldOf, type OrderDeps } from './rollout/update-order.ts';
import { handoff } from './scaling/handoff.ts';
import { resizeSets } from './scaling/resize.ts';
import { isScalingEvent, scalingFactsOf, replaceNamed, scale } from './scaling/scaling.ts';
import { claim } from './sets/claim.ts';
import { cleanUpSets } from './sets/cleanup.ts';
import { CreationFailures } from './sets/creation-failures.ts';
import { hashLabel } from './sets/hash-label.ts';
import { newSetChange } from './sets/new-set.ts';
import { status, type Unsupported } from './status.ts';

/** Keeps the Machines of each MachineDeployment at its number and rolls them to its template. */
export function machineDeploymentController(
  deps: MachineDeploymentDeps,
): OwnerController<MachineDeployment, DeploymentPass> {
  const finalizer = new Finalizer(deps.writer, machineDeployments, MACHINE_FINALIZER);
  const conditionsOf = (deployment: MachineDeployment) => deployment.status?.conditions;
  const kind = { kind: 'MachineDeployment', resource: machineDeployments, objects: deps.machineDeployments } as const;
  const statuses = new OwnerStatuses({ ...deps, ...kind, conditionsOf, finalizer });
  const marker = new NodeMarker(deps);
  const moves = new Moves(deps);
  const changes = new PatientChanges(deps);
  const replacements = new Replacements(deps);
  const creations = new CreationFailures(deps);
  const failedRollbacks = new ReportedOnce();
  const given: Collaborators = {
    ...deps,
    finalizer,
    marker,
    moves,
    changes,
    replacements,
    creations,
    failedRollbacks,
    statuses,
  };
  const shown = status(given);
  return new OwnerController<MachineDeployment, DeploymentPass>({
    objects: deps.machineDeployments,
    validate: validateMachineDeployment,
    begin: (pass) => ({ ...pass, observed: observeDeployment(deps, pass.object) }),
    observe: (pass) => void (pass.observed = observeDeployment(deps, pass.object, pass.observed)),
    deletion: { work: [deletion(given)], end: [shown] },
    release: { work: [release(given)], end: [] },
    invalid: { work: [], end: [shown] },
    upkeep: {
      work: [
        addFinalizer(finalizer),
        brake(given),
        claim(given),
        hashLabel(given),
        handoff(given),
        syncNewSet(given),
        rollBackOnRequest(given),
        scaleSets(given),
        rollOut(given),
      ],
      end: [nodeMarks(given), shown],
    },
    tell: (pass) => statuses.tell(pass),
    dueInMs: ({ key, object, isRollout }) => [
      isRollout === true ? deadlineCheckMs(deps.machineDeployments.get(key) ?? object, deps.clock.now()) : undefined,
      marker.dueInMs(key),
      moves.dueInMs(key),
      changes.dueInMs(key),
      replacements.dueInMs(key),
    ],
    forget(key, uid) {
      creations.forget(uid);
      failedRollbacks.forget(uid);
      replacements.forget(key);
      statuses.forget(key);
    },
  });
}

const DELETIONS_AT_ONCE = 10;

/**
 * Deletes the sets of a MachineDeployment that is being deleted, and lets it go when none is left: first the Machines vanish, then the sets,
 * then the MachineDeployment. With `--cascade=orphan` its sets stay.
 */
const deletion = ({
  targets,
  writer,
  finalizer,
}: Pick<Collaborators, 'targets' | 'writer' | 'finalizer'>): DeploymentStep => ({
  name: 'deletion',
  async run({ object: deployment, observed: { sets, machinesOf }, signal }) {
    if (!finalizer.holds(deployment)) return stop;
    if (hasFinalizer(deployment, ORPHAN_FINALIZER)) return waitFor('its machine sets to be orphaned');
    if (sets.length === 0) {
      await finalizer.remove(deployment, signal);
      return stop;
    }
    const living = sets.filter((set) => !isBeingDeleted(set));
    await atOnce(DELETIONS_AT_ONCE, living, async (set) => {
      const { uid, resourceVersion } = set.metadata;
      const options = { signal, clusters: concernedTargets(targets, machinesOf(set)) };
      await writer.delete('destroy', machineSets, refOf(set), { uid, resourceVersion }, options).catch(ignoreNotFound);
    });
    return waitFor('its machine sets to be deleted');
  },
});

/**
 * Ends the freeze of a MachineDeployment and of its sets, whoever began it, because its annotation asks for it. The sets come first: the
 * annotation is the only trace of the wish, and the overshoot safety freezes a MachineDeployment while one of its sets is frozen.
 */
const release = (
  deps: Pick<MachineDeploymentDeps, 'machineSets' | 'brake' | 'writer' | 'setRecorder' | 'log'>,
): DeploymentStep => ({
  name: 'release',
  async run({ key, object: deployment, signal }) {
    const sets = deps.machineSets.byIndex(CONTROLLER_INDEX, deployment.metadata.uid);
    for (const set of sets.filter((one) => isFreezeMarked(setFreeze.marksOf(one)))) {
      await releaseSet({ ...deps, recorder: deps.setRecorder }, set, signal);
    }
    deps.brake.forget(deployment.metadata.uid);
    await deploymentFreeze.unfreeze(deps.writer, deployment, signal);
    if (isFreezeMarked(deploymentFreeze.marksOf(deployment))) {
      deps.log.info({ key }, 'unfroze a machine deployment on request');
    }
    return requeue(0, 'its release to be recorded');
  },
});

type BrakeDeps = Pick<MachineDeploymentDeps, 'machineDeployments' | 'brake' | 'writer' | 'recorder' | 'clock' | 'log'>;

/**
 * Freezes a MachineDeployment that has created more within a minute than anybody can want, by condition and label, and puts back a label
 * that somebody took away. Until its annotation releases it, neither it nor its sets create anything, whatever goes wrong.
 */
const brake = (deps: BrakeDeps): DeploymentStep => ({
  name: 'brake',
  async run(pass) {
    const { key, object, signal } = pass;
    if (await applyBrake(deps, object, signal)) pass.object = deps.machineDeployments.get(key) ?? object;
    return next;
  },
});

/** Returns whether it wrote anything. */
async function applyBrake(deps: BrakeDeps, deployment: MachineDeployment, signal: AbortSignal): Promise<boolean> {
  const { metadata } = deployment;
  const { replicas, surge } = rolloutLimitsOf(deployment.spec);
  deps.brake.observe(metadata.uid, replicas, replicas + surge);
  const spending = deps.brake.spending(metadata.uid);
  const { isStopped, isLabelled } = deploymentFreeze.marksOf(deployment);
  if (isStopped) {
    if (isLabelled) return false;
    await deploymentFreeze.label(deps.writer, deployment, signal);
    deps.log.warn(
      { key: keyOf(deployment) },
      'restored the freeze label of a machine deployment that created too many machines',
    );
    return true;
  }
  if (!isSpent(spending)) return false;

  const message = describeStop(`MachineDeployment ${metadata.name}`, spending);
  const cause = { reason: CREATION_LIMIT_REACHED, message } as const;
  await deploymentFreeze.freeze(deps.writer, deployment, cause, deps.clock.now(), signal);
  deps.recorder.event(reachedCreationLimit(deployment));
  deps.log.warn({ key: keyOf(deployment), ...spending }, 'froze a machine deployment that created too many machines');
  return true;
}

/** Brings what needs no rollout to the new set, and its revision back to the MachineDeployment. */
const syncNewSet = ({ writer }: Pick<MachineDeploymentDeps, 'writer'>): DeploymentStep => ({
  name: 'new-set',
  async run(pass) {
    const { object: deployment, observed, signal } = pass;
    const { newSet, oldSets } = observed;
    if (newSet === undefined || isBeingDeleted(newSet)) return next;

    const change = newSetChange(deployment, newSet, oldSets, isScalingEvent(scalingFactsOf(observed)));
    if (change !== undefined) {
      const patch = mergePatchIfUnchanged(newSet, change);
      await writer.patch('change', machineSets, refOf(newSet), patch, { signal });
      return next;
    }
    const revision = newSet.metadata.annotations?.[REVISION_ANNOTATION];
    if (revision === undefined || revision === deployment.metadata.annotations?.[REVISION_ANNOTATION]) return next;
    const patch = mergePatch(deployment, { metadata: { annotations: { [REVISION_ANNOTATION]: revision } } });
    pass.object = await writer.patch('change', machineDeployments, refOf(deployment), patch, { signal });
    return next;
  },
});

/**
 * Spreads a changed number of replicas over the sets. While it is paused, waits for its turn, or may not be rolled back, nothing else happens to
 * them; the set of a template that is to be rolled back gets what all lack, and no more surge.
 */
const scaleSets = (deps: RolloutDeps & OrderDeps): DeploymentStep => ({
  name: 'scale',
  async run(pass) {
    const { signal } = pass;
    if (await countMoved(deps, pass.observed, signal)) return AGAIN;
    await openOldSets(deps, pass);
    // These and the steps before have written: to machines that were chosen, for example, and that are not any more.
    const observed = observeAgain(deps, pass.observed);
    if (observed === undefined) return AGAIN;
    pass.observed = observed;
    const { spec } = observed.deployment;
    const hold = orderHoldOf(deps, observed);
    if (pass.isCutShort === true) {
      // Also that its turn has come: nothing else is said of its progress.
      pass.announced ??= orderProgress(observed.deployment, hold?.message);
      if (await scaleAsRolledBack(deps, pass)) return stop;
      return spec.strategy?.type === 'InPlaceUpdate' ? await endBegunUpdates(deps, pass, !isToBegin(observed)) : stop;
    }
    const isHeld = spec.paused === true || hold !== undefined;
    // What has no rollout is scaled where that is told: else that would come and go with each change of replicas.
    if (!isHeld && strategyFor(observed, deps.targets.all().length > 0) === undefined) return next;
    // Old sets of an update in place do not grow: the new one does, paused or not.
    const facts = { ...scalingFactsOf(observed), isPaused: isHeld && !hasBegunInPlace(observed) };
    if (isHeld) deps.creations.forget(observed.deployment.metadata.uid);
    if (isHeld || isScalingEvent(facts)) {
      const hasScaled = await resizeSets(deps, observed, scale(facts), signal);
      if (isHeld) {
        pass.waitsFor = hold?.message;
        await cleanUpSets(deps, pass);
        if (hasScaled || spec.strategy?.type !== 'InPlaceUpdate') return stop;
        return endBegunUpdates(deps, pass, !isToBegin(observed));
      }
      // What the overshoot safety does not let grow must not keep the rest from shrinking.
      if (hasScaled || !observed.isFrozen) return stop;
    }
    return (await resizeSets(deps, observed, replaceNamed(facts), signal)) ? stop : next;
  },
});

/** Said of a MachineDeployment whose new template would have to reach Machines that never become Nodes. */
const NOTHING_IN_PLACE: Unsupported = {
  reason: 'StrategyNotSupported',
  message:
    'the new template is not rolled out: without a target cluster, Nodes cannot be updated in place; set spec.strategy.type to RollingUpdate or Recreate',
};

/** Moves the Machines to the present template, one step a pass. */
const rollOut = (deps: RolloutDeps): DeploymentStep => ({
  name: 'rollout',
  async run(pass) {
    const { observed } = pass;
    const { uid } = observed.deployment.metadata;
    const strategy = strategyFor(observed, deps.targets.all().length > 0);
    // No set is to be made.
    if (strategy === undefined || observed.newSet !== undefined || observed.isFrozen) deps.creations.forget(uid);
    if (strategy === undefined) {
      pass.unsupported = NOTHING_IN_PLACE;
      // There is no rollout that the surge is for.
      if (await scaleOldSets(deps, pass, 0)) return stop;
      return await endBegunUpdates(deps, pass, hasBegunInPlace(observed));
    }
    // Also if a set may not be changed: its progress has a deadline.
    pass.isRollout = true;
    const result = await strategy(deps, pass);
    return deps.creations.isStuck(uid, pass.error) ? await fillOldSets(deps, pass) : result;
  },
});

/** Gives the old sets what is wanted, as while it is paused, because the new one cannot be created. A Recreate has emptied them before. */
async function fillOldSets(deps: RolloutDeps, pass: DeploymentPass): Promise<StepResult> {
  const now = observeAgain(deps, pass.observed);
  const type = now?.deployment.spec.strategy?.type;
  if (now === undefined || now.newSet !== undefined || type === 'Recreate') return stop;
  pass.observed = now;
  const hasScaled = await scaleOldSets(deps, pass, now.limits.surge);
  return hasScaled || type !== 'InPlaceUpdate' ? stop : await endBegunUpdates(deps, pass, false);
}

/** Without a target cluster, and without Machines of another template, an update in place is a rollout like any other. */
function strategyFor(observed: Observed, hasTarget: boolean): typeof rollingUpdate | undefined {
  switch (observed.deployment.spec.strategy?.type) {
    case 'RollingUpdate':
      return rollingUpdate;
    case 'Recreate':
      return recreate;
    default:
      if (hasTarget) return inPlaceUpdate;
      return hasOldMachines(observed) ? undefined : rollingUpdate;
  }
}
