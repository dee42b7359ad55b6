import { TEMPLATE_HASH_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { equalTemplate } from '../../../apis/machine/v1alpha1/template-equality.ts';
import { templateHash } from './template-hash.ts';

/** The hashes that the last two sets made from the present template have: the one that is to be made now, and the one before the last collision. */
export function hashesOf({ spec, status }: MachineDeployment): { readonly now: string; readonly before: string } {
  const collisions = status?.collisionCount;
  const before = collisions !== undefined && collisions !== null && collisions > 1 ? collisions - 1 : undefined;
  return { now: templateHash(spec.template, collisions), before: templateHash(spec.template, before) };
}

/**
 * Whether `set` was made from the present template, and is stored with another one: it is no earlier revision that anybody has asked for, however
 * high its number is.
 */
export function isChangedCopy(
  deployment: MachineDeployment,
  set: MachineSet,
  hashes: readonly string[] = Object.values(hashesOf(deployment)),
): boolean {
  const hash = set.metadata.labels?.[TEMPLATE_HASH_LABEL];
  return hash !== undefined && hashes.includes(hash) && !equalTemplate(set.spec.template, deployment.spec.template);
}
