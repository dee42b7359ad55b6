import { MACHINE_NAME_LABEL, NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { next } from '../../../reconcile/result.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { sharedWith } from '../identity-claims.ts';
import { isSameVM } from '../../machines/same-vm.ts';
import { namedNode } from '../named-node.ts';
import type { Lister } from '../../../cache/lister.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';

interface Deps {
  readonly machines: Lister<Machine>;
}

/**
 * Sets label `node` right where somebody has changed it: a Node that shows the machine's name is the machine's, the one of another
 * machine is not, nor one that does not exist. Never ends the pass.
 */
export const ownNode = (deps: Deps): MachineStep => ({
  name: 'own-node',

  run(ctx) {
    const { machine, nodes, pass, log } = ctx;
    if (nodes === undefined || namedNode(ctx, deps.machines) !== 'missing') return next;
    const [own, ...others] = nodes.ofMachine(machine).filter((node) => {
      const isShown = node.metadata.labels?.[MACHINE_NAME_LABEL] === machine.metadata.name;
      return isShown && mayBeItsVM(deps, ctx, node.spec?.providerID);
    });
    if (own === undefined || others.length > 0) return next;

    const { [NODE_LABEL]: before = '' } = machine.metadata.labels ?? {};
    const { name } = own.metadata;
    machine.metadata.labels = { ...machine.metadata.labels, [NODE_LABEL]: name };
    const text = `Label node said ${before}, but the Node of this machine is ${name}.`;
    pass.event('NodeLabelCorrected', text, 'record');
    pass.afterWrite(() => log.warn({ node: name, before }, 'corrected the node label of a machine'), 'record');
    return next;
  },
});

/** A provider id that another Machine has too says nothing. */
function mayBeItsVM({ machines }: Deps, { machine, nodes }: MachineContext, providerID: string | undefined): boolean {
  return isSameVM(providerID, machine.spec.providerID) !== false || sharedWith(machine, machines, nodes) !== undefined;
}
