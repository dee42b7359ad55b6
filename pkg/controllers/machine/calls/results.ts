import type { Activities } from '../../../work/activity/activity.ts';
import type { DrainOutcome } from '../../../drain/drain.ts';
import type { VirtualMachine } from '../../../driver/driver.ts';
import type { Launched } from '../context.ts';

export interface ActivityResults {
  /** Undefined: no VM can be seen, and it is too early to make one. */
  readonly create: Launched | undefined;
  /** How long it took, in ms, and what the driver told of the VM then. */
  readonly initialize: { readonly tookMs: number; readonly vm: Pick<VirtualMachine, 'addresses' | 'capacity'> };
  /** `isMissing`: the driver knows of no VM of this Machine for certain. `mayBeAnothers`: nothing is recorded, and a namesake may have the VM. */
  readonly status: Partial<VirtualMachine> & { readonly isMissing?: boolean; readonly mayBeAnothers?: boolean };
  /**
   * `wasFound`: the driver did not say that there was none. `isAnothers`: it was not asked, as it takes the VM of a namesake for this one's.
   * `classVersion`: of the class that it was asked with.
   */
  readonly delete: {
    readonly lastKnownState: string | undefined;
    readonly wasFound: boolean;
    readonly isAnothers?: boolean;
    readonly classVersion?: string;
  };
  readonly drain: DrainOutcome;
}

export type MachineActivities = Activities<ActivityResults>;
