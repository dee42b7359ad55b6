import type { ProcessClock } from '../clock/process-clock.ts';
import type { PoolAddress } from '../config/config.ts';
import { isProtected, parseDriverAddress } from '../driver/grpc/address.ts';
import type { Gate } from '../gate/gate.ts';
import type { Interceptor } from '../gate/interceptor.ts';
import { RuntimeClient } from '../ironcore-runtime/client.ts';
import { GatedRuntime, type PoolRuntime } from '../ironcore-runtime/gated-runtime.ts';
import type { IronCoreRuntime } from '../ironcore-runtime/runtime.ts';
import type { Logger } from '../log/logger.ts';
import type { IronCoreMetrics } from '../metrics/ironcore.ts';

/** How the runtimes of IronCore's pools are reached. */
export interface RuntimesOptions {
  readonly pools: readonly PoolAddress[];
  readonly gate: Gate;
  readonly clock: ProcessClock;
  readonly log: Logger;
  readonly metrics: Pick<IronCoreMetrics, 'calls'>;
  readonly hooks: RuntimeHooks | undefined;
}

/** For tests and simulations. */
export interface RuntimeHooks {
  readonly interceptDriver?: Interceptor;
  /** In place of the runtime at the address of a pool. */
  readonly openRuntime?: (pool: string) => IronCoreRuntime;
}

export interface OpenedRuntimes {
  readonly byPool: ReadonlyMap<string, PoolRuntime>;
  /** Ends the connections. */
  close(): void;
}

/** Makes the way to the runtime of each pool, behind the gate; nothing is sent yet. Throws DriverAddressError. */
export function openRuntimes(options: RuntimesOptions): OpenedRuntimes {
  const { pools, gate, clock, log, metrics, hooks } = options;
  const opened = pools.map(({ pool, address: text }) => {
    const address = parseDriverAddress(text);
    if (!isProtected(address) && !address.insecure) {
      log.warn(
        { pool, address: address.target },
        'runtime connection is not encrypted: any local user could impersonate the runtime',
      );
    }
    const client =
      hooks?.openRuntime?.(pool) ??
      new RuntimeClient({
        address,
        clock,
        log,
        observe: ({ method, code, ms }) => metrics.calls.observe({ pool, method, code }, ms / 1_000),
      });
    const interceptor = hooks?.interceptDriver;
    return { pool, client, runtime: new GatedRuntime({ address: address.target, runtime: client, gate, interceptor }) };
  });
  return {
    byPool: new Map(opened.map(({ pool, runtime }) => [pool, runtime])),
    close() {
      for (const { client } of opened) client.close();
    },
  };
}
