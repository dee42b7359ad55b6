import { CELL_TARGET_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../apis/wire.ts';
import { holderOf } from '../../kube/leader/lease.ts';
import { takenBy, TargetRefusedError } from '../target-refused-error.ts';
import type { ClaimLeases, ClaimMarks } from './claim-leases.ts';
import { targetLeaseName } from './lease-names.ts';

export interface TargetClaimsOptions {
  readonly leases: ClaimLeases;
  /** Those that one namespace has now; all without. */
  readonly list: (namespace: string | undefined, signal: AbortSignal) => Promise<readonly Lease[]>;
  readonly hasMachines: (namespace: string) => boolean;
}

/**
 * Which namespace has a target cluster, for all replicas: the one that holds Lease `machinist-target-<UID of Namespace kube-system>`. It is
 * not renewed, and lasts as long as the namespace is selected or has Machines, or until it gets another target cluster. It gets none while it
 * has Machines: their Nodes are in the one that it has, and would all be missed.
 */
export class TargetClaims {
  readonly #options: TargetClaimsOptions;

  constructor(options: TargetClaimsOptions) {
    this.#options = options;
  }

  /** Takes the cluster for a namespace, in place of any other that it had. Throws TargetRefusedError while it must not have it, and ApiError. */
  async claim(uid: string, namespace: string, signal: AbortSignal): Promise<void> {
    const { leases, list, hasMachines } = this.#options;
    const name = targetLeaseName(uid);
    const claims = await list(namespace, signal);
    const others = claims.filter((lease) => lease.metadata.name !== name && holderOf(lease) === namespace);
    const [other] = others;
    if (other !== undefined && hasMachines(namespace)) {
      throw new TargetRefusedError(
        'TargetClusterChanged',
        `Its kubeconfig leads to another target cluster than that of its Machines, which would all be replaced. Correct the kubeconfig; or, if that is meant, delete Lease ${other.metadata.name} in namespace ${other.metadata.namespace}.`,
      );
    }
    // Whoever corrects a kubeconfig gives the cluster that it named by mistake to the namespace to which it belongs; first, or two that were
    // mixed up would wait for each other.
    await leases.release(others, notTarget, signal);
    await leases.take(
      {
        name,
        namespace,
        marked: ({ labels, annotations }) => ({
          labels: { ...labels, [CELL_TARGET_LABEL]: namespace },
          ...(annotations && { annotations }),
        }),
        refused: (holder, unknown) =>
          takenBy(
            holder,
            (whose) =>
              `Its target cluster is that of ${whose}, too: the Machines of both would claim each other's Nodes. Correct the kubeconfig of one of them${unknown === undefined ? '' : instead(unknown)}.`,
          ),
      },
      signal,
    );
  }

  /**
   * Makes sure that the Machines of a namespace, whose Nodes are in a target cluster that others have too, have none in one of its own. Throws
   * TargetRefusedError, and ApiError.
   */
  async requireNone(namespace: string, signal: AbortSignal): Promise<void> {
    const { leases, list, hasMachines } = this.#options;
    const own = (await list(namespace, signal)).filter((lease) => holderOf(lease) === namespace);
    const [claim] = own;
    if (claim !== undefined && hasMachines(namespace)) {
      throw new TargetRefusedError(
        'TargetClusterChanged',
        `Its Machines have Nodes in a target cluster of its own, and in the one of --target-kubeconfig they would all be replaced. Start the manager with --cell-kubeconfig-secret; or, if it is the same cluster, or that is meant, delete Lease ${claim.metadata.name} in namespace ${claim.metadata.namespace}.`,
      );
    }
    await leases.release(own, notTarget, signal);
  }

  /** Deletes the claims of namespaces that do not need the cluster any more. Throws ApiError. */
  async tidy(signal: AbortSignal): Promise<void> {
    const { leases, list } = this.#options;
    await leases.tidy(await list(undefined, signal), signal);
  }
}

function notTarget({ labels = {}, annotations }: ClaimMarks): ClaimMarks {
  const { [CELL_TARGET_LABEL]: _target, ...others } = labels;
  return { labels: others, ...(annotations && { annotations }) };
}

/** What helps where nobody knows whether the other namespace still needs the cluster. */
export function instead({ metadata: { name, namespace = '' } }: Lease): string {
  return `; or, if that namespace is gone, or has no Machines, delete Lease ${name} in namespace ${namespace}`;
}
