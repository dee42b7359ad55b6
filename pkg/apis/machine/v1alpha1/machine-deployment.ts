import type { LabelSelector, ObjectMeta } from '../../meta.ts';
import type { MachineSummary, MachineTemplateSpec } from './machine.ts';
import type { MachineDeploymentConditionType } from './conditions.ts';
import type { ConditionStatus } from './phases.ts';

/** Keeps a number of Machines alive and rolls them to new templates, as a Deployment does with Pods. */
export interface MachineDeployment {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec: MachineDeploymentSpec;
  status?: MachineDeploymentStatus;
}

export interface MachineDeploymentSpec {
  /** Number of Machines; absent means 0. */
  replicas?: number;
  selector?: LabelSelector;
  template: MachineTemplateSpec;
  strategy?: MachineDeploymentStrategy;
  /** Without effect on availability, as in the original. */
  minReadySeconds?: number;
  /** How many old MachineSets to keep; absent keeps all. */
  revisionHistoryLimit?: number | null;
  paused?: boolean;
  rollbackTo?: { revision?: number } | null;
  /** Seconds without progress after which the rollout is reported as stuck; absent means never. */
  progressDeadlineSeconds?: number | null;
  autoPreserveFailedMachineMax?: number;
}

/** A count, or a percentage of the desired replicas such as `25%`. */
export type IntOrPercent = number | string;

/** How far a rollout may go at once. */
export interface RollingLimits {
  /** How many of the desired Machines may be missing; a percentage rounds down. */
  maxUnavailable?: IntOrPercent;
  /** How many Machines beyond the desired may exist; a percentage rounds up. */
  maxSurge?: IntOrPercent;
}

/** How a new template reaches the Machines. */
export interface MachineDeploymentStrategy {
  type?: 'RollingUpdate' | 'Recreate' | 'InPlaceUpdate' | (string & {});
  rollingUpdate?: RollingLimits;
  inPlaceUpdate?: RollingLimits & { orchestrationType?: 'Auto' | 'Manual' | (string & {}) };
}

export interface MachineDeploymentStatus {
  observedGeneration?: number;
  replicas?: number;
  updatedReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  unavailableReplicas?: number;
  preservedFailedReplicas?: number;
  conditions?: MachineDeploymentCondition[];
  /** Grows when the name of a new MachineSet was taken. */
  collisionCount?: number | null;
  failedMachines?: MachineSummary[];
}

export interface MachineDeploymentCondition {
  type: MachineDeploymentConditionType | (string & {});
  status: ConditionStatus;
  lastUpdateTime?: string | null;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
}
