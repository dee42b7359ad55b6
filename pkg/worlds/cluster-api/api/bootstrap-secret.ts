import type { OwnerReference } from '../../../apis/meta.ts';
import type { Secret } from '../../../apis/wire.ts';
import { CLUSTER_NAME_LABEL } from './keys.ts';

export interface BootstrapData {
  readonly value: Uint8Array;
  readonly format: 'cloud-config' | 'ignition';
}

/** Where the data stands, for whom, and who takes it along when it goes. */
export interface BootstrapSecretPlace {
  readonly name: string;
  readonly namespace: string;
  readonly clusterName: string;
  readonly owner?: OwnerReference;
}

const SECRET_TYPE = 'cluster.x-k8s.io/secret';

/** The Secret that hands bootstrap data to an infrastructure provider. */
export function bootstrapSecret(
  { name, namespace, clusterName, owner }: BootstrapSecretPlace,
  { value, format }: BootstrapData,
): Omit<Secret, 'metadata'> & { metadata: { name: string; namespace: string; labels: Record<string, string> } } {
  const labels = { [CLUSTER_NAME_LABEL]: clusterName };
  return {
    metadata: { name, namespace, labels, ...(owner !== undefined && { ownerReferences: [owner] }) },
    type: SECRET_TYPE,
    data: { value: encoded(value), format: encoded(format) },
  };
}

/** What such a Secret holds; undefined: no bootstrap data. Without a format it is cloud-config, as everywhere in Cluster API. */
export function bootstrapDataIn({ data }: Pick<Secret, 'data'>): BootstrapData | undefined {
  const value = data?.['value'];
  if (value === undefined || value === '') return undefined;
  const format = Buffer.from(data?.['format'] ?? '', 'base64').toString();
  return { value: Buffer.from(value, 'base64'), format: format === 'ignition' ? format : 'cloud-config' };
}

function encoded(data: Uint8Array | string): string {
  return Buffer.from(data).toString('base64');
}
