import { DRAIN_SINCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../../clock/clock.ts';
import { next, waitFor } from '../../../reconcile/result.ts';
import { deletionStageOf, describeStage } from '../../machines/deletion-stage.ts';
import { describeHooks, hooksOf, isHooksText } from '../../machines/hooks.ts';
import { setOperation } from '../../machines/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';

type Deps = Pick<Collaborators, 'clock' | 'reportedOnce' | 'drains'>;

/**
 * Waits with the drain, also one that has begun, for as long as the Machine has a hook; nothing overrules one, and a machine without Node
 * waits too. The time that it waited is given back to the drain: its timeout counts anew, by an annotation that is recorded before the
 * last operation says anything else.
 */
export const drainHooks = (deps: Deps): MachineStep => ({
  name: 'drain-hooks',

  run(ctx) {
    const { machine, pass } = ctx;
    const { clock, drains, reportedOnce } = deps;
    const stage = deletionStageOf(machine);
    if (stage !== 'vm-status' && stage !== 'drain') return next;
    const say = (text: string): void => {
      const description = describeStage(stage, text);
      setOperation(machine, { type: 'Delete', state: 'Processing', description }, clock.now());
    };

    const hooks = hooksOf(machine, 'deletion');
    if (hooks.length > 0) {
      const text = describeHooks(hooks);
      drains.end(ctx);
      say(text);
      if (reportedOnce.isNew(machine.metadata.uid, text)) pass.event('WaitingForHooks', text);
      return waitFor('the hooks to be removed');
    }
    if (!isHooksText(machine.status.lastOperation?.description ?? '')) return next;
    const since = { [DRAIN_SINCE_ANNOTATION]: toTimestamp(clock.now()) };
    machine.metadata.annotations = { ...machine.metadata.annotations, ...since };
    say('');
    return next;
  },
});
