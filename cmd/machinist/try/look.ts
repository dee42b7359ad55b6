import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import { ApiError, ignoreNotFound } from '../../../pkg/kube/client/errors.ts';
import {
  customResourceDefinitions,
  leases,
  machineClasses,
  machineDeployments,
  machines,
  machineSets,
  namespaces,
} from '../../../pkg/kube/client/resource.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../../../pkg/kube/leader/names.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { DEFINITIONS, NAMESPACE } from './objects.ts';
import type { Found } from './plan.ts';

/** Kinds without which the manager does not start. */
export const KINDS: readonly Resource<KubeObject>[] = [machineDeployments, machineSets, machines, machineClasses];

/** What there is of our kinds, and of managers for them, in the whole cluster. */
export async function look(cluster: CommandCluster): Promise<Found> {
  const namespace = await cluster.reader.get(namespaces, { name: NAMESPACE }).catch(ignoreNotFound);
  const definitions: KubeObject[] = [];
  for (const name of DEFINITIONS) {
    const definition = await cluster.reader.get(customResourceDefinitions, { name }).catch(ignoreNotFound);
    if (definition !== undefined) definitions.push(definition);
  }
  return { namespace, definitions, foreign: await foreignObjects(cluster), managers: await foreignManagers(cluster) };
}

async function foreignObjects(cluster: CommandCluster): Promise<readonly string[]> {
  const foreign: string[] = [];
  for (const resource of KINDS) {
    for (const { metadata } of await listed(cluster, resource, {}))
      if (metadata.namespace !== NAMESPACE) foreign.push(`${resource.kind} ${metadata.namespace}/${metadata.name}`);
  }
  return foreign;
}

/** Whoever has led in another namespace needs the kinds, although there may be no object of them at present. */
async function foreignManagers(cluster: CommandCluster): Promise<readonly string[]> {
  const { items } = await cluster.reader.list(leases, { metadataOnly: true });
  return items.flatMap(({ metadata: { name, namespace } }) =>
    [MANAGER_LEASE, MACHINE_LEASE].includes(name) && namespace !== NAMESPACE ? [`Lease ${namespace}/${name}`] : [],
  );
}

/** In our namespace. */
export async function hasAny(cluster: CommandCluster, kinds: readonly Resource<KubeObject>[]): Promise<boolean> {
  for (const resource of kinds) if ((await listed(cluster, resource, { namespace: NAMESPACE })).length > 0) return true;
  return false;
}

export async function isServed(cluster: CommandCluster, resource: Resource<KubeObject>): Promise<boolean> {
  return await cluster.reader.list(resource, { namespace: NAMESPACE, metadataOnly: true }).then(
    () => true,
    (err: unknown) => {
      if (!ApiError.is(err, 'NotServed')) throw err;
      return false;
    },
  );
}

/** None while the kind does not exist. */
async function listed(
  cluster: CommandCluster,
  resource: Resource<KubeObject>,
  where: { readonly namespace?: string },
): Promise<readonly KubeObject[]> {
  try {
    return (await cluster.reader.list(resource, { ...where, metadataOnly: true })).items;
  } catch (err) {
    if (!ApiError.is(err, 'NotServed')) throw err;
    return [];
  }
}
