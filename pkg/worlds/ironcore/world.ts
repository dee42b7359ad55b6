import {
  ironCoreMachineClasses,
  ironCoreMachinePools,
  ironCoreMachines,
  ironCoreNetworkInterfaces,
  ironCoreNetworks,
  ironCoreVolumes,
} from './api/resources.ts';
import { ironCoreLifecycle, ironCoreScheduler, ironCoreServing } from './controllers/index.ts';
import { IRONCORE_KINDS } from './controllers/kinds.ts';
import type { ServedWorld } from '../../controllers/world.ts';
import { IRONCORE_SCHEDULER_LEASE } from './controllers/leases.ts';
import type { NeededKind } from '../../operator/world.ts';
import { IRONCORE_ROLES, POOLS_FILE, SCHEDULER_FILE } from './roles.ts';
import { openRuntimes, type RuntimeHooks } from './runtimes.ts';

/** By the controller that reads them. */
const NEEDS: readonly NeededKind[] = Object.entries({
  'ironcore.scheduler': [ironCoreMachines, ironCoreMachinePools],
  'ironcore.lifecycle': [ironCoreMachineClasses],
  'ironcore.pools': [ironCoreMachines, ironCoreMachinePools, ironCoreMachineClasses],
  'ironcore.machines': [ironCoreVolumes, ironCoreNetworkInterfaces, ironCoreNetworks],
}).flatMap(([controller, kinds]) => kinds.map((resource) => ({ controller, resource })));

export const IRONCORE = ironCore();

/** IronCore; its runtimes are connected to with `hooks`. */
export function ironCore(hooks: RuntimeHooks = {}): ServedWorld {
  return {
    name: 'ironcore',
    kinds: IRONCORE_KINDS,
    needs: NEEDS,
    roles: IRONCORE_ROLES,
    alone: {
      probed: ironCoreMachines,
      roleFile: (leases) => (leases.has(IRONCORE_SCHEDULER_LEASE) ? SCHEDULER_FILE : POOLS_FILE),
    },
    controllers(operator) {
      const { leases, controllers } = operator.config;
      return [
        ...(leases.has(IRONCORE_SCHEDULER_LEASE) ? [ironCoreScheduler(operator)] : []),
        ...(controllers.has('ironcore.lifecycle') ? [ironCoreLifecycle(operator)] : []),
        ...(controllers.has('ironcore.pools')
          ? ironCoreServing(operator, (metrics) => openRuntimes(operator, metrics, hooks))
          : []),
      ];
    },
  };
}
