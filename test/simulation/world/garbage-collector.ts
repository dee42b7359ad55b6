import type { SimulatedAPIServer } from '../api-server/api-server.ts';
import { FOREGROUND, ORPHAN } from '../api-server/deletions.ts';
import type { Kind } from '../api-server/kinds.ts';
import { apiVersionOf } from '../api-server/kinds.ts';
import { keyOf, type OwnerReference, type StoredObject } from '../api-server/stored-object.ts';
import type { VirtualTime } from './virtual-clock.ts';

const LOOK_AFTER_MS = 300;

interface Found {
  readonly kind: Kind;
  readonly object: StoredObject;
}

/** Runs the garbage collector of kube-controller-manager: what has lost its owners goes, and owners wait as they were told to. */
export function collectGarbage(server: SimulatedAPIServer, time: Pick<VirtualTime, 'schedule'>): void {
  new GarbageCollector(server).follow(time);
}

class GarbageCollector {
  readonly #server: SimulatedAPIServer;

  constructor(server: SimulatedAPIServer) {
    this.#server = server;
  }

  follow(time: Pick<VirtualTime, 'schedule'>): void {
    this.#server.objects.onRestore(() => void time.schedule(LOOK_AFTER_MS, () => this.#lookAtAll()));
    this.#server.objects.onChange((kind, { type, object }) => {
      const { uid, finalizers = [], deletionTimestamp } = object.metadata;
      const look = (run: () => void): void => void time.schedule(LOOK_AFTER_MS, run);
      const lookAt = (run: (found: Found) => void): void => look(() => this.#present(kind, object).forEach(run));
      // An object may also be made for an owner that is gone by then.
      if (type === 'ADDED' && (object.metadata.ownerReferences ?? []).length > 0) lookAt((one) => this.#collect(one));
      if (type === 'DELETED') look(() => this.#collectOf(uid));
      else if (deletionTimestamp !== undefined && finalizers.includes(ORPHAN)) lookAt((one) => this.#orphan(one));
      else if (deletionTimestamp !== undefined && finalizers.includes(FOREGROUND)) {
        lookAt((one) => this.#awaitDependents(one));
      }
    });
  }

  /** An object as it is now: it decides over nothing older. Empty when it is gone. */
  #present(kind: Kind, { metadata }: StoredObject): Found[] {
    const object = this.#server.objects.of(kind).get(keyOf(metadata));
    return object?.metadata.uid === metadata.uid ? [{ kind, object }] : [];
  }

  #lookAtAll(): void {
    for (const found of this.#all()) {
      this.#collect(found);
      if (found.object.metadata.finalizers?.includes(FOREGROUND)) this.#awaitDependents(found);
    }
  }

  #all(): Found[] {
    const { kinds, objects } = this.#server;
    return kinds.flatMap((kind) =>
      objects
        .of(kind)
        .list()
        .map((object) => ({ kind, object })),
    );
  }

  #ownedBy(uid: string): Found[] {
    return this.#all().filter(({ object }) => object.metadata.ownerReferences?.some((owner) => owner.uid === uid));
  }

  #collectOf(uid: string): void {
    for (const found of this.#ownedBy(uid)) this.#collect(found);
    for (const waiting of this.#all()) {
      if (waiting.object.metadata.finalizers?.includes(FOREGROUND)) this.#awaitDependents(waiting);
    }
  }

  /** Deletes an object none of whose owners exists. Whether one of a kind that is not served exists nobody can say. */
  #collect({ kind, object }: Found): void {
    const uids = new Set(this.#all().map((one) => one.object.metadata.uid));
    const owners = object.metadata.ownerReferences ?? [];
    if (owners.length === 0 || owners.some((owner) => uids.has(owner.uid) || !this.#isServed(owner))) return;
    this.#delete({ kind, object }, 'Background');
  }

  #isServed({ apiVersion, kind }: OwnerReference): boolean {
    return this.#server.kinds.some((one) => apiVersionOf(one) === apiVersion && one.kind === kind);
  }

  #awaitDependents({ kind, object }: Found): void {
    const { uid } = object.metadata;
    const dependents = this.#ownedBy(uid);
    for (const found of dependents) {
      if (found.object.metadata.deletionTimestamp === undefined) this.#delete(found, 'Foreground');
    }
    const blocks = ({ object: one }: Found): boolean =>
      one.metadata.ownerReferences?.some((owner) => owner.uid === uid && owner.blockOwnerDeletion === true) ?? false;
    if (!dependents.some(blocks)) this.#release({ kind, object }, FOREGROUND);
  }

  #orphan({ kind, object }: Found): void {
    const { uid } = object.metadata;
    for (const { kind: of, object: one } of this.#ownedBy(uid)) {
      const ownerReferences = one.metadata.ownerReferences?.filter((owner) => owner.uid !== uid);
      this.#patch({ kind: of, object: one }, { metadata: { ownerReferences } });
    }
    this.#release({ kind, object }, ORPHAN);
  }

  #release({ kind, object }: Found, finalizer: string): void {
    const finalizers = object.metadata.finalizers?.filter((one) => one !== finalizer);
    this.#patch({ kind, object }, { metadata: { finalizers } });
  }

  #patch(found: Found, body: object): void {
    this.#server.handle({ method: 'PATCH', path: pathOf(found), body, contentType: 'application/merge-patch+json' });
  }

  #delete(found: Found, propagationPolicy: 'Background' | 'Foreground'): void {
    const { uid } = found.object.metadata;
    const body = { preconditions: { uid }, propagationPolicy };
    this.#server.handle({ method: 'DELETE', path: pathOf(found), body });
  }
}

function pathOf({ kind, object: { metadata } }: Found): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${apiVersionOf(kind)}`;
  const scope = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
  return `${root}${scope}/${kind.plural}/${metadata.name}`;
}
