import { nodeNameOf, phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { next } from '../../../work/reconcile/result.ts';
import { isOfOneScheme, isUnidentified } from '../../machine-facts/node-owner.ts';
import { CREATING } from '../../machine-facts/original-texts.ts';
import { setFailure, setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';

const CODE = 'NodeUnidentified';
/** A cloud controller manager has set the provider id of a new Node by then. */
const USUAL_MS = 2 * MINUTE_MS;

/**
 * Tells of a Pending machine why the Node that it names is not taken for its own in a target cluster that namespaces share. Else nothing
 * would but the creation timeout, again and again. Never ends the pass.
 */
export const unidentifiedNode = (deps: Pick<Collaborators, 'clock' | 'machines'>): MachineStep => ({
  name: 'unidentified-node',

  run(ctx) {
    const { machine, nodes, pass } = ctx;
    if (phaseOf(machine) !== 'Pending') return next;
    const node = nodes?.get(nodeNameOf(machine));
    if (node === undefined || !isUnidentified(node, machine, deps.machines)) {
      if (machine.status.lastOperation?.errorCode !== CODE) return next;
      setOperation(machine, { type: 'Create', state: 'Processing', description: CREATING }, deps.clock.now());
      return next;
    }
    const leftMs = (fromTimestamp(node.metadata.creationTimestamp) ?? 0) + USUAL_MS - deps.clock.now();
    if (leftMs > 0) {
      pass.alsoAfter(leftMs, 'the Node to show the provider ID of the VM');
      return next;
    }
    report(deps, ctx, node);
    return next;
  },
});

function report({ clock }: Pick<Collaborators, 'clock'>, ctx: MachineContext, node: Node): void {
  const { machine, observed, pass, log } = ctx;
  const { providerID = '' } = node.spec ?? {};
  const description = textOf(machine, node);
  setFailure(machine, { type: 'Create', state: 'Failed', errorCode: CODE, description }, clock.now());
  if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
  pass.event(CODE, description);
  pass.afterWrite(() => log.warn({ node: node.metadata.name, shows: providerID }, 'could not identify a node'));
}

function textOf(machine: Machine, node: Node): string {
  const { name } = node.metadata;
  const { providerID = '' } = node.spec ?? {};
  const vm = providerIDOf(machine);
  // No kubelet and no cloud controller manager changes the provider ID of a Node that has one.
  if (providerID !== '' && isOfOneScheme(node, machine))
    return `Node ${name} shows provider ID ${providerID}, so it is that of another VM, such as an earlier one of this name, and not that of VM ${vm}. If that VM no longer exists, delete the Node and restart the kubelet of the new one.`;
  const shows = providerID === '' ? 'no provider ID' : `provider ID ${providerID}`;
  return `Node ${name} shows ${shows}, so it is not known to be that of VM ${vm}. Have the kubelet or a cloud controller manager set spec.providerID of Nodes: all namespaces share the target cluster.`;
}
