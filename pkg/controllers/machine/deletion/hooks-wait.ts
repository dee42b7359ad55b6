import { next, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { describeStage, type DeletionStage } from '../../machine-facts/deletion-stage.ts';
import { describeHooks } from '../../machine-facts/hooks.ts';
import { codeInDeletion, setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext } from '../context.ts';

type Deps = Pick<Collaborators, 'clock' | 'reportedOnce'>;

/** Ends the pass until the hooks are removed. The code of the last operation records the wait for whoever continues. */
export function waitForHooks(
  { clock, reportedOnce }: Deps,
  { machine, pass }: MachineContext,
  stage: DeletionStage,
  hooks: readonly string[],
): StepResult {
  const text = describeHooks(hooks);
  const description = describeStage(stage, text);
  // Without a VM there is no time to be given back to its drain.
  const errorCode = codeInDeletion(machine, 'WaitingForHooks');
  setOperation(machine, { type: 'Delete', state: 'Processing', errorCode, description }, clock.now());
  if (reportedOnce.isNew(machine.metadata.uid, text)) pass.event('WaitingForHooks', text);
  return waitFor('the hooks to be removed');
}

/** Continues with a stage whose hooks are removed. `ended` runs if the deletion has waited for them. */
export function continueAfterHooks(
  { clock }: Pick<Deps, 'clock'>,
  { machine }: MachineContext,
  stage: DeletionStage,
  ended: () => void = () => undefined,
): StepResult {
  if (machine.status.lastOperation?.errorCode !== 'WaitingForHooks') return next;
  ended();
  setOperation(machine, { type: 'Delete', state: 'Processing', description: describeStage(stage, '') }, clock.now());
  return next;
}
