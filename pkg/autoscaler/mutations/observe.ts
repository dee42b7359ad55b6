import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { rolloutStage } from '../../controllers/machine-deployment/rollout/rollout-stage.ts';
import { observeDeployment, ownedMachines } from '../../controllers/machine-deployment/observed.ts';
import { nodeAccess } from '../../controllers/machine-facts/node-access.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Targets } from '../../kube/targets/targets.ts';
import type { GroupState, GroupMember } from './group-state.ts';

export interface GroupSources extends Pick<Caches, 'machines' | 'machineSets'> {
  readonly targets: Targets;
  readonly clock: Clock;
}

/** Machines as the API server has them, by name; undefined for one that is gone. */
export type LiveMachines = ReadonlyMap<string, Machine | undefined>;

/** A group as the caches show it, but for what was read from the API server. */
export function groupStateOf(sight: GroupSources, deployment: MachineDeployment, live: LiveMachines): GroupState {
  const observed = observeDeployment(sight, deployment);
  const members = ownedMachines(sight, deployment)
    .map((cached) => (live.has(cached.metadata.name) ? live.get(cached.metadata.name) : cached))
    .filter((machine) => machine !== undefined)
    .map((machine): [string, GroupMember] => [machine.metadata.name, { machine, hasNode: hasNode(sight, machine) }]);
  return { deployment, members: new Map(members), rollout: rolloutStage(observed), nowMs: sight.clock.now() };
}

/** One that runs has a Node, even if the cache of Nodes does not show it yet. */
function hasNode({ targets, machines }: GroupSources, machine: Machine): boolean {
  const target = targets.of(machine);
  const isUp = phaseOf(machine) === 'Running' || phaseOf(machine) === 'Available';
  return isUp || (target !== undefined && nodeAccess(target, machines).ofMachine(machine).length > 0);
}
