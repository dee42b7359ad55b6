import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { keyOf, refOf } from '../../apis/meta.ts';
import { messageOf } from '../../driver/errno.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { isConflict, isNotFound } from '../../kube/client/errors.ts';
import { machines as machineResource } from '../../kube/client/resource.ts';
import { next } from '../../work/reconcile/result.ts';
import { concernedTargets } from '../replicas/concerned-targets.ts';
import { deletedMachine, failedToDelete } from '../replicas/events.ts';
import { isFailed } from '../replicas/machine-state.ts';
import { claimedMachines } from './claim.ts';
import { presentSet } from './present-set.ts';
import type { Collaborators, SetStep } from './step.ts';
import type { DeletionReason } from './metrics.ts';
import type { Victim } from '../replicas/replica-plan.ts';
import { nodeNameOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { SELECTED_FOR_UPDATE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { nodeAccess } from '../machine-facts/node-access.ts';
import { runsOnceHealthy } from '../machine-facts/joining.ts';
import { isHealthy } from '../machine-facts/node-health.ts';
import { isWorthReporting } from '../machine-facts/node-refusal.ts';
import { belongsTo, ownNodeOf } from '../machine-facts/node-owner.ts';
import { watchedConditionsOf } from '../machine-facts/settings.ts';

/** When to look again at a Failed Machine whose Node works: its controller is about to take it back. */
const RECOVERY_CHECK_MS = 15_000;
/** When to look again at missing Machines for which there was no room; Machines that go wake the set before. */
const ROOM_CHECK_MS = 10_000;

type ScaleDownDeps = Pick<
  Collaborators,
  'writer' | 'recorder' | 'metrics' | 'targets' | 'nodeConditions' | 'machines' | 'recoveries' | 'turns' | 'log'
>;

/**
 * Deletes Machines that are too many, chosen or failed, as the set is at this moment. The steps before have written to Machines, and its spec may
 * have changed meanwhile: raised, it has none too many; made smaller, its Machines first get the template that came with that, or they would be
 * drained by the one before, for good.
 */
export const deleteSurplus = (deps: ScaleDownDeps & Pick<Collaborators, 'plans' | 'machineSets'>): SetStep => ({
  name: 'delete-surplus',
  async run(pass) {
    const set = presentSet(deps, pass);
    // Its change has brought another pass, which does all that is said here.
    if (set === undefined || set.metadata.generation !== pass.object.metadata.generation) return next;
    const { notes, signal } = pass;
    const claimed = claimedMachines(deps, set);
    const { create, victims, kept, heldBack } = deps.plans.of(set, claimed, pass);
    deps.recoveries.keepOnly(set, claimed);
    pass.isShort = create > 0;
    if (victims.length === 0) {
      if (kept > 0) notes.alsoAfter(deps.plans.settlesInMs(set), 'its size to settle');
      else if (heldBack === 'no-room') notes.alsoAfter(ROOM_CHECK_MS, 'room for its machines');
      return next;
    }
    try {
      const { recovered } = await scaleDown(deps, set, victims, signal);
      if (recovered > 0) notes.alsoAfter(RECOVERY_CHECK_MS, 'failed machines whose nodes are healthy again');
      else pass.hasDeleted = true;
    } catch (error) {
      pass.error = error;
      if (isWorthReporting(error)) pass.undeleted = messageOf(error);
    }
    return next;
  },
});

/**
 * Deletes those of `victims` whose turn it is. Each DELETE holds only for the very Machine, at the very resourceVersion, from which it was decided:
 * one that changed meanwhile is decided anew. Afterwards the first error is thrown; a conflict is one. `recovered`:
 * failed Machines that stay because their Node works again.
 */
export async function scaleDown(
  deps: ScaleDownDeps,
  set: MachineSet,
  victims: readonly Victim[],
  signal: AbortSignal,
): Promise<{ readonly recovered: number }> {
  let recovered = 0;
  await deps.turns.each(set, victims, async ({ machine, reason }) => {
    if (reason === 'failed' && (await hasRecovered(deps, set, machine, signal))) {
      recovered += 1;
      deps.log.info({ machine: keyOf(machine) }, 'kept a failed machine whose node is healthy again');
      return false;
    }
    await deleteMachine(deps, set, { machine, reason }, signal);
    return true;
  });
  return { recovered };
}

/** Deletes one Machine on behalf of its set, and tells of it. One that is gone already is fine. */
export async function deleteMachine(
  deps: ScaleDownDeps,
  set: MachineSet,
  { machine, reason }: { readonly machine: Machine; readonly reason: DeletionReason },
  signal: AbortSignal,
): Promise<void> {
  const { name, uid, resourceVersion } = machine.metadata;
  try {
    await deps.writer.delete(
      'destroy',
      machineResource,
      refOf(machine),
      { uid, resourceVersion },
      { signal, clusters: concernedTargets(deps.targets, [machine]) },
    );
  } catch (err) {
    if (isNotFound(err)) return;
    const isNews = !isConflict(err) && !(err instanceof GateClosedError) && !signal.aborted;
    if (isNews) deps.recorder.event(failedToDelete(set, name, err));
    throw err;
  }
  deps.recorder.event(deletedMachine(set, name));
  deps.metrics.deleted.inc({ reason });
  if (isFailed(machine) && machine.status?.lastOperation?.type === 'HealthCheck') deps.metrics.staleMachines.inc();
}

/**
 * The last look before a Failed Machine is deleted: whether its own Node works after all, as the target cluster says now; then the
 * machine controller makes it `Running` again at its next pass, whatever it had failed at, and corrects label `node` where that is wrong. A Node that was drained for an
 * in-place update is the exception: the update failed, and that it is Ready proves nothing. Neither is a Machine spared that its controller leaves
 * Failed all the same. The Machine itself needs no read: the DELETE names the resourceVersion at which it was Failed.
 */
async function hasRecovered(
  deps: Pick<Collaborators, 'targets' | 'nodeConditions' | 'machines' | 'recoveries' | 'log'>,
  set: MachineSet,
  machine: Machine,
  signal: AbortSignal,
): Promise<boolean> {
  const { machines } = deps;
  const target = deps.targets.of(machine);
  if (target === undefined) return false;
  const access = nodeAccess(target, machines);
  const named = nodeNameOf(machine);
  const names = new Set([named, ownNodeOf(machine, access)?.metadata.name ?? '']);
  for (const name of names) {
    // No look, no deletion: what this throws is thrown.
    const node = name === '' ? undefined : await access.read(name, signal);
    if (node === undefined || !belongsTo(node, machine, machines)) continue;
    if (node.metadata.labels?.[SELECTED_FOR_UPDATE_LABEL] !== undefined) return false;
    const conditions = node.status?.conditions ?? [];
    if (!isHealthy(conditions, watchedConditionsOf(machine, deps)) || !runsOnceHealthy(machine, node)) return false;
    if (deps.recoveries.isExpected(set, machine, conditions)) return true;
    deps.log.warn(
      { machine: keyOf(machine) },
      'replacing a failed machine whose node is healthy by the node conditions of this process',
    );
    return false;
  }
  return false;
}
