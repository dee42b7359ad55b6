import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { controllerOf } from '../../apis/meta.ts';

/** The API of Mirantis Container Cloud by its names: a test of that world holds them to its own. */
const CLUSTER_GROUP = 'cluster.k8s.io';
const KAAS_GROUP = 'kaas.mirantis.com';
const POOL_LABEL = 'kaas.mirantis.com/machinepool-name';

/** What is asked of a Machine of a pool alone; the rest is its pool's. */
type OwnField = 'maintenance' | 'delete';

const VALUE = 'providerSpec.value';

/**
 * The field of the object that a Machine was made of, in words for a user: what is set on the Machine instead is put back. Undefined where
 * the Machine was made of no such object.
 */
export function frontEndField(
  { metadata }: Pick<Machine, 'metadata'>,
  field: OwnField | 'deletionPolicy',
): string | undefined {
  const { apiVersion = '', kind, name } = controllerOf({ metadata }) ?? {};
  const pool = metadata.labels?.[POOL_LABEL];
  if (apiVersion.startsWith(`${CLUSTER_GROUP}/`) && kind === 'Machine') return ofMachine(field, name ?? '');
  if (pool === undefined || kind !== 'MachineSet') return undefined;
  return field === 'deletionPolicy'
    ? `spec.machineSpec.${VALUE}.${field} of machinepools.${KAAS_GROUP} ${pool}`
    : ofMachine(field, metadata.name);
}

function ofMachine(field: string, name: string): string {
  return `spec.${VALUE}.${field} of machines.${CLUSTER_GROUP} ${name}`;
}
