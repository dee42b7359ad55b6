import type { NodeLabelPolicy } from '../../apis/machine/v1alpha1/node-label-policy.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Drain } from '../../drain/drain.ts';
import type { Gate } from '../../kube/gate/gate.ts';
import type { Identities } from '../../operator/identities.ts';
import type { Trust } from '../../kube/gate/leader-gate.ts';
import type { Outage } from '../../kube/gate/outage.ts';
import type { Random } from '../../base/random/random.ts';
import type { Targets } from '../../kube/targets/targets.ts';
import type { PodRules } from '../machine-facts/pod-rules.ts';
import type { NodesInTarget } from '../machine-facts/nodes-in-target.ts';
import type { Owners } from '../machine-facts/owners.ts';
import type { ReplacementPace } from '../machine-facts/pace.ts';
import type { ReplacementBudget } from '../machine-facts/replacement-budget.ts';
import type { MachineSettings } from '../machine-facts/settings.ts';
import type { VMStates } from '../machine-facts/vm-states.ts';
import type { Zones } from '../machine-facts/zones.ts';
import type { ClassSources, ResolveClass } from './calls/class-resolution.ts';
import type { DeletionTimes } from './calls/deletion-times.ts';
import type { DriverCalls } from './calls/driver-call.ts';
import type { MachineActivities } from './calls/results.ts';
import type { UnansweredCreations } from './calls/unanswered.ts';
import type { VMClasses } from './calls/vm-classes.ts';
import type { DeletionCursor } from './deletion/cursor.ts';
import type { LeftVMs } from './deletion/forced-removal.ts';
import type { Drains } from './drain/drains.ts';
import type { IdentityClaims } from './identity/identity-claims.ts';
import type { MachineAccess } from './machine-access.ts';
import type { MachineMetrics } from './metrics.ts';
import type { BrokenNodes } from './node/broken-nodes.ts';
import type { DeletedNodes } from './node/deleted-nodes.ts';
import type { LostNodes } from './node/lost-nodes.ts';
import type { ReportedOnce } from '../../work/reconcile/reported-once.ts';
import type { BootstrapTokens } from './tokens/bootstrap-tokens.ts';
import type { MachineTokens } from './tokens/machine-tokens.ts';

export interface MachineStepsDeps extends Omit<ClassSources, 'vmClasses'>, MachineAccess {
  /** With MACHINE_INDEXES: by these also those of other namespaces whose Nodes are in the same target. */
  readonly machines: Lister<Machine>;
  /** What those of other namespaces have, or are about to record; undefined: there are none. */
  readonly identities?: Identities | undefined;
  /** Where other namespaces share the target: Machines that have this name, in all of them, read live. Throws ApiError. */
  readonly namesakes?: ((name: string, signal: AbortSignal) => Promise<readonly Machine[]>) | undefined;
  readonly classes: Lister<MachineClass>;
  readonly labelPolicies: Lister<NodeLabelPolicy>;
  readonly zones: Zones;
  readonly nodesInTarget: Pick<NodesInTarget, 'isMissingWithAll'>;
  /** Both shared by all who fail machines: what one of them begins counts for all. */
  readonly budget: ReplacementBudget;
  readonly pace: ReplacementPace;
  readonly owners: Owners;
  readonly targets: Pick<Targets, 'of'>;
  readonly activities: MachineActivities;
  readonly drain: Drain;
  /** What drains do about pods; undefined: all leave. */
  readonly rules?: Pick<PodRules, 'of'> | undefined;
  readonly bootstrapTokens: Pick<BootstrapTokens, 'of' | 'forget'>;
  readonly gate: Gate;
  readonly trust: Trust;
  readonly outages: () => readonly Outage[];
  readonly metrics: MachineMetrics;
  readonly clock: Clock;
  readonly settings: MachineSettings;
  readonly leftVMs: LeftVMs;
  /** Told whether the VM of the Machine of this UID counts as gone, when a driver has said so. */
  readonly judgedVM?: ((machineUID: string, isGone: boolean) => void) | undefined;
  readonly vmStates: Pick<VMStates, 'get'>;
  /** Whether Nodes are kept from the autoscaler's scale-down while a rollout is on, by a MachineDeployment that this process looks after. */
  readonly holdsScaleDownDuringRollout: boolean;
  readonly random?: Random | undefined;
}

/** All that a step may ask for: what its controller was given, and what the steps share. */
export interface Collaborators extends MachineStepsDeps {
  readonly vmClasses: VMClasses;
  readonly resolveClass: ResolveClass;
  readonly reportedOnce: ReportedOnce;
  readonly calls: DriverCalls;
  readonly deletionTimes: DeletionTimes;
  readonly unanswered: UnansweredCreations;
  readonly tokens: MachineTokens;
  readonly claims: IdentityClaims;
  readonly lostNodes: LostNodes;
  readonly deletedNodes: DeletedNodes;
  readonly brokenNodes: BrokenNodes;
  readonly cursor: DeletionCursor;
  readonly drains: Drains;
}
