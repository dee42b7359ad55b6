import { fromHTTPDate, type Clock } from './clock.ts';

/** A clock whose wall time can be set; SystemClock. */
export interface AnchoredClock extends Clock {
  reanchor(epochMs: number): void;
}

/** One answer of an API server. Both moments are of `Clock.monotonicMs()`. */
export interface DatedAnswer {
  /** The `Date` header as received. */
  readonly date: string | undefined;
  readonly sentMs: number;
  readonly receivedMs: number;
}

/** Skews up to this are normal between hosts and never corrected. */
const TOLERATED_SKEW_MS = 5_000;
/** So many answers in a row must agree: one wrong proxy or one slow answer moves nothing. */
const CONFIRMATIONS = 3;

/**
 * Compares our wall time with one API server's `Date` headers and re-anchors the clock when they say that it is more than
 * 5 s wrong. The header has whole seconds and travels an unknown part of the round trip, so each answer yields only an
 * interval of possible skews; an answer counts only when the whole interval is beyond the tolerance, and three such
 * answers in a row, whose intervals overlap, are needed.
 */
export class ServerTime {
  readonly #clock: AnchoredClock;
  readonly #reanchored: (skewMs: number) => void;
  readonly #confirmations: number;
  #agreeing = 0;
  #lowMs = -Infinity;
  #highMs = Infinity;

  /**
   * `reanchored` receives by how much the wall time was moved (log and metric depend on it). `confirmations`: how many answers in a row must
   * agree; a command that only shows times, and makes a few requests, trusts each answer.
   */
  constructor(parts: { clock: AnchoredClock; reanchored?: (skewMs: number) => void; confirmations?: number }) {
    this.#clock = parts.clock;
    this.#reanchored = parts.reanchored ?? (() => undefined);
    this.#confirmations = parts.confirmations ?? CONFIRMATIONS;
  }

  /** Takes one answer into account. An absent or unparsable header changes nothing. */
  observe({ date, sentMs, receivedMs }: DatedAnswer): void {
    const serverMs = fromHTTPDate(date);
    if (serverMs === undefined || receivedMs < sentMs) return;

    const toWallMs = this.#clock.now() - this.#clock.monotonicMs();
    const lowMs = serverMs - (receivedMs + toWallMs);
    const highMs = serverMs + 1_000 - (sentMs + toWallMs);
    if (lowMs <= TOLERATED_SKEW_MS && highMs >= -TOLERATED_SKEW_MS) return this.#reset();

    this.#narrow(lowMs, highMs);
    if (this.#agreeing < this.#confirmations) return;
    const skewMs = Math.round((this.#lowMs + this.#highMs) / 2);
    this.#reset();
    this.#clock.reanchor(this.#clock.now() + skewMs);
    this.#reanchored(skewMs);
  }

  #narrow(lowMs: number, highMs: number): void {
    if (lowMs > this.#highMs || highMs < this.#lowMs) this.#reset();
    this.#lowMs = Math.max(this.#lowMs, lowMs);
    this.#highMs = Math.min(this.#highMs, highMs);
    this.#agreeing += 1;
  }

  #reset(): void {
    this.#agreeing = 0;
    this.#lowMs = -Infinity;
    this.#highMs = Infinity;
  }
}
