import { CHANGED_ON_CREATION_ANNOTATION, TEMPLATE_HASH_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { refOf } from '../../../apis/meta.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { equalTemplate } from '../../../apis/machine/v1alpha1/template-equality.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { mergePatchIfUnchanged } from '../../../kube/client/patch.ts';
import { machineSets } from '../../../kube/client/resource.ts';
import type { MachineDeploymentDeps } from '../step.ts';
import { templateHash } from './template-hash.ts';

/** The hashes that the last two sets made from the present template have: the one that is to be made now, and the one before the last collision. */
export function hashesOf({ spec, status }: MachineDeployment): { readonly now: string; readonly before: string } {
  const collisions = status?.collisionCount;
  const before = collisions !== undefined && collisions !== null && collisions > 1 ? collisions - 1 : undefined;
  return { now: templateHash(spec.template, collisions), before: templateHash(spec.template, before) };
}

/** Whether `set` was made from the present template, as one of its `hashes` says, and is stored with another one. */
export function isCopyOfPresent(deployment: MachineDeployment, set: MachineSet, hashes: readonly string[]): boolean {
  const hash = set.metadata.labels?.[TEMPLATE_HASH_LABEL];
  return hash !== undefined && hashes.includes(hash) && !equalTemplate(set.spec.template, deployment.spec.template);
}

/**
 * Whether `set` was made from a template, the present or an earlier one, and is stored with another one: it is no earlier revision that anybody has
 * asked for, however high its number is. What the MachineDeployment itself has is asked for.
 */
export function isChangedCopy(
  deployment: MachineDeployment,
  set: MachineSet,
  hashes: readonly string[] = Object.values(hashesOf(deployment)),
): boolean {
  return isNoted(set)
    ? !equalTemplate(set.spec.template, deployment.spec.template)
    : isCopyOfPresent(deployment, set, hashes);
}

/**
 * Notes on those of `sets` that were changed on their creation that they were: no hash tells it any more once anything in the template has changed.
 * What refuses the note is noted at the next failure, as long as there is one.
 */
export async function noteChangedCopies(
  { writer }: Pick<MachineDeploymentDeps, 'writer'>,
  deployment: MachineDeployment,
  sets: readonly MachineSet[],
  signal: AbortSignal,
): Promise<void> {
  const hashes = Object.values(hashesOf(deployment));
  for (const set of sets) {
    if (isNoted(set) || !isCopyOfPresent(deployment, set, hashes)) continue;
    const note = { metadata: { annotations: { [CHANGED_ON_CREATION_ANNOTATION]: 'true' } } };
    await writer
      .patch('change', machineSets, refOf(set), mergePatchIfUnchanged(set, note), { signal })
      .catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error;
      });
  }
}

function isNoted({ metadata }: MachineSet): boolean {
  return metadata.annotations?.[CHANGED_ON_CREATION_ANNOTATION] !== undefined;
}
