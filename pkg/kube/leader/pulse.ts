import type { Clock } from '../../base/clock/clock.ts';

const BEAT_MS = 1_000;
const US_PER_MS = 1_000;

/** Shows other threads when the event loop of this one last turned. */
export class Pulse {
  readonly memory = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT);
  readonly #cell = new BigInt64Array(this.memory);
  readonly #clock: Clock;
  #cancel: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#beat();
  }

  stop(): void {
    this.#cancel();
  }

  #beat(): void {
    Atomics.store(this.#cell, 0, BigInt(Math.floor(this.#clock.monotonicMs() * US_PER_MS)));
    this.#cancel = this.#clock.schedule(BEAT_MS, () => this.#beat());
  }
}

/** Milliseconds since the event loop behind `memory` last turned. */
export function stalledForMs(memory: SharedArrayBuffer, clock: Clock): number {
  return clock.monotonicMs() - Number(Atomics.load(new BigInt64Array(memory), 0)) / US_PER_MS;
}
