import { fromTimestamp } from '../../../base/clock/clock.ts';
import type { Node } from '../../../apis/wire.ts';
import { next, stop } from '../../../work/reconcile/result.ts';
import { isSameVM } from '../../../apis/machine/v1alpha1/same-vm.ts';
import { setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { Launched, MachineContext, MachineStep } from '../context.ts';
import { rivalFor } from '../identity/identity-claims.ts';
import { becomeFailed, type FailDeps } from '../failure/fail.ts';

type Deps = FailDeps & Pick<Collaborators, 'claims' | 'machines'>;

/**
 * Fails a machine whose new VM has the name of a Node that was there before: two kubelets would share it. The provider id is
 * kept, the Node's name is not, so that the deletion finds the VM and leaves the Node alone (see mayBeStale). The Node is
 * read live; one that joined while CreateMachine was still running is no stale one. The Node of another living Machine is believed at the second answer: the
 * first may be a mistake of the driver, which step `claim` refuses.
 */
export const staleNode = (deps: Deps): MachineStep => ({
  name: 'stale-node',

  async run(ctx) {
    const { machine, nodes, launched, signal, pass } = ctx;
    if (launched === undefined || nodes === undefined || !mayBeStale(deps, ctx, launched)) return next;
    const { nodeName, providerID } = launched;
    if (nodeName === machine.metadata.name || nodes.get(nodeName) === undefined) return next;

    const node = await nodes.read(nodeName, signal);
    if (node === undefined || !isStale(node, launched, ctx)) return next;
    await becomeFailed(deps, ctx, 'stale-node');
    machine.spec.providerID = providerID;
    setOperation(machine, { type: 'Create', state: 'Failed', description: 'VM using old node obj' }, deps.clock.now());
    pass.event('StaleNode', `VM ${providerID} uses the name of pre-existing Node ${nodeName}; abandoning the VM.`);
    return stop;
  },
});

function mayBeStale({ machines, claims }: Deps, { machine, nodes }: MachineContext, launched: Launched): boolean {
  const isDoubted = claims.isDoubted(machine);
  if (launched.how !== 'created' && !isDoubted) return false;
  const rival = rivalFor(launched, machine, machines, nodes);
  return rival === undefined || (rival.part === 'nodeName' && isDoubted);
}

function isStale(node: Node, { providerID }: Launched, { machine }: MachineContext): boolean {
  const isItsVM = isSameVM(node.spec?.providerID, providerID);
  if (isItsVM !== undefined) return !isItsVM;
  const nodeMs = fromTimestamp(node.metadata.creationTimestamp) ?? 0;
  return nodeMs < (fromTimestamp(machine.metadata.creationTimestamp) ?? 0);
}
