import { type Random, secureRandom } from '../../base/random/random.ts';

export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
  /** Growth per failure; 2 unless told otherwise. */
  readonly factor?: number;
  /** Share by which a delay may be shorter or longer, so that failures do not march in step; 0.2 unless told otherwise. */
  readonly jitter?: number;
  readonly random?: Random | undefined;
}

/** No timer is later than this on purpose. */
const MAX_LATE_MS = 1_000;

/** Exponential delays with jitter. Stateless: failures are counted per key by who asks; there is no shared bucket. */
export class Backoff {
  readonly #options: Required<BackoffOptions> & { readonly random: Random };

  constructor(options: BackoffOptions) {
    this.#options = { factor: 2, jitter: 0.2, ...options, random: options.random ?? secureRandom };
  }

  /**
   * Delay before the next try after `failures` failures in a row (1 = the first). Never above `mostMs`; the longest delays are
   * jittered too, to one side: tries in step with a network that comes and goes would all meet it when it is gone.
   */
  delayMs(failures: number, mostMs: number = this.#options.maxMs): number {
    const { baseMs, maxMs, factor, jitter, random } = this.#options;
    const limitMs = Math.min(mostMs, maxMs);
    const plainMs = Math.min(limitMs, baseMs * factor ** Math.max(0, failures - 1));
    const delayMs = plainMs * (1 + jitter * (2 * random() - 1));
    return delayMs > limitMs ? 2 * limitMs - delayMs : delayMs;
  }

  /**
   * A time that was asked for, or a little later: by half of the jitter's share, and a second, at most. What is tried every five
   * seconds exactly would always meet a network of some rhythm at the same moment.
   */
  lateMs(askedMs: number): number {
    const { jitter, random } = this.#options;
    return askedMs + Math.min((askedMs * jitter) / 2, MAX_LATE_MS) * random();
  }
}
