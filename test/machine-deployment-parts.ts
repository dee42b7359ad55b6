import type { MachineDeployment } from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineDeploymentParts } from '../pkg/controllers/machine-deployment/parts.ts';
import { observe, type World } from '../pkg/controllers/machine-deployment/world.ts';
import { MemoryParts, type MemoryObjects } from './memory-parts.ts';

/** What the MachineDeployment controller is made of, in memory. */
export class MemoryDeploymentParts extends MemoryParts implements MachineDeploymentParts {
  readonly setRecorder = this.recorder;
  holdsScaleDownDuringRollout = false;

  constructor(deployment: MachineDeployment, others: Omit<MemoryObjects, 'deployments'> = {}) {
    super({ ...others, deployments: [deployment] });
  }

  /** What a pass over it sees. */
  world(deployment: MachineDeployment): World {
    return observe(this, deployment);
  }
}
