import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { Informer, Lister } from '../../cache/lister.ts';
import type { Clock } from '../../clock/clock.ts';
import type { ObjectEvents } from '../../events/event-sink.ts';
import type { Reader, Writer } from '../../kube/client.ts';
import type { Logger } from '../../log/logger.ts';
import type { MachineSetMetrics } from './metrics.ts';
import type { Expectations } from '../../reconcile/expectations.ts';
import type { Targets } from '../../targets/targets.ts';
import type { CreationBrake } from '../replicas/creation-brake.ts';

/** What the MachineSet controller is made of. */
export interface MachineSetDeps {
  /** With the index CONTROLLER_INDEX. */
  readonly machineSets: Lister<MachineSet>;
  /** How many Machines the owner of a set allows. */
  readonly machineDeployments: Lister<MachineDeployment>;
  /** With the index CONTROLLER_INDEX and MACHINE_INDEXES of pkg/indexes. */
  readonly machines: Informer<Machine>;
  /** Live reads of the control cluster. */
  readonly reader: Reader;
  readonly writer: Writer;
  readonly targets: Targets;
  readonly expectations: Expectations;
  /** Shared with the MachineDeployment controller. */
  readonly brake: CreationBrake;
  readonly recorder: ObjectEvents<MachineSet>;
  /** Tells of freezes, under the name of the manager as in the original. */
  readonly safetyRecorder: ObjectEvents<MachineSet>;
  readonly metrics: MachineSetMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Node conditions that make a Node unhealthy unless False, for Machines that name none themselves. */
  readonly nodeConditions: readonly string[];
  /** The five characters that make a Machine's name unique; `randomSuffix` but in tests. */
  readonly newSuffix: () => string;
}
