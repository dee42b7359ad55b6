import { parseGoFloat } from '../apis/go-number.ts';
import {
  parseFieldPath,
  type DownwardAPI,
  type DownwardFields,
  type FieldPath,
} from '../apis/ironcore/downward-api.ts';
import { type AutoscalerConfig, autoscalerFrom } from './autoscaler.ts';
import { defaultOf, type Flag, FLAGS, type Program } from './flags.ts';
import { leasesOf, refuseSplitLeases } from './lease-groups.ts';
import type { LogFormat } from '../log/logger.ts';
import { servesOwnKinds } from '../leader/names.ts';
import { FlagError, type FlagValue, parseValue } from './value.ts';

/** Names of the controllers that `--controllers` picks from. */
export const CONTROLLERS = [
  'machine-deployment',
  'machine-set',
  'safety.overshoot',
  'machine',
  'machine-class',
  'secret',
  'role-binding',
  'safety.orphan-vms',
  'safety.unmanaged-nodes',
  'mirantis',
  'cluster-api',
  'ironcore.scheduler',
  'ironcore.lifecycle',
  'ironcore.pools',
  'ironcore.machines',
] as const;

/** Those that run only where they are named. */
const ON_REQUEST: ReadonlySet<ControllerName> = new Set([
  'mirantis',
  'cluster-api',
  'ironcore.scheduler',
  'ironcore.lifecycle',
  'ironcore.pools',
  'ironcore.machines',
]);

/** Those that serve pools of IronCore. */
const SERVING: readonly ControllerName[] = ['ironcore.pools', 'ironcore.machines'];

/** What may be typed for several of them. */
const ALL_OF: Readonly<Record<string, readonly ControllerName[]>> = {
  ironcore: ['ironcore.scheduler', 'ironcore.lifecycle'],
};

export type ControllerName = (typeof CONTROLLERS)[number];

/** Everything the flags say; each part of the process receives its own section only. */
export interface Config {
  readonly program: Program;
  readonly clusters: {
    /** Path, '' (same as target) or `inClusterConfig`. */
    readonly controlKubeconfig: string;
    /** Path, '' (in-cluster, else default loading) or `none`. */
    readonly targetKubeconfig: string;
    readonly namespace: string;
  };
  readonly controllers: ReadonlySet<ControllerName>;
  /** Names of the Leases under which these work. */
  readonly leases: ReadonlySet<string>;
  /** Pools of IronCore that are served, each by its runtime. */
  readonly ironCorePools: readonly PoolAddress[];
  /** Only Machines of IronCore in these pools with this value of the label are looked after; empty: all. */
  readonly ironCoreWatchFilter: string;
  readonly ironCoreDownwardAPI: DownwardAPI;
  readonly drivers: readonly ProviderAddress[];
  readonly machine: {
    readonly creationTimeoutMs: number;
    readonly healthTimeoutMs: number;
    readonly drainTimeoutMs: number;
    readonly forcedDeletionTimeoutMs: number;
    readonly inPlaceUpdateTimeoutMs: number;
    readonly preserveTimeoutMs: number;
    readonly maxEvictRetries: number;
    readonly pvDetachTimeoutMs: number;
    readonly pvReattachTimeoutMs: number;
    /** Node condition types that make a machine unhealthy unless `False`. */
    readonly nodeConditions: readonly string[];
    readonly bootstrapTokenExtraGroups: string;
    readonly resourceExhaustedRetryMs: number;
    /** Share of a zone's machines beyond which their bad health is the zone's; see machines/zones.ts. */
    readonly zoneUnhealthyThreshold: number;
    readonly concurrency: number;
  };
  readonly sets: {
    readonly concurrency: number;
    readonly annotateForAutoscaler: boolean;
  };
  readonly safety: {
    readonly up: number;
    readonly down: number;
    readonly overshootingPeriodMs: number;
    readonly orphanVMsPeriodMs: number;
    readonly orphanVMsGraceMs: number;
    readonly orphanVMsDryRun: boolean;
    readonly statusCheckPeriodMs: number;
    readonly statusCheckTimeoutMs: number;
    readonly graceMs: number;
  };
  readonly leader: {
    readonly enabled: boolean;
    readonly leaseDurationMs: number;
    readonly renewDeadlineMs: number;
    readonly retryPeriodMs: number;
    /** Where the Leases are. */
    readonly namespace: string;
  };
  readonly server: {
    readonly address: string;
    readonly port: number;
    readonly statusPage: boolean;
    readonly profiling: boolean;
  };
  /** Undefined: no autoscaler is served. */
  readonly autoscaler: AutoscalerConfig | undefined;
  readonly api: { readonly qps: number; readonly burst: number };
  /** Only Machines and Clusters of Cluster API with this value of the label are looked after; empty: all. */
  readonly clusterAPIWatchFilter: string;
  /** Machines and Clusters of Cluster API are looked after in all namespaces, not only in that of ours. */
  readonly clusterAPIEverywhere: boolean;
  /** What Nodes are given of Machines of Cluster API beside what its domains say, by key. */
  readonly clusterAPISync: { readonly labels: readonly RegExp[]; readonly annotations: readonly RegExp[] };
  readonly verbosity: number;
  readonly logFormat: LogFormat;
}

export interface ProviderAddress {
  readonly provider: string;
  readonly address: string;
  /** Calls a second for each Secret with credentials; 0: no limit. */
  readonly qps: number;
}

/** A MachinePool of IronCore and where its runtime listens. */
export interface PoolAddress {
  readonly pool: string;
  readonly address: string;
  /** Of the MachinePool; undefined: it is created without. */
  readonly providerID?: string | undefined;
}

/** What was typed, by flag name; a repeated flag has several texts. */
export type TypedFlags = ReadonlyMap<string, readonly string[]>;

/** Those that a program runs: each of the original's is named for the Lease of its controllers. */
function controllersOf(program: Program): readonly ControllerName[] {
  const usual = CONTROLLERS.filter((name) => !ON_REQUEST.has(name));
  if (program === 'machinist run') return usual;
  return usual.filter((name) => leasesOf(new Set([name])).has(program));
}

const LEADER_ELECT = 'leader-elect';

/** `flag` without limits: what nobody looks at may have any value, as in the original. */
function unbounded({ min: _min, max: _max, oneOf: _oneOf, ...flag }: Flag): Flag {
  return flag;
}

/** Turns what was typed into one frozen Config. Throws FlagError for bad values and contradictions. */
export function configFrom(program: Program, typed: TypedFlags): Config {
  const values = new Map<string, FlagValue>();
  for (const flag of FLAGS) {
    const texts = typed.get(flag.name) ?? [defaultOf(flag, program)];
    const isIdle = flag.group === 'Leader election' && values.get(LEADER_ELECT) === false;
    values.set(
      flag.name,
      parseValue(isIdle ? unbounded(flag) : flag, flag.kind === 'list' ? texts.join(',') : (texts.at(-1) ?? '')),
    );
  }
  const read = reader(values);
  const { text, number, bool, list } = read;

  const ironCorePools =
    program === 'machinist run' ? poolsFrom(list('ironcore-pool'), list('ironcore-pool-provider-id')) : [];
  const controllers = controllersFrom(program, list('controllers'), ironCorePools);
  const leases = leasesOf(controllers);
  const config: Config = {
    program,
    clusters: clustersFrom(read, leases),
    controllers,
    leases,
    ironCorePools,
    ironCoreWatchFilter: text('ironcore-watch-filter'),
    ironCoreDownwardAPI: {
      machineLabels: fieldsIn(read, 'machine-downward-api-label'),
      machineAnnotations: fieldsIn(read, 'machine-downward-api-annotation'),
      volumeLabels: fieldsIn(read, 'volume-downward-api-label'),
      networkInterfaceLabels: fieldsIn(read, 'nic-downward-api-label'),
      networkLabels: fieldsIn(read, 'network-downward-api-label'),
    },
    drivers: driversFrom(list('driver'), list('driver-qps')),
    machine: machineFrom(program, read),
    sets: {
      concurrency: number(program === 'machinist run' ? 'machine-set-concurrent-syncs' : 'concurrent-syncs'),
      annotateForAutoscaler: bool('autoscaler-scaledown-annotation-during-rollout'),
    },
    safety: {
      up: number('safety-up'),
      down: Math.min(number('safety-down'), number('safety-up')),
      overshootingPeriodMs: number('machine-safety-overshooting-period'),
      orphanVMsPeriodMs: number('machine-safety-orphan-vms-period'),
      orphanVMsGraceMs: number('machine-safety-orphan-vms-grace'),
      orphanVMsDryRun: bool('machine-safety-orphan-vms-dry-run'),
      statusCheckPeriodMs: number('machine-safety-apiserver-statuscheck-period'),
      statusCheckTimeoutMs: number('machine-safety-apiserver-statuscheck-timeout'),
      graceMs: number('machine-safety-grace'),
    },
    leader: {
      enabled: bool(LEADER_ELECT),
      leaseDurationMs: number('leader-elect-lease-duration'),
      renewDeadlineMs: number('leader-elect-renew-deadline'),
      retryPeriodMs: number('leader-elect-retry-period'),
      namespace: text('leader-elect-resource-namespace') || text('namespace'),
    },
    server: {
      address: text('address'),
      port: number('port'),
      statusPage: bool('status-page'),
      profiling: bool('profiling'),
    },
    autoscaler: autoscalerOf(program, read, leases),
    api: { qps: number('kube-api-qps'), burst: number('kube-api-burst') },
    clusterAPIWatchFilter: text('cluster-api-watch-filter'),
    clusterAPIEverywhere: bool('cluster-api-all-namespaces'),
    clusterAPISync: {
      labels: patternsIn(read, 'additional-sync-machine-labels'),
      annotations: patternsIn(read, 'additional-sync-machine-annotations'),
    },
    verbosity: number('v'),
    logFormat: text('log-format') === 'text' ? 'text' : 'json',
  };
  refuseContradictions(config, (name) => shown(program, typed, name));
  return Object.freeze(config);
}

/** Regular expressions. Throws FlagError. */
function patternsIn({ list }: ValueReader, name: string): readonly RegExp[] {
  return list(name).map((pattern) => {
    try {
      return new RegExp(pattern, 'u');
    } catch (err) {
      throw new FlagError(`--${name}: ${pattern} is no regular expression: ${(err as Error).message}`);
    }
  });
}

/** That of labels is how machines of a pool are told from those of others. */
const RESERVED_FIELD = 'machinepool-uid';

/** Fields of objects that runtimes are told of, by name. Throws FlagError. */
function fieldsIn({ list }: ValueReader, flag: string): DownwardFields {
  const fields = new Map<string, FieldPath>();
  for (const item of list(flag)) {
    const [, name = '', path = ''] = /^([A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)=(.+)$/.exec(item) ?? [];
    const field = parseFieldPath(path);
    if (field === undefined) {
      throw new FlagError(
        `--${flag}: ${JSON.stringify(item)} is not valid: expected <name>=<field>, where the field is metadata.name, metadata.namespace, metadata.uid, metadata.labels['KEY'] or metadata.annotations['KEY']`,
      );
    }
    if (name === RESERVED_FIELD) throw new FlagError(`--${flag}: name "${name}" is reserved; choose another one`);
    if (fields.has(name)) throw new FlagError(`--${flag}: name "${name}" is listed twice`);
    fields.set(name, field);
  }
  return fields;
}

/** Where no kinds of ours are looked after there is no target cluster: what becomes a Node is not known here. */
function clustersFrom({ text }: ValueReader, leases: ReadonlySet<string>): Config['clusters'] {
  const controlKubeconfig = text('control-kubeconfig');
  const targetKubeconfig = text('target-kubeconfig');
  const namespace = text('namespace');
  if (targetKubeconfig === 'none' && controlKubeconfig === '') {
    throw new FlagError(
      '--control-kubeconfig is required when --target-kubeconfig is none, because there is no target cluster to use instead',
    );
  }
  return servesOwnKinds(leases)
    ? { controlKubeconfig, targetKubeconfig, namespace }
    : { controlKubeconfig: controlKubeconfig || targetKubeconfig, targetKubeconfig: 'none', namespace };
}

/** The flags have no effect where no MachineDeployments are looked after. */
function autoscalerOf(program: Program, read: ValueReader, leases: ReadonlySet<string>): Config['autoscaler'] {
  if (program === 'machine-controller') return undefined;
  const hasTarget = read.text('target-kubeconfig') !== 'none';
  return autoscalerFrom(read, { namespace: read.text('namespace'), leases, hasTarget });
}

interface ValueReader {
  readonly text: (name: string) => string;
  readonly number: (name: string) => number;
  readonly bool: (name: string) => boolean;
  readonly list: (name: string) => readonly string[];
}

function reader(values: ReadonlyMap<string, FlagValue>): ValueReader {
  return {
    text: (name) => String(values.get(name)),
    number: (name) => Number(values.get(name)),
    bool: (name) => values.get(name) === true,
    list: (name) => {
      const value = values.get(name);
      return Array.isArray(value) ? value : [];
    },
  };
}

function machineFrom(program: Program, { text, number, list }: ValueReader): Config['machine'] {
  return {
    creationTimeoutMs: number('machine-creation-timeout'),
    healthTimeoutMs: number('machine-health-timeout'),
    drainTimeoutMs: number('machine-drain-timeout'),
    forcedDeletionTimeoutMs: number('forced-deletion-timeout'),
    inPlaceUpdateTimeoutMs: number('machine-inplace-update-timeout'),
    preserveTimeoutMs: number('machine-preserve-timeout'),
    maxEvictRetries: number('machine-max-evict-retries'),
    pvDetachTimeoutMs: number('machine-pv-detach-timeout'),
    pvReattachTimeoutMs: number('machine-pv-reattach-timeout'),
    nodeConditions: list('node-conditions'),
    bootstrapTokenExtraGroups: text('bootstrap-token-auth-extra-groups'),
    // 0 means the default, as in the original.
    resourceExhaustedRetryMs: number('resource-exhausted-retry') || 600_000,
    zoneUnhealthyThreshold: number('zone-unhealthy-threshold'),
    concurrency: number(program === 'machinist run' ? 'machine-concurrent-syncs' : 'concurrent-syncs'),
  };
}

/** Pools are served wherever there are any. */
function controllersFrom(
  program: Program,
  typed: readonly string[],
  pools: readonly PoolAddress[],
): ReadonlySet<ControllerName> {
  const served = pools.length === 0 ? [] : SERVING;
  const names = [
    ...new Set<string>([...typed.flatMap((name): readonly string[] => ALL_OF[name] ?? [name]), ...served]),
  ];
  const idle = SERVING.find((name) => names.includes(name));
  if (idle !== undefined && pools.length === 0) {
    throw new FlagError(`--controllers: "${idle}" requires --ironcore-pool, because there is no pool to serve`);
  }
  const requested = CONTROLLERS.filter((name) => ON_REQUEST.has(name) && names.includes(name));
  if (names.includes('*')) {
    if (names.length === requested.length + 1) return new Set([...controllersOf(program), ...requested]);
    throw new FlagError(
      `--controllers: ${JSON.stringify(typed.join(','))} is not valid: "*" can be combined only with ${[...ON_REQUEST, ...Object.keys(ALL_OF)].join(', ')}`,
    );
  }
  const unknown = names.find((name) => !CONTROLLERS.some((known) => known === name));
  if (unknown !== undefined || typed.length === 0) {
    throw new FlagError(
      `--controllers: ${JSON.stringify(unknown ?? '')} is not valid: expected "*" or a comma-separated list of ${[...CONTROLLERS, ...Object.keys(ALL_OF)].join(', ')}`,
    );
  }
  return new Set(CONTROLLERS.filter((known) => names.includes(known)));
}

function poolsFrom(items: readonly string[], providerIDs: readonly string[]): PoolAddress[] {
  const pools = addressesFrom('--ironcore-pool', 'name', items);
  refuseTwice('--ironcore-pool: pool', 'pool', pools);
  const ids = new Map<string, string>();
  for (const item of providerIDs) {
    const [, name = '', id = ''] = /^([^=]+)=(.+)$/.exec(item) ?? [];
    if (id === '' || ids.has(name) || pools.every((pool) => pool.name !== name)) {
      throw new FlagError(
        `--ironcore-pool-provider-id: ${JSON.stringify(item)} is not valid: expected <name>=<ID>, once for each pool, with the name of a pool of --ironcore-pool`,
      );
    }
    ids.set(name, id);
  }
  return pools.map(({ name, address }) => ({ pool: name, address, providerID: ids.get(name) }));
}

function driversFrom(items: readonly string[], rates: readonly string[]): ProviderAddress[] {
  const drivers = addressesFrom('--driver', 'provider', items);
  const qps = ratesFrom(
    rates,
    drivers.map(({ name }) => name),
  );
  refuseTwice('--driver: provider', 'provider', drivers);
  return drivers.map(({ name, address }) => ({ provider: name, address, qps: qps.get(name) ?? 0 }));
}

/** Where somebody is reached, as a flag says it. */
interface NamedAddress {
  readonly name: string;
  readonly address: string;
}

function addressesFrom(flag: string, placeholder: string, items: readonly string[]): NamedAddress[] {
  return items.map((item) => {
    const [, name, address] = /^([^=]+)=((?:unix|dns):\/\/\/.+)$/.exec(item) ?? [];
    if (name === undefined || address === undefined) {
      throw new FlagError(
        `${flag}: ${JSON.stringify(item)} is not valid: expected <${placeholder}>=<address>, where the address begins with unix:/// or dns:///`,
      );
    }
    return { name, address };
  });
}

function refuseTwice(what: string, noun: string, all: readonly NamedAddress[]): void {
  const twice = all.find((one, i) => all.findIndex((other) => other.name === one.name) < i);
  if (twice === undefined) return;
  throw new FlagError(`${what} ${JSON.stringify(twice.name)} is listed twice; give each ${noun} one address`);
}

/** Calls a second, by provider. */
function ratesFrom(items: readonly string[], providers: readonly string[]): ReadonlyMap<string, number> {
  const rates = new Map<string, number>();
  for (const item of items) {
    const [, provider = '', text = ''] = /^([^=]+)=(.+)$/.exec(item) ?? [];
    const qps = parseGoFloat(text);
    if (qps === undefined || !Number.isFinite(qps) || qps <= 0) {
      throw new FlagError(
        `--driver-qps: ${JSON.stringify(item)} is not valid: expected <provider>=<number>, where the number is greater than 0`,
      );
    }
    if (!providers.includes(provider)) {
      throw new FlagError(`--driver-qps: provider ${JSON.stringify(provider)} has no driver; add it to --driver`);
    }
    if (rates.has(provider)) {
      throw new FlagError(
        `--driver-qps: provider ${JSON.stringify(provider)} is listed twice; give each provider one rate`,
      );
    }
    rates.set(provider, qps);
  }
  return rates;
}

/** A flag with its value, as it would be typed. */
function shown(program: Program, typed: TypedFlags, name: string): string {
  const text = typed.get(name)?.at(-1);
  if (text !== undefined) return `--${name}=${text}`;
  const flag = FLAGS.find((candidate) => candidate.name === name);
  return flag === undefined ? `--${name}` : `--${name}=${defaultOf(flag, program)} (default)`;
}

function refuseContradictions({ controllers, leader, safety }: Config, flag: (name: string) => string): void {
  if (leader.enabled) refuseSplitLeases(controllers);
  if (leader.enabled) refuseImpossibleLease(leader, flag);
  if (safety.statusCheckPeriodMs < safety.statusCheckTimeoutMs) {
    throw new FlagError(
      `${flag('machine-safety-apiserver-statuscheck-period')} must not be shorter than ${flag('machine-safety-apiserver-statuscheck-timeout')}`,
    );
  }
}

function refuseImpossibleLease(leader: Config['leader'], flag: (name: string) => string): void {
  const deadline = flag('leader-elect-renew-deadline');
  if (leader.leaseDurationMs <= leader.renewDeadlineMs) {
    throw new FlagError(
      `${flag('leader-elect-lease-duration')} must be longer than ${deadline}, otherwise two leaders could act at once`,
    );
  }
  if (leader.renewDeadlineMs <= 1.2 * leader.retryPeriodMs) {
    throw new FlagError(
      `${deadline} must be longer than 1.2 times ${flag('leader-elect-retry-period')}, otherwise a single late response ends leadership`,
    );
  }
}
