import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { Random } from '../../base/random/random.ts';
import type { ObjectEvents } from '../../kube/events/event-sink.ts';
import type { Finalizer } from '../../work/reconcile/finalizer.ts';
import type { ReportedOnce } from '../../work/reconcile/reported-once.ts';
import type { Step } from '../../work/reconcile/result.ts';
import type { OwnerPass } from '../replicas/owner-controller.ts';
import type { OwnerDeps } from '../replicas/owner-deps.ts';
import type { OwnerStatuses } from '../replicas/owner-status.ts';
import type { PatientChanges } from '../replicas/patient-changes.ts';
import type { Moves } from './in-place/moves.ts';
import type { NodeMarker } from './node-marks/node-marker.ts';
import type { Replacements } from './node-marks/replacements.ts';
import type { Observed } from './observed.ts';
import type { CreationFailures } from './sets/creation-failures.ts';
import type { ProgressingUpdate } from './rollout/progressing-condition.ts';
import type { Unsupported } from './status.ts';

export interface MachineDeploymentDeps extends OwnerDeps {
  readonly recorder: ObjectEvents<MachineDeployment>;
  readonly random?: Random | undefined;
  readonly setRecorder: ObjectEvents<MachineSet>;
  /** Whether Nodes are kept from the autoscaler's scale-down while a rollout is on. */
  readonly holdsScaleDownDuringRollout: boolean;
  /** Whether this process, which runs the machine controller too, does that for a Node that joins with its very first marks. */
  readonly holdsJoiningNodes: boolean;
  /** Whether the machine controller of this process leads: what that records of a Machine, caches show before what it then puts on the Node. */
  readonly leadsMachines: () => boolean;
}

export interface Collaborators extends MachineDeploymentDeps {
  readonly finalizer: Finalizer<MachineDeployment>;
  readonly marker: NodeMarker;
  readonly moves: Moves;
  /** Of what may be refused without consequence for anything else. */
  readonly changes: PatientChanges;
  readonly replacements: Replacements;
  readonly creations: CreationFailures;
  readonly failedRollbacks: ReportedOnce;
  readonly statuses: OwnerStatuses<MachineDeployment>;
}

export interface DeploymentPass extends OwnerPass<MachineDeployment> {
  /** What it owns, as the caches show it when a step begins. */
  observed: Observed;
  /** A rollout judges its progress; scaling and pausing leave the condition alone. */
  isRollout?: boolean;
  announced?: ProgressingUpdate | undefined;
  waitsFor?: string | undefined;
  /** Why the spec is obeyed in part only. */
  unsupported?: Unsupported;
}

export type DeploymentStep = Step<DeploymentPass>;
