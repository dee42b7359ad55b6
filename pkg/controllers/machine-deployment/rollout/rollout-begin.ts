import { SCALE_UP_DISABLED_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { SetFacts } from '../sets/set-facts.ts';
import type { Observed } from '../observed.ts';

/** Whether Machines of another template are there, or wanted. */
export function hasOldMachines({ facts }: Pick<Observed, 'facts'>): boolean {
  return facts.oldSets.some(isActive);
}

/**
 * Whether a rollout is due of which nothing has been done yet.
 *
 * | strategy    | has begun when                                           |
 * |-------------|----------------------------------------------------------|
 * | all         | the new set has Machines, or should have                 |
 * | Recreate    | no old set should have any                               |
 * | in place    | the old sets are kept from making up for those that move |
 */
export function isToBegin(observed: Pick<Observed, 'facts' | 'deployment' | 'newSet' | 'oldSets'>): boolean {
  return hasOldMachines(observed) && !hasBegun(observed);
}

/** Whether a rollout that has begun can stand still, as one that is paused does. A Recreate cannot: its Machines are gone. */
export function canPause(observed: Parameters<typeof isToBegin>[0]): boolean {
  return hasOldMachines(observed) && hasBegun(observed) && observed.deployment.spec.strategy?.type !== 'Recreate';
}

function hasBegun({ facts, deployment, newSet, oldSets }: Parameters<typeof isToBegin>[0]): boolean {
  if (facts.newSet !== undefined && isActive(facts.newSet)) return true;
  switch (deployment.spec.strategy?.type) {
    case 'RollingUpdate':
      return false;
    case 'Recreate':
      return facts.oldSets.every(({ size }) => size === 0);
    default:
      return (
        newSet !== undefined &&
        oldSets.some(
          ({ metadata, spec }) => (spec.replicas ?? 0) > 0 && metadata.labels?.[SCALE_UP_DISABLED_LABEL] !== undefined,
        )
      );
  }
}

function isActive({ size, existing }: SetFacts): boolean {
  return size > 0 || existing > 0;
}
