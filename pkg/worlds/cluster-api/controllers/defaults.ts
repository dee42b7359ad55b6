import { CERTIFICATES_EXPIRY_ANNOTATION, CONTROL_PLANE_LABEL } from '../api/keys.ts';
import type { ClusterAPIMachineSpec } from '../api/machine.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';

/** How long a Node may resist its deletion where its Machine does not say, in seconds. */
export const NODE_DELETION_TIMEOUT_SECONDS = 10;

/**
 * A spec as the defaulting webhook of Cluster API stores it (core/webhooks/admission/machine.go): a version with a leading v, because providers
 * compare it with versions of Nodes, and a time for the deletion of the Node. The same object: it stands so already.
 */
export function withDefaults(spec: ClusterAPIMachineSpec): ClusterAPIMachineSpec {
  const { version = '', deletion } = spec;
  const hasVersion = version === '' || version.startsWith('v');
  const hasTimeout = deletion?.nodeDeletionTimeoutSeconds !== undefined;
  if (hasVersion && hasTimeout) return spec;
  return {
    ...spec,
    ...(!hasVersion && { version: `v${version}` }),
    ...(!hasTimeout && { deletion: { ...deletion, nodeDeletionTimeoutSeconds: NODE_DELETION_TIMEOUT_SECONDS } }),
  };
}

/** When the certificates of a Machine expire: what it says counts before what its bootstrap object says. */
export type CertificatesExpiry = { readonly date: string | undefined } | { readonly problem: string };

/** Only Machines of control planes have some. */
export function certificatesExpiryOf(machine: KubeObject, bootstrap: KubeObject | undefined): CertificatesExpiry {
  if (machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined) return { date: undefined };
  const [own, other] = [machine, bootstrap].map((one) => one?.metadata.annotations?.[CERTIFICATES_EXPIRY_ANNOTATION]);
  const date = own ?? other;
  if (date === undefined || fromTimestamp(date) !== undefined) return { date };
  return {
    problem: `annotation ${CERTIFICATES_EXPIRY_ANNOTATION} is ${JSON.stringify(date)}: set it to a time such as 2027-01-01T00:00:00Z`,
  };
}
