import {
  NODE_CLUSTER_NAME_ANNOTATION,
  NODE_CLUSTER_NAMESPACE_ANNOTATION,
  NODE_MACHINE_ANNOTATION,
} from '../api/keys.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import type { ObservedNode } from './observed.ts';

/** What tells which of several Nodes with one provider ID is that of a machine. */
export const WHICH_NODE =
  'delete the one whose status.nodeInfo.systemUUID and addresses differ from those that the provider shows for this VM';

/** Nodes of other names with the provider ID of a Machine. */
export interface OtherNodes {
  readonly nodes: readonly Node[];
  /** What is known of another Machine that has one of them; undefined: none has. */
  readonly contest: string | undefined;
  /** Of the Machine. gone: it is not there, or goes. unknown: that cannot be told yet. */
  readonly infrastructure: 'there' | 'gone' | 'unknown';
}

/**
 * What the Node that `status.nodeRef` names is to a Machine, where no Node with that name and its provider ID is cached; `live` was read just
 * now. Nothing counts as gone on which Pods may run, and nothing is taken that may be another's:
 *
 * | Node of the name             | Nodes of other names with the provider ID | it is                                      |
 * |------------------------------|-------------------------------------------|--------------------------------------------|
 * | has the provider ID          | any                                       | found                                      |
 * | has none: it registered anew | none                                      | undecided; of a Machine that goes it is found, unless it says that it is another's |
 * | has none                     | some                                      | undecided                                  |
 * | is gone, or another's        | none                                      | gone                                       |
 * | is gone, or another's        | one, of no other Machine                  | found: the kubelet calls itself otherwise  |
 * | is gone, or another's        | more, or one of another Machine           | undecided                                  |
 *
 * Where the infrastructure of the Machine is not there any more, Nodes of other names are none of its own, and it is gone: providers give IDs
 * of their hosts to the next machine, which would lose its Node.
 */
export function resolveNodeRef(machine: ClusterAPIMachine, live: Node | undefined, others: OtherNodes): ObservedNode {
  const { providerID = '' } = live?.spec ?? {};
  if (live === undefined || (providerID !== '' && providerID !== machine.spec?.providerID)) {
    return renamed(machine, others);
  }
  const { name } = live.metadata;
  if (providerID !== '') return { kind: 'found', node: live };
  const holder = otherHolderOf(live, machine);
  if (holder !== undefined) {
    const problem = `Node ${name} has no provider ID, and according to its annotations it belongs to Machine ${holder}: wait for the ID, or delete the Node if its machine no longer exists`;
    return { kind: 'undecided', problem };
  }
  if (others.nodes.length > 0) {
    const problem = `Node ${name} re-registered without a provider ID, and ${named(others)} ${its(machine)}: wait for the ID, or ${WHICH_NODE}`;
    return { kind: 'undecided', problem };
  }
  if (isBeingDeleted(machine)) return { kind: 'found', node: live };
  const problem = `Node ${name} re-registered without a provider ID: waiting for the cloud controller manager to set it`;
  return { kind: 'undecided', problem };
}

function renamed(machine: ClusterAPIMachine, others: OtherNodes): ObservedNode {
  const { nodes, contest, infrastructure } = others;
  const [node] = nodes;
  if (node === undefined || infrastructure === 'gone') return { kind: 'gone' };
  const found = `Node ${machine.status?.nodeRef?.name} no longer exists, and ${named(others)} ${its(machine)}`;
  if (infrastructure === 'unknown') {
    return { kind: 'undecided', problem: `${found}: waiting until it is known whether its infrastructure exists` };
  }
  if (contest !== undefined) return { kind: 'undecided', problem: `${found}. ${contest}` };
  if (nodes.length === 1) return { kind: 'found', node };
  return { kind: 'undecided', problem: `${found}: ${WHICH_NODE}` };
}

function named({ nodes }: OtherNodes): string {
  const names = nodes.map(({ metadata }) => metadata.name).toSorted();
  return names.length === 1 ? `Node ${names[0]} has` : `Nodes ${names.join(' and ')} have`;
}

const its = ({ spec }: ClusterAPIMachine): string => `its provider ID ${spec?.providerID}`;

/** The Machine that a Node says it belongs to, `namespace/name (Cluster)`; undefined: it does not say so of another one. */
function otherHolderOf({ metadata }: Node, machine: ClusterAPIMachine): string | undefined {
  const { annotations = {} } = metadata;
  const own = [machine.metadata.name, machine.metadata.namespace, machine.spec?.clusterName];
  const said = [NODE_MACHINE_ANNOTATION, NODE_CLUSTER_NAMESPACE_ANNOTATION, NODE_CLUSTER_NAME_ANNOTATION].map(
    (key) => annotations[key],
  );
  if (said.every((one, at) => one === undefined || one === own[at])) return undefined;
  const [name = '?', namespace = '?', cluster = '?'] = said;
  return `${namespace}/${name} of Cluster ${cluster}`;
}
