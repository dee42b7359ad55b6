import type { ClusterAPICluster } from '../api/cluster.ts';
import { conditionOf as findCondition } from '../../../work/reconcile/conditions.ts';
import { HAD_KUBECONFIG_ANNOTATION, KUBECONFIG_SECRET_SUFFIX } from '../api/keys.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { Event } from '../../../apis/wire.ts';
import { explainClusterAPICluster, type AroundCluster } from '../controllers/explain-cluster.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { secrets } from '../../../kube/client/resource.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../api/resources.ts';
import { optionalMember } from '../../../apis/optional-member.ts';
import { explanationOf, type DescribedExplanation } from '../../../fleet/describe/described-explanation.ts';
import {
  describedCondition,
  eventsOf,
  type DescribedCondition,
  type DescribedEvent,
} from '../../../fleet/describe/described.ts';
import { isAnswer, readNamed } from '../../../fleet/describe/read-named.ts';
import {
  conditionLines,
  eventLines,
  explanationFields,
  fieldLines,
  tableLines,
} from '../../../fleet/describe/layout.ts';
import type { DescribedKind } from '../../../fleet/describe/described-kind.ts';
import { referenceName } from './reference-name.ts';

/** What `machinist describe cluster-api-cluster` tells; printed as it is with `-o json`. */
export interface ClusterDescription extends DescribedExplanation {
  readonly name: string;
  readonly namespace: string;
  readonly phase: string;
  readonly deletionTimestamp?: string;
  /** `<Kind> <name>`; absent where none is named. */
  readonly infrastructure?: string;
  readonly controlPlane?: string;
  /** `host:port`. */
  readonly endpoint?: string;
  /** Where the Nodes of its Machines are, in words. */
  readonly nodes: string;
  /** Absent: who asks may not list them. */
  readonly machines?: readonly DescribedMachine[];
  readonly conditions: readonly DescribedCondition[];
  /** Oldest first. */
  readonly events: readonly DescribedEvent[];
}

export interface DescribedMachine {
  readonly name: string;
  readonly phase: string;
  readonly node?: string;
  /** True, False or Unknown, as its condition Ready says. */
  readonly ready: string;
}

export const describedClusterAPICluster: DescribedKind<ClusterAPICluster, ClusterDescription> = {
  resource: clusterAPIClusters,
  describe: async (reader, cluster, told, nowMs) =>
    clusterDescription(cluster, await aroundCluster(reader, cluster), told, nowMs()),
  render: renderCluster,
};

/** Reads what belongs to a Cluster; what may not be read is unknown. Throws ApiError when the server cannot be reached. */
export async function aroundCluster(reader: Reader, { metadata }: ClusterAPICluster): Promise<AroundCluster> {
  const { namespace = '', name } = metadata;
  const ref = { namespace, name: `${name}${KUBECONFIG_SECRET_SUFFIX}` };
  const [kubeconfig, machines] = await Promise.all([
    // Of credentials it is enough to know that they are there.
    readNamed(reader, secrets, ref, { metadataOnly: true }),
    reader.list(clusterAPIMachines, { namespace }).catch((err: unknown) => {
      if (isAnswer(err)) return undefined;
      throw err;
    }),
  ]);
  return {
    kubeconfig: typeof kubeconfig === 'string' ? kubeconfig : 'there',
    machines: machines?.items.filter(({ spec }) => spec?.clusterName === name) ?? 'unknown',
  };
}

/** Describes a Cluster with what is around it and its Events, as they were read at `nowMs`. */
export function clusterDescription(
  cluster: ClusterAPICluster,
  known: AroundCluster,
  events: readonly Event[],
  nowMs: number,
): ClusterDescription {
  const { metadata, spec = {}, status = {} } = cluster;
  const { host = '', port } = spec.controlPlaneEndpoint ?? {};
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    phase: status.phase ?? '',
    ...explanationOf(explainClusterAPICluster(cluster, known, nowMs), nowMs),
    ...optionalMember('deletionTimestamp', metadata.deletionTimestamp),
    ...optionalMember('infrastructure', referenceName(spec.infrastructureRef)),
    ...optionalMember('controlPlane', referenceName(spec.controlPlaneRef)),
    ...optionalMember('endpoint', host === '' ? undefined : `${host}:${port ?? 0}`),
    nodes: whereNodesAre(cluster, known),
    ...(known.machines !== 'unknown' && { machines: known.machines.map(machineOf) }),
    conditions: (status.conditions ?? []).map(describedCondition),
    events: eventsOf(events),
  };
}

function whereNodesAre({ metadata }: ClusterAPICluster, { kubeconfig }: AroundCluster): string {
  const secret = `Secret ${metadata.name}${KUBECONFIG_SECRET_SUFFIX}`;
  if (kubeconfig === 'there') return `in the cluster of ${secret}`;
  if (kubeconfig === 'unknown') return `unknown: no permission to read ${secret}`;
  const had = metadata.annotations?.[HAD_KUBECONFIG_ANNOTATION] !== undefined;
  return had ? `in the cluster of ${secret}, which no longer exists` : 'in the target cluster of the manager';
}

function machineOf(machine: ClusterAPIMachine): DescribedMachine {
  const { metadata, status } = machine;
  return {
    name: metadata.name,
    phase: status?.phase ?? '',
    ...optionalMember('node', status?.nodeRef?.name),
    ready: findCondition(machine.status?.conditions, 'Ready')?.status ?? 'Unknown',
  };
}

/** A description as text, in the layout of `kubectl describe`. Ages count to `nowMs`. */
export function renderCluster(description: ClusterDescription, nowMs: number): string {
  const { phase, machines } = description;
  return [
    ...fieldLines([
      ['Name', description.name],
      ['Namespace', description.namespace],
      ['Phase', phase === '' ? '<none>' : phase],
      ...explanationFields(description, nowMs),
      ['Deletion', description.deletionTimestamp],
      ['Infrastructure', description.infrastructure ?? '<none>'],
      ['Control Plane', description.controlPlane ?? '<none>'],
      ['Endpoint', description.endpoint],
      ['Nodes', description.nodes],
    ]),
    ...(machines === undefined
      ? ['Machines:  <unknown>']
      : tableLines(
          'Machines',
          ['Name', 'Phase', 'Ready', 'Node'],
          machines.map(({ name, phase: stage, ready, node = '<none>' }) => [name, stage, ready, node]),
        )),
    ...conditionLines('Conditions', description.conditions, nowMs),
    ...eventLines(description.events, nowMs),
  ].join('\n');
}
