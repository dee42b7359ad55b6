import type { Wait } from './decision.ts';
import { CLASSES_MS } from './runtime-classes.ts';

/** How soon something that was begun at a runtime is looked at again. */
export const SOON_MS = 1_000;
/** How soon what is waited for is looked for again; ever less often, because watches tell of it. */
export const RECHECK_MS = 5_000;
const MAX_RECHECK_MS = 60_000;

/** When Machines are looked at again for which nothing was done, by their UID. */
export class Rechecks {
  /** For how many passes nothing was done for a Machine: the runtime was not believed. */
  readonly #held = new Map<string, number>();
  /** What a Machine waits for, and for how many passes it has. */
  readonly #waiting = new Map<string, { readonly text: string; readonly passes: number }>();

  /** Whether the runtime was not believed in its last pass. */
  isHeld(uid: string): boolean {
    return this.#held.has(uid);
  }

  /** The runtime is not believed. Returns after how long it is asked again. */
  hold(uid: string, leftMs = Infinity): number {
    const passes = this.#held.get(uid) ?? 0;
    this.#held.set(uid, passes + 1);
    // What the runtime shows again, and what somebody allows, wakes it at once.
    return Math.min(RECHECK_MS * 2 ** passes, MAX_RECHECK_MS, leftMs);
  }

  /** The runtime is believed. Says whether it was not before. */
  release(uid: string): boolean {
    return this.#held.delete(uid);
  }

  /** The Machine waits. Returns for what, and after how long it is looked for. */
  wait(uid: string, waits: readonly Wait[]): { readonly text: string; readonly afterMs: number } {
    const text = waits.map(({ message }) => message).join('; ');
    const last = this.#waiting.get(uid);
    const passes = last?.text === text ? last.passes + 1 : 0;
    this.#waiting.set(uid, { text, passes });
    // No watch tells of the classes of a runtime.
    const mostMs = waits.some(({ reason }) => reason === 'MachineClassNotReady') ? CLASSES_MS : MAX_RECHECK_MS;
    return { text, afterMs: Math.min(RECHECK_MS * 2 ** passes, mostMs) };
  }

  resume(uid: string): void {
    this.#waiting.delete(uid);
  }
}
