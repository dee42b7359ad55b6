import { preconditionFailed } from './failure.ts';
import { isMembers, type Members } from './json.ts';
import type { Kind } from './kinds.ts';
import type { Objects } from './objects.ts';
import { at } from './json.ts';
import { finalizersOf, type StoredObject } from './stored-object.ts';

/** Finalizers by which the garbage collector knows what to do. */
export const FOREGROUND = 'foregroundDeletion';
export const ORPHAN = 'orphan';

/** What a DELETE asks for. */
interface DeleteOptions {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

/** An object after a DELETE, and whether it is gone. */
export interface Deletion {
  readonly object: StoredObject;
  readonly isGone: boolean;
}

/** DELETE: marks what finalizers or a grace hold, and removes the rest. */
export class Deletions {
  readonly #objects: Objects;
  readonly #nowMs: () => number;

  constructor(objects: Objects, nowMs: () => number) {
    this.#objects = objects;
    this.#nowMs = nowMs;
  }

  /** Throws a Failure. */
  delete(kind: Kind, old: StoredObject, sent: unknown): Deletion {
    const options: DeleteOptions = isMembers(sent) ? sent : {};
    requirePreconditions(kind, old, options);
    const { metadata } = old;
    if (kind.plural === 'namespaces' && finalizersOf(old).length > 0) return this.#terminate(kind, old);
    const finalizers = finalizersFor(metadata.finalizers ?? [], options.propagationPolicy);
    const graceS = graceOf(kind, old, options.gracePeriodSeconds);
    if (finalizers.length === 0 && graceS === 0) {
      return { object: this.#objects.remove(kind, isGraceful(kind) ? withoutGrace(old) : old), isGone: true };
    }
    if (metadata.deletionTimestamp !== undefined && graceS >= (metadata.deletionGracePeriodSeconds ?? 0)) {
      if (finalizers.length === (metadata.finalizers ?? []).length) return { object: old, isGone: false };
    }
    const marked: StoredObject = {
      ...old,
      metadata: {
        ...metadata,
        ...(metadata.generation !== undefined && metadata.deletionTimestamp === undefined
          ? { generation: metadata.generation + 1 }
          : {}),
        deletionTimestamp: this.#endOf(old, graceS),
        deletionGracePeriodSeconds: graceS,
        finalizers,
      },
    };
    if (finalizers.length === 0) delete marked.metadata.finalizers;
    return { object: this.#objects.put(kind, marked), isGone: false };
  }

  /** A Namespace stays until its content is gone. */
  #terminate(kind: Kind, old: StoredObject): Deletion {
    const { metadata } = old;
    if (metadata.deletionTimestamp !== undefined) return { object: old, isGone: false };
    const deletionTimestamp = `${new Date(this.#nowMs()).toISOString().slice(0, 19)}Z`;
    const marked = { ...old, metadata: { ...metadata, deletionTimestamp }, status: { phase: 'Terminating' } };
    return { object: this.#objects.put(kind, marked), isGone: false };
  }

  /** When the grace ends; it may be made shorter, and begins only once. */
  #endOf({ metadata }: StoredObject, graceS: number): string {
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
    const beganMs =
      deletionTimestamp === undefined
        ? this.#nowMs()
        : Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000;
    return `${new Date(beganMs + graceS * 1_000).toISOString().slice(0, 19)}Z`;
  }
}

function requirePreconditions(kind: Kind, { metadata }: StoredObject, { preconditions = {} }: DeleteOptions): void {
  const { uid, resourceVersion } = preconditions;
  if (uid !== undefined && uid !== metadata.uid) {
    throw preconditionFailed(
      kind,
      metadata.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw preconditionFailed(
      kind,
      metadata.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    );
  }
}

function finalizersFor(present: readonly string[], policy: DeleteOptions['propagationPolicy']): string[] {
  if (policy === undefined) return [...present];
  const others = present.filter((finalizer) => finalizer !== FOREGROUND && finalizer !== ORPHAN);
  if (policy === 'Background') return others;
  return [...others, policy === 'Foreground' ? FOREGROUND : ORPHAN];
}

/** How long the object stays for its own sake: only pods that run do. */
function graceOf(kind: Kind, object: StoredObject, asked: number | undefined): number {
  if (!isGraceful(kind)) return 0;
  const phase = at(object, ['status', 'phase']);
  if (!at(object, ['spec', 'nodeName']) || phase === 'Succeeded' || phase === 'Failed') return 0;
  const graceS = asked ?? Number(at(object, ['spec', 'terminationGracePeriodSeconds']) ?? 0);
  return graceS < 0 ? 1 : graceS;
}

const isGraceful = ({ plural, group }: Kind): boolean => plural === 'pods' && group === '';

function withoutGrace(object: StoredObject): StoredObject {
  if (object.metadata.deletionTimestamp === undefined) return object;
  return { ...object, metadata: { ...object.metadata, deletionGracePeriodSeconds: 0 } };
}

/** The answer to a DELETE of an object that is gone, of kinds that do not show it. */
export function goneStatus({ group, plural }: Kind, { metadata: { name, uid } }: StoredObject): Members {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name, ...(group !== '' && { group }), kind: plural, uid },
  };
}
