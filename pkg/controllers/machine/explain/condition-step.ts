import type { Clock } from '../../../base/clock/clock.ts';
import type { LogFields } from '../../../base/log/logger.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { next } from '../../../work/reconcile/result.ts';
import type { MachineEventReason } from '../../machine-facts/events.ts';
import { showCondition } from '../../machine-facts/status.ts';
import type { MachineContext, MachineStep } from '../context.ts';

/**
 * A step that shows something in a condition of the Machine, and never ends the pass. `reported`: what it said last of Machines, by UID, since
 * the original's definition stores no such condition.
 */
export function conditionStep(
  name: string,
  show: (ctx: MachineContext, reported: Map<string, string>) => void,
): MachineStep {
  const reported = new Map<string, string>();
  return {
    name,
    run(ctx) {
      show(ctx, reported);
      return next;
    },
    forget: (uid) => void reported.delete(uid),
  };
}

/** What is wrong with a machine, as its condition says it; the Event may say more, and the log says it in its own way. */
export interface Notice {
  readonly reason: string;
  readonly message: string;
  readonly remedy?: string;
  readonly fields: LogFields;
}

/** A step that shows what is wrong by a condition for as long as it is, and by an Event when that begins or becomes another text. */
export function noticeStep(
  { name, clock, type, logged }: { name: string; clock: Clock; type: MachineEventReason; logged: string },
  noticeOf: (ctx: MachineContext) => Notice | 'none' | 'unknown',
): MachineStep {
  return conditionStep(name, (ctx, reported) => {
    const { machine, pass, log } = ctx;
    const { uid } = machine.metadata;
    const notice = noticeOf(ctx);
    if (notice === 'unknown') return;
    if (notice === 'none') {
      reported.delete(uid);
      showCondition(machine, type, undefined, clock.now());
      return;
    }
    const { reason, message, remedy, fields } = notice;
    if (message === conditionOf(machine.status.machineConditions, type)?.message || message === reported.get(uid))
      return;
    showCondition(machine, type, { status: 'True', reason, message }, clock.now());
    pass.event(type, remedy === undefined ? message : `${message} ${remedy}`);
    pass.afterWrite(() => {
      reported.set(uid, message);
      log.warn(fields, logged);
    });
  });
}
