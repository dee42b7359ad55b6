import { CELL_WORKLOAD_LABEL, CELL_WORKLOAD_SECRETS_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Lease } from '../../apis/wire.ts';
import { holderOf } from '../../kube/leader/lease.ts';
import { takenBy } from '../target-refused-error.ts';
import type { ClaimLeases, ClaimMarks } from './claim-leases.ts';
import { targetLeaseName } from './lease-names.ts';
import { ALL_NAMESPACES, instead, takenByAll } from './target-claims.ts';

export interface WorkloadClaimsOptions {
  readonly leases: ClaimLeases;
  /** Those that one namespace has now; all without. */
  readonly list: (namespace: string | undefined, signal: AbortSignal) => Promise<readonly Lease[]>;
}

/** A Secret with a kubeconfig, in the namespace of a cell. */
export interface KubeconfigSecret {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Which namespace has a workload cluster, for all replicas: as of target clusters, by the same Lease, so that no cluster is the target of one
 * namespace and the workload cluster of another. A namespace may have many, each for as long as one of the Secrets is there that lead to it.
 */
export class WorkloadClaims {
  readonly #options: WorkloadClaimsOptions;

  constructor(options: WorkloadClaimsOptions) {
    this.#options = options;
  }

  /** Takes the cluster to which a Secret leads, in place of any other to which it led. Throws TargetRefusedError while another namespace has it, and ApiError. */
  async claim(uid: string, { namespace, name: secret }: KubeconfigSecret, signal: AbortSignal): Promise<void> {
    const { leases, list } = this.#options;
    const name = targetLeaseName(uid);
    const claims = await list(namespace, signal);
    const others = claims.filter(
      (lease) =>
        lease.metadata.name !== name && holderOf(lease) === namespace && secretsOf(lease.metadata).includes(secret),
    );
    // First, as of target clusters. What else the namespace has is looked at on this occasion: Clusters come and go while it stays.
    await leases.release(others, (marks) => withSecrets(marks, namespace, without(secretsOf(marks), secret)), signal);
    await leases.tidy(
      claims.filter((lease) => lease.metadata.name !== name && !others.includes(lease)),
      signal,
    );
    await leases.take(
      {
        name,
        namespace,
        marked: (before) => withSecrets(before, namespace, [...without(secretsOf(before), secret), secret]),
        refused: (holder, unknown) =>
          holder === ALL_NAMESPACES
            ? takenByAll(`The cluster of Secret ${secret}`, unknown)
            : takenBy(
                holder,
                (whose) =>
                  `The cluster of Secret ${secret} is that of ${whose}, too: the Machines of both would claim each other's Nodes. Correct the kubeconfig of one of them, or delete the one that is not needed${unknown === undefined ? '' : instead(unknown)}.`,
              ),
      },
      signal,
    );
  }

  /** Deletes the claims that no Secret leads to any more. Throws ApiError. */
  async tidy(signal: AbortSignal): Promise<void> {
    const { leases, list } = this.#options;
    await leases.tidy(await list(undefined, signal), signal);
  }
}

/** Names of the Secrets for which a claim is held. */
export function secretsOf({ annotations }: Pick<KubeObject['metadata'], 'annotations'>): readonly string[] {
  return annotations?.[CELL_WORKLOAD_SECRETS_ANNOTATION]?.split(',') ?? [];
}

function without(secrets: readonly string[], secret: string): readonly string[] {
  return secrets.filter((name) => name !== secret);
}

function withSecrets(
  { labels = {}, annotations = {} }: ClaimMarks,
  namespace: string,
  secrets: readonly string[],
): ClaimMarks {
  const { [CELL_WORKLOAD_LABEL]: _label, ...otherLabels } = labels;
  const { [CELL_WORKLOAD_SECRETS_ANNOTATION]: _secrets, ...otherAnnotations } = annotations;
  if (secrets.length === 0) return { labels: otherLabels, annotations: otherAnnotations };
  return {
    labels: { ...otherLabels, [CELL_WORKLOAD_LABEL]: namespace },
    annotations: { ...otherAnnotations, [CELL_WORKLOAD_SECRETS_ANNOTATION]: secrets.join(',') },
  };
}
