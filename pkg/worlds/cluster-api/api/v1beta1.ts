import { formatDuration, parseDuration } from '../../../apis/duration.ts';
import { membersOf, nonEmptyText } from '../../../apis/members.ts';
import type { ClusterAPICluster } from './cluster.ts';
import { CLUSTER_API_VERSIONED } from './keys.ts';
import type { ClusterAPIMachine } from './machine.ts';

/*
 * The dialect of Cluster API up to 1.10. Everything here decides in the shape of v1beta2: objects of v1beta1 are translated where they come
 * in, and back where they leave. What neither side names passes through.
 *
 *   v1beta2                                      v1beta1
 *   infrastructureRef {apiGroup, kind, name}     {apiVersion, kind, name, namespace}; so are bootstrap.configRef and controlPlaneRef
 *   spec.deletion.nodeDrainTimeoutSeconds 90     spec.nodeDrainTimeout 1m30s; so are the other two
 *   status.initialization.infrastructure…        status.infrastructureReady, bootstrapReady; of Clusters controlPlaneReady
 *   status.nodeRef {name}                        {apiVersion: v1, kind: Node, name}
 *   status.conditions                            status.v1beta2.conditions
 *   status.deprecated.v1beta1.*                  status.conditions, failureReason, failureMessage
 *   status.failureDomains [{name, …}]            {<name>: {…}}
 *   spec.minReadySeconds, status.failureDomain   cannot be said: spec.failureDomain is also the one that is used
 *   status.deletion.waitForPre…HookStartTime     cannot be said: the reason of condition Deleting tells that a hook is waited for
 *   status.nodeInfo.swap                         cannot be said
 */

type Members = Readonly<Record<string, unknown>>;

/** Version of references whose definition nobody has asked: that of the contract of the time. */
const USUAL_VERSION = 'v1beta1';
/** What the newer version takes for a number of seconds. */
const MOST_SECONDS = 2 ** 31 - 1;

/** Makes a Machine of v1beta1 one of v1beta2, in place. */
export function machineFromV1beta1(machine: ClusterAPIMachine): ClusterAPIMachine {
  return fromOlder(machine, machineSpecFrom, machineStatusFrom);
}

/** A Machine, or a part of one, as v1beta1 has it. */
export function machineToV1beta1(machine: object): object {
  return toOlder(machine, machineSpecTo, machineStatusTo);
}

/** Makes a Cluster of v1beta1 one of v1beta2, in place. */
export function clusterFromV1beta1(cluster: ClusterAPICluster): ClusterAPICluster {
  return fromOlder(cluster, clusterSpecFrom, clusterStatusFrom);
}

/** A Cluster, or a part of one, as v1beta1 has it. */
export function clusterToV1beta1(cluster: object): object {
  return toOlder(cluster, clusterSpecTo, clusterStatusTo);
}

/** A Machine as v1beta2 has it, whose references say nothing of versions. */
export function machineToV1beta2(machine: object): object {
  const { spec, ...rest } = membersOf(machine);
  if (spec === undefined) return machine;
  const { infrastructureRef, bootstrap, ...others } = membersOf(spec);
  const { configRef, ...given } = membersOf(bootstrap);
  const bare = (reference: unknown): Members | undefined => {
    if (reference === undefined) return undefined;
    const { version: _version, ...kept } = membersOf(reference);
    return kept;
  };
  return {
    ...rest,
    spec: {
      ...others,
      ...(bootstrap !== undefined && { bootstrap: said({ ...given, configRef: bare(configRef) }) }),
      ...said({ infrastructureRef: bare(infrastructureRef) }),
    },
  };
}

function fromOlder<T extends object>(
  object: T,
  specFrom: (spec: Members) => Members,
  statusFrom: (status: Members) => Members,
): T {
  const { spec, status } = membersOf(object);
  return Object.assign(object, {
    apiVersion: CLUSTER_API_VERSIONED,
    ...(spec !== undefined && { spec: specFrom(membersOf(spec)) }),
    ...(status !== undefined && { status: statusFrom(membersOf(status)) }),
  });
}

function toOlder(
  object: object,
  specTo: (spec: Members, namespace: string | undefined) => Members,
  statusTo: (status: Members) => Members,
): object {
  const { spec, status, metadata, ...rest } = membersOf(object);
  return {
    ...rest,
    ...said({ metadata }),
    ...(spec !== undefined && { spec: specTo(membersOf(spec), nonEmptyText(membersOf(metadata)['namespace'])) }),
    ...(status !== undefined && { status: statusTo(membersOf(status)) }),
  };
}

function machineSpecFrom(spec: Members): Members {
  const { bootstrap, infrastructureRef, nodeDrainTimeout, nodeVolumeDetachTimeout, nodeDeletionTimeout, ...rest } =
    spec;
  const { configRef, ...given } = membersOf(bootstrap);
  return {
    ...rest,
    ...(bootstrap !== undefined && { bootstrap: { ...given, ...said({ configRef: referenceFrom(configRef) }) } }),
    ...said({
      infrastructureRef: referenceFrom(infrastructureRef),
      deletion: whole({
        nodeDrainTimeoutSeconds: secondsIn(nodeDrainTimeout),
        nodeVolumeDetachTimeoutSeconds: secondsIn(nodeVolumeDetachTimeout),
        nodeDeletionTimeoutSeconds: secondsIn(nodeDeletionTimeout),
      }),
    }),
  };
}

function machineSpecTo(spec: Members, namespace: string | undefined): Members {
  const { bootstrap, infrastructureRef, deletion, minReadySeconds: _unknown, ...rest } = spec;
  const { configRef, ...given } = membersOf(bootstrap);
  const timeouts = membersOf(deletion);
  return {
    ...rest,
    ...(bootstrap !== undefined && {
      bootstrap: { ...given, ...said({ configRef: referenceTo(configRef, namespace) }) },
    }),
    ...said({
      infrastructureRef: referenceTo(infrastructureRef, namespace),
      nodeDrainTimeout: durationOf(timeouts['nodeDrainTimeoutSeconds']),
      nodeVolumeDetachTimeout: durationOf(timeouts['nodeVolumeDetachTimeoutSeconds']),
      nodeDeletionTimeout: durationOf(timeouts['nodeDeletionTimeoutSeconds']),
    }),
  };
}

function machineStatusFrom(status: Members): Members {
  const { bootstrapReady, infrastructureReady, nodeRef, ...rest } = status;
  const name = nonEmptyText(membersOf(nodeRef)['name']);
  return {
    ...conditionsFrom(rest),
    ...said({
      initialization: whole({
        infrastructureProvisioned: infrastructureReady,
        bootstrapDataSecretCreated: bootstrapReady,
      }),
      nodeRef: name === undefined ? undefined : { name },
    }),
  };
}

function machineStatusTo(status: Members): Members {
  const { initialization, nodeRef, nodeInfo, deletion, failureDomain: _unknown, ...rest } = status;
  const { swap: _swap, ...system } = membersOf(nodeInfo);
  const {
    waitForPreDrainHookStartTime: _drain,
    waitForPreTerminateHookStartTime: _end,
    ...times
  } = membersOf(deletion);
  const { infrastructureProvisioned, bootstrapDataSecretCreated } = membersOf(initialization);
  const name = nonEmptyText(membersOf(nodeRef)['name']);
  return {
    ...conditionsTo(rest),
    ...said({
      deletion: deletion === undefined ? undefined : times,
      nodeInfo: nodeInfo === undefined ? undefined : system,
      infrastructureReady: infrastructureProvisioned,
      bootstrapReady: bootstrapDataSecretCreated,
      nodeRef: name === undefined ? undefined : { apiVersion: 'v1', kind: 'Node', name },
    }),
  };
}

function clusterSpecFrom(spec: Members): Members {
  const { infrastructureRef, controlPlaneRef, ...rest } = spec;
  return {
    ...rest,
    ...said({ infrastructureRef: referenceFrom(infrastructureRef), controlPlaneRef: referenceFrom(controlPlaneRef) }),
  };
}

function clusterSpecTo(spec: Members, namespace: string | undefined): Members {
  const { infrastructureRef, controlPlaneRef, ...rest } = spec;
  return {
    ...rest,
    ...said({
      infrastructureRef: referenceTo(infrastructureRef, namespace),
      controlPlaneRef: referenceTo(controlPlaneRef, namespace),
    }),
  };
}

function clusterStatusFrom(status: Members): Members {
  const { infrastructureReady, controlPlaneReady, failureDomains, ...rest } = status;
  const domains = Object.entries(membersOf(failureDomains)).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...conditionsFrom(rest),
    ...said({
      initialization: whole({
        infrastructureProvisioned: infrastructureReady,
        controlPlaneInitialized: controlPlaneReady,
      }),
      failureDomains:
        failureDomains === undefined ? undefined : domains.map(([name, one]) => ({ name, ...membersOf(one) })),
    }),
  };
}

function clusterStatusTo(status: Members): Members {
  const { initialization, failureDomains, ...rest } = status;
  const { infrastructureProvisioned, controlPlaneInitialized } = membersOf(initialization);
  const domains = (Array.isArray(failureDomains) ? (failureDomains as readonly unknown[]) : []).map(membersOf);
  return {
    ...conditionsTo(rest),
    ...said({
      infrastructureReady: infrastructureProvisioned,
      controlPlaneReady: controlPlaneInitialized,
      failureDomains:
        failureDomains === undefined
          ? undefined
          : Object.fromEntries(domains.map(({ name, ...domain }) => [String(name), domain])),
    }),
  };
}

/** Conditions of both contracts, and failures of the older one, where the newer version has them. */
function conditionsFrom(status: Members): Members {
  const { v1beta2, conditions, failureReason, failureMessage, ...rest } = status;
  const older = whole({ conditions, failureReason, failureMessage });
  return {
    ...rest,
    ...said({
      conditions: membersOf(v1beta2)['conditions'],
      deprecated: older === undefined ? undefined : { v1beta1: older },
    }),
  };
}

function conditionsTo(status: Members): Members {
  const { conditions, deprecated, ...rest } = status;
  const { conditions: older, failureReason, failureMessage } = membersOf(membersOf(deprecated)['v1beta1']);
  return { ...rest, ...said({ v1beta2: whole({ conditions }), conditions: older, failureReason, failureMessage }) };
}

/** Its namespace is not looked at: Cluster API refuses any but that of the object. */
function referenceFrom(value: unknown): Members | undefined {
  const { apiVersion, kind, name } = membersOf(value);
  if (nonEmptyText(kind) === undefined || nonEmptyText(name) === undefined) return undefined;
  const [version, group = ''] = (nonEmptyText(apiVersion) ?? '').split('/').toReversed();
  return { apiGroup: group, kind, name, ...(version !== '' && { version }) };
}

function referenceTo(value: unknown, namespace: string | undefined): Members | undefined {
  if (value === undefined) return undefined;
  const { apiGroup, kind, name, version } = membersOf(value);
  const [group, known] = [nonEmptyText(apiGroup), nonEmptyText(version) ?? USUAL_VERSION];
  return { apiVersion: group === undefined ? known : `${group}/${known}`, kind, name, ...said({ namespace }) };
}

/** Begun seconds count: none at all would mean that there is no limit. What is no duration is as if it were not there. */
function secondsIn(duration: unknown): number | undefined {
  const text = nonEmptyText(duration);
  const ms = text === undefined ? undefined : parseDuration(text);
  return ms === undefined ? undefined : Math.min(MOST_SECONDS, Math.max(0, Math.ceil(ms / 1_000)));
}

function durationOf(seconds: unknown): string | undefined {
  return typeof seconds === 'number' ? formatDuration(seconds * 1_000) : undefined;
}

/** The members that say something. */
function said(members: Members): Members {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** The same; undefined when there are none. */
function whole(members: Members): Members | undefined {
  const left = said(members);
  return Object.keys(left).length === 0 ? undefined : left;
}
