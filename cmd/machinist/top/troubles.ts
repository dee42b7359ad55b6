import { ApiError } from '../../../pkg/kube/client/errors.ts';
import type { SourceTrouble } from './facts.ts';

/** What cannot be read at the moment, from how requests end. */
export class Troubles {
  readonly #apiServer: string;
  readonly #refused = new Map<string, SourceTrouble>();
  #lastAnswerMs: number;
  #outage: SourceTrouble | undefined;

  /** `apiServer`: how an outage of it is called. */
  constructor(apiServer: string, nowMs: number) {
    this.#apiServer = apiServer;
    this.#lastAnswerMs = nowMs;
  }

  /** A request about `what` has ended; undefined: with an answer. */
  note(what: string, err: unknown, nowMs: number): void {
    if (err !== undefined && !(err instanceof ApiError)) return;
    if (err?.code === 0) {
      const { message } = err;
      this.#outage ??= { what: this.#apiServer, sinceMs: this.#lastAnswerMs, message, isRefused: false };
      return;
    }
    // It has answered, whatever it said.
    this.#lastAnswerMs = nowMs;
    this.#outage = undefined;
    if (err === undefined) {
      this.#refused.delete(what);
      return;
    }
    const sinceMs = this.#refused.get(what)?.sinceMs ?? nowMs;
    this.#refused.set(what, { what, sinceMs, message: err.status?.message ?? err.message, isRefused: true });
  }

  list(): readonly SourceTrouble[] {
    return [...(this.#outage === undefined ? [] : [this.#outage]), ...this.#refused.values()];
  }
}
