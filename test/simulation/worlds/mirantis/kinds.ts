import { join } from 'node:path';

import type { CloudCluster } from '../../../../pkg/worlds/mirantis/api/cluster.ts';
import {
  CLUSTER_GROUP,
  CLUSTER_VERSION,
  type ClusterMachine,
  MIRANTIS_CLUSTER_NAME_LABEL,
  PROVIDER_API_VERSION,
  PROVIDER_LABEL,
} from '../../../../pkg/worlds/mirantis/api/machine.ts';
import { KAAS_GROUP, KAAS_VERSION, type MachinePool } from '../../../../pkg/worlds/mirantis/api/pool.ts';
import { custom, definitionsIn, type Kind } from '../../api-server/kinds.ts';
import { type MachinesWorld, NAMESPACE } from '../../world/machines-world.ts';

/** Those of Mirantis Container Cloud. */
export const MIRANTIS_KINDS: readonly Kind[] = definitionsIn(
  join(import.meta.dirname, '../../../../crds/mirantis'),
).flatMap(custom);

/** The Cluster of the world, by whose name its settings are found. */
export const CLUSTER = 'example';
const GROUPS = {
  machines: `${CLUSTER_GROUP}/${CLUSTER_VERSION}`,
  clusters: `${CLUSTER_GROUP}/${CLUSTER_VERSION}`,
  machinepools: `${KAAS_GROUP}/${KAAS_VERSION}`,
} as const;
/** Plurals of the kinds. */
export type Plural = keyof typeof GROUPS;

/** What objects of them are. */
interface OfKind {
  readonly machines: ClusterMachine;
  readonly clusters: CloudCluster;
  readonly machinepools: MachinePool;
}

/** Whether a kind is that one: there are other Machines, too. */
export function isOf({ group, version, plural }: Kind, wanted: Plural): boolean {
  return plural === wanted && `${group}/${version}` === GROUPS[wanted];
}

/** Path of all objects of a kind, or of one. */
export function pathTo(plural: Plural, name?: string): string {
  return `/apis/${GROUPS[plural]}/namespaces/${NAMESPACE}/${plural}${name === undefined ? '' : `/${name}`}`;
}

/** All objects of a kind, as they are at the moment. */
export function objectsOf<P extends Plural>({ servers }: MachinesWorld, plural: P): readonly OfKind[P][] {
  const { kinds, objects } = servers.control;
  const kind = kinds.find((one) => isOf(one, plural));
  // Whatever is stored is as its definition has it.
  return (kind === undefined ? [] : objects.of(kind).list()) as readonly unknown[] as readonly OfKind[P][];
}

/** An object to create. */
export function made(plural: Plural, kind: string, name: string, spec: object): object {
  const labels = { [PROVIDER_LABEL]: 'openstack', [MIRANTIS_CLUSTER_NAME_LABEL]: CLUSTER };
  return { apiVersion: GROUPS[plural], kind, metadata: { name, namespace: NAMESPACE, labels }, spec };
}

/** What a Machine asks for, with changes. */
export function machineSpec(value: object = {}): object {
  return {
    providerSpec: {
      value: {
        apiVersion: PROVIDER_API_VERSION,
        kind: 'OpenstackMachineProviderSpec',
        availabilityZone: 'nova',
        flavor: 'small',
        image: 'image-1',
        securityGroups: ['group'],
        ...value,
      },
    },
  };
}

/** What a Machine or each of a pool asks for, as it is stored. */
export function valueOf({ spec }: Pick<ClusterMachine, 'spec'>): Readonly<Record<string, unknown>> {
  return spec?.providerSpec?.value ?? {};
}

/** Labels that Nodes are to have, by key. */
export function wantedLabelsOf(machine: Pick<ClusterMachine, 'spec'>): ReadonlyMap<string, string> {
  const { nodeLabels = [] } = valueOf(machine) as { readonly nodeLabels?: readonly { key: string; value: string }[] };
  return new Map(nodeLabels.map(({ key, value }) => [key, value]));
}

/** Puts the settings of the Cluster into a world, and the Cluster. */
export function furnish(world: MachinesWorld): void {
  const metadata = { name: CLUSTER, namespace: NAMESPACE };
  const data = { region: 'region', networkID: 'network' };
  world.act('POST', `/api/v1/namespaces/${NAMESPACE}/configmaps`, { metadata, data });
  const secret = { metadata, stringData: { userData: 'token: <<BOOTSTRAP_TOKEN>>' } };
  world.act('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, secret);
  world.act('POST', pathTo('clusters'), made('clusters', 'Cluster', CLUSTER, { providerSpec: { value: {} } }));
}
