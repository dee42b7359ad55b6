import type { Clock } from '../../base/clock/clock.ts';
import type { Reader, Writer } from '../../kube/client/client.ts';
import { MANAGER_LEASE } from '../../kube/leader/names.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Targets } from '../../kube/targets/targets.ts';
import type { CreationBrake } from './creation-brake.ts';

export interface OwnerDeps extends Pick<Caches, 'machines' | 'machineSets' | 'machineDeployments'> {
  /** Live reads of the control cluster. */
  readonly reader: Reader;
  readonly writer: Writer;
  readonly targets: Targets;
  /** Shared by them. */
  readonly brake: CreationBrake;
  readonly clock: Clock;
  readonly log: Logger;
}

export function ownerDeps(operator: Operator, brake: CreationBrake): OwnerDeps {
  const { clock, log, reader } = operator;
  const { machines, machineSets, machineDeployments } = operator.caches;
  const { writer, targets } = operator.under(MANAGER_LEASE);
  return { machines, machineSets, machineDeployments, reader, writer, targets, brake, clock, log };
}
