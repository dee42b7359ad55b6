import type { LabelSelector, ObjectMeta } from '../../meta.ts';
import type { ClassSpec, LastOperation, MachineSummary, MachineTemplateSpec } from './machine.ts';
import type { MachineSetConditionType } from './conditions.ts';
import type { ConditionStatus } from './phases.ts';

/** Keeps a number of equal Machines alive. */
export interface MachineSet {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec: MachineSetSpec;
  status?: MachineSetStatus;
}

export interface MachineSetSpec {
  /** Number of Machines; absent means 0. */
  replicas?: number;
  /** Which Machines belong to the set. */
  selector?: LabelSelector;
  /** Unused, kept for the original's metric labels. */
  machineClass?: ClassSpec;
  template?: MachineTemplateSpec;
  /** Without effect on availability, as in the original. */
  minReadySeconds?: number;
  /** How many failed Machines may be preserved automatically. */
  autoPreserveFailedMachineMax?: number;
}

export interface MachineSetStatus {
  /** Claimed Machines, whatever their phase. */
  replicas?: number;
  fullyLabeledReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  preservedFailedReplicas?: number;
  autoPreserveFailedMachineCount?: number;
  observedGeneration?: number;
  lastOperation?: LastOperation;
  /** The condition list; the JSON name is the original's. */
  machineSetCondition?: MachineSetCondition[];
  /** At most the 100 newest. */
  failedMachines?: MachineSummary[];
}

export interface MachineSetCondition {
  type: MachineSetConditionType | (string & {});
  status: ConditionStatus;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
}
