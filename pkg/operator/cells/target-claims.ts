import { CELL_TARGET_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../apis/wire.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../kube/client/errors.ts';
import type { HttpLeaseClient } from '../../kube/client/lease-client.ts';
import { holderOf } from '../../kube/leader/lease.ts';
import { targetLeaseName } from './lease-names.ts';

/** A cell must not have the target cluster, for a reason that is an Event: tried again, as what an API server refuses. */
export class TargetRefusedError extends ApiError {
  readonly event: 'TargetClusterTaken' | 'TargetClusterChanged';

  constructor(event: TargetRefusedError['event'], message: string) {
    super(409, 'Conflict', message);
    this.event = event;
  }
}

export interface TargetClaimsOptions {
  /** Of the namespace in which the process has its Leases. */
  readonly leases: Pick<HttpLeaseClient, 'get' | 'create' | 'replace' | 'delete'>;
  /** Those of one namespace that stand there now; of all without. */
  readonly list: (namespace: string | undefined, signal: AbortSignal) => Promise<readonly Lease[]>;
  /** Whether a namespace is selected, or has Machines, also by another source than a cache: the claim of one that has neither is taken over. */
  readonly isNeededBy: (namespace: string) => Promise<boolean>;
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
    const name = targetLeaseName(uid);
    const claims = await this.#options.list(namespace, signal);
    const others = claims.filter((lease) => lease.metadata.name !== name && holderOf(lease) === namespace);
    const [other] = others;
    if (other !== undefined && this.#options.hasMachines(namespace)) {
      throw new TargetRefusedError(
        'TargetClusterChanged',
        `Its kubeconfig leads to another target cluster than that of its Machines, which would all be replaced. Correct the kubeconfig; or, if that is meant, delete Lease ${other.metadata.name} in namespace ${other.metadata.namespace}.`,
      );
    }
    // Whoever corrects a kubeconfig gives the cluster that it named by mistake to the namespace to which it belongs; first, or two that were
    // mixed up would wait for each other.
    await this.#delete(others, signal);
    await this.#take(name, namespace, signal);
  }

  async #take(name: string, namespace: string, signal: AbortSignal): Promise<void> {
    const { leases, isNeededBy } = this.#options;
    const labels = { [CELL_TARGET_LABEL]: namespace };
    try {
      await leases.create({ metadata: { name, labels }, spec: { holderIdentity: namespace } }, { signal });
      return;
    } catch (err) {
      if (!isAlreadyExists(err)) throw err;
    }
    const lease = await leases.get(name, { signal });
    const holder = holderOf(lease);
    if (holder !== namespace && (await isNeededBy(holder))) {
      throw new TargetRefusedError(
        'TargetClusterTaken',
        `Its target cluster is that of namespace ${holder}, too: the Machines of both would claim each other's Nodes. Correct the kubeconfig of one of them.`,
      );
    }
    // Of two that take it over at once, one meets a conflict, and tries again. Who has it already writes, too, so that whoever found a moment
    // ago that it is no longer needed does not delete it.
    const metadata = { ...lease.metadata, labels: { ...lease.metadata.labels, ...labels } };
    const leaseTransitions = (lease.spec?.leaseTransitions ?? 0) + 1;
    await leases.replace(
      { metadata, spec: { ...lease.spec, holderIdentity: namespace, leaseTransitions } },
      { signal },
    );
  }

  /** Deletes the claims of namespaces that do not need the cluster any more. Throws ApiError. */
  async tidy(signal: AbortSignal): Promise<void> {
    for (const lease of await this.#options.list(undefined, signal)) {
      if (!(await this.#options.isNeededBy(holderOf(lease)))) await this.#delete([lease], signal);
    }
  }

  /** Those that nobody has changed or deleted meanwhile. */
  async #delete(claims: readonly Lease[], signal: AbortSignal): Promise<void> {
    const { leases } = this.#options;
    for (const lease of claims) {
      try {
        await leases.delete(lease, { signal });
      } catch (err) {
        if (!isNotFound(err) && !isConflict(err)) throw err;
      }
    }
  }
}
