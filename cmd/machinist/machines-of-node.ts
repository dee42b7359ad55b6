import { NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { machines } from '../../pkg/kube/client/resource.ts';
import type { CommandCluster } from './command-cluster.ts';

/** Names of the Machines that have recorded a Node of this name. Throws ApiError. */
export async function machinesOfNode(cluster: CommandCluster, node: string): Promise<readonly string[]> {
  const found = await cluster.list(machines, `${NODE_LABEL}=${node}`);
  return found.map(({ metadata }) => metadata.name);
}
