import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { Informer, Lister } from '../../cache/lister.ts';
import type { Clock } from '../../clock/clock.ts';
import type { ObjectEvents } from '../../events/event-sink.ts';
import type { Reader, Writer } from '../../kube/client.ts';
import type { Logger } from '../../log/logger.ts';
import type { Targets } from '../../targets/targets.ts';
import type { CreationBrake } from '../replicas/creation-brake.ts';

/** What the MachineDeployment controller is made of. */
export interface MachineDeploymentDeps {
  readonly machineDeployments: Lister<MachineDeployment>;
  /** With the index CONTROLLER_INDEX. */
  readonly machineSets: Informer<MachineSet>;
  /** With the index CONTROLLER_INDEX. */
  readonly machines: Lister<Machine>;
  /** Live reads of the control cluster. */
  readonly reader: Reader;
  readonly writer: Writer;
  readonly targets: Targets;
  readonly recorder: ObjectEvents<MachineDeployment>;
  readonly setRecorder: ObjectEvents<MachineSet>;
  /** Shared with the MachineSet controller. */
  readonly brake: CreationBrake;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether Nodes are kept from the autoscaler's scale-down while a rollout is on. */
  readonly holdsScaleDownDuringRollout: boolean;
}
