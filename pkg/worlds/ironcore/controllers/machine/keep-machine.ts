import { isDeepStrictEqual } from 'node:util';

import type { IronCoreMachine } from '../../api/machine.ts';
import { isBeingDeleted, keyOf, refOf } from '../../../../apis/meta.ts';
import { RuntimeError } from '../../runtime/error.ts';
import type { RuntimeChange, RuntimeMachine } from '../../runtime/runtime.ts';
import { ignoreNotFound } from '../../../../kube/client/errors.ts';
import { ironCoreMachines } from '../../api/resources.ts';
import { requeue, stop, type StepResult } from '../../../../work/reconcile/result.ts';
import { carryOut, deleteRuntimeMachine } from './carry-out.ts';
import { noteHandles } from './claiming.ts';
import type { MachineDecision } from './decision.ts';
import { RUNTIME_GENERATION } from './keys.ts';
import type { PassCollaborators, IronCorePass } from './machine-pass.ts';
import { SOON_MS } from './rechecks.ts';
import { isUpToDate } from './status.ts';
import { waitAgain } from './waiting.ts';

export type KeepingDeps = Pick<
  PassCollaborators,
  'reader' | 'writer' | 'networkInterfaces' | 'reports' | 'rechecks' | 'hurry'
>;

/** Brings the machine in step with its Machine, deletes what there is twice of it, and shows how it is. */
export async function keepMachine(
  deps: KeepingDeps,
  pass: IronCorePass,
  decision: MachineDecision & { readonly kind: 'keep' },
): Promise<StepResult> {
  const { reports, rechecks, hurry } = deps;
  const { observed, poolName, runtime, signal } = pass;
  const { machine, duplicates, changes, waits } = decision;
  const { id } = machine.metadata;
  const isLate =
    (duplicates.length > 0 && !(await isCurrentVersion(deps, pass, ({ status }) => status?.machineID ?? ''))) ||
    (changes.some(({ kind }) => kind !== 'annotate') &&
      // By what it says: not every API server counts the changes of a spec.
      !(await isCurrentVersion(deps, pass, ({ spec }) => spec)));
  if (isLate) return requeue(SOON_MS, 'the current version of the Machine');
  for (const duplicate of duplicates) {
    await deleteRuntimeMachine(runtime, keyOf(observed), duplicate, signal);
    const message = `The runtime has more than one machine for this Machine: deleting ${duplicate}, keeping ${id}`;
    reports.event(observed, 'Warning', 'DuplicateMachine', message);
  }
  const seen = await carryOutAll(deps, pass, machine, changes);
  const hasChanged = duplicates.length + changes.length > 0;
  const { name: scheme } = await runtime.version(signal);
  const shown = { seen: isUpToDate(seen) ? seen : undefined, machineID: `${scheme}://${id}`, waits };
  await reports.report(observed, shown, signal);
  await noteHandles(deps, observed, seen, signal);
  if (hasChanged) hurry(poolName);
  // What takes the place of something waits until that is gone.
  if (hasChanged) return requeue(SOON_MS, 'the changes at the runtime to take effect');
  if (waits.length > 0) return waitAgain(deps, pass, waits);
  rechecks.resume(observed.metadata.uid);
  return stop;
}

/**
 * Does at the runtime all that it does not refuse, and resolves with the machine as it is then. Throws what it refuses first, when the Machine
 * has told so.
 */
async function carryOutAll(
  { reports }: KeepingDeps,
  { observed, poolName, runtime, signal }: IronCorePass,
  machine: RuntimeMachine,
  changes: readonly RuntimeChange[],
): Promise<RuntimeMachine> {
  const { id } = machine.metadata;
  let refusal: RuntimeError | undefined;
  const carried = async (change: RuntimeChange): Promise<void> => {
    try {
      await carryOut(runtime, keyOf(observed), id, change, signal);
    } catch (err) {
      if (!(err instanceof RuntimeError)) throw err;
      refusal ??= err;
    }
  };
  const others = changes.filter(({ kind }) => kind !== 'annotate');
  for (const change of others) {
    await carried(change);
    // Nobody knows what else would become of it.
    if (refusal?.unanswered === true) break;
  }
  let after = machine;
  // By its annotations a machine says which spec it is of, and which of its own generations has that.
  if (refusal === undefined && changes.length > 0) {
    if (others.length > 0) [after = machine] = await runtime.machines({ id }, signal);
    const annotations = {
      ...after.metadata.annotations,
      ...changes.find((one) => one.kind === 'annotate')?.annotations,
      [RUNTIME_GENERATION]: String(after.metadata.generation),
    };
    await carried({ kind: 'annotate', annotations });
    after = { ...after, metadata: { ...after.metadata, annotations } };
  }
  if (refusal === undefined) return after;
  // What is refused may be so for ever, and the machine may stop meanwhile.
  const seen = isUpToDate(machine) ? machine : undefined;
  if (!signal.aborted) await reports.reportTrouble(observed, poolName, refusal, signal, { seen });
  throw refusal;
}

/** A cache that is late would have what was just attached detached, and the machine deleted that has just taken the place of another. */
async function isCurrentVersion(
  { reader }: KeepingDeps,
  { observed, signal }: IronCorePass,
  what: (machine: IronCoreMachine) => unknown,
): Promise<boolean> {
  const live = await reader.get(ironCoreMachines, refOf(observed), { signal }).catch(ignoreNotFound);
  return (
    live?.metadata.uid === observed.metadata.uid &&
    !isBeingDeleted(live) &&
    isDeepStrictEqual(what(live), what(observed))
  );
}
