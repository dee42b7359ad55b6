import type { Machine, MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Lister } from '../../../cache/lister.ts';
import { toTimestamp, type Clock } from '../../../clock/clock.ts';
import { next } from '../../../reconcile/result.ts';
import { INVALID_ANNOTATION, invalidAnnotations } from '../../replicas/invalid-annotations.ts';
import type { MachineStep } from '../context.ts';
import { namedNode } from '../node/named-node.ts';

interface Deps {
  readonly clock: Clock;
  readonly machines: Lister<Machine>;
}

/**
 * Tells of annotations of the Machine and of its Node whose values mean nothing: by a condition for as long as they stand there, and by an
 * Event when that begins or becomes another text. Never ends the pass.
 */
export const annotations = ({ clock, machines }: Deps): MachineStep => ({
  name: 'annotations',

  run(ctx) {
    const { machine, pass, log } = ctx;
    const node = namedNode(ctx, machines);
    const ofNode =
      typeof node === 'object' ? invalidAnnotations('Node', node, `Node ${node.metadata.name}`) : undefined;
    const problems = [invalidAnnotations('Machine', machine), ofNode].filter((one) => one !== undefined);
    const conditions = machine.status.machineConditions ?? [];
    const told = conditions.find(({ type }) => type === INVALID_ANNOTATION);
    const text = problems.length === 0 ? undefined : problems.join(' ');
    if (text === told?.message) return next;

    const others = conditions.filter((one) => one !== told);
    machine.status.machineConditions = text === undefined ? others : [...others, saying(text, told, clock.now())];
    if (text === undefined) return next;
    pass.event(INVALID_ANNOTATION, text);
    pass.afterWrite(() => log.warn({ problem: text }, 'ignored annotations that mean nothing'));
    return next;
  },
});

function saying(message: string, before: MachineCondition | undefined, nowMs: number): MachineCondition {
  const lastTransitionTime = before?.lastTransitionTime ?? toTimestamp(nowMs);
  return { type: INVALID_ANNOTATION, status: 'True', reason: 'UnknownValue', message, lastTransitionTime };
}
