import { hadNode } from '../../../apis/machine/v1alpha1/defaults.ts';
import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { next } from '../../../work/reconcile/result.ts';
import { ownNodeOf } from '../../machine-facts/node-owner.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { namedNode } from './named-node.ts';

/**
 * Sets label `node` right where somebody has changed it, or taken it away: a Node that shows the machine's name is the machine's, the
 * one of another machine is not, nor one that does not exist. Never ends the pass.
 */
export const ownNode = (deps: Pick<Collaborators, 'machines'>): MachineStep => ({
  name: 'own-node',

  run(ctx) {
    const { machine, nodes, pass, log } = ctx;
    const { [NODE_LABEL]: before = '' } = machine.metadata.labels ?? {};
    // A machine in creation gets its label with its VM, and one that was given up for the Node of another VM shall have none.
    const isWrong = before === '' ? hadNode(machine) : namedNode(ctx, deps.machines) === 'missing';
    const own = isWrong && nodes !== undefined ? ownNodeOf(machine, nodes) : undefined;
    if (own === undefined) return next;

    const { name } = own.metadata;
    machine.metadata.labels = { ...machine.metadata.labels, [NODE_LABEL]: name };
    const text =
      before === ''
        ? `Label node was missing; set it to ${name}, the Node of this machine.`
        : `Label node was ${before}; set it to ${name}, the Node of this machine.`;
    pass.event('NodeLabelCorrected', text, 'record');
    pass.afterWrite(() => log.warn({ node: name, before }, 'corrected the node label of a machine'), 'record');
    return next;
  },
});
