import { keyOf } from '../../../../apis/meta.ts';
import { RuntimeError } from '../../runtime/error.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { requeue, type StepResult } from '../../../../work/reconcile/result.ts';
import { deleteRuntimeMachine } from './carry-out.ts';
import type { MachineDecision } from './decision.ts';
import { noteDeletion, takeBackDeletion, type DeletionNoteDeps } from './deletion-note.ts';
import type { PassCollaborators, IronCorePass } from './machine-pass.ts';
import { RECHECK_MS, SOON_MS } from './rechecks.ts';
import { runtimeStateName } from './status.ts';

export type DeleteDeps = DeletionNoteDeps & Pick<PassCollaborators, 'reports' | 'sightings' | 'uncertainty' | 'hurry'>;

/** Has the runtime delete the machines of a Machine that is being deleted. That it was sent is written before. */
export async function deleteRuntimeMachines(
  deps: DeleteDeps,
  pass: IronCorePass,
  { left, ids }: MachineDecision & { readonly kind: 'delete' },
): Promise<StepResult> {
  const { reports, missing, sightings, uncertainty, hurry } = deps;
  const { observed, poolName, runtime, signal } = pass;
  const { uid } = observed.metadata;
  const [first] = left;
  const message = `Waiting for the runtime to delete machine ${first?.metadata.id ?? ''}`;
  const problem = { reason: 'Terminating', message };
  await reports.report(observed, { problem }, signal, { state: 'Terminating' });
  // Right before it is told to go, for whoever comes after this process: nothing in between may fail, and leave a note of what was never
  // sent. What it has accepted once stays so.
  if (ids.length > 0 && missing.deletionOf(observed) !== 'accepted') await noteDeletion(deps, observed, 'sent', signal);
  let areAccepted = true;
  for (const id of ids) {
    const isAccepted = await deleteRuntimeMachine(runtime, keyOf(observed), id, signal).catch(async (err: unknown) => {
      await takeBack(deps, pass, first, err);
      throw err;
    });
    if (isAccepted) sightings.deletionSent(poolName, id, uid);
    // One that was accepted before may be shown for a moment after it is gone.
    areAccepted &&= isAccepted || sightings.vouchesFor(poolName, { id });
  }
  uncertainty.certain(uid);
  await noteDeletion(deps, observed, areAccepted ? 'accepted' : 'unanswered', signal);
  hurry(poolName);
  // One that shows a machine and says that it has none may do so for ever, and each time is noted. That it is gone wakes its Machine.
  return requeue(areAccepted ? SOON_MS : RECHECK_MS, message);
}

/** The runtime has not accepted that the machine goes. */
async function takeBack(
  deps: DeleteDeps,
  { observed, poolName, signal }: IronCorePass,
  shown: RuntimeMachine | undefined,
  err: unknown,
): Promise<void> {
  await takeBackDeletion(deps, observed, err, signal);
  if (signal.aborted) return;
  if (!(err instanceof RuntimeError) || shown === undefined) return;
  const state = runtimeStateName(shown.status.state) ?? 'Pending';
  await deps.reports.reportTrouble(observed, poolName, err, signal, { state });
}
