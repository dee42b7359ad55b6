import type { KubeObject } from '../apis/meta.ts';
import type { Informer } from '../kube/cache/lister.ts';
import type { ObjectIdentity } from '../kube/client/client.ts';
import type { WriteObserver } from '../kube/client/gated-writer.ts';
import type { Resource } from '../apis/resource.ts';

/** Hands the answers of our own writes to the caches that hold such objects, so that the next pass reads them. */
export class OwnWrites implements WriteObserver {
  readonly #informers = new Map<string, Pick<Informer<KubeObject>, 'wrote' | 'deleted'>>();

  /** From now on `informer` learns of writes to `resource`. */
  feed<T extends KubeObject>(resource: Resource<T>, informer: Informer<T>): void {
    // The map is keyed by resource, so that an informer only ever gets objects of its own type.
    this.#informers.set(nameOf(resource), informer);
  }

  /** `informer` is given up. */
  forget<T extends KubeObject>(resource: Resource<T>, informer: Informer<T>): void {
    // Another one may have taken its place.
    if (this.#informers.get(nameOf(resource)) === (informer as unknown)) this.#informers.delete(nameOf(resource));
  }

  wrote<T extends KubeObject>(resource: Resource<T>, object: T): void {
    this.#informers.get(nameOf(resource))?.wrote(object);
  }

  deleted(resource: Resource<KubeObject>, object: ObjectIdentity): void {
    this.#informers.get(nameOf(resource))?.deleted(object);
  }
}

function nameOf(resource: Resource<KubeObject>): string {
  return `${resource.group}/${resource.plural}`;
}
