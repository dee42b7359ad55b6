import { CLUSTER_API_PRE_DRAIN_HOOK_PREFIX, CLUSTER_API_PRE_TERMINATE_HOOK_PREFIX } from '../api/keys.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { Event } from '../../../apis/wire.ts';
import { hookNamesOf } from '../controllers/deletion/hooks.ts';
import { explainClusterAPIMachine, type ClusterLookup } from '../controllers/explain.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../api/resources.ts';
import { optionalMember } from '../../../apis/optional-member.ts';
import { explanationOf, type DescribedExplanation } from '../../../fleet/describe/described-explanation.ts';
import {
  describedCondition,
  eventsOf,
  type DescribedCondition,
  type DescribedEvent,
} from '../../../fleet/describe/described.ts';
import { readNamed } from '../../../fleet/describe/read-named.ts';
import { conditionLines, eventLines, explanationFields, fieldLines } from '../../../fleet/describe/layout.ts';
import type { DescribedKind } from '../../../fleet/describe/described-kind.ts';
import { referenceName } from './reference-name.ts';

/** What `machinist describe cluster-api-machine` tells; printed as it is with `-o json`. */
export interface ClusterAPIDescription extends DescribedExplanation {
  readonly name: string;
  readonly namespace: string;
  readonly cluster: string;
  readonly phase: string;
  readonly deletionTimestamp?: string;
  readonly version?: string;
  readonly bootstrap: DescribedObject;
  readonly infrastructure: DescribedObject;
  readonly providerID?: string;
  readonly node?: string;
  readonly failureDomain?: string;
  /** Annotations that hold a step of the deletion. */
  readonly hooks: readonly string[];
  readonly conditions: readonly DescribedCondition[];
  /** Oldest first. */
  readonly events: readonly DescribedEvent[];
}

/** What a Machine names of a provider, and what is known of it. */
export interface DescribedObject {
  /** `<Kind> <name>`; absent where nothing is named. */
  readonly object?: string;
  /** As the condition of the Machine says it: True, False or Unknown. */
  readonly ready: string;
  readonly reason?: string;
}

export const describedClusterAPIMachine: DescribedKind<ClusterAPIMachine, ClusterAPIDescription> = {
  resource: clusterAPIMachines,
  describe: async (reader, machine, told, nowMs) => {
    const { namespace = '' } = machine.metadata;
    const cluster = await readNamed(reader, clusterAPIClusters, {
      namespace,
      name: machine.spec?.clusterName ?? '',
    });
    return clusterAPIDescription(machine, cluster, told, nowMs());
  },
  render: renderClusterAPI,
};

/** Describes a Machine of Cluster API with its Cluster and its Events, as they were read at `nowMs`. */
export function clusterAPIDescription(
  machine: ClusterAPIMachine,
  cluster: ClusterLookup,
  events: readonly Event[],
  nowMs: number,
): ClusterAPIDescription {
  const { metadata, spec = {}, status = {} } = machine;
  const { configRef, dataSecretName = '' } = spec.bootstrap ?? {};
  const secret = dataSecretName === '' ? undefined : `Secret ${dataSecretName}`;
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    cluster: spec.clusterName ?? '',
    phase: status.phase ?? '',
    ...explanationOf(explainClusterAPIMachine(machine, cluster, nowMs), nowMs),
    ...optionalMember('deletionTimestamp', metadata.deletionTimestamp),
    ...optionalMember('version', spec.version),
    bootstrap: objectOf(machine, referenceName(configRef) ?? secret, 'BootstrapConfigReady'),
    infrastructure: objectOf(machine, referenceName(spec.infrastructureRef), 'InfrastructureReady'),
    ...optionalMember('providerID', spec.providerID),
    ...optionalMember('node', status.nodeRef?.name),
    ...optionalMember('failureDomain', status.failureDomain ?? spec.failureDomain),
    hooks: [CLUSTER_API_PRE_DRAIN_HOOK_PREFIX, CLUSTER_API_PRE_TERMINATE_HOOK_PREFIX].flatMap((prefix) =>
      hookNamesOf(machine, prefix),
    ),
    conditions: (status.conditions ?? []).map(describedCondition),
    events: eventsOf(events),
  };
}

function objectOf({ status }: ClusterAPIMachine, object: string | undefined, type: string): DescribedObject {
  const condition = status?.conditions?.find((one) => one.type === type);
  return {
    ...optionalMember('object', object),
    ready: condition?.status ?? 'Unknown',
    ...optionalMember('reason', condition?.reason),
  };
}

/** A description as text, in the layout of `kubectl describe`. Ages count to `nowMs`. */
export function renderClusterAPI(description: ClusterAPIDescription, nowMs: number): string {
  const { phase, hooks } = description;
  return [
    ...fieldLines([
      ['Name', description.name],
      ['Namespace', description.namespace],
      ['Cluster', description.cluster],
      ['Version', description.version],
      ['Phase', phase === '' ? '<none>' : phase],
      ...explanationFields(description, nowMs),
      ['Deletion', description.deletionTimestamp],
      ['Bootstrap', objectText(description.bootstrap)],
      ['Infrastructure', objectText(description.infrastructure)],
      ['Provider ID', description.providerID],
      ['Failure Domain', description.failureDomain],
      ['Node', description.node ?? '<none>'],
      ['Hooks', hooks.length === 0 ? '<none>' : hooks.join(', ')],
    ]),
    ...conditionLines('Conditions', description.conditions, nowMs),
    ...eventLines(description.events, nowMs),
  ].join('\n');
}

function objectText({ object = '<none>', ready, reason }: DescribedObject): string {
  const state = ready === 'True' ? 'ready' : ready === 'False' ? 'not ready' : 'unknown';
  return `${object} (${[state, reason].filter((one) => one !== undefined).join(', ')})`;
}
