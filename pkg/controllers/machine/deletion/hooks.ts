import { hasForceDeletionLabel } from '../../../apis/machine/v1alpha1/defaults.ts';
import { DRAIN_SINCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { LastOperation } from '../../../apis/machine/v1alpha1/machine.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { next, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { deletionStageOf, describeStage, type DeletionStage } from '../../machine-facts/deletion-stage.ts';
import { describeHooks, hooksOf } from '../../machine-facts/hooks.ts';
import { codeInDeletion, setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { isAt } from './cursor.ts';

type Deps = Pick<Collaborators, 'clock' | 'reportedOnce'>;

/**
 * Waits with the drain, also one that has begun, for as long as the Machine has a hook; nothing overrules one, and a machine without Node
 * waits too. The time that it waited is given back to the drain: its timeout counts anew, by an annotation that is recorded before the
 * last operation says anything else; where the drain is forced by label, its time does not matter.
 */
export const drainHooks = (deps: Deps & Pick<Collaborators, 'drains'>): MachineStep => ({
  name: 'drain-hooks',

  run(ctx) {
    const { machine, pass } = ctx;
    const { clock, drains } = deps;
    const stage = deletionStageOf(machine);
    if (stage !== 'vm-status' && stage !== 'drain') return next;

    const hooks = hooksOf(machine, 'deletion');
    if (hooks.length > 0) {
      drains.end(ctx);
      return waitForHooks(deps, ctx, stage, hooks);
    }
    return continueAfterHooks(deps, ctx, stage, (waited) => {
      if (hasForceDeletionLabel(machine)) return next;
      const since = { [DRAIN_SINCE_ANNOTATION]: toTimestamp(clock.now()) };
      machine.metadata.annotations = { ...machine.metadata.annotations, ...since };
      pass.undoUnlessRecorded(() => void (machine.status.lastOperation = waited));
      return waitFor('the end of the hooks to be recorded');
    });
  },
});

/**
 * Waits with the VM, whose Node is empty by then, for as long as the Machine has a hook; nothing overrules one, no deletion policy either,
 * and a machine that never had a VM waits too.
 */
export const terminationHooks = (deps: Deps): MachineStep => ({
  name: 'termination-hooks',

  run(ctx) {
    if (!isAt(ctx, 'delete-vm')) return next;
    const hooks = hooksOf(ctx.machine, 'termination');
    return hooks.length > 0 ? waitForHooks(deps, ctx, 'delete-vm', hooks) : continueAfterHooks(deps, ctx, 'delete-vm');
  },
});

/** Ends the pass until the hooks are removed. The code of the last operation records the wait for whoever continues. */
function waitForHooks(
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

/** Continues with a stage whose hooks are removed. `ended` runs if the deletion has waited for them, which the last operation says. */
function continueAfterHooks(
  { clock }: Pick<Deps, 'clock'>,
  { machine }: MachineContext,
  stage: DeletionStage,
  ended: (waited: LastOperation) => StepResult = () => next,
): StepResult {
  const { lastOperation: told } = machine.status;
  if (told?.errorCode !== 'WaitingForHooks') return next;
  setOperation(machine, { type: 'Delete', state: 'Processing', description: describeStage(stage, '') }, clock.now());
  return ended(told);
}
