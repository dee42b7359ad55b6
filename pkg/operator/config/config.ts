import { parseGoFloat } from '../../apis/go-number.ts';
import { type AutoscalerConfig, autoscalerFrom } from './autoscaler.ts';
import { type CellsConfig, cellsFrom, hasOneTarget, namesCells, requireNamespace } from './cells.ts';
import { controllersFrom, OWN_CONTROLLERS } from './controllers.ts';
import type { FlagSection, SettingsOf } from './flag-section.ts';
import { defaultOf, type Flag, type Program } from './flag.ts';
import { flagsOf, OWN_FLAGS } from './flags.ts';
import { leasesOf, refuseSplitLeases } from './lease-groups.ts';
import type { LogFormat } from '../../base/log/logger.ts';
import { MACHINE_LEASE, servesOwnKinds } from '../../kube/leader/names.ts';
import { addressesFrom, refuseTwice } from './named-addresses.ts';
import { FlagError } from './flag-error.ts';
import { readerOf, type TypedFlags, type ValueReader, valuesOf } from './value-reader.ts';

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
  /** Undefined: the process looks after the namespace of the flags. */
  readonly cells: CellsConfig | undefined;
  readonly controllers: ReadonlySet<string>;
  /** Names of the Leases under which these work. */
  readonly leases: ReadonlySet<string>;
  /** What the flags of another API say. Throws when the command line has none of it. */
  readonly of: SettingsOf;
  /** None where no Machines are looked after: the flags may be meant for the other program of a pod. */
  readonly drivers: readonly ProviderAddress[];
  readonly machine: Readonly<ReturnType<typeof machineFrom>>;
  readonly sets: {
    readonly concurrency: number;
    readonly annotateForAutoscaler: boolean;
  };
  readonly safety: Readonly<ReturnType<typeof safetyFrom>>;
  readonly leader: {
    readonly enabled: boolean;
    readonly leaseDurationMs: number;
    readonly renewDeadlineMs: number;
    readonly retryPeriodMs: number;
    /** Undefined: each retry period. */
    readonly renewPeriodMs?: number | undefined;
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
  readonly verbosity: number;
  readonly logFormat: LogFormat;
}

export interface ProviderAddress {
  readonly provider: string;
  readonly address: string;
  /** Calls a second for each Secret with credentials; 0: no limit. */
  readonly qps: number;
}

const LEADER_ELECT = 'leader-elect';
/** Renewals of the Lease of a shard within the renew deadline. */
const RENEWALS = 3;

/** `flag` without limits: what nobody looks at may have any value, as in the original. */
function unbounded({ max: _max, oneOf: _oneOf, ...flag }: Flag): Flag {
  return { ...flag, min: -Infinity };
}

/** Turns what was typed into one frozen Config. Throws FlagError for bad values and contradictions. */
export function configFrom(
  program: Program,
  typed: TypedFlags,
  sections: readonly FlagSection[],
  of: 'process' | 'cell' = 'process',
): Config {
  const elects = readerOf(
    valuesOf(
      OWN_FLAGS.filter(({ name }) => name === LEADER_ELECT),
      program,
      typed,
    ),
  ).bool(LEADER_ELECT);
  const flags = OWN_FLAGS.map((flag) => (flag.group === 'Leader election' && !elects ? unbounded(flag) : flag));
  const read = readerOf(valuesOf(flags, program, typed));
  const { text, number, bool, list } = read;

  const settings = settingsIn(sections, program, typed);
  const also = (named: readonly string[]): readonly string[] =>
    sections.flatMap((section) => section.alsoRuns?.(settings(section), named) ?? []);
  const controllers = controllersFrom(program, { typed: list('controllers'), also }, sections);
  const leases = leasesOf(controllers, sections);
  const config: Config = {
    program,
    clusters: clustersFrom(read, leases),
    cells: cellsFrom(read, (instead) => configFrom(program, new Map([...typed, ...instead]), sections, 'cell')),
    controllers,
    leases,
    of: settings,
    drivers: leases.has(MACHINE_LEASE) ? driversFrom(list('driver'), list('driver-qps')) : [],
    machine: machineFrom(program, read),
    sets: {
      concurrency: number(program === 'machinist run' ? 'machine-set-concurrent-syncs' : 'concurrent-syncs'),
      annotateForAutoscaler: bool('autoscaler-scaledown-annotation-during-rollout'),
    },
    safety: safetyFrom(read),
    leader: leaderFrom(read),
    server: {
      address: text('address'),
      port: number('port'),
      statusPage: bool('status-page'),
      profiling: bool('profiling'),
    },
    autoscaler: autoscalerOf(program, read, { leases, of }),
    api: { qps: number('kube-api-qps'), burst: number('kube-api-burst') },
    verbosity: number('v'),
    logFormat: text('log-format') === 'text' ? 'text' : 'json',
  };
  if (of === 'process') refuseNoNamespace(config);
  refuseContradictions(config, sections, (name) => shown(program, typed, name));
  return Object.freeze(config);
}

/** Leases of shards are many: three renewals fit in the time within which one must succeed, as those of a single leader do with room to spare. */
function leaderFrom({ text, number, bool, list }: ValueReader): Config['leader'] {
  const [renewDeadlineMs, retryPeriodMs] = [number('leader-elect-renew-deadline'), number('leader-elect-retry-period')];
  const hasCells = namesCells({ text, list });
  return {
    enabled: bool(LEADER_ELECT),
    leaseDurationMs: number('leader-elect-lease-duration'),
    renewDeadlineMs,
    retryPeriodMs,
    renewPeriodMs: hasCells ? Math.max(retryPeriodMs, renewDeadlineMs / RENEWALS) : undefined,
    namespace: text('leader-elect-resource-namespace') || text('namespace'),
  };
}

/** Only `machinist run` has flags of other APIs. */
function settingsIn(sections: readonly FlagSection[], program: Program, typed: TypedFlags): SettingsOf {
  const given: TypedFlags = program === 'machinist run' ? typed : new Map();
  const settings = new Map<FlagSection, unknown>(
    sections.map((section) => [section, section.settings(readerOf(valuesOf(flagsOf(section), program, given)))]),
  );
  return <Settings>(section: FlagSection<Settings>): Settings => {
    if (!settings.has(section)) throw new Error(`flags of ${section.heading} are not on this command line`);
    return settings.get(section) as Settings;
  };
}

/**
 * Where no kinds of ours are looked after there is no target cluster: what becomes a Node is not known here. Nor is there one of the process
 * where each cell has its own. Throws FlagError.
 */
function clustersFrom({ text, list }: ValueReader, leases: ReadonlySet<string>): Config['clusters'] {
  const controlKubeconfig = text('control-kubeconfig');
  const targetKubeconfig = text('target-kubeconfig');
  const namespace = text('namespace');
  if (targetKubeconfig === 'none' && controlKubeconfig === '') {
    throw new FlagError(
      '--control-kubeconfig is required when --target-kubeconfig is none, because there is no target cluster to use instead',
    );
  }
  const hasCells = namesCells({ text, list });
  const hasTarget = !hasCells || hasOneTarget({ text, list });
  return servesOwnKinds(leases) && hasTarget
    ? { controlKubeconfig, targetKubeconfig, namespace }
    : { controlKubeconfig: controlKubeconfig || targetKubeconfig, targetKubeconfig: 'none', namespace };
}

/** The flags have no effect where no MachineDeployments are looked after. */
function autoscalerOf(
  program: Program,
  read: ValueReader,
  { leases, of }: { readonly leases: ReadonlySet<string>; readonly of: 'process' | 'cell' },
): Config['autoscaler'] {
  if (program === 'machine-controller') return undefined;
  refuseAutoscalerBesideCells(read);
  const hasTarget = read.text('target-kubeconfig') !== 'none';
  const ofProcess = read.text('cells') === '' ? 'none' : 'all';
  return autoscalerFrom(read, {
    namespace: read.text('namespace'),
    leases,
    hasTarget,
    cells: of === 'cell' ? 'one' : ofProcess,
  });
}

/** First of all: what else it would need would be for nothing. Throws FlagError. */
function refuseAutoscalerBesideCells({ text, list }: ValueReader): void {
  const address = text('autoscaler-grpc-address');
  if (address === '') return;
  const names = list('cell-namespaces');
  if (names.length > 0) {
    throw new FlagError(
      `--autoscaler-grpc-address=${address} is not supported with --cell-namespaces=${names.join(',')}; select the namespaces with --cells`,
    );
  }
  if (hasOneTarget({ text, list })) {
    throw new FlagError(
      `--autoscaler-grpc-address=${address} is not supported with --cells=${text('cells')} and --target-kubeconfig=${text('target-kubeconfig')}: several autoscalers of one cluster would each add Nodes for the same pods`,
    );
  }
}

function safetyFrom({ number, bool }: ValueReader) {
  return {
    up: number('safety-up'),
    down: Math.min(number('safety-down'), number('safety-up')),
    overshootingPeriodMs: number('machine-safety-overshooting-period'),
    orphanVMsPeriodMs: number('machine-safety-orphan-vms-period'),
    orphanVMsGraceMs: number('machine-safety-orphan-vms-grace'),
    orphanVMsDryRun: bool('machine-safety-orphan-vms-dry-run'),
    statusCheckPeriodMs: number('machine-safety-apiserver-statuscheck-period'),
    statusCheckTimeoutMs: number('machine-safety-apiserver-statuscheck-timeout'),
    graceMs: number('machine-safety-grace'),
  };
}

function machineFrom(program: Program, { text, number, list }: ValueReader) {
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
    /** Types of Node conditions that make a machine unhealthy unless `False`. */
    nodeConditions: list('node-conditions'),
    bootstrapTokenExtraGroups: text('bootstrap-token-auth-extra-groups'),
    // 0 means the default, as in the original.
    resourceExhaustedRetryMs: number('resource-exhausted-retry') || 600_000,
    /** Share of a zone's machines beyond which their bad health is the zone's; see machine-facts/zones.ts. */
    zoneUnhealthyThreshold: number('zone-unhealthy-threshold'),
    concurrency: number(program === 'machinist run' ? 'machine-concurrent-syncs' : 'concurrent-syncs'),
  };
}

function driversFrom(items: readonly string[], rates: readonly string[]): ProviderAddress[] {
  const drivers = addressesFrom('driver', 'provider', items);
  const qps = ratesFrom(
    rates,
    drivers.map(({ name }) => name),
  );
  refuseTwice('driver', 'provider', drivers);
  return drivers.map(({ name, address }) => ({ provider: name, address, qps: qps.get(name) ?? 0 }));
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
  const flag = OWN_FLAGS.find((candidate) => candidate.name === name);
  return flag === undefined ? `--${name}` : `--${name}=${defaultOf(flag, program)} (default)`;
}

/** An empty one would be all namespaces, with one target cluster: a variable that is not set would be enough for that. Throws FlagError. */
function refuseNoNamespace({ clusters, leader }: Config): void {
  requireNamespace('namespace', clusters.namespace);
  if (leader.enabled) requireNamespace('leader-elect-resource-namespace', leader.namespace);
}

function refuseContradictions(config: Config, sections: readonly FlagSection[], flag: (name: string) => string): void {
  const { cells, controllers, leader, safety } = config;
  if (cells !== undefined) refuseBesideCells(flag, { ...config, cells }, sections);
  if (leader.enabled) refuseSplitLeases(controllers, sections);
  if (leader.enabled) refuseImpossibleLease(leader, flag);
  if (safety.statusCheckPeriodMs < safety.statusCheckTimeoutMs) {
    throw new FlagError(
      `${flag('machine-safety-apiserver-statuscheck-period')} must not be shorter than ${flag('machine-safety-apiserver-statuscheck-timeout')}`,
    );
  }
}

/** What a process with cells does not do yet for each of them. */
function refuseBesideCells(
  flag: (name: string) => string,
  { controllers, server, cells, of }: Config & { readonly cells: CellsConfig },
  sections: readonly FlagSection[],
): void {
  const [other] = sections.flatMap((section) => section.notInCells?.(of(section), controllers) ?? []);
  if (other !== undefined) throw new FlagError(other);
  const named = flag(cells.names === undefined ? 'cells' : 'cell-namespaces');
  const also = [...controllers].find((name) => !OWN_CONTROLLERS.includes(name));
  if (cells.names !== undefined && also !== undefined) {
    throw new FlagError(`--controllers: ${also} is not supported with ${named}; select the namespaces with --cells`);
  }
  const { kubeconfigSecret, tokenSecret } = cells;
  if (cells.hasOneTarget) {
    const target = flag('target-kubeconfig');
    if (also !== undefined) {
      throw new FlagError(
        `--controllers: ${also} is not supported with ${named} and ${target}; set --cell-kubeconfig-secret, or --target-kubeconfig=none`,
      );
    }
  } else if (kubeconfigSecret === '' && flag('target-kubeconfig') !== '--target-kubeconfig=none') {
    throw new FlagError(
      `${named} needs --cell-kubeconfig-secret, the name of a Secret in each namespace; set --target-kubeconfig=none if there are no target clusters, or --control-kubeconfig and --target-kubeconfig if all share one`,
    );
  }
  if (tokenSecret !== '' && kubeconfigSecret === '') {
    throw new FlagError(`${flag('cell-token-secret')} has no effect without --cell-kubeconfig-secret; set both`);
  }
  if (server.statusPage) throw new FlagError(`${flag('status-page')} is not supported with ${named}`);
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
