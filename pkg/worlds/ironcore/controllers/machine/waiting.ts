import type { IronCoreMachine, IronCoreMachineStatus } from '../../api/machine.ts';
import { isBeingDeleted } from '../../../../apis/meta.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { requeue, type StepResult } from '../../../../work/reconcile/result.ts';
import type { Wait } from './decision.ts';
import type { PassCollaborators, IronCorePass } from './machine-pass.ts';
import type { Doubt } from './missing-machines.ts';
import type { MachineProblem } from './status.ts';

export type WaitDeps = Pick<PassCollaborators, 'rechecks' | 'uncertainty' | 'reports'>;

/** Ends a pass that does nothing for its Machine: it says why, and when that is looked for again. */
export async function reportWait(deps: WaitDeps, pass: IronCorePass, waits: readonly Wait[]): Promise<StepResult> {
  await deps.reports.report(pass.observed, { waits }, pass.signal);
  return waitAgain(deps, pass, waits);
}

/** The same, of a Machine that says why already. */
export function waitAgain(
  { rechecks }: Pick<WaitDeps, 'rechecks'>,
  { observed }: IronCorePass,
  waits: readonly Wait[],
): StepResult {
  const { afterMs, text } = rechecks.wait(observed.metadata.uid, waits);
  return requeue(afterMs, text);
}

/** The runtime is not believed, or not ours: the look begins anew when that has ended. */
export async function holdOff(
  { rechecks, uncertainty, reports }: WaitDeps,
  { observed, signal }: IronCorePass,
  { leftMs, ...problem }: MachineProblem & Pick<Doubt, 'leftMs'>,
  seen?: RuntimeMachine,
): Promise<StepResult> {
  const { uid } = observed.metadata;
  const afterMs = rechecks.hold(uid, leftMs);
  uncertainty.distrusted(uid);
  await reports.report(observed, { problem, seen }, signal, seen === undefined ? notRunning(observed) : {});
  return requeue(afterMs, problem.message);
}

/** The state of a Machine whose machine is not there, as far as the runtime shows: it was running perhaps. */
export function notRunning(observed: IronCoreMachine): Partial<IronCoreMachineStatus> {
  return { state: isBeingDeleted(observed) ? 'Terminating' : 'Pending' };
}
