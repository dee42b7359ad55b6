import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { sleepBy } from '../fakes/fake-clock.ts';

/** The clock of production, of which a test lets time pass at once, for all who wait too. */
export class PassingClock extends SystemClock {
  #passedMs = 0;
  readonly #waiting = new Set<() => void>();

  override now(): number {
    return super.now() + this.#passedMs;
  }

  override monotonicMs(): number {
    return super.monotonicMs() + this.#passedMs;
  }

  override hostWallMs(): number {
    return super.hostWallMs() + this.#passedMs;
  }

  /** Lets so much time pass. */
  pass(ms: number): void {
    this.#passedMs += ms;
    for (const arm of this.#waiting) arm();
  }

  override schedule(delayMs: number, run: () => void): () => void {
    const dueMs = this.monotonicMs() + delayMs;
    let stop: () => void = () => undefined;
    const arm = (): void => {
      stop();
      stop = super.schedule(dueMs - this.monotonicMs(), () => {
        this.#waiting.delete(arm);
        run();
      });
    };
    this.#waiting.add(arm);
    arm();
    return () => {
      this.#waiting.delete(arm);
      stop();
    };
  }

  override sleep(delayMs: number, signal: AbortSignal): Promise<void> {
    return sleepBy(this, delayMs, signal);
  }
}
