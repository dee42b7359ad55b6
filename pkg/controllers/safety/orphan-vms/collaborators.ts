import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import type { Logger } from '../../../base/log/logger.ts';
import type { Drivers } from '../../../driver/drivers.ts';
import type { Lister } from '../../../kube/cache/lister.ts';
import type { Reader, Writer } from '../../../kube/client/client.ts';
import type { ObjectEvents } from '../../../kube/events/event-sink.ts';
import type { Trust } from '../../../kube/gate/leader-gate.ts';
import type { Targets } from '../../../kube/targets/targets.ts';
import type { Activities } from '../../../work/activity/activity.ts';
import type { SecretContents } from '../../class-secrets/secret-contents.ts';
import type { VMStates } from '../../machine-facts/vm-states.ts';
import type { DeletedMachines } from '../deleted-machines.ts';
import type { DistrustedAccounts } from '../distrusted-accounts.ts';
import type { OwnerlessVMs } from '../ownerless-vms.ts';
import type { RemovedMachines } from '../removed-machines.ts';
import type { OrphanVMMetrics } from './metrics.ts';

/** What the parts of the search are made with; each names what it takes. */
export interface Collaborators {
  /** With MACHINE_INDEXES of pkg/indexes. */
  readonly machines: Lister<Machine>;
  readonly classes: Lister<MachineClass>;
  readonly namespace: string;
  readonly drivers: Drivers;
  readonly secrets: Pick<SecretContents, 'of'>;
  readonly reader: Reader;
  readonly writer: Writer;
  readonly targets: Targets;
  readonly trust: Trust;
  readonly activities: Activities<{ delete: unknown }>;
  readonly recorder: ObjectEvents<MachineClass>;
  readonly metrics: OrphanVMMetrics;
  readonly ownerless: OwnerlessVMs;
  readonly distrusted: DistrustedAccounts;
  readonly vmStates: Pick<VMStates, 'saw'>;
  readonly gone: DeletedMachines;
  readonly removed: RemovedMachines;
  readonly clock: Clock;
  readonly log: Logger;
  /** `--machine-safety-orphan-vms-period`, `-grace` and `-dry-run`. */
  readonly periodMs: number;
  readonly graceMs: number;
  readonly isDryRun: boolean;
}
