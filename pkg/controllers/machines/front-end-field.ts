import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { controllerOf } from '../../apis/meta.ts';
import { CLUSTER_GROUP } from '../../apis/mirantis/machine.ts';

/**
 * The field of the object that a Machine was made of, in words for a user: what is set on the Machine instead is put back. Undefined where
 * the Machine was made of no such object.
 */
export function frontEndField({ metadata }: Pick<Machine, 'metadata'>, field: string): string | undefined {
  const { apiVersion = '', kind, name } = controllerOf({ metadata }) ?? {};
  if (!apiVersion.startsWith(`${CLUSTER_GROUP}/`) || kind !== 'Machine') return undefined;
  return `spec.providerSpec.value.${field} of machines.${CLUSTER_GROUP} ${name}`;
}
