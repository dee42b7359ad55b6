import type { Clock } from '../../base/clock/clock.ts';
import { abortable, SHARED_MS } from './abortable.ts';
import type { Server } from './server.ts';

/** Between two looks, at first and at most. */
const FIRST_MS = 1_000;
const LONGEST_MS = 10_000;
const GROWTH = 1.3;
/** A list that takes long costs the cloud much: the pause after it is so many times as long. */
const REST = 3;

export interface ServerPollDeps {
  readonly clock: Clock;
  /** All servers of the cluster that may be waited for. */
  readonly list: (signal: AbortSignal) => Promise<readonly Server[]>;
  /** One server; undefined when it is not there. */
  readonly read: (id: string, signal: AbortSignal) => Promise<Server | undefined>;
}

/**
 * Waits for servers to change: one list shows all of them to everyone who waits, instead of a request for each. It looks each second
 * after somebody has come, and more and more rarely then.
 */
export class ServerPoll {
  readonly #deps: ServerPollDeps;
  #pauseMs = FIRST_MS;
  #tookMs = 0;
  #poll: Promise<ReadonlyMap<string, Server>> | undefined;

  constructor(deps: ServerPollDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves with the first server that `isEnough`, or undefined when there is none any more; with the last one seen when `forMs` have
   * passed. Rejects with the signal's reason.
   */
  async until(
    id: string,
    isEnough: (server: Server) => boolean,
    forMs: number,
    signal: AbortSignal,
  ): Promise<Server | undefined> {
    const { clock, read } = this.#deps;
    const endMs = clock.monotonicMs() + forMs;
    this.#pauseMs = FIRST_MS;
    for (;;) {
      const listed = (await this.#next(signal)).get(id);
      // What a list does not show may be there: a tag can be taken away.
      const server = listed ?? (await read(id, signal));
      if (server === undefined || isEnough(server) || clock.monotonicMs() >= endMs) return server;
    }
  }

  async #next(signal: AbortSignal): Promise<ReadonlyMap<string, Server>> {
    this.#poll ??= this.#pollLater().finally(() => {
      this.#poll = undefined;
    });
    return await abortable(this.#poll, signal);
  }

  async #pollLater(): Promise<ReadonlyMap<string, Server>> {
    const { clock, list } = this.#deps;
    const signal = AbortSignal.timeout(SHARED_MS);
    await clock.sleep(Math.min(Math.max(this.#pauseMs, REST * this.#tookMs), LONGEST_MS), signal);
    this.#pauseMs = Math.min(this.#pauseMs * GROWTH, LONGEST_MS);
    const startedMs = clock.monotonicMs();
    const servers = await list(signal);
    this.#tookMs = clock.monotonicMs() - startedMs;
    return new Map(servers.map((server) => [server.id, server]));
  }
}
