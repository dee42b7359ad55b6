import { SECRET_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, type KubeObject } from '../../apis/meta.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Writer } from '../../kube/client.ts';
import { mergePatchIfUnchanged } from '../../kube/patch.ts';
import { secrets } from '../../kube/resource.ts';
import { stop, type StepResult } from '../../reconcile/result.ts';
import { SECRET_INDEX } from '../../indexes/secret-references.ts';

export interface SecretDeps extends Pick<Caches, 'secrets' | 'classes'> {
  readonly writer: Writer;
}

/**
 * Holds a Secret for as long as a MachineClass names it, by namespace and name: without its credentials nobody can delete
 * the VMs of the class.
 */
export class SecretController {
  readonly #deps: SecretDeps;

  constructor(deps: SecretDeps) {
    this.#deps = deps;
  }

  /** One pass over one Secret. What it throws is retried with back-off. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const secret = this.#deps.secrets.get(key);
    if (secret === undefined) return stop;
    const finalizers = secret.metadata.finalizers ?? [];
    const isUsed = this.#deps.classes.byIndex(SECRET_INDEX, key).length > 0;
    const isHeld = finalizers.includes(SECRET_FINALIZER);

    // No finalizer can be added to what is being deleted.
    if (isUsed && !isHeld && !isBeingDeleted(secret)) {
      await this.#writeFinalizers(secret, [...finalizers, SECRET_FINALIZER], signal);
    }
    if (!isUsed && isHeld) {
      const released = finalizers.filter((finalizer) => finalizer !== SECRET_FINALIZER);
      await this.#writeFinalizers(secret, released, signal);
    }
    return stop;
  }

  async #writeFinalizers(secret: KubeObject, finalizers: string[], signal: AbortSignal): Promise<void> {
    const { namespace = '', name } = secret.metadata;
    const patch = mergePatchIfUnchanged(secret, { metadata: { finalizers } });
    await this.#deps.writer.patch('change', secrets, { namespace, name }, patch, { signal });
  }
}
