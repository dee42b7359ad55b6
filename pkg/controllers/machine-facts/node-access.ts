import { nodeNameOf, providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { NODE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Node, VolumeAttachment } from '../../apis/wire.ts';
import { cordonForDeletion } from '../../drain/cordon.ts';
import type { Cluster } from '../../kube/gate/gate.ts';
import { isConflict, ignoreNotFound, isNotFound } from '../../kube/client/errors.ts';
import { strategicPatch, type StrategicPatch } from '../../kube/client/patch.ts';
import { nodes, volumeAttachments } from '../../kube/client/resource.ts';
import type { Target } from '../../kube/targets/targets.ts';
import { nodesRemovedWith, type MachineIndex } from './node-owner.ts';

/** What steps may see and do of the Nodes of a machine's target cluster. */
export interface NodeAccess {
  readonly cluster: Cluster;
  /** That cluster itself, for what goes beyond its Nodes: their pods, bootstrap tokens. */
  readonly target: Target;
  /** From the cache, by name. */
  get(name: string): Node | undefined;
  /** The Nodes that this machine has become: by its label `node`, by their machine-name label, by provider id. From the cache. */
  ofMachine(machine: Machine): readonly Node[];
  /** The Nodes of that provider id, whosever they are. From the cache. */
  ofVM(providerID: string): readonly Node[];
  /** Live; undefined only when the server says NotFound. */
  read(name: string, signal: AbortSignal): Promise<Node | undefined>;
  /** Strategic merge patch of this Node (same UID). */
  patch(node: Node, change: StrategicPatch<Node>, signal: AbortSignal): Promise<void>;
  /** Strategic merge patch of this Node's status (same UID): conditions merge by type. */
  patchStatus(node: Node, status: StrategicPatch<NonNullable<Node['status']>>, signal: AbortSignal): Promise<void>;
  /** Keeps new pods off this Node (same UID) for good, because its machine is being deleted; with our mark, unless that is refused. */
  cordon(node: Node, signal: AbortSignal): Promise<void>;
  /** Takes our finalizer from this Node (same UID) and deletes it; a Node that is gone already is fine. */
  remove(node: Node, signal: AbortSignal): Promise<void>;
  /** VolumeAttachments of this Node that nobody has deleted yet. From the cache. */
  attachments(nodeName: string): readonly VolumeAttachment[];
  /** Deletes one of them; gone already is fine. */
  detach(attachment: VolumeAttachment, signal: AbortSignal): Promise<void>;
}

/** The real Nodes of a target cluster; `machines` says whose they are. */
export function nodeAccess(target: Target, machines: MachineIndex): NodeAccess {
  return {
    cluster: target.cluster,
    target,
    get: (name) => target.nodes.get(name),
    ofMachine: (machine) => nodesOf(target, machine, machines),
    ofVM: (providerID) => (providerID === '' ? [] : target.nodes.byIndex('providerID', providerID)),

    read: (name, signal) => target.reader.get(nodes, { name }, { signal }).catch(ignoreNotFound),

    async patch(node, change, signal) {
      await target.writer.patch('change', nodes, { name: node.metadata.name }, strategicPatch(node, change), {
        signal,
      });
    },

    async patchStatus(node, status, signal) {
      const patch = strategicPatch(node, { status }, 'status');
      await target.writer.patch('change', nodes, { name: node.metadata.name }, patch, { signal });
    },

    async cordon(node, signal) {
      await cordonForDeletion({ target, nodeName: node.metadata.name, nodeUID: node.metadata.uid }, node, signal);
    },

    remove: (node, signal) => remove(target, node, signal),

    attachments: (nodeName) =>
      target.volumeAttachments.byIndex('node', nodeName).filter((attachment) => !isBeingDeleted(attachment)),

    async detach({ metadata: { name, uid } }, signal) {
      await ignoreGone(target.writer.delete('destroy', volumeAttachments, { name }, { uid }, { signal }));
    },
  };
}

function nodesOf(target: Target, machine: Machine, machines: MachineIndex): readonly Node[] {
  const providerID = providerIDOf(machine);
  const nodeName = nodeNameOf(machine);
  const labelled = nodeName === '' ? undefined : target.nodes.get(nodeName);
  const found = new Map<string, Node>();
  if (labelled !== undefined) found.set(labelled.metadata.uid, labelled);
  for (const node of target.nodes.byIndex('machineName', machine.metadata.name)) found.set(node.metadata.uid, node);
  if (providerID !== '') {
    for (const node of target.nodes.byIndex('providerID', providerID)) found.set(node.metadata.uid, node);
  }
  return nodesRemovedWith([...found.values()], machine, machines);
}

async function remove(target: Target, node: Node, signal: AbortSignal): Promise<void> {
  const { name, uid, finalizers } = node.metadata;
  if (finalizers?.includes(NODE_FINALIZER) === true) {
    const change = { metadata: { '$deleteFromPrimitiveList/finalizers': [NODE_FINALIZER] } };
    const patch = strategicPatch(node, change);
    if (!(await ignoreGone(target.writer.patch('change', nodes, { name }, patch, { signal })))) return;
  }
  if (!isBeingDeleted(node)) await ignoreGone(target.writer.delete('destroy', nodes, { name }, { uid }, { signal }));
}

/** False when the object is gone, or another one has its name: for the one we mean it is the same. */
async function ignoreGone(write: Promise<unknown>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (err) {
    if (isNotFound(err) || isConflict(err)) return false;
    throw err;
  }
}
