import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Random } from '../../base/random/random.ts';
import type { ObjectEvents } from '../../kube/events/event-sink.ts';
import type { Expectations } from '../../work/reconcile/expectations.ts';
import type { Finalizer } from '../../work/reconcile/finalizer.ts';
import type { Step } from '../../work/reconcile/result.ts';
import type { PatientChanges } from '../replicas/patient-changes.ts';
import type { OwnerPass } from '../replicas/owner-controller.ts';
import type { OwnerDeps } from '../replicas/owner-deps.ts';
import type { OwnerStatuses } from '../replicas/owner-status.ts';
import type { DeletionTurns } from './deletion-turns.ts';
import type { MachineSetMetrics } from './metrics.ts';
import type { Recoveries } from './recoveries.ts';
import type { ReplicaPlans } from './replica-plans.ts';

export interface MachineSetDeps extends OwnerDeps {
  readonly expectations: Expectations;
  readonly recorder: ObjectEvents<MachineSet>;
  /** Tells of freezes, under the name of the manager as in the original. */
  readonly safetyRecorder: ObjectEvents<MachineSet>;
  readonly metrics: MachineSetMetrics;
  /** Node conditions that make a Node unhealthy unless False, for Machines that name none themselves. */
  readonly nodeConditions: readonly string[];
  readonly random?: Random | undefined;
  /** The five characters that make a Machine's name unique; `randomSuffix` but in tests. */
  readonly newSuffix: () => string;
}

export interface Collaborators extends MachineSetDeps {
  readonly finalizer: Finalizer<MachineSet>;
  readonly plans: ReplicaPlans;
  readonly recoveries: Recoveries;
  readonly turns: DeletionTurns;
  readonly statuses: OwnerStatuses<MachineSet>;
  /** Adoptions and releases, what the template changes, and what preserves. */
  readonly claims: PatientChanges;
  readonly pushes: PatientChanges;
  readonly preservations: PatientChanges;
}

export interface SetPass extends OwnerPass<MachineSet> {
  /** The claimed Machines, as the caches show them when a step begins. */
  machines: readonly Machine[];
  /** How many could not be adopted: nothing is created in their place. */
  unadopted?: number;
  /** UIDs of those that failed, and could not be marked as preserved: they stay all the same. */
  unpreserved?: ReadonlySet<string>;
  isShort?: boolean;
  /** Machines were deleted: what is left to do is planned again at once. */
  hasDeleted?: boolean;
  /** Why missing Machines could not be created. */
  failure?: string;
  /** Why a Machine may not be deleted. */
  undeleted?: string;
}

export type SetStep = Step<SetPass>;
