import type { Clock } from '../base/clock/clock.ts';
import type { Target } from '../kube/targets/targets.ts';
import { Waiters } from '../base/clock/waiters.ts';

/**
 * Tells drains of changes in a target's caches. Handlers of an informer cannot be taken back, so that there is one for
 * all drains of a target, made when the first begins.
 */
export class TargetChanges {
  readonly #clock: Clock;
  readonly #byTarget = new WeakMap<Target, Waiters>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notified after every change of a Node or VolumeAttachment of `target`. */
  of(target: Target): Waiters {
    const known = this.#byTarget.get(target);
    if (known !== undefined) return known;
    const changes = new Waiters(this.#clock);
    this.#byTarget.set(target, changes);
    target.nodes.onChange(() => changes.notify());
    target.volumeAttachments.onChange(() => changes.notify());
    return changes;
  }
}
