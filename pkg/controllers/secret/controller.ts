import { SECRET_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, type KubeObject } from '../../apis/meta.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Writer } from '../../kube/client/client.ts';
import { secrets } from '../../kube/client/resource.ts';
import { Finalizer } from '../../work/reconcile/finalizer.ts';
import { stop, type StepResult } from '../../work/reconcile/result.ts';
import { SECRET_INDEX } from '../../operator/indexes/secret-references.ts';

export interface SecretDeps extends Pick<Caches, 'secrets' | 'classes'> {
  readonly writer: Writer;
}

/**
 * Holds a Secret for as long as a MachineClass names it, by namespace and name: without its credentials nobody can delete
 * the VMs of the class.
 */
export class SecretController {
  readonly #deps: SecretDeps;
  readonly #finalizer: Finalizer<KubeObject>;

  constructor(deps: SecretDeps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, secrets, SECRET_FINALIZER);
  }

  /** One pass over one Secret. What it throws is retried with back-off. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const secret = this.#deps.secrets.get(key);
    if (secret === undefined) return stop;
    const isUsed = this.#deps.classes.byIndex(SECRET_INDEX, key).length > 0;
    // No finalizer can be added to what is being deleted.
    if (isUsed && !isBeingDeleted(secret)) await this.#finalizer.add(secret, signal);
    if (!isUsed && this.#finalizer.holds(secret)) await this.#finalizer.remove(secret, signal);
    return stop;
  }
}
