import type { KubeObject } from '../../pkg/apis/meta.ts';
import {
  machineClasses,
  machineDeployments,
  machines,
  machineSets,
  nodes,
  secrets,
} from '../../pkg/kube/client/resource.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import type { Installation } from './installation.ts';
import { NAMESPACE } from './manifests.ts';

const TOKENS = 'bootstrap-token-';

/** Everything that machines leave behind while they are there, one line each: objects, VMs, processes, tokens. */
export async function machineLeftovers(installation: Installation): Promise<readonly string[]> {
  const { vms } = installation;
  const objects = await Promise.all([
    list(installation, machineDeployments),
    list(installation, machineSets),
    list(installation, machines),
    list(installation, nodes),
    list(installation, secrets, 'kube-system'),
  ]);
  return [
    ...objects.flat().filter((line) => !line.startsWith('Secret ') || line.includes(TOKENS)),
    ...vms.list().map(({ machineName, providerID }) => `VM ${providerID} of ${machineName}`),
    ...vms.runningKubelets().map((pid) => `kubelet ${pid}`),
  ];
}

/** The same, and what machines are made from. */
export async function allLeftovers(installation: Installation): Promise<readonly string[]> {
  const objects = await Promise.all([list(installation, machineClasses), list(installation, secrets)]);
  return [...(await machineLeftovers(installation)), ...objects.flat()];
}

async function list<T extends KubeObject>(
  { admin }: Installation,
  resource: Resource<T>,
  namespace = NAMESPACE,
): Promise<string[]> {
  const { items } = await admin.reader.list(resource, resource.namespaced ? { namespace } : {});
  return items.map(({ metadata: { name, finalizers = [], deletionTimestamp } }) => {
    const state = deletionTimestamp === undefined ? '' : ` being deleted, held by [${finalizers.join(', ')}]`;
    return `${resource.kind} ${name}${state}`;
  });
}
