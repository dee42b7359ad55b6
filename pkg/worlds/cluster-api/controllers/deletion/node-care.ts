import type { ClusterAPICluster } from '../../api/cluster.ts';
import { readControlPlane } from '../../api/control-plane.ts';
import { HAD_CONTROL_PLANE_ANNOTATION } from '../../api/keys.ts';
import { isBeingDeleted, keyBeside, type KubeObject } from '../../../../apis/meta.ts';
import { next } from '../../../../work/reconcile/result.ts';
import type { ExternalLookup } from '../externals.ts';
import type { NodeCluster } from '../node-clusters.ts';
import { isOfControlPlane } from '../adoption.ts';
import type { ClusterAPIMachineStep, StepDeps } from '../machine-pass.ts';
import { DRAINING, lastDeletingCondition, waits } from './waits.ts';

/**
 * Whether the Node of a Machine that goes is drained and deleted. It is not where its API server goes along: with the Cluster, with its control
 * plane, or with the last Machine of that.
 */
export type NodeCare = 'cared-for' | 'cluster-goes' | 'control-plane-goes' | 'no-control-plane';

export interface CareFacts {
  readonly cluster: ClusterAPICluster;
  readonly nodeCluster: NodeCluster;
  /** The object that `spec.controlPlaneRef` of the Cluster names; undefined: it names none. */
  readonly controlPlane: ExternalLookup | undefined;
  readonly machines: readonly KubeObject[];
}

/**
 * The target cluster of the manager does not go with anybody's Machines. Of another one it is not believed that it is gone before something says
 * so: a control plane that nobody can read may be there, and one that never had Machines may run elsewhere.
 */
export function nodeCareOf({ cluster, nodeCluster, controlPlane, machines }: CareFacts): NodeCare {
  if (isBeingDeleted(cluster)) return 'cluster-goes';
  if (nodeCluster.kind === 'reached' && nodeCluster.identity === undefined) return 'cared-for';
  if (controlPlane?.kind === 'found') {
    if (isBeingDeleted(controlPlane.object)) return 'control-plane-goes';
    if (readControlPlane(controlPlane.object, controlPlane.contract).isExternal) return 'cared-for';
  }
  const members = machines.filter(isOfControlPlane);
  if (members.some((one) => !isBeingDeleted(one))) return 'cared-for';
  const hadMembers = members.length > 0 || cluster.metadata.annotations?.[HAD_CONTROL_PLANE_ANNOTATION] !== undefined;
  const isTakenAway = controlPlane?.kind === 'absent' && nodeCluster.kind !== 'reached';
  return hadMembers || isTakenAway ? 'no-control-plane' : 'cared-for';
}

/** Finds out whether the Node is drained and deleted; see nodeCareOf. */
export function careStep({ machines, externals }: Pick<StepDeps, 'machines' | 'externals'>): ClusterAPIMachineStep {
  return {
    name: 'care',
    run(pass) {
      const { cluster, nodeCluster } = pass;
      const reference = cluster.spec?.controlPlaneRef;
      const controlPlane = reference === undefined ? undefined : externals.find(cluster, reference);
      if (controlPlane?.kind === 'reading' && !isBeingDeleted(cluster)) {
        const said = lastDeletingCondition(pass);
        const reading = `Unknown whether ${reference?.kind} ${reference?.name} exists: reading it`;
        return waits(pass, said?.reason ?? DRAINING, said?.message ?? reading);
      }
      const { name } = cluster.metadata;
      const ofCluster = machines
        .byIndex('cluster', name)
        .filter((one) => keyBeside(one, name) === keyBeside(cluster, name));
      pass.care = nodeCareOf({ cluster, nodeCluster, controlPlane, machines: ofCluster });
      return next;
    },
  };
}
