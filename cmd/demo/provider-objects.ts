import { definitionNameOf, pluralOf } from '../../pkg/worlds/cluster-api/api/contract.ts';
import { CLUSTER_API_VERSIONED, INFRASTRUCTURE_GROUP } from '../../pkg/worlds/cluster-api/api/keys.ts';

/** The infrastructure of the demo's provider of Cluster API, and its template. */
export const DEMO_MACHINE = { apiGroup: INFRASTRUCTURE_GROUP, kind: 'DemoMachine' } as const;
export const DEMO_TEMPLATE = { apiGroup: INFRASTRUCTURE_GROUP, kind: 'DemoMachineTemplate', name: 'small' } as const;
/** The version of both kinds. */
export const PROVIDER_VERSION = 'v1alpha1';
/** The Cluster of the demo. */
export const DEMO_CLUSTER = 'demo';

/** The name of the Machine that a user may add, and of what it is made of. */
export const FIRST = 'first';

/** What that one starts with. */
export interface FirstMachine {
  /** A bootstrap token, with which `userData` joins. */
  readonly token: string;
  readonly userData: string;
}

/** What the demo brings along for Cluster API: definitions of the provider, then a Cluster and a template. */
export function providerObjects(namespace: string): {
  readonly definitions: readonly object[];
  readonly objects: readonly object[];
} {
  return {
    definitions: [definition(DEMO_MACHINE.kind, MACHINE_COLUMNS), definition(DEMO_TEMPLATE.kind, TEMPLATE_COLUMNS)],
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

/** What `kubectl get` shows. */
interface Column {
  readonly name: string;
  readonly type: 'string' | 'date';
  readonly jsonPath: string;
}

const AGE: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
const READY = '.status.conditions[?(@.type=="Ready")]';
const MACHINE_COLUMNS: readonly Column[] = [
  { name: 'Machine', type: 'string', jsonPath: '.metadata.ownerReferences[?(@.kind=="Machine")].name' },
  { name: 'ProviderID', type: 'string', jsonPath: '.spec.providerID' },
  { name: 'Ready', type: 'string', jsonPath: `${READY}.status` },
  { name: 'Message', type: 'string', jsonPath: `${READY}.message` },
  AGE,
];
const TEMPLATE_COLUMNS: readonly Column[] = [
  { name: 'Size', type: 'string', jsonPath: '.spec.template.spec.size' },
  AGE,
];

/** A Machine of Cluster API without a MachineDeployment, with all that it names; and the token with which its kubelet joins. */
export function firstMachine(namespace: string, { token, userData }: FirstMachine): readonly object[] {
  const [id, secret] = token.split('.');
  const spec = {
    clusterName: DEMO_CLUSTER,
    version: 'v1.34.0',
    bootstrap: { dataSecretName: `${FIRST}-userdata` },
    infrastructureRef: { ...DEMO_MACHINE, name: FIRST },
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
      type: 'bootstrap.kubernetes.io/token',
      stringData: { 'token-id': id, 'token-secret': secret, 'usage-bootstrap-authentication': 'true' },
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `${FIRST}-userdata`, namespace },
      type: 'cluster.x-k8s.io/secret',
      stringData: { value: userData },
    },
    {
      apiVersion: `${INFRASTRUCTURE_GROUP}/${PROVIDER_VERSION}`,
      kind: DEMO_MACHINE.kind,
      metadata: { name: FIRST, namespace },
      spec: {},
    },
    { apiVersion: CLUSTER_API_VERSIONED, kind: 'Machine', metadata: { name: FIRST, namespace }, spec },
  ];
}

function definition(kind: string, additionalPrinterColumns: readonly Column[]): object {
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
          additionalPrinterColumns,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } },
        },
      ],
    },
  };
}
