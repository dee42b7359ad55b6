import type { ProcessClock } from '../base/clock/process-clock.ts';
import type { ProviderAddress } from './config/config.ts';
import { CallRates } from '../driver/call-rates.ts';
import { concernedClusters } from '../driver/concerned-clusters.ts';
import type { Driver } from '../driver/driver.ts';
import { ConfiguredDrivers, type Drivers } from '../driver/drivers.ts';
import type { DriverError } from '../driver/error.ts';
import { gatedDriver } from '../driver/gated-driver.ts';
import { isProtected, parseDriverAddress } from '../driver/grpc/address.ts';
import { GrpcDriver } from '../driver/grpc/client.ts';
import type { Interceptor } from '../kube/gate/interceptor.ts';
import { Obedience } from '../driver/obedience.ts';
import type { Cluster, Gate } from '../kube/gate/gate.ts';
import type { HeldWork } from '../health/held-work.ts';
import type { LeaseElector } from '../kube/leader/elector.ts';
import type { Logger } from '../base/log/logger.ts';
import type { DriverMetrics } from '../base/metrics/driver.ts';
import type { ClusterIdentity } from './cluster-identity.ts';

/** How the drivers of one leadership are reached. */
export interface DriversOptions {
  readonly addresses: readonly ProviderAddress[];
  /** Name of the Lease under which they are called. */
  readonly work: string;
  readonly gate: Gate;
  readonly elector: LeaseElector | undefined;
  /** Of the control cluster, under which they tag VMs; read before leadership begins. */
  readonly identity: ClusterIdentity;
  readonly target: Cluster | undefined;
  readonly held: HeldWork;
  readonly clock: ProcessClock;
  readonly log: Logger;
  readonly metrics: DriverMetrics;
  readonly hooks: DriverHooks | undefined;
}

/** For tests and benchmarks. */
export interface DriverHooks {
  readonly interceptDriver?: Interceptor;
  /** How long a driver's mutations may take instead of a minute and more. */
  readonly driverMutationTimeoutMs?: number;
  /** In place of the one at a provider's address. */
  readonly openDriver?: (provider: string) => Driver;
}

/** The drivers of one leadership, connected. */
export interface OpenedDrivers {
  readonly drivers: Drivers;
  /** Nothing that waits for its turn is sent any more. */
  endTurns(): Promise<void>;
  /** Ends the connections. */
  close(): Promise<void>;
}

/** Connects to the configured drivers, each behind the gate. Throws DriverAddressError. */
export function openDrivers(options: DriversOptions): OpenedDrivers {
  const { hooks, elector } = options;
  const opened = options.addresses.map((address) => ({
    address,
    ...openDriver(address, options),
    rates: ratesOf(address, options),
  }));
  const gated = opened.map(({ address: { provider }, driver, rates }) =>
    gatedDriver({
      provider,
      driver,
      rates,
      gate: options.gate,
      obedience: elector && obedienceOf(options, provider, elector),
      clustersOf: (machine) => concernedClusters(machine, options.target),
      get clusterID() {
        return options.identity.uid;
      },
      clock: options.clock,
      metrics: options.metrics,
      ...(hooks?.interceptDriver === undefined ? {} : { interceptor: hooks.interceptDriver }),
      ...(hooks?.driverMutationTimeoutMs === undefined ? {} : { mutationTimeoutMs: hooks.driverMutationTimeoutMs }),
    }),
  );
  return {
    drivers: new ConfiguredDrivers(gated),
    async endTurns() {
      await Promise.all(opened.map(({ rates }) => rates.end()));
    },
    async close() {
      await Promise.all(opened.map((one) => one.close()));
    },
  };
}

/** A driver, connected, without gate or limits. */
export interface OpenDriver {
  readonly driver: Driver;
  close(): Promise<void>;
}

/** Connects to the driver at an address; that it does not answer is shown as held work. Throws DriverAddressError. */
export function openDriver(
  { provider, address: text }: ProviderAddress,
  options: Pick<DriversOptions, 'clock' | 'log' | 'held' | 'work' | 'metrics' | 'hooks'>,
): OpenDriver {
  const { clock, log, held, work, hooks } = options;
  const given = hooks?.openDriver?.(provider);
  if (given !== undefined) return { driver: given, close: () => Promise.resolve() };
  const address = parseDriverAddress(text);
  if (!isProtected(address) && !address.insecure) {
    log.warn(
      { provider, address: address.target },
      'driver connection is not encrypted: any local user could impersonate the driver',
    );
  }
  const show = held.whileFailing<string>({ work, waitsFor: 'driver', of: provider }, (err) =>
    log.warn({ provider, err }, 'could not connect to driver, retrying'),
  );
  const greeted = (err: DriverError | undefined): void => {
    options.metrics.up.set({ provider }, err === undefined ? 1 : 0);
    show(err?.detail);
  };
  const driver = new GrpcDriver({ provider, address, clock, log, greeted });
  return { driver, close: () => driver.close() };
}

function ratesOf({ provider, qps }: ProviderAddress, { clock, metrics }: DriversOptions): CallRates {
  return new CallRates({ provider, qps, clock, waited: (ms) => metrics.throttled.observe({ provider }, ms / 1_000) });
}

/** What is done when a driver refuses our fencing token; without leader election there is none. */
function obedienceOf({ held, work, log }: DriversOptions, provider: string, elector: LeaseElector): Obedience {
  const reported = held.whileFailing<string>({ work, waitsFor: 'obedience', of: provider }, (err) =>
    log.warn({ provider, err }, 'driver rejected the fencing token, retrying'),
  );
  return new Obedience({
    raiseAbove: (token) => elector.raiseAbove(token),
    // Written when the Lease is taken, also again after a suspension; renewals and raised tokens leave it as it is.
    leadership: () => elector.lease?.spec?.acquireTime,
    reported,
  });
}
