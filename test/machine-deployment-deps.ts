import type { MachineDeployment } from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineDeploymentDeps } from '../pkg/controllers/machine-deployment/deps.ts';
import { observeWorld, type World } from '../pkg/controllers/machine-deployment/world.ts';
import { MemoryDeps, type MemoryObjects } from './memory-deps.ts';

/** What the MachineDeployment controller is made of, in memory. */
export class MemoryDeploymentDeps extends MemoryDeps implements MachineDeploymentDeps {
  readonly setRecorder = this.recorder;
  holdsScaleDownDuringRollout = false;
  holdsJoiningNodes = true;
  isLeadingMachines = true;
  readonly leadsMachines = (): boolean => this.isLeadingMachines;

  constructor(deployment: MachineDeployment, others: Omit<MemoryObjects, 'deployments'> = {}) {
    super({ ...others, deployments: [deployment] });
  }

  /** What a pass over it sees. */
  world(deployment: MachineDeployment): World {
    return observeWorld(this, deployment);
  }
}
