import { GROUP, VERSION } from '../../../pkg/apis/machine/v1alpha1/group.ts';
import type { MachineClass } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Lease } from '../../../pkg/apis/wire.ts';
import { fromTimestamp } from '../../../pkg/base/clock/clock.ts';
import type { PoolAddress } from '../../../pkg/worlds/ironcore/controllers/flags.ts';
import type { RuntimeClass, RuntimeVersion } from '../../../pkg/worlds/ironcore/runtime/runtime.ts';
import type { Capabilities } from '../../../pkg/driver/driver.ts';
import { secretIndex } from '../../../pkg/operator/indexes/secret-references.ts';
import type { NeededField } from '../../../pkg/operator/preflight/known-fields.ts';
import { definitionFile } from '../../../pkg/operator/preflight/definitions.ts';
import { missingByFile } from '../../../pkg/operator/preflight/missing-grants.ts';
import type { Permission } from '../../../pkg/operator/preflight/permissions.ts';
import type { NeededKind } from '../../../pkg/operator/world.ts';
import { MIN_MACHINES } from '../../../pkg/controllers/machine-facts/nodes-in-target.ts';
import { WORLDS } from '../../../pkg/worlds/served.ts';
import { versionsOf } from '../../../pkg/kube/client/resource.ts';
import { humanDuration } from '../../../pkg/fleet/human-duration.ts';

/** One thing that was looked at. `fail`: a process could not start, or not do its work; `warn`: a part of it. */
export interface Finding {
  readonly check:
    | 'cluster'
    | 'namespace'
    | 'clock'
    | 'kinds'
    | 'fields'
    | 'permissions'
    | 'leases'
    | 'drivers'
    | 'runtimes'
    | 'classes'
    | 'cells';
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly remedy?: string;
  /** The namespace, of what was looked at for one cell. */
  readonly cell?: string;
}

/** What was asked, or why it could not be found out. */
export type QueryResult<T> = { readonly value: T } | { readonly error: string };

const ENDING =
  'save its objects before you start a process, which would delete the VMs of Machines that are being deleted';

export function clusterFinding(cluster: string, server: string, version: QueryResult<string>): Finding {
  if ('value' in version) {
    return { check: 'cluster', status: 'ok', detail: `${cluster}: ${server}, Kubernetes ${version.value}` };
  }
  return {
    check: 'cluster',
    status: 'fail',
    detail: `${cluster}: request to ${server} failed: ${version.error}`,
    remedy: `check --${cluster}-kubeconfig, its credentials and the network${version.error.includes('impersonate') ? ', and the permission to impersonate' : ''}`,
  };
}

/** Of so many Machines none of whose Nodes is in the target; as a process that replaces none of them. Of a single one it may have been lost. */
export function missingNodesFinding(namespace: string, count: number): Finding | undefined {
  if (count < MIN_MACHINES) return undefined;
  return {
    check: 'cluster',
    status: 'fail',
    detail: `target: none of the Nodes of the ${count} Machines of namespace ${namespace} is in this cluster; they would become Unknown, and would not be drained before their deletion`,
    remedy:
      'correct --target-kubeconfig; or, if the Nodes are lost, delete one of the Machines, so that the others are replaced',
  };
}

/** Of `--namespace`. */
const DEFAULT_NAMESPACE = 'default';

/**
 * Whether the namespace of the Machines is there. Whoever may not read it is told nothing: roles of a namespace that does not exist grant
 * nothing, and that is told of permissions.
 */
export function namespaceFindings(name: string, found: QueryResult<KubeObject | undefined | 'refused'>): Finding[] {
  const check = 'namespace';
  if ('error' in found) {
    const detail = `${name}: cannot be read: ${found.error}`;
    return [{ check, status: 'warn', detail, remedy: `check with: kubectl get namespace ${name}` }];
  }
  if (found.value === 'refused') return [];
  if (found.value === undefined) {
    const remedy = `correct --namespace, or run: kubectl create namespace ${name}`;
    return [{ check, status: 'fail', detail: `${name} does not exist`, remedy }];
  }
  if (found.value.metadata.deletionTimestamp === undefined) return [{ check, status: 'ok', detail: `${name} exists` }];
  return [
    {
      check,
      status: 'fail',
      detail: `${name} is being deleted with everything in it; nothing can be created there`,
      remedy: ENDING,
    },
  ];
}

/**
 * Whether another namespace is looked at than the kubeconfig means. As in `run`, its context does not count, and without `--namespace` it is
 * that of the original: whoever forgets the flag is told of permissions that are missing in a namespace that nobody has thought of.
 */
export function contextFindings(name: string, ofContext: string | undefined): Finding[] {
  if (name !== DEFAULT_NAMESPACE || ofContext === undefined || ofContext === '' || ofContext === name) return [];
  const detail = `checking namespace ${name}, although the context of the kubeconfig sets ${ofContext}; "machinist run" ignores it, too`;
  const remedy = `set --namespace=${ofContext} here and for "machinist run", unless the Machines are in ${name}`;
  return [{ check: 'namespace', status: 'warn', detail, remedy }];
}

/** An answer of the API server, by our own wall clock; its own time has whole seconds. */
export interface ServerTimeSample {
  readonly serverMs: number;
  readonly sentMs: number;
  readonly receivedMs: number;
}

const TOLERATED_SKEW_MS = 5_000;

/** How far our clock is from the API server's, as far as one answer proves; positive: ours is behind. */
export function skewMsOf({ serverMs, sentMs, receivedMs }: ServerTimeSample): number {
  const lowMs = serverMs - receivedMs;
  const highMs = serverMs + 1_000 - sentMs;
  return lowMs > 0 ? lowMs : Math.min(highMs, 0);
}

/** The clock of this host, which is that of the process only where it would run. */
export function clockFinding(skewMs: number): Finding {
  const apart = `${(Math.abs(skewMs) / 1_000).toFixed(1)} s`;
  if (Math.abs(skewMs) <= TOLERATED_SKEW_MS) {
    return {
      check: 'clock',
      status: 'ok',
      detail: `the clocks of this host and the API server differ by less than ${Math.ceil((Math.abs(skewMs) + 1) / 1_000)} s`,
    };
  }
  return {
    check: 'clock',
    status: 'warn',
    detail: `the clock of this host is ${apart} ${skewMs > 0 ? 'behind' : 'ahead of'} the API server's`,
    remedy:
      'synchronize the clocks with NTP; a process uses the clock of the control cluster, but certificates and logs do not',
  };
}

const OUR_KINDS = ['machines', 'machinesets', 'machinedeployments', 'machineclasses'];
/** Nothing needs it. */
const POLICIES = 'nodelabelpolicies';

/** What an API server says of a group. */
export interface ServedKinds {
  /** What can be done with each, by its plural name. */
  readonly verbs: ReadonlyMap<string, readonly string[]>;
  readonly versions: readonly string[];
  /** Of the kind that was asked about, as far as it is understood. */
  readonly version?: string;
}

/** Which of our kinds are served, and in which other versions; `limitsLabels`: policies of Node labels are looked at. */
export function kindFindings(served: QueryResult<ServedKinds>, limitsLabels: boolean): Finding[] {
  if ('error' in served) {
    return [
      {
        check: 'kinds',
        status: 'fail',
        detail: `cannot be determined: ${served.error}`,
        remedy: 'kubectl apply --server-side -f crds/',
      },
    ];
  }
  const { verbs, versions } = served.value;
  const missing = OUR_KINDS.filter((plural) => !verbs.has(plural));
  // Of a definition that is being deleted everything is served but what would add to it.
  const ending = [...OUR_KINDS, POLICIES].filter((plural) => verbs.get(plural)?.includes('create') === false);
  const others = versions.filter((version) => version !== VERSION);
  return [
    ...missing.map((plural): Finding => ({
      check: 'kinds',
      status: 'fail',
      detail: `${plural}.${GROUP}/${VERSION} is not served`,
      remedy: `kubectl apply --server-side -f crds/machine.sapcloud.io_${plural}.yaml`,
    })),
    ...ending.map((plural): Finding => ({
      check: 'kinds',
      status: 'fail',
      detail: `${plural}.${GROUP} is being deleted with all its objects`,
      remedy: ENDING,
    })),
    ...(limitsLabels && !verbs.has(POLICIES)
      ? [
          {
            check: 'kinds',
            status: 'warn',
            detail: `${POLICIES}.${GROUP}/${VERSION} is not served: node templates may set any label`,
            remedy: `kubectl apply --server-side -f crds/machine.sapcloud.io_${POLICIES}.yaml`,
          } as const,
        ]
      : []),
    ...others.map((version): Finding => ({
      check: 'kinds',
      status: 'warn',
      detail: `${GROUP}/${version} is also served, but not used`,
      remedy: 'do not store objects in that version',
    })),
    ...(missing.length + ending.length === 0
      ? [{ check: 'kinds', status: 'ok', detail: `${OUR_KINDS.join(', ')} of ${GROUP}/${VERSION} are served` } as const]
      : []),
  ];
}

/** The kinds of other APIs that controllers need, each once. */
export function foreignKindsOf(controllers: ReadonlySet<string>): readonly NeededKind[] {
  const needed = WORLDS.flatMap(({ needs }) => needs).filter(({ controller }) => controllers.has(controller));
  return needed.filter(({ resource }, i) => needed.findIndex((other) => other.resource === resource) === i);
}

/** Whether such a kind is served; `verbs`: what can be done with the kinds of its group, by plural name. */
export function foreignKindFinding(
  { controller, resource, lost }: NeededKind,
  served: QueryResult<ServedKinds>,
): Finding {
  const check = 'kinds';
  const name = `${resource.plural}.${resource.group}/${versionsOf(resource)}`;
  const file = definitionFile(resource) ?? '';
  const remedy = `kubectl apply --server-side -f ${file}, or remove ${controller} from --controllers`;
  if ('error' in served) {
    return { check, status: 'fail', detail: `${name}: cannot be determined: ${served.error}`, remedy };
  }
  const verbs = served.value.verbs.get(resource.plural);
  if (verbs === undefined) {
    const without = lost === undefined ? '' : ` (without: ${lost})`;
    return { check, status: lost === undefined ? 'fail' : 'warn', detail: `${name} is not served${without}`, remedy };
  }
  if (verbs.includes('create')) {
    const { version = resource.version } = served.value;
    return { check, status: 'ok', detail: `${resource.plural}.${resource.group}/${version} is served` };
  }
  return {
    check,
    status: 'fail',
    detail: `${name} is being deleted with all its objects`,
    remedy: ENDING,
  };
}

/** Fields that the definitions of the cluster drop. */
export function fieldFindings(unknown: QueryResult<readonly NeededField[]>): Finding[] {
  if ('error' in unknown) {
    return [
      {
        check: 'fields',
        status: 'warn',
        detail: `cannot be determined: ${unknown.error}`,
        remedy: 'allow reading /openapi/v3 (ClusterRole system:discovery)',
      },
    ];
  }
  if (unknown.value.length === 0) return [{ check: 'fields', status: 'ok', detail: 'all required fields are stored' }];
  return unknown.value.map(({ kind, plural, path, lost }) => ({
    check: 'fields',
    status: 'warn',
    detail: `${path} of ${kind} is not stored: ${lost}`,
    remedy: `kubectl apply --server-side -f crds/machine.sapcloud.io_${plural}.yaml`,
  }));
}

/** What `user` is not allowed; undefined: whoever asks. */
export function permissionFindings(
  cluster: string,
  user: string | undefined,
  missing: QueryResult<readonly Permission[]>,
): Finding[] {
  const who = user ?? 'the user of the kubeconfig';
  if ('error' in missing) {
    const remedy =
      user === undefined
        ? 'allow creating selfsubjectaccessreviews.authorization.k8s.io (ClusterRole system:basic-user)'
        : `use a kubeconfig whose user may impersonate ${user}`;
    return [
      { check: 'permissions', status: 'fail', detail: `${cluster}: cannot be determined: ${missing.error}`, remedy },
    ];
  }
  if (missing.value.length === 0)
    return [{ check: 'permissions', status: 'ok', detail: `${cluster}: ${who} has all required permissions` }];
  return missingByFile(missing.value).map(({ files, what, lost }) => ({
    check: 'permissions',
    status: lost.length === 0 ? 'fail' : 'warn',
    detail: `${cluster}: ${who} may not ${what.join('; ')}${lost.length === 0 ? '' : ` (without: ${lost.join('; ')})`}`,
    remedy: `kubectl apply ${files.map((file) => `-f ${file}`).join(' ')}, after adapting the namespace and the subjects`,
  }));
}

/** Who holds a Lease; that nobody does is as good, before the first start. */
export function leaseFinding(name: string, found: QueryResult<Lease | undefined>, nowMs: number): Finding {
  if ('error' in found) {
    return {
      check: 'leases',
      status: 'warn',
      detail: `${name}: cannot be read: ${found.error}`,
      remedy: 'see permissions',
    };
  }
  const { holderIdentity = '', renewTime, leaseDurationSeconds = 0 } = found.value?.spec ?? {};
  if (holderIdentity === '') return { check: 'leases', status: 'ok', detail: `${name}: not held` };
  const agoMs = nowMs - (fromTimestamp(renewTime) ?? nowMs);
  const held = `${name}: held by ${holderIdentity}, renewed ${humanDuration(Math.max(0, agoMs))} ago`;
  if (agoMs <= leaseDurationSeconds * 1_000 + TOLERATED_SKEW_MS) return { check: 'leases', status: 'ok', detail: held };
  return {
    check: 'leases',
    status: 'warn',
    detail: `${held}, which exceeds its duration (${leaseDurationSeconds} s); there is no leader`,
    remedy: 'check why its holder ended; the next process that starts acquires it',
  };
}

/** Of Leases in the namespace of the Machines, where those of the process are in another one. */
export function otherManagerFindings(namespace: string, renewed: readonly Lease[]): Finding[] {
  return renewed.map(({ metadata: { name }, spec }) => ({
    check: 'leases',
    status: 'fail',
    detail: `another manager is running in namespace ${namespace}: Lease ${name} there is held by ${spec?.holderIdentity ?? ''}, and renewed`,
    remedy: 'stop it; a process waits until it has ended',
  }));
}

/** Whether the driver of a provider can be used. */
export function driverFinding(provider: string, address: string, found: QueryResult<Capabilities>): Finding {
  if ('error' in found) {
    return {
      check: 'drivers',
      status: 'fail',
      detail: found.error,
      remedy: `start the driver at ${address}; a driver beside the manager can be reached only from there, so omit --driver elsewhere`,
    };
  }
  const { name, contractVersion, methods } = found.value;
  return {
    check: 'drivers',
    status: 'ok',
    detail: `${provider}: ${name}, contract ${contractVersion}, ${[...methods].join(', ')}`,
  };
}

/** Whether the runtime of a pool of IronCore can be used. */
export function runtimeFinding(
  { pool, address }: PoolAddress,
  found: QueryResult<{ readonly version: RuntimeVersion; readonly classes: readonly RuntimeClass[] }>,
): Finding {
  const check = 'runtimes';
  if ('error' in found) {
    return {
      check,
      status: 'fail',
      detail: `${pool}: ${found.error}`,
      remedy: `start the runtime at ${address}; a runtime beside the manager can be reached only from there, so omit --ironcore-pool elsewhere`,
    };
  }
  const { version, classes } = found.value;
  const places = classes.map(({ name, quantity }) => `${quantity} ${name}`).join(', ');
  return {
    check,
    status: places === '' ? 'warn' : 'ok',
    detail: `${pool}: ${version.name} ${version.version}, places: ${places === '' ? 'none' : places}`,
    ...(places === '' && {
      remedy: 'configure classes in the runtime; without them no Machine can be placed in the pool',
    }),
  };
}

/** What there is of the Secrets that classes name, by `namespace/name`. */
export type SecretStates = ReadonlyMap<string, QueryResult<boolean>>;

/** Whether each class has its driver and its Secrets; `providers` is empty where no drivers are named. */
export function classFindings(
  classes: QueryResult<readonly MachineClass[]>,
  secrets: SecretStates,
  providers: readonly string[],
): Finding[] {
  if ('error' in classes) {
    return [
      {
        check: 'classes',
        status: 'warn',
        detail: `cannot be listed: ${classes.error}`,
        remedy: 'see kinds and permissions',
      },
    ];
  }
  const findings = classes.value.flatMap((machineClass) => [
    ...secretIndex(machineClass).flatMap((key) => secretFindings(machineClass.metadata.name, key, secrets.get(key))),
    ...providerFindings(machineClass, providers),
  ]);
  if (findings.length > 0) return findings;
  return [
    {
      check: 'classes',
      status: 'ok',
      detail: `${counted(classes.value.length, 'class', 'classes')}: all requirements are met`,
    },
  ];
}

function secretFindings(name: string, key: string, found: QueryResult<boolean> | undefined): Finding[] {
  if (found === undefined || ('value' in found && found.value)) return [];
  if ('error' in found) {
    return [
      {
        check: 'classes',
        status: 'warn',
        detail: `${name}: Secret ${key} cannot be read: ${found.error}`,
        remedy: 'see permissions',
      },
    ];
  }
  return [
    {
      check: 'classes',
      status: 'fail',
      detail: `${name}: Secret ${key} does not exist; machines of the class cannot be created or deleted`,
      remedy: `create it, or correct secretRef and credentialsSecretRef of MachineClass ${name}`,
    },
  ];
}

function providerFindings(
  { metadata: { name }, provider = '' }: MachineClass,
  providers: readonly string[],
): Finding[] {
  if (providers.length === 0 || providers.includes(provider) || (provider === '' && providers.length === 1)) return [];
  return [
    {
      check: 'classes',
      status: 'fail',
      detail: `${name}: no driver is configured for its provider ${JSON.stringify(provider)}, only for ${providers.join(', ')}`,
      remedy: `add --driver=${provider || 'PROVIDER'}=ADDRESS, or correct provider of MachineClass ${name}`,
    },
  ];
}

/** `1 class`, `2 classes`. */
export function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** 1 when a process could not start or do its work, else 0. */
export function preflightExitCode(findings: readonly Finding[]): number {
  return findings.some(({ status }) => status === 'fail') ? 1 : 0;
}
