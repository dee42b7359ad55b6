import { CLUSTER_API_MACHINE_FINALIZER } from '../../api/keys.ts';
import { withoutFinalizer, hasFinalizer } from '../../../../apis/finalizers.ts';
import { MACHINE_NAME_LABEL, NODE_FINALIZER } from '../../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, type KubeObject } from '../../../../apis/meta.ts';
import type { Node } from '../../../../apis/wire.ts';
import { next } from '../../../../work/reconcile/result.ts';
import type { ClusterAPIMachineStep, PassEvent } from '../machine-pass.ts';

/** Lets go of the Machine. A Node in the target cluster of the manager does not go with a Cluster that is deleted, and is told of. */
export const release: ClusterAPIMachineStep = {
  name: 'release',
  run({ machine, cluster, node, nodeCluster, notes }) {
    machine.metadata.finalizers = withoutFinalizer(machine, CLUSTER_API_MACHINE_FINALIZER);
    const isAtHome = nodeCluster.kind === 'reached' && nodeCluster.identity === undefined;
    if (node.kind === 'found' && isAtHome && isBeingDeleted(cluster)) notes.record(leftNode(node.node, cluster));
    return next;
  },
};

/** What becomes of a Node that a deleted Cluster leaves: one with the finalizer of a machine of ours is that one's, and nobody else's to delete. */
function leftNode({ metadata }: Node, cluster: KubeObject): PassEvent {
  const { name, labels = {} } = metadata;
  const reason = 'NodeLeft';
  const why = `Nodes are not deleted with Cluster ${cluster.metadata.name}`;
  if (hasFinalizer({ metadata }, NODE_FINALIZER)) {
    const owner = labels[MACHINE_NAME_LABEL] ?? 'that created it';
    const message = `Node ${name} is kept: ${why}, and it belongs to machine ${owner} (machine.sapcloud.io, kubectl get mc), which deletes it after its VM. If that machine no longer exists, remove finalizer ${NODE_FINALIZER} from the Node and delete it`;
    return { type: 'Normal', reason, message };
  }
  const message = `Node ${name} is kept: ${why}, and it is in the target cluster of the manager. It no longer belongs to a Machine: kubectl delete node ${name}`;
  return { type: 'Warning', reason, message };
}
