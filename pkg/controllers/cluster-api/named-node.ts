import {
  NODE_CLUSTER_NAME_ANNOTATION,
  NODE_CLUSTER_NAMESPACE_ANNOTATION,
  NODE_MACHINE_ANNOTATION,
} from '../../apis/cluster-api/keys.ts';
import type { ClusterAPIMachine } from '../../apis/cluster-api/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { SeenNode } from './seen.ts';

/**
 * What the Node that `status.nodeRef` names is to a Machine, where no Node with that name and its provider ID is cached; `live` was read just
 * now. A kubelet that registers anew has no provider ID until the cloud controller manager sets it: its Node is not gone, and Pods may run on
 * it. One that goes is drained by that name; as long as nothing says that it is another's.
 */
export function namedNode(machine: ClusterAPIMachine, live: Node | undefined): SeenNode {
  if (live === undefined) return { kind: 'gone' };
  const { name } = live.metadata;
  const { providerID = '' } = live.spec ?? {};
  if (providerID !== '' && providerID === machine.spec?.providerID) return { kind: 'found', node: live };
  if (providerID !== '') return { kind: 'gone' };
  const holder = otherHolderOf(live, machine);
  if (holder !== undefined) {
    const problem = `Node ${name} has no provider ID, and its annotations say that it belongs to Machine ${holder}: wait for the ID, or delete the Node if its machine is no more`;
    return { kind: 'undecided', problem };
  }
  if (isBeingDeleted(machine)) return { kind: 'found', node: live };
  const problem = `Node ${name} has registered anew without a provider ID: waiting for the cloud controller manager to set it`;
  return { kind: 'undecided', problem };
}

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
