import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';

/** One Kubernetes Event about a MachineClass. */
export interface MachineClassEvent {
  readonly object: MachineClass;
  readonly type: 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** The class is let go although VMs that nobody owns may be left at the provider. */
export function releasedUnproven(object: MachineClass, isKnown: boolean, waitedMinutes: number): MachineClassEvent {
  const state = isKnown
    ? 'its last VM list still shows VMs without a Machine'
    : 'no VM list could be had to show that no VM is left';
  return {
    object,
    type: 'Warning',
    reason: 'VMsMayBeLeft',
    message: `Released after ${waitedMinutes} minutes although ${state}: look for VMs of this class at the provider and delete them`,
  };
}
