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
import { IRONCORE_SCHEDULER_LEASE, IRONCORE_POOLS_LEASE } from './controllers/leases.ts';
import type { NeededKind } from '../../operator/world.ts';
import { IRONCORE_ROLES, POOLS_FILE, SCHEDULER_FILE } from './roles.ts';
import { IRONCORE_FLAGS } from './controllers/flags.ts';
import type { IronCoreMetrics } from './controllers/metrics.ts';
import { isProtected, parseDriverAddress } from '../../driver/grpc/address.ts';
import type { Interceptor } from '../../kube/gate/interceptor.ts';
import { RuntimeClient } from './runtime/client.ts';
import { gatedRuntime, type PoolRuntime } from './runtime/gated-runtime.ts';
import type { IronCoreRuntime } from './runtime/runtime.ts';
import type { Operator } from '../../operator/operator.ts';

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

/** For tests and simulations. */
interface RuntimeHooks {
  readonly intercept?: Interceptor;
  /** In place of the runtime at the address of a pool. */
  readonly openRuntime?: (pool: string) => IronCoreRuntime;
}

/** Opens the runtime of each pool, behind the gate of their Lease; nothing is sent yet. Throws DriverAddressError. */
function openRuntimes(
  operator: Operator,
  metrics: Pick<IronCoreMetrics, 'calls'>,
  { intercept: interceptor, openRuntime }: RuntimeHooks,
): ReadonlyMap<string, PoolRuntime> {
  const { clock, log, config } = operator;
  const leadership = operator.under(IRONCORE_POOLS_LEASE);
  return new Map(
    config.of(IRONCORE_FLAGS).pools.map(({ pool, address: text }) => {
      const address = parseDriverAddress(text);
      if (!isProtected(address) && !address.insecure) {
        log.warn(
          { pool, address: address.target },
          'runtime connection is not encrypted: any local user could impersonate the runtime',
        );
      }
      const observe: ConstructorParameters<typeof RuntimeClient>[0]['observe'] = ({ method, code, ms }) =>
        metrics.calls.observe({ pool, method, code }, ms / 1_000);
      const runtime = leadership.keep(openRuntime?.(pool) ?? new RuntimeClient({ address, clock, log, observe }));
      return [pool, gatedRuntime({ address: address.target, runtime, gate: leadership.gate, interceptor })];
    }),
  );
}
