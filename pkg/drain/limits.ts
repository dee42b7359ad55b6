import PQueue from 'p-queue';

/** Watches that all drains of the process may hold at once; a watch costs a connection on both sides. */
const MAX_WATCHES = 64;
/** Evictions and deletions of pods under way at once, so that a mass drain leaves connections to everybody else. */
const MAX_REQUESTS = 8;

/** What all drains of a process share. One object for all of them. */
export class DrainLimits {
  readonly #requests: PQueue;
  #watches: number;

  constructor(options: { watches?: number; requests?: number } = {}) {
    this.#watches = options.watches ?? MAX_WATCHES;
    this.#requests = new PQueue({ concurrency: options.requests ?? MAX_REQUESTS });
  }

  /** Takes leave to hold a watch; undefined when all are taken. Call what is returned exactly once to give it back. */
  takeWatch(): (() => void) | undefined {
    if (this.#watches === 0) return undefined;
    this.#watches -= 1;
    return () => {
      this.#watches += 1;
    };
  }

  /** Sends a request as soon as there is room; rejects with the signal's reason when it is aborted while waiting. */
  request<T>(send: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#requests.add(send, { signal });
  }
}
