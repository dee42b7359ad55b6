import { join } from 'node:path';

import { contractLabel, definitionNameOf } from '../../../../pkg/worlds/cluster-api/api/contract.ts';
import { CLUSTER_API_VERSIONED, INFRASTRUCTURE_GROUP } from '../../../../pkg/worlds/cluster-api/api/keys.ts';
import { custom, type Definition, definitionsIn, type Kind } from '../../api-server/kinds.ts';

/** The Cluster of the world. */
export const CLUSTER = 'example';
/** Of its Machines. */
export const DRAIN_TIMEOUT_S = 600;
const OPEN = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
const VERSION = 'v1beta2';
const INFRASTRUCTURE = { apiGroup: INFRASTRUCTURE_GROUP, kind: 'SimMachine' } as const;

/** A kind of which nothing is validated. */
function open(
  group: string,
  version: string,
  names: Definition['spec']['names'],
  scope: Definition['spec']['scope'],
): Definition {
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: OPEN, status: OPEN } } } as const;
  return { spec: { group, names, scope, versions: [{ name: version, subresources: { status: {} }, schema }] } };
}

const SIM_MACHINES = open(
  INFRASTRUCTURE.apiGroup,
  VERSION,
  { kind: INFRASTRUCTURE.kind, plural: 'simmachines' },
  'Namespaced',
);
const DEFINITIONS = open(
  'apiextensions.k8s.io',
  'v1',
  { kind: 'CustomResourceDefinition', plural: 'customresourcedefinitions' },
  'Cluster',
);

/** Those of Cluster API, of a provider, and definitions, by whose labels the provider is known. */
export const CLUSTER_API_KINDS: readonly Kind[] = [
  ...definitionsIn(join(import.meta.dirname, '../../../../crds/cluster-api')),
  SIM_MACHINES,
  DEFINITIONS,
].flatMap(custom);

/** Path of Machines of Cluster API in a namespace, or of one. */
export function machinePath(namespace: string, name?: string): string {
  return pathIn(CLUSTER_API_VERSIONED, 'machines', namespace, name);
}

/** Path of the Cluster. */
export function clusterPath(namespace: string, name?: string): string {
  return pathIn(CLUSTER_API_VERSIONED, 'clusters', namespace, name);
}

/** Path of the objects of the provider, or of one. */
export function infrastructurePath(namespace: string, name?: string): string {
  return pathIn(`${INFRASTRUCTURE.apiGroup}/${VERSION}`, 'simmachines', namespace, name);
}

function pathIn(groupVersion: string, plural: string, namespace: string, name: string | undefined): string {
  return `/apis/${groupVersion}/namespaces/${namespace}/${plural}${name === undefined ? '' : `/${name}`}`;
}

/** The definition by whose labels the kind of the provider is read. */
export const PROVIDER_DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: definitionNameOf(INFRASTRUCTURE), labels: { [contractLabel('v1beta2')]: VERSION } },
};

/** A Machine of the Cluster, and its object of the provider. */
export function madeOf(namespace: string, name: string): { readonly machine: object; readonly infrastructure: object } {
  return {
    machine: {
      apiVersion: CLUSTER_API_VERSIONED,
      kind: 'Machine',
      metadata: { name, namespace, labels: { 'cluster.x-k8s.io/cluster-name': CLUSTER } },
      spec: {
        clusterName: CLUSTER,
        bootstrap: { dataSecretName: CLUSTER },
        infrastructureRef: { ...INFRASTRUCTURE, name },
        // The pods of the last Machines have no other place to go to.
        deletion: { nodeDrainTimeoutSeconds: DRAIN_TIMEOUT_S, nodeVolumeDetachTimeoutSeconds: DRAIN_TIMEOUT_S },
      },
    },
    infrastructure: {
      apiVersion: `${INFRASTRUCTURE.apiGroup}/${VERSION}`,
      kind: INFRASTRUCTURE.kind,
      metadata: { name, namespace },
      spec: {},
    },
  };
}
