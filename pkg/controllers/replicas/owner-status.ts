import { isBeingDeleted, refOf } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { type Clock, MINUTE_MS } from '../../base/clock/clock.ts';
import type { ObjectEvents } from '../../kube/events/event-sink.ts';
import type { Writer } from '../../kube/client/client.ts';
import type { Patch } from '../../kube/client/patch.ts';
import type { Resource } from '../../apis/resource.ts';
import { conditionOf } from '../../work/reconcile/conditions.ts';
import type { Finalizer } from '../../work/reconcile/finalizer.ts';
import { changeRefused, invalidAnnotation, invalidSpec } from './events.ts';
import type { AnnotatedKind } from './invalid-annotations.ts';
import type { Owner, OwnerPass } from './owner-controller.ts';

export interface OwnerStatusDeps<T extends Owner> {
  readonly kind: AnnotatedKind;
  readonly resource: Resource<T>;
  readonly objects: Pick<Lister<T>, 'get'>;
  readonly conditionsOf: (object: T) => readonly { readonly type: string; readonly message?: string }[] | undefined;
  readonly finalizer: Finalizer<T>;
  readonly writer: Pick<Writer, 'patch'>;
  readonly recorder: ObjectEvents<T>;
  readonly clock: Clock;
}

export interface ToldFailure {
  readonly text: string;
  readonly kind: FailureKind;
}

/** Machines could not be created or deleted, or another change was rejected. */
export type FailureKind = 'creation' | 'deletion' | 'refusal';

const FAILURE_CONDITIONS = ['ReplicaFailure', 'Progressing'] as const;
type FailureCondition = (typeof FAILURE_CONDITIONS)[number];

/** A status is written at most once in this time; what changes meanwhile goes into the next write. */
const PACE_MS = 250;
/** So long the same failure is told of. */
const FAILURE_PACE_MS = MINUTE_MS;
/** After this time an Event tells again of what is still rejected. */
const TELL_AGAIN_MS = 30 * MINUTE_MS;

/**
 * Writes the statuses of owners of one kind. A burst of hundreds of Machines does not become hundreds of writes: the first change is written
 * at once; only the telling is delayed, never a decision.
 */
export class OwnerStatuses<T extends Owner> {
  readonly #deps: OwnerStatusDeps<T>;
  readonly #writtenAtMs = new Map<string, number>();
  readonly #failures = new Map<string, { readonly told: ToldFailure; readonly sinceMs: number }>();
  readonly #toldAtMs = new Map<string, number>();

  constructor(deps: OwnerStatusDeps<T>) {
    this.#deps = deps;
  }

  /**
   * Writes what `patchOf` says of the object as the cache shows it, unless that is undefined; when it is too early for another write, the pass
   * comes back. What conditions InvalidSpec and InvalidAnnotation begin to say thereby is also an Event; returns whether the first has.
   */
  async write(
    { key, object: acted, invalid: rejected, notes, signal }: OwnerPass<T>,
    patchOf: (object: T) => Patch | undefined,
    invalid = rejected,
  ): Promise<boolean> {
    const { objects, finalizer, writer, resource, clock } = this.#deps;
    const object = objects.get(key);
    if (object === undefined || object.metadata.uid !== acted.metadata.uid) return false;
    if (isBeingDeleted(object) && !finalizer.holds(object)) return false;
    const patch = patchOf(object);
    if (patch === undefined) return false;
    const waitMs = (this.#writtenAtMs.get(key) ?? -Infinity) + PACE_MS - clock.monotonicMs();
    if (waitMs > 0) {
      notes.alsoAfter(waitMs, 'its status to be recorded');
      return false;
    }
    this.#writtenAtMs.set(key, clock.monotonicMs());
    await writer.patch('change', resource, refOf(object), patch, { signal });
    return this.#report(object, invalid);
  }

  /** What a condition says of a failure: one that has another text in each pass must not become a write in each pass. */
  failureOf(
    key: string,
    text: string | undefined,
    kind: FailureKind = 'refusal',
    condition: FailureCondition = 'ReplicaFailure',
  ): ToldFailure | undefined {
    const id = `${condition} ${key}`;
    if (text === undefined) {
      this.#failures.delete(id);
      return undefined;
    }
    const nowMs = this.#deps.clock.monotonicMs();
    const before = this.#failures.get(id);
    if (before !== undefined && nowMs - before.sinceMs < FAILURE_PACE_MS) return before.told;
    if (before?.told.text === text && before.told.kind === kind) return before.told;
    const told = { text, kind };
    this.#failures.set(id, { told, sinceMs: nowMs });
    return told;
  }

  /** An Event tells of what was rejected: at first, and now and then. */
  tell({ key, object, refusal }: OwnerPass<T>): void {
    const nowMs = this.#deps.clock.monotonicMs();
    if (refusal === undefined) this.#toldAtMs.delete(key);
    else if (nowMs - (this.#toldAtMs.get(key) ?? -Infinity) >= TELL_AGAIN_MS) {
      this.#toldAtMs.set(key, nowMs);
      this.#deps.recorder.event(changeRefused(object, refusal));
    }
  }

  forget(key: string): void {
    this.#writtenAtMs.delete(key);
    for (const condition of FAILURE_CONDITIONS) this.#failures.delete(`${condition} ${key}`);
    this.#toldAtMs.delete(key);
  }

  #report(object: T, invalid: string | undefined): boolean {
    const { kind, recorder, conditionsOf } = this.#deps;
    const before = conditionsOf(object) ?? [];
    const annotations = invalidAnnotation(object, kind, before);
    if (annotations !== undefined) recorder.event(annotations);
    if (invalid === undefined || invalid === conditionOf(before, 'InvalidSpec')?.message) return false;
    recorder.event(invalidSpec(object, invalid));
    return true;
  }
}
