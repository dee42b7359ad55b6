import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { Step } from '../../work/reconcile/result.ts';
import type { OwnerPass } from '../replicas/owner-controller.ts';
import type { ProgressingUpdate } from './rollout/progressing-condition.ts';
import type { Unsupported } from './status.ts';
import type { Observed } from './observed.ts';

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
