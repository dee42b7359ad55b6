import type { TaggedVM } from '../../../pkg/drivers/machine-identity.ts';
import type { ProcessIdentity } from '../../../pkg/drivers/process-identity.ts';

/** A local machine, as written in the vm.json of its folder. */
export interface LocalVM extends TaggedVM {
  /** Name of its folder, and last part of its provider id. */
  readonly id: string;
  readonly kubeletPort: number;
  readonly readOnlyPort: number;
  /** Its kubelet. Undefined only between the making of the folder and the start of the process. */
  readonly process: ProcessIdentity | undefined;
}
