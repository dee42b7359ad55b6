import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { Step } from '../../work/reconcile/result.ts';
import type { OwnerPass } from '../replicas/owner-controller.ts';

export interface SetPass extends OwnerPass<MachineSet> {
  /** The claimed Machines, as the caches show them when a step begins. */
  machines: readonly Machine[];
  isShort?: boolean;
  /** Machines were deleted: what is left to do is planned again at once. */
  hasDeleted?: boolean;
  /** Why missing Machines could not be created. */
  failure?: string;
}

export type SetStep = Step<SetPass>;
