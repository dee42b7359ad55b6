import { CERTIFICATES_EXPIRY_ANNOTATION, CONTROL_PLANE_LABEL } from '../../apis/cluster-api/keys.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { fromTimestamp } from '../../clock/clock.ts';

/** A version with a leading v, as Cluster API's webhooks store it: providers compare it with versions of Nodes. Undefined: it stands so already. */
export function versionFor(version: string | undefined): string | undefined {
  return version === undefined || version === '' || version.startsWith('v') ? undefined : `v${version}`;
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
    problem: `annotation ${CERTIFICATES_EXPIRY_ANNOTATION} is ${JSON.stringify(date)}: write a time such as 2027-01-01T00:00:00Z`,
  };
}
