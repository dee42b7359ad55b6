import { fromTimestamp } from '../../../base/clock/clock.ts';
import type { Node } from '../../../apis/wire.ts';
import { next, stop } from '../../../work/reconcile/result.ts';
import type { ObjectMeta } from '../../../apis/meta.ts';
import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { areOfOneScheme, isSameVM } from '../../../apis/machine/v1alpha1/same-vm.ts';
import { setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { Launched, MachineStep } from '../context.ts';
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
    const isDoubted = deps.claims.isDoubted(machine);
    if (launched === undefined || nodes === undefined || !mayBeStale(machine, launched, isDoubted)) return next;
    const { nodeName, providerID } = launched;
    const rival = rivalFor(launched, machine, deps.machines, nodes);
    if (rival !== undefined && !(rival.part === 'nodeName' && isDoubted)) return next;
    if (nodeName === machine.metadata.name || nodes.get(nodeName) === undefined) return next;

    const node = await nodes.read(nodeName, signal);
    if (node === undefined || !isStale(node, launched, machine, { isDoubted, isAnothers: rival !== undefined }))
      return next;
    await becomeFailed(deps, ctx, 'stale-node');
    machine.spec.providerID = providerID;
    setOperation(machine, { type: 'Create', state: 'Failed', description: 'VM using old node obj' }, deps.clock.now());
    pass.event('StaleNode', `VM ${providerID} uses the name of pre-existing Node ${nodeName}; abandoning the VM.`);
    return stop;
  },
});

/** What names its Node already has been through this. */
function mayBeStale(machine: Machine, { how }: Launched, isDoubted: boolean): boolean {
  return how === 'created' || isDoubted || nodeNameOf(machine) === '';
}

/**
 * A VM that was there may be that of a Machine that was created again, and the Node its own, whatever it shows: only another VM's ID for certain is not.
 * A new one has no older Node, but may have joined before the answer was recorded, under an ID that its kubelet has made.
 */
function isStale(
  { spec, metadata }: Node,
  { how, providerID }: Launched,
  machine: Machine,
  { isDoubted, isAnothers }: { readonly isDoubted: boolean; readonly isAnothers: boolean },
): boolean {
  const shown = spec?.providerID ?? '';
  const isItsVM = isSameVM(shown, providerID);
  const isOther = isItsVM === false && (isAnothers || areOfOneScheme(shown, providerID));
  const isOlder = createdMs(metadata) < createdMs(machine.metadata);
  if (how !== 'created' && !isDoubted) return isOther && isOlder;
  return isItsVM !== true && (isOther || isOlder);
}

function createdMs({ creationTimestamp }: Pick<ObjectMeta, 'creationTimestamp'>): number {
  return fromTimestamp(creationTimestamp) ?? 0;
}
