import type { MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import { withoutCondition, conditionOf, withCondition, dated } from '../../../work/reconcile/conditions.ts';
import { INVALID_ANNOTATION, invalidAnnotations } from '../../replicas/invalid-annotations.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { namedNode } from '../node/named-node.ts';
import { conditionStep } from './condition-step.ts';

/**
 * Tells of annotations of the Machine and of its Node whose values mean nothing: by a condition for as long as they stand there, and by an
 * Event when that begins or becomes another text.
 */
export const annotations = ({ clock, machines }: Pick<Collaborators, 'clock' | 'machines'>): MachineStep =>
  conditionStep('annotations', (ctx, reported) => {
    const { machine, pass, log } = ctx;
    const { uid } = machine.metadata;
    const node = namedNode(ctx, machines);
    const ofNode =
      typeof node === 'object' ? invalidAnnotations('Node', node, `Node ${node.metadata.name}`) : undefined;
    const problems = [invalidAnnotations('Machine', machine), ofNode].filter((one) => one !== undefined);
    const { machineConditions } = machine.status;
    const text = problems.length === 0 ? undefined : problems.join(' ');
    if (text === undefined) reported.delete(uid);
    if (text === conditionOf(machineConditions, INVALID_ANNOTATION)?.message) return;

    machine.status.machineConditions =
      text === undefined
        ? withoutCondition(machineConditions, INVALID_ANNOTATION)
        : withCondition(machineConditions, dated(saying(text), machineConditions, clock.now()));
    if (text === undefined || reported.get(uid) === text) return;
    pass.event(INVALID_ANNOTATION, text);
    pass.afterWrite(() => {
      reported.set(uid, text);
      log.warn({ problem: text }, 'ignored annotations without effect');
    });
  });

function saying(message: string): Omit<MachineCondition, 'lastTransitionTime'> {
  return { type: INVALID_ANNOTATION, status: 'True', reason: 'UnknownValue', message };
}
