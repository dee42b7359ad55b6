import { INVALID_ANNOTATION, invalidAnnotations } from '../../replicas/invalid-annotations.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { namedNode } from '../node/named-node.ts';
import { noticeStep } from './condition-step.ts';

const NOTICE = { name: 'annotations', type: INVALID_ANNOTATION, logged: 'ignored annotations without effect' } as const;

/** Tells of annotations of the Machine and of its Node whose values mean nothing. */
export const annotations = ({ clock, machines }: Pick<Collaborators, 'clock' | 'machines'>): MachineStep =>
  noticeStep({ ...NOTICE, clock }, (ctx) => {
    const node = namedNode(ctx, machines);
    const ofNode =
      typeof node === 'object' ? invalidAnnotations('Node', node, `Node ${node.metadata.name}`) : undefined;
    const problems = [invalidAnnotations('Machine', ctx.machine), ofNode].filter((one) => one !== undefined);
    if (problems.length === 0) return 'none';
    const message = problems.join(' ');
    return { reason: 'UnknownValue', message, fields: { problem: message } };
  });
