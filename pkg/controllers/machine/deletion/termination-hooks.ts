import { next, waitFor } from '../../../reconcile/result.ts';
import { describeStage, textOfStage } from '../../machines/deletion-stage.ts';
import { describeHooks, hooksOf, isHooksText } from '../../machines/hooks.ts';
import { setOperation } from '../../machines/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { isAt } from './cursor.ts';

type Deps = Pick<Collaborators, 'clock' | 'reportedOnce'>;

/**
 * Waits with the VM, whose Node is empty by then, for as long as the Machine has a hook; nothing overrules one, no deletion policy either,
 * and a machine that never had a VM waits too.
 */
export const terminationHooks = ({ clock, reportedOnce }: Deps): MachineStep => ({
  name: 'termination-hooks',

  run(ctx) {
    const { machine, pass } = ctx;
    if (!isAt(ctx, 'delete-vm')) return next;
    const say = (text: string): void => {
      const { errorCode } = machine.status.lastOperation ?? {};
      const told = { type: 'Delete', state: 'Processing', description: describeStage('delete-vm', text) } as const;
      // That no provider was asked is not to be forgotten.
      setOperation(machine, errorCode === 'NeverAsked' ? { ...told, errorCode } : told, clock.now());
    };

    const hooks = hooksOf(machine, 'termination');
    if (hooks.length > 0) {
      const text = describeHooks(hooks);
      say(text);
      if (reportedOnce.isNew(machine.metadata.uid, text)) pass.event('WaitingForHooks', text);
      return waitFor('the hooks to be removed');
    }
    if (isHooksText(textOfStage(machine.status.lastOperation?.description ?? ''))) say('');
    return next;
  },
});
