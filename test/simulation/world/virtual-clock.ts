import { sleepBy } from '../../fakes/fake-clock.ts';
import type { ProcessClock } from '../../../pkg/base/clock/process-clock.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import { type Timer, TimerQueue } from './timer-queue.ts';

/** Turns of the event loop after which chains of promises have ended, also those that cross `setImmediate`. */
const TURNS = 3;
/** Between two things that a process catches up with. */
const CATCH_UP_MS = 0.001;
/** What a timer waits at least that is to wait at all, and is too short to make a difference to the time: else who waits for a rest of it waits forever. */
const LEAST_MS = 0.001;
/** More cannot happen at one moment: something is repeated without a pause. */
const MOST_AT_ONCE = 200_000;

/** The time of a world: it stands until it is moved, and what is due at one moment runs in an order that the seed draws. */
export class VirtualTime {
  readonly #queue = new TimerQueue();
  readonly #random: Random;
  readonly #epochMs: number;
  #nowMs = 0;

  constructor(random: Random, epochMs: number = Date.parse('2026-01-01T00:00:00Z')) {
    this.#random = random;
    this.#epochMs = epochMs;
  }

  /** Milliseconds since the world began. */
  get elapsedMs(): number {
    return this.#nowMs;
  }

  get epochMs(): number {
    return this.#epochMs + this.#nowMs;
  }

  /** Calls `run` after `delayMs`; the returned function cancels it. */
  schedule(delayMs: number, run: () => void): () => void {
    const dueMs = this.#nowMs + Math.max(0, delayMs);
    const atMs = delayMs > 0 && dueMs === this.#nowMs ? dueMs + LEAST_MS : dueMs;
    const timer: Timer = { atMs, order: this.#random(), run, isCancelled: false };
    this.#queue.push(timer);
    return () => {
      timer.isCancelled = true;
    };
  }

  /**
   * Moves time by `ms`, with all that happens meanwhile; ends sooner when `isEnough` says so, which is asked at each moment.
   * Throws when time stands still.
   */
  async advance(ms: number, isEnough: () => boolean = () => false): Promise<void> {
    const untilMs = this.#nowMs + ms;
    let atOnce = 0;
    await settle();
    while (!isEnough()) {
      const next = this.#queue.next;
      if (next === undefined || next.atMs > untilMs) {
        this.#nowMs = untilMs;
        return;
      }
      this.#queue.pop();
      atOnce = next.atMs === this.#nowMs ? atOnce + 1 : 0;
      if (atOnce > MOST_AT_ONCE) throw new Error(`time stands still at ${this.#nowMs} ms: something has no end`);
      this.#nowMs = next.atMs;
      next.run();
      await settle();
    }
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < TURNS; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** The clock of one process of a world. It may be made to stand still with its process, and ends with it. */
export class VirtualClock implements ProcessClock {
  readonly #time: VirtualTime;
  #offsetMs = 0;
  #hostOffsetMs = 0;
  #timers = 0;
  #state: 'runs' | 'paused' | 'resuming' | 'dead' = 'runs';
  /** What fell due while the process stood still. */
  #late: (() => void)[] = [];

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  now(): number {
    return Math.round(this.#time.epochMs + this.#offsetMs);
  }

  monotonicMs(): number {
    return this.#time.elapsedMs;
  }

  hostWallMs(): number {
    return Math.round(this.#time.epochMs + this.#hostOffsetMs);
  }

  schedule(delayMs: number, run: () => void): () => void {
    let isOver = false;
    const end = (): void => {
      if (!isOver) this.#timers -= 1;
      isOver = true;
    };
    this.#timers += 1;
    const cancel = this.#time.schedule(delayMs, () =>
      this.deliver(() => {
        if (isOver) return;
        end();
        run();
      }),
    );
    return () => {
      end();
      cancel();
    };
  }

  /** How many timers its process has set that are neither due nor cancelled. */
  get timers(): number {
    return this.#timers;
  }

  sleep(delayMs: number, signal: AbortSignal): Promise<void> {
    return sleepBy(this, delayMs, signal);
  }

  reanchor(epochMs: number): void {
    this.#offsetMs = epochMs - this.#time.epochMs;
  }

  /** Moves the host's wall clock, as somebody who sets it does. */
  jump(ms: number): void {
    this.#hostOffsetMs += ms;
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  get isPaused(): boolean {
    return this.#state === 'paused';
  }

  /** Hands something to the process: at once, or when it goes on; never when it is dead. */
  deliver(run: () => void): void {
    if (this.#state === 'runs') run();
    else if (this.#state !== 'dead') this.#late.push(run);
  }

  /** What the process does itself at this moment: also while it catches up, and when it goes on if it stands still. */
  perform(run: () => void): void {
    if (this.#state === 'resuming') run();
    else this.deliver(run);
  }

  /** The process stands still: no timer of its fires, no answer reaches it. */
  pause(): void {
    if (this.#state !== 'dead') this.#state = 'paused';
  }

  /** What fell due meanwhile happens in its order, with all that follows from each before the next: no timer is looked at before an answer. */
  resume(): void {
    if (this.#state !== 'paused') return;
    this.#state = 'resuming';
    this.#catchUp();
  }

  #catchUp(): void {
    if (this.#state !== 'resuming') return;
    const run = this.#late.shift();
    if (run === undefined) {
      this.#state = 'runs';
      return;
    }
    this.#time.schedule(CATCH_UP_MS, () => this.#catchUp());
    run();
  }

  /** The process has died: nothing of its happens any more. */
  kill(): void {
    this.#state = 'dead';
    this.#late = [];
  }
}
