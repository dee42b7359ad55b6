import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { keyOf, refOf } from '../../apis/meta.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { isConflict, isNotFound } from '../../kube/client/errors.ts';
import { machines } from '../../kube/client/resource.ts';
import { next } from '../../work/reconcile/result.ts';
import { atOnce } from '../replicas/at-once.ts';
import { concernedTargets } from '../replicas/concerned-targets.ts';
import { deletedMachine, failedToDelete } from '../replicas/events.ts';
import { hasRecovered } from './recovery-check.ts';
import { isFailed } from '../replicas/machine-state.ts';
import type { Collaborators } from './deps.ts';
import type { DeletionReason } from './metrics.ts';
import type { SetStep } from './pass.ts';
import type { Victim } from '../replicas/replica-plan.ts';

/** When to look again at a Failed Machine whose Node works: its controller is about to take it back. */
const RECOVERY_CHECK_MS = 15_000;
/** When to look again at missing Machines for which there was no room; Machines that go wake the set before. */
const ROOM_CHECK_MS = 10_000;
/** A pass deletes at most so many Machines, all at once; then the plan is made anew, because replicas may have risen. */
export const DELETIONS_A_PASS = 50;

type ScaleDownDeps = Pick<
  Collaborators,
  'writer' | 'recorder' | 'metrics' | 'targets' | 'nodeConditions' | 'machines' | 'log'
>;

/** Deletes Machines that are too many, chosen or failed. */
export const deleteSurplus = (deps: ScaleDownDeps & Pick<Collaborators, 'plans'>): SetStep => ({
  name: 'delete-surplus',
  async run(pass) {
    const { object: set, machines: claimed, notes, signal } = pass;
    const { create, victims, kept, heldBack } = deps.plans.of(set, claimed);
    pass.isShort = create > 0;
    if (victims.length === 0) {
      if (kept > 0) notes.alsoAfter(deps.plans.settlesInMs(set), 'its size to settle');
      else if (heldBack === 'no-room') notes.alsoAfter(ROOM_CHECK_MS, 'room for its machines');
      return next;
    }
    try {
      const { recovered } = await scaleDown(deps, set, victims.slice(0, DELETIONS_A_PASS), signal);
      if (recovered > 0) notes.alsoAfter(RECOVERY_CHECK_MS, 'failed machines whose nodes are healthy again');
      else pass.hasDeleted = true;
    } catch (error) {
      pass.error = error;
    }
    return next;
  },
});

export interface ScaleDownResult {
  /** Failed Machines that stay because their Node works again. */
  readonly recovered: number;
}

/**
 * Deletes `victims`. Each DELETE holds only for the very Machine, at the very resourceVersion, from which it was decided:
 * one that changed meanwhile is decided anew. Afterwards the first error is thrown; a conflict is one.
 */
export async function scaleDown(
  deps: ScaleDownDeps,
  set: MachineSet,
  victims: readonly Victim[],
  signal: AbortSignal,
): Promise<ScaleDownResult> {
  let recovered = 0;
  await atOnce(DELETIONS_A_PASS, victims, async ({ machine, reason }) => {
    if (reason === 'failed' && (await hasRecovered(deps, machine, signal))) {
      recovered += 1;
      deps.log.info({ machine: keyOf(machine) }, 'kept a failed machine whose node is healthy again');
      return;
    }
    await deleteMachine(deps, set, { machine, reason }, signal);
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
      machines,
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
