import { hasForceDeletionLabel, nodeNameOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { FORCE_DELETION_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isSameVM } from '../../../apis/machine/v1alpha1/same-vm.ts';
import type { Node } from '../../../apis/wire.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import { isReady, readySince } from '../../machine-facts/node-health.ts';
import { belongsTo, isOfOneScheme, isRemovedWith } from '../../machine-facts/node-owner.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { messageOf } from '../../../driver/errno.ts';
import type { DriverError } from '../../../driver/error.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import type { DeletionStage } from '../../machine-facts/deletion-stage.ts';
import type { Collaborators } from '../collaborators.ts';
import type { ActivityResults } from '../calls/results.ts';
import type { MachineContext } from '../context.ts';
import { sharedWith } from '../identity/identity-claims.ts';
import { VMInDoubtError } from './namesake-vms.ts';

type Deps = Pick<Collaborators, 'machines' | 'cursor' | 'clock' | 'brokenNodes'>;

/** A kubelet, or a VM, is restarted in less. */
const RESTART_MS = 5 * MINUTE_MS;

/**
 * The Node that contradicts a driver which says that there is no VM: a class or Secret that was edited shows it another place, where there is
 * none. Undefined: the answer is believed. Throws ApiError and GateClosedError; the Machine tells that its Node could not be read.
 *
 * | what is known                                                             | the answer      |
 * |---------------------------------------------------------------------------|-----------------|
 * | the deletion is forced by its label, or there is no target cluster        | is believed     |
 * | another Machine has the provider id, too                                  | is believed     |
 * | before the drain, an older Node that was Ready in the last 5 minutes      | is not believed |
 * | no Node is recorded                                                       | is believed     |
 * | the Node is gone, another machine's or VM's, or not Ready, in a live look | is believed     |
 * | the Node is Ready                                                         | is not believed |
 *
 * Before the drain, the answer may be wrong for days, until somebody corrects the tags of a VM: that its Node restarts meanwhile says nothing.
 * Of a VM that is gone the Node is Ready for less than a minute: for that long the deletion of a VM waits that somebody else has deleted, or
 * whose deletion was not answered, or took longer than one call. That a deletion was under way, the answer Aborted, does not say that its VM was
 * found: drivers wait for other things, too.
 */
export async function nodeAgainst(
  deps: Deps,
  ctx: MachineContext,
  stage: DeletionStage,
  { wasFound, isAnothers = false }: ActivityResults['delete'],
): Promise<Node | undefined> {
  const { machines, cursor } = deps;
  const { observed, nodes, signal } = ctx;
  const name = nodeNameOf(observed);
  if (wasFound || isAnothers || nodes === undefined || hasForceDeletionLabel(ctx.machine)) return undefined;
  if (sharedWith(observed, machines, nodes) !== undefined) return undefined;
  if (name === '') return stage === 'vm-status' ? unnamedNode(deps, nodes, observed) : undefined;
  const cached = nodes.get(name);
  // A cache that is old costs a moment; it must not be believed when the VM is given up.
  if (showsVM(deps, cached, observed, stage)) return cached;
  try {
    const node = await nodes.read(name, signal);
    return showsVM(deps, node, observed, stage) ? node : undefined;
  } catch (err) {
    if (!(err instanceof GateClosedError)) {
      const text = `The driver found no VM, but could not read whether the Node is Ready: ${messageOf(err)}.`;
      cursor.stay(ctx, stage, text);
    }
    throw err;
  }
}

/** The older Node of the recorded VM of a Machine that was created again without its label: it would have named that Node. */
function unnamedNode(deps: Deps, nodes: NodeAccess, machine: Machine): Node | undefined {
  const shows = (node: Node): boolean =>
    isOlder(node, machine.metadata) &&
    belongsTo(node, machine, deps.machines) &&
    (isReady(node) || mayRestart(deps, node, machine));
  return nodes.ofVM(providerIDOf(machine)).find(shows);
}

/** Backups and copies of Machines are younger than the Nodes that they name. */
export function isOlder(node: Node | undefined, { creationTimestamp }: Machine['metadata']): node is Node {
  return node !== undefined && node.metadata.creationTimestamp < creationTimestamp;
}

/**
 * Whether the Node that a driver names for the VM of a machine that has recorded none may be somebody else's, as in step `stale-node`: nothing but its
 * name would speak for it, and it would be drained and deleted. Of one that shows a provider id, isRemovedWith judges; one of the machine's own
 * name may be that of an earlier life, such as before a restore.
 */
export function mayBeForeign(node: Node | undefined, { metadata }: Pick<Machine, 'metadata'>): boolean {
  return isOlder(node, metadata) && (node.spec?.providerID ?? '') === '' && node.metadata.name !== metadata.name;
}

function showsVM(deps: Deps, node: Node | undefined, machine: Machine, stage: DeletionStage): node is Node {
  if (node === undefined || !isRemovedWith(node, machine, deps.machines)) return false;
  if (!isReady(node) && !(stage === 'vm-status' && mayRestart(deps, node, machine))) return false;
  const isOther = isSameVM(node.spec?.providerID, providerIDOf(machine)) === false && isOfOneScheme(node, machine);
  return !isOther;
}

/** Whether the Node of an earlier Machine was Ready a moment ago, by our own clock if we saw it: that of the other may be ahead, or behind. */
function mayRestart({ clock, brokenNodes }: Deps, node: Node, machine: Machine): boolean {
  if (!isOlder(node, machine.metadata) || isBeingDeleted(node)) return false;
  const seenMs = brokenNodes.brokenForMs(machine, node, 'Ready');
  const sinceMs = fromTimestamp(readySince(node)) ?? -Infinity;
  return (Number.isFinite(seenMs) ? seenMs : Math.abs(clock.now() - sinceMs)) < RESTART_MS;
}

/** Why the answer is not believed, and what to do about it: of a Node that is older than the Machine, the VM may be marked as that of an earlier one. */
export function unseenVMError(
  { metadata, spec }: Machine,
  node: Node,
  className: string,
  lastKnownState: string | undefined,
): VMInDoubtError {
  const providerID = providerIDOf({ spec });
  const vm = providerID === '' ? `VM of name ${metadata.name}` : `VM ${providerID}`;
  const wrong = isOlder(node, metadata)
    ? `the tags of the VM (UID, namespace and cluster may be those of an earlier Machine; the UID of this one is ${metadata.uid}), MachineClass ${className} or its Secret`
    : `MachineClass ${className} or its Secret`;
  const readiness = isReady(node) ? 'is Ready' : 'was Ready a few minutes ago';
  return new VMInDoubtError(
    `the driver found no ${vm}, but Node ${node.metadata.name} ${readiness}, so the VM is assumed to be running. If it is, correct ${wrong} so that the driver ` +
      `finds it; to remove the Machine without its VM, set label ${FORCE_DELETION_LABEL}=True`,
    'FailedPrecondition',
    lastKnownState,
  );
}

/** Whether an error is that of unseenVMError: those of namesakes are Aborted. */
export function isUnseenVM(error: DriverError): boolean {
  return error instanceof VMInDoubtError && error.code === 'FailedPrecondition';
}
