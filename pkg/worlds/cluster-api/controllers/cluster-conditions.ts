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
  const { kind, problem, report } = facts.controlPlane;
  const isReady = isInitialized(facts);
  const what = nameOf(facts.cluster.spec?.controlPlaneRef);
  const absent = ifAbsent(facts, 'controlPlane', { type, wasThere: isReady });
  if (absent !== undefined) return absent;
  if (kind === 'reading' || kind === 'unknown') {
    return plain(type, 'Unknown', 'InternalError', problem ?? `Reading ${what}`);
  }
  if (report?.available !== undefined) return mirrored(report.available, type, 'Available');
  return isReady ? plain(type, 'True', 'Available') : plain(type, 'False', 'NotAvailable', `${what} ${SILENT}`);
}

function infrastructureReady(facts: ClusterFacts): ConditionValue {
  const type = 'InfrastructureReady';
  const { kind, problem, report } = facts.infrastructure;
  const isReady = isProvisioned(facts);
  const absent = ifAbsent(facts, 'infrastructure', { type, wasThere: isReady });
  if (absent !== undefined) return absent;
  if (kind === 'unknown') return plain(type, 'Unknown', 'InternalError', problem);
  if (report?.ready !== undefined) return mirrored(report.ready, type);
  return isReady
    ? plain(type, 'True', 'Ready')
    : plain(type, 'False', 'NotReady', `${nameOf(facts.cluster.spec?.infrastructureRef)} is not provisioned yet`);
}

function controlPlaneInitialized(facts: ClusterFacts): ConditionValue {
  const type = 'ControlPlaneInitialized';
  const { kind, problem } = facts.controlPlane;
  if (isInitialized(facts)) return plain(type, 'True', 'Initialized');
  const absent = ifAbsent(facts, 'controlPlane', { type, wasThere: false, status: 'Unknown' });
  if (absent !== undefined) return absent;
  if (kind === 'found') {
    return plain(type, 'False', 'NotInitialized', `${nameOf(facts.cluster.spec?.controlPlaneRef)} ${SILENT}`);
  }
  const waiting = 'Waiting for the Node of a control-plane Machine';
  return plain(
    type,
    kind === 'unknown' ? 'Unknown' : 'False',
    kind === 'unknown' ? 'InternalError' : 'NotInitialized',
    problem === undefined ? waiting : `${waiting}: ${problem}`,
  );
}

const SILENT = 'has not reported yet that its API server has responded';

/** What a condition about an object that the Cluster names says if that is not there; undefined: it may be. */
function ifAbsent(
  facts: ClusterFacts,
  object: 'infrastructure' | 'controlPlane',
  { type, wasThere, status = 'False' }: { type: string; wasThere: boolean; status?: ConditionValue['status'] },
): ConditionValue | undefined {
  const { spec, status: known } = facts.cluster;
  const field = `${object}Ref` as const;
  if (lacks(facts.cluster, spec?.[field])) {
    return plain(type, status, 'ObjectDoesNotExist', `${NO_TOPOLOGY} spec.${field}`);
  }
  const { kind } = facts[object];
  // A manager that has just begun to watch a kind knows nothing new about its objects: what was said last stands.
  if (kind === 'reading') return conditionOf(known?.conditions, type);
  if (kind !== 'absent') return undefined;
  const what = nameOf(spec?.[field]);
  return wasThere
    ? plain(type, status, 'ObjectDeleted', `${what} was deleted`)
    : plain(type, status, 'ObjectDoesNotExist', `${what} does not exist: create it, or correct spec.${field}`);
}

function nameOf(reference: ContractReference | undefined): string {
  return `${reference?.kind ?? ''} ${reference?.name ?? ''}`;
}
