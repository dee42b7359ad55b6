import { fromTimestamp } from '../../../base/clock/clock.ts';
import type { Node } from '../../../apis/wire.ts';
import { next, stop } from '../../../work/reconcile/result.ts';
import type { ObjectMeta } from '../../../apis/meta.ts';
import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { areOfOneScheme, isSameVM } from '../../../apis/machine/v1alpha1/same-vm.ts';
import { setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { Launched, MachineContext, MachineStep } from '../context.ts';
import { rivalFor } from '../identity/identity-claims.ts';
import { becomeFailed, type FailDeps } from '../failure/fail.ts';

type Deps = FailDeps & Pick<Collaborators, 'claims' | 'machines'>;

/**
 * Fails a machine whose new VM has the name of a Node that was there before: two kubelets would share it. The provider id is
 * kept, the Node's name is not, so that the deletion finds the VM and leaves the Node alone (see mayBeForeign). The Node is
 * read live; one that joined while CreateMachine was still running is no stale one. The Node of another living Machine is
 * believed at the second answer: the first may be a mistake of the driver, which step `claim` refuses.
 */
export const staleNode = (deps: Deps): MachineStep => ({
  name: 'stale-node',

  async run(ctx) {
    const { machine, nodes, launched, signal, pass } = ctx;
    if (launched === undefined || nodes === undefined || !mayBeStale(deps, ctx, launched)) return next;
    const { nodeName, providerID } = launched;
    if (nodeName === machine.metadata.name || nodes.get(nodeName) === undefined) return next;

    const node = await nodes.read(nodeName, signal);
    if (node === undefined || !isStale(node, launched, machine, deps.claims.isDoubted(machine))) return next;
    await becomeFailed(deps, ctx, 'stale-node');
    machine.spec.providerID = providerID;
    setOperation(machine, { type: 'Create', state: 'Failed', description: 'VM using old node obj' }, deps.clock.now());
    pass.event('StaleNode', `VM ${providerID} uses the name of pre-existing Node ${nodeName}; abandoning the VM.`);
    return stop;
  },
});

/** What names its Node already has been through this. */
function mayBeStale({ machines, claims }: Deps, { machine, nodes }: MachineContext, launched: Launched): boolean {
  const isDoubted = claims.isDoubted(machine);
  if (launched.how !== 'created' && !isDoubted && nodeNameOf(machine) !== '') return false;
  const rival = rivalFor(launched, machine, machines, nodes);
  return rival === undefined || (rival.part === 'nodeName' && isDoubted);
}

/** A VM that was there may be that of a Machine that was created again, and the Node its own, whatever it shows: only another VM's ID for certain is not. */
function isStale(
  { spec, metadata }: Node,
  { how, providerID }: Launched,
  machine: Machine,
  isDoubted: boolean,
): boolean {
  const shown = spec?.providerID ?? '';
  const isItsVM = isSameVM(shown, providerID);
  const isOlder = createdMs(metadata) < createdMs(machine.metadata);
  if (how !== 'created' && !isDoubted) return isItsVM === false && isOlder && areOfOneScheme(shown, providerID);
  return isItsVM === undefined ? isOlder : !isItsVM;
}

function createdMs({ creationTimestamp }: Pick<ObjectMeta, 'creationTimestamp'>): number {
  return fromTimestamp(creationTimestamp) ?? 0;
}
