import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { ObjectEvents } from '../../events/event-sink.ts';
import type { OwnerDeps } from '../replicas/owner-deps.ts';

/** What the MachineDeployment controller is made of. */
export interface MachineDeploymentDeps extends OwnerDeps {
  readonly recorder: ObjectEvents<MachineDeployment>;
  readonly setRecorder: ObjectEvents<MachineSet>;
  /** Whether Nodes are kept from the autoscaler's scale-down while a rollout is on. */
  readonly holdsScaleDownDuringRollout: boolean;
  /** Whether this process, which runs the machine controller too, does that for a Node that joins with its very first marks. */
  readonly holdsJoiningNodes: boolean;
}
