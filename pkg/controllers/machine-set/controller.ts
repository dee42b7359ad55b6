import { hasFinalizer, ORPHAN_FINALIZER } from '../../apis/finalizers.ts';
import {
  MACHINE_FINALIZER,
  PREFER_NO_SCHEDULE_KEY,
  SCALE_UP_DISABLED_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { validateMachineSet } from '../../apis/machine/v1alpha1/validation.ts';
import { isBeingDeleted, refOf } from '../../apis/meta.ts';
import { mergePatchIfUnchanged, type MergePatch } from '../../kube/client/patch.ts';
import { machineSets } from '../../kube/client/resource.ts';
import { Finalizer } from '../../work/reconcile/finalizer.ts';
import { next, requeue, stop, waitFor, type StepResult } from '../../work/reconcile/result.ts';
import { isWorthReporting } from '../machine-facts/node-refusal.ts';
import { ownerNameOf } from '../machine-facts/owners.ts';
import { CREATION_LIMIT_REACHED, describeStop, isSpent } from '../replicas/creation-brake.ts';
import { reachedCreationLimit } from '../replicas/events.ts';
import { setFreeze } from '../replicas/freeze-marks.ts';
import { addFinalizer, OwnerController } from '../replicas/owner-controller.ts';
import { OwnerStatuses } from '../replicas/owner-status.ts';
import { PatientChanges } from '../replicas/patient-changes.ts';
import { release } from '../replicas/release.ts';
import { autoPreserve } from './auto-preserve.ts';
import { claim, claimedMachines } from './claim.ts';
import { deploymentOfSet } from './creation-room.ts';
import { DELETIONS_A_PASS, DeletionTurns } from './deletion-turns.ts';
import type { Collaborators, MachineSetDeps, SetPass, SetStep } from './step.ts';
import { nextExpiryInMs } from './preservation.ts';
import { Recoveries } from './recoveries.ts';
import { ReplicaPlans } from './replica-plans.ts';
import { deleteSurplus, deleteMachine } from './scale-down.ts';
import { createMissing } from './scale-up.ts';
import { status } from './status.ts';
import { pushTemplate } from './template-push.ts';
import { settleWhenObserved, UNSEEN_CHECK_MS, unseenCreations } from './unseen-creations.ts';

/** Keeps as many Machines alive as each MachineSet asks for. */
export function machineSetController(deps: MachineSetDeps): OwnerController<MachineSet, SetPass> {
  const finalizer = new Finalizer(deps.writer, machineSets, MACHINE_FINALIZER);
  const plans = new ReplicaPlans(deps);
  const recoveries = new Recoveries(deps);
  const turns = new DeletionTurns();
  const conditionsOf = (set: MachineSet) => set.status?.machineSetCondition;
  const kind = { kind: 'MachineSet', resource: machineSets, objects: deps.machineSets, conditionsOf } as const;
  const statuses = new OwnerStatuses({ ...deps, ...kind, finalizer });
  const [claims, pushes, preservations] = [
    new PatientChanges(deps),
    new PatientChanges(deps),
    new PatientChanges(deps),
  ];
  const given: Collaborators = {
    ...deps,
    finalizer,
    plans,
    recoveries,
    turns,
    statuses,
    claims,
    pushes,
    preservations,
  };
  const shown = status(given);
  settleWhenObserved(deps);
  return new OwnerController<MachineSet, SetPass>({
    objects: deps.machineSets,
    validate: validateMachineSet,
    begin: (pass) => ({ ...pass, machines: [] }),
    observe: (pass) => void (pass.machines = claimedMachines(deps, pass.object)),
    deletion: { work: [deletion(given)], end: [shown] },
    release: { work: [release({ ...deps, recorder: deps.safetyRecorder })], end: [] },
    invalid: { work: [], end: [shown] },
    upkeep: {
      work: [
        addFinalizer(finalizer),
        rolloutNotes(given),
        claim(given),
        pushTemplate(given),
        autoPreserve(given),
        deleteSurplus(given),
        createMissing(given),
        brake(given),
      ],
      end: [shown],
    },
    tell: (pass) => statuses.tell(pass),
    dueInMs: ({ key, machines }) => [
      nextExpiryInMs(machines, deps.clock.now()),
      claims.dueInMs(key),
      pushes.dueInMs(key),
      preservations.dueInMs(key),
    ],
    forget(key, uid) {
      deps.expectations.forget(uid);
      plans.forget(uid);
      recoveries.forget(uid);
      turns.forget(uid);
      statuses.forget(key);
    },
  });
}

type DeletionDeps = Parameters<typeof deleteMachine>[0] &
  Pick<Collaborators, 'finalizer' | 'expectations' | 'reader' | 'turns'>;

/**
 * Deletes the Machines of a set that is being deleted, and then lets the set go. Holding the set back until its last Machine is gone keeps
 * the garbage collector from deleting Machines whose owner has vanished. A frozen set is no exception. With `--cascade=orphan` its Machines
 * stay.
 */
const deletion = (deps: DeletionDeps): SetStep => ({
  name: 'deletion',
  async run(pass) {
    try {
      return await finishDeletion(deps, pass);
    } catch (error) {
      if (isWorthReporting(error)) throw error;
      pass.error = error;
      return next;
    }
  },
});

async function finishDeletion(deps: DeletionDeps, { object: set, machines, signal }: SetPass): Promise<StepResult> {
  if (!deps.finalizer.holds(set)) return stop;
  if (hasFinalizer(set, ORPHAN_FINALIZER)) return waitFor('its machines to be orphaned');

  if (machines.length > 0) {
    const living = machines.filter((machine) => !isBeingDeleted(machine));
    const victims = living.map((machine) => ({ machine, reason: 'owner' }) as const);
    await deps.turns.each(set, victims, async (victim) => {
      await deleteMachine(deps, set, victim, signal);
      return true;
    });
    return living.length > DELETIONS_A_PASS
      ? requeue(0, 'its machines to be deleted')
      : waitFor('its machines to be deleted');
  }
  if ((await unseenCreations(deps, set, signal)).length > 0) return requeue(UNSEEN_CHECK_MS, 'unanswered creations');
  // A live look may have found one.
  if (claimedMachines(deps, set).length > 0) return requeue(0, 'its machines to be deleted');

  await deps.finalizer.remove(set, signal);
  return stop;
}

/**
 * What takes away the notes that a rollout has left on a set that no MachineDeployment owns any more; undefined when there are none. The
 * note of the taint says that it was a rollout that keeps the set from making up for lost Machines.
 */
export function leftRolloutNotes(set: MachineSet): MergePatch<MachineSet> | undefined {
  const { annotations, labels } = set.metadata;
  if (ownerNameOf(set, 'MachineDeployment') !== undefined || annotations?.[PREFER_NO_SCHEDULE_KEY] === undefined) {
    return undefined;
  }
  const isClosed = labels?.[SCALE_UP_DISABLED_LABEL] !== undefined;
  return {
    metadata: {
      annotations: { [PREFER_NO_SCHEDULE_KEY]: null },
      ...(isClosed && { labels: { [SCALE_UP_DISABLED_LABEL]: null } }),
    },
  };
}

/** Takes away the notes that a rollout has left. */
const rolloutNotes = ({ writer }: Pick<MachineSetDeps, 'writer'>): SetStep => ({
  name: 'rollout-notes',
  async run(pass) {
    const { object: set, signal } = pass;
    const change = leftRolloutNotes(set);
    if (change === undefined) return next;
    pass.object = await writer.patch('change', machineSets, refOf(set), mergePatchIfUnchanged(set, change), { signal });
    return next;
  },
});

type BrakeDeps = Pick<
  MachineSetDeps,
  'brake' | 'machineSets' | 'machineDeployments' | 'writer' | 'recorder' | 'clock' | 'log'
>;

/**
 * Freezes a set without a MachineDeployment that has created more within a minute than anybody can want, and puts back a label that
 * somebody took away; a MachineDeployment is frozen by its own controller. Until its annotation releases it, it creates nothing.
 */
export const brake = (deps: BrakeDeps): SetStep => ({
  name: 'brake',
  async run({ key, object, signal }) {
    // Only its latest version can be frozen.
    const set = deps.machineSets.get(key) ?? object;
    const { isStopped, isLabelled } = setFreeze.marksOf(set);
    if (isStopped) {
      if (isLabelled) return next;
      await setFreeze.label(deps.writer, set, signal);
      deps.log.warn({ key }, 'restored the freeze label of a machine set that created too many machines');
      return next;
    }
    const spending = deps.brake.spending(set.metadata.uid);
    if (!isSpent(spending) || deploymentOfSet(deps, set) !== undefined) return next;
    const message = describeStop(`MachineSet ${set.metadata.name}`, spending);
    await setFreeze.freeze(deps.writer, set, { reason: CREATION_LIMIT_REACHED, message }, deps.clock.now(), signal);
    deps.recorder.event(reachedCreationLimit(set));
    deps.log.warn({ key, ...spending }, 'froze a machine set that created too many machines');
    return next;
  },
});
