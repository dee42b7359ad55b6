import { IRONCORE_FLAGS } from './controllers/flags.ts';
import type { IronCoreMetrics } from './controllers/metrics.ts';
import { isProtected, parseDriverAddress } from '../../driver/grpc/address.ts';
import type { Interceptor } from '../../kube/gate/interceptor.ts';
import { RuntimeClient } from './runtime/client.ts';
import { GatedRuntime, type PoolRuntime } from './runtime/gated-runtime.ts';
import type { IronCoreRuntime } from './runtime/runtime.ts';
import { IRONCORE_POOLS_LEASE } from './controllers/leases.ts';
import type { Operator } from '../../operator/operator.ts';

/** For tests and simulations. */
export interface RuntimeHooks {
  readonly intercept?: Interceptor;
  /** In place of the runtime at the address of a pool. */
  readonly openRuntime?: (pool: string) => IronCoreRuntime;
}

/** Opens the runtime of each pool, behind the gate of their Lease; nothing is sent yet. Throws DriverAddressError. */
export function openRuntimes(
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
      return [pool, new GatedRuntime({ address: address.target, runtime, gate: leadership.gate, interceptor })];
    }),
  );
}
