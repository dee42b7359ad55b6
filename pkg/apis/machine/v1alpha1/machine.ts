import type { ObjectMeta } from '../../meta.ts';
import type { NodeCondition, NodeSpec } from '../../wire.ts';
import type { ConditionStatus, MachinePhase, OperationState, OperationType } from './phases.ts';

/** One virtual machine that should exist, and the Node it becomes. */
export interface Machine {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec: MachineSpec;
  status?: MachineStatus;
}

/** Settings of one machine that override the flags; each is independently absent. Durations are Go duration strings. */
export interface MachineConfiguration {
  /** Overrides `--machine-drain-timeout`. */
  drainTimeout?: string;
  /** Overrides `--machine-health-timeout`. */
  healthTimeout?: string;
  /** Overrides `--machine-creation-timeout`. */
  creationTimeout?: string;
  /** Overrides `--machine-inplace-update-timeout`. */
  inPlaceUpdateTimeout?: string;
  /** Overrides `--machine-preserve-timeout`. */
  machinePreserveTimeout?: string;
  /** True: an unhealthy machine never becomes Failed by timeout. */
  disableHealthTimeout?: boolean;
  /** Overrides `--machine-max-evict-retries`. */
  maxEvictRetries?: number;
  /** Comma-separated Node condition types that make a machine unhealthy unless `False`; overrides `--node-conditions`. */
  nodeConditions?: string;
}

export interface MachineSpec extends MachineConfiguration {
  /** The MachineClass, in the same namespace, that says how the VM is made. */
  class?: ClassSpec;
  /** Identity of the VM at the provider; empty until a VM is known. */
  providerID?: string;
  /** Labels, annotations and taints to keep on the Node. */
  nodeTemplate?: NodeTemplateSpec;
}

/** Reference to a MachineClass. */
export interface ClassSpec {
  apiGroup?: string;
  kind?: string;
  name?: string;
}

/** What is enforced on the Node; of `spec` only `taints` is used. */
export interface NodeTemplateSpec {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string>; [member: string]: unknown };
  spec?: NodeSpec;
}

export interface MachineStatus {
  /** Addresses reported by the driver; only without a target cluster. */
  addresses?: NodeAddress[];
  /** Mirror of the Node's conditions. */
  conditions?: NodeCondition[];
  lastOperation?: LastOperation;
  currentStatus?: CurrentStatus;
  /** Opaque scratch space of the driver. */
  lastKnownState?: string;
  /** Our own story of the machine, display only: the original overwrites `conditions` and prunes unknown fields. */
  machineConditions?: MachineCondition[];
  /** What the driver told of the VM's resources when it was made, display only: the original prunes it. */
  vmCapacity?: Record<string, string>;
}

export interface NodeAddress {
  type: string;
  address: string;
}

/** What was last done to a machine. `description` is also the cursor of the deletion's state machine. */
export interface LastOperation {
  description?: string;
  /** Machine code name, only for failures of create and initialize. */
  errorCode?: string;
  lastUpdateTime?: string | null;
  state?: OperationState;
  type?: OperationType;
}

/** The phase and when it began. */
export interface CurrentStatus {
  phase?: MachinePhase | '';
  /** True only while Pending with a target cluster. */
  timeoutActive?: boolean;
  /** Start of the phase: base of the health and in-place timeouts. */
  lastUpdateTime?: string | null;
  /** Set = the machine is preserved until then. */
  preserveExpiryTime?: string | null;
}

/** A display-only condition in the usual Kubernetes form. */
export interface MachineCondition {
  type: string;
  status: ConditionStatus;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface MachineTemplateSpec {
  metadata?: {
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    [member: string]: unknown;
  };
  spec?: MachineSpec;
}

/** What MachineSets and MachineDeployments tell of a failed machine. */
export interface MachineSummary {
  name?: string;
  providerID?: string;
  ownerRef?: string;
  lastOperation?: LastOperation;
}
