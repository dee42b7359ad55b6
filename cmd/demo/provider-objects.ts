import { definitionNameOf, pluralOf } from '../../pkg/apis/cluster-api/contract.ts';
import { CLUSTER_API_VERSIONED, INFRASTRUCTURE_GROUP } from '../../pkg/apis/cluster-api/keys.ts';

/** The infrastructure of the demo's provider of Cluster API, and its template. */
export const DEMO_MACHINE = { apiGroup: INFRASTRUCTURE_GROUP, kind: 'DemoMachine' } as const;
export const DEMO_TEMPLATE = { apiGroup: INFRASTRUCTURE_GROUP, kind: 'DemoMachineTemplate', name: 'small' } as const;
/** The version of both kinds. */
export const PROVIDER_VERSION = 'v1alpha1';
/** The Cluster of the demo. */
export const DEMO_CLUSTER = 'demo';

/** What the demo brings along for Cluster API: definitions of the provider, then a Cluster and a template. */
export function providerObjects(namespace: string): {
  readonly definitions: readonly object[];
  readonly objects: readonly object[];
} {
  return {
    definitions: [definition(DEMO_MACHINE.kind), definition(DEMO_TEMPLATE.kind)],
    objects: [
      {
        apiVersion: CLUSTER_API_VERSIONED,
        kind: 'Cluster',
        metadata: { name: DEMO_CLUSTER, namespace },
        spec: {},
      },
      {
        apiVersion: `${INFRASTRUCTURE_GROUP}/${PROVIDER_VERSION}`,
        kind: DEMO_TEMPLATE.kind,
        metadata: { name: DEMO_TEMPLATE.name, namespace },
        spec: { template: { spec: { size: DEMO_TEMPLATE.name } } },
      },
    ],
  };
}

function definition(kind: string): object {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: definitionNameOf({ apiGroup: INFRASTRUCTURE_GROUP, kind }),
      labels: { 'cluster.x-k8s.io/v1beta2': PROVIDER_VERSION },
    },
    spec: {
      group: INFRASTRUCTURE_GROUP,
      names: { kind, listKind: `${kind}List`, plural: pluralOf(kind), singular: kind.toLowerCase() },
      scope: 'Namespaced',
      versions: [
        {
          name: PROVIDER_VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } },
        },
      ],
    },
  };
}
