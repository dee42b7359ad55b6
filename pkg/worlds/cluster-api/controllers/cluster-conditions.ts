import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ContractReference } from '../api/contract.ts';
import type { ControlPlaneReport } from '../api/control-plane.ts';
import type { ClusterInfrastructureReport } from '../api/infrastructure.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { mirrored, plain, summary, type ConditionValue } from './conditions.ts';
import type { ExternalLookup } from './externals.ts';

/** An object that a Cluster names, as a pass has found it. none: it names none. */
export interface ClusterObservation<Report> {
  readonly kind: ExternalLookup['kind'] | 'none';
  /** Why it cannot be told whether it is there. */
  readonly problem?: string;
  readonly report: Report | undefined;
}

/**
 * The API server of its Nodes. here: it is that of the target cluster. unused: it has one of its own, which nobody asks, because no Machine of the
 * Cluster is there.
 */
export type ObservedConnection =
  | { readonly kind: 'here' | 'unused' | 'reached' }
  | {
      readonly kind: 'unreachable';
      readonly why: string;
      /** For so long that what was said last does not count any more. */
      readonly isOver: boolean;
    };

export interface ClusterFacts {
  readonly cluster: ClusterAPICluster;
  readonly infrastructure: ClusterObservation<ClusterInfrastructureReport>;
  readonly controlPlane: ClusterObservation<ControlPlaneReport>;
  readonly connection: ObservedConnection;
  readonly hasControlPlaneNode: boolean;
}

const NO_TOPOLOGY = 'spec.topology is not supported: create the objects manually, and refer to them in';

/** Whether infrastructure and control plane would have to be made by a class of Clusters, which nobody does here. */
function lacks(cluster: ClusterAPICluster, reference: ContractReference | undefined): boolean {
  return cluster.spec?.topology !== undefined && reference === undefined;
}

/** Once it was, it stays so. */
export function isProvisioned({ cluster, infrastructure }: Pick<ClusterFacts, 'cluster' | 'infrastructure'>): boolean {
  if (cluster.status?.initialization?.infrastructureProvisioned === true) return true;
  if (lacks(cluster, cluster.spec?.infrastructureRef)) return false;
  return cluster.spec?.infrastructureRef === undefined || infrastructure.report?.provisioned === true;
}

/**
 * Whether its API server has answered: as the object says that it names; where that cannot be read, a Node of a Machine of the control plane says so.
 * Without a reference the control plane is that of the target cluster, which is there. Once it was, it stays so.
 */
export function isInitialized({ cluster, controlPlane, hasControlPlaneNode }: ClusterFacts): boolean {
  if (cluster.status?.initialization?.controlPlaneInitialized === true) return true;
  if (lacks(cluster, cluster.spec?.controlPlaneRef)) return false;
  switch (controlPlane.kind) {
    case 'none':
      return true;
    case 'found':
      return controlPlane.report?.initialized === true;
    case 'absent':
      return false;
    case 'reading':
    case 'unknown':
      return hasControlPlaneNode;
  }
}

export function clusterConditions(facts: ClusterFacts): readonly ConditionValue[] {
  const { topology } = facts.cluster.spec ?? {};
  const said = [
    remoteConnectionProbe(facts),
    infrastructureReady(facts),
    controlPlaneAvailable(facts),
    controlPlaneInitialized(facts),
    ...(topology === undefined
      ? []
      : [
          plain(
            'TopologyReconciled',
            'False',
            'NotSupported',
            'spec.topology is not supported: no objects are created from it',
          ),
        ]),
    plain('Deleting', 'False', 'NotDeleting'),
    plain('Paused', 'False', 'NotPaused'),
  ];
  return [...said, available(facts.cluster, said)];
}

/** Of a Cluster that goes, for a reason. */
export function notAvailable(message: string): ConditionValue {
  return plain('Available', 'False', 'NotAvailable', `* Deleting: ${message}`);
}

/** The summary of what is looked after here: the kinds that make workers are not. */
function available(cluster: ClusterAPICluster, said: readonly ConditionValue[]): ConditionValue {
  const isUnused = said.some(({ reason }) => reason === NOT_PROBED);
  const needed = [
    'Deleting',
    ...(isUnused ? [] : ['RemoteConnectionProbe']),
    'InfrastructureReady',
    'ControlPlaneAvailable',
    ...(cluster.spec?.topology === undefined ? [] : ['TopologyReconciled']),
  ];
  const gates = cluster.spec?.availabilityGates ?? [];
  const others = (cluster.status?.conditions ?? []).filter(({ type }) => said.every((one) => one.type !== type));
  return summary('Available', ['Available', 'NotAvailable', 'AvailableUnknown'], [...others, ...said], needed, gates);
}

const NOT_PROBED = 'NotProbed';

function remoteConnectionProbe({ cluster, connection }: ClusterFacts): ConditionValue {
  const type = 'RemoteConnectionProbe';
  switch (connection.kind) {
    case 'here':
    case 'reached':
      return plain(type, 'True', 'ProbeSucceeded');
    case 'unused':
      return plain(type, 'Unknown', NOT_PROBED, 'The Cluster has no Machines, so that its API server is not asked');
    case 'unreachable': {
      const said = connection.isOver ? undefined : conditionOf(cluster.status?.conditions, type);
      const before = said?.reason === NOT_PROBED ? undefined : said;
      return before ?? plain(type, 'False', 'ProbeFailed', connection.why);
    }
  }
}

function controlPlaneAvailable(facts: ClusterFacts): ConditionValue {
  const type = 'ControlPlaneAvailable';
  const { cluster, controlPlane } = facts;
  const { controlPlaneRef } = cluster.spec ?? {};
  if (lacks(cluster, controlPlaneRef)) {
    return plain(type, 'False', 'ObjectDoesNotExist', `${NO_TOPOLOGY} spec.controlPlaneRef`);
  }
  const what = nameOf(controlPlaneRef);
  const reported = controlPlane.report?.available;
  const isReady = isInitialized(facts);
  switch (controlPlane.kind) {
    case 'none':
      return plain(type, 'True', 'Available');
    case 'found':
      if (reported !== undefined) return mirrored(reported, type, 'Available');
      return isReady
        ? plain(type, 'True', 'Available')
        : plain(type, 'False', 'NotAvailable', `${what} has not reported yet that its API server has responded`);
    case 'absent':
      return isReady
        ? plain(type, 'False', 'ObjectDeleted', `${what} was deleted`)
        : plain(type, 'False', 'ObjectDoesNotExist', `${what} ${MISSING} spec.controlPlaneRef`);
    case 'reading':
    case 'unknown':
      return (
        (controlPlane.kind === 'reading' ? conditionOf(cluster.status?.conditions, type) : undefined) ??
        plain(type, 'Unknown', 'InternalError', controlPlane.problem ?? `Reading ${what}`)
      );
  }
}

function infrastructureReady(facts: ClusterFacts): ConditionValue {
  const type = 'InfrastructureReady';
  const { cluster, infrastructure } = facts;
  const { infrastructureRef } = cluster.spec ?? {};
  if (lacks(cluster, infrastructureRef)) {
    return plain(type, 'False', 'ObjectDoesNotExist', `${NO_TOPOLOGY} spec.infrastructureRef`);
  }
  const what = nameOf(infrastructureRef);
  const { ready } = infrastructure.report ?? {};
  if (ready !== undefined) return mirrored(ready, type);
  // A manager that has just begun to watch a kind knows nothing new about its objects: what was said last stands.
  const said = infrastructure.kind === 'reading' ? conditionOf(cluster.status?.conditions, type) : undefined;
  if (said !== undefined) return said;
  if (infrastructure.kind === 'unknown') return plain(type, 'Unknown', 'InternalError', infrastructure.problem);
  if (infrastructure.kind === 'absent') {
    return isProvisioned(facts)
      ? plain(type, 'False', 'ObjectDeleted', `${what} was deleted`)
      : plain(type, 'False', 'ObjectDoesNotExist', `${what} ${MISSING} spec.infrastructureRef`);
  }
  return isProvisioned(facts)
    ? plain(type, 'True', 'Ready')
    : plain(type, 'False', 'NotReady', `${what} is not provisioned yet`);
}

function controlPlaneInitialized(facts: ClusterFacts): ConditionValue {
  const type = 'ControlPlaneInitialized';
  const { cluster, controlPlane } = facts;
  const { controlPlaneRef } = cluster.spec ?? {};
  if (isInitialized(facts)) return plain(type, 'True', 'Initialized');
  if (lacks(cluster, controlPlaneRef)) {
    return plain(type, 'Unknown', 'ObjectDoesNotExist', `${NO_TOPOLOGY} spec.controlPlaneRef`);
  }
  const what = nameOf(controlPlaneRef);
  const said = controlPlane.kind === 'reading' ? conditionOf(cluster.status?.conditions, type) : undefined;
  if (said !== undefined) return said;
  if (controlPlane.kind === 'absent') {
    return plain(type, 'Unknown', 'ObjectDoesNotExist', `${what} ${MISSING} spec.controlPlaneRef`);
  }
  if (controlPlane.kind === 'found') {
    return plain(type, 'False', 'NotInitialized', `${what} has not reported yet that its API server has responded`);
  }
  const waiting = 'Waiting for the Node of a control-plane Machine';
  return plain(
    type,
    controlPlane.kind === 'unknown' ? 'Unknown' : 'False',
    controlPlane.kind === 'unknown' ? 'InternalError' : 'NotInitialized',
    controlPlane.problem === undefined ? waiting : `${waiting}: ${controlPlane.problem}`,
  );
}

const MISSING = 'does not exist: create it, or correct';

function nameOf(reference: ContractReference | undefined): string {
  return `${reference?.kind ?? ''} ${reference?.name ?? ''}`;
}
