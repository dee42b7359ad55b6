import type { Random } from '../../../pkg/base/random/random.ts';
import type { APIRequest } from '../api-server/api-server.ts';
import type { OldCache, RequestFault, Weather } from './network.ts';

/** How often things go wrong between a process and a server: shares of requests, or of watches. */
export interface FaultRates {
  readonly requestLost: number;
  readonly answerLost: number;
  readonly refused429: number;
  readonly refused500: number;
  /** Of the verbs on kinds: those may not be used for as long as the rates last, as when a role is taken away. */
  readonly refused403: number;
  /** Of the changes that are made only to what was read: another writer is just faster, so that they are refused (409). */
  readonly conflict409: number;
  readonly slow: number;
  readonly watchCut: number;
  readonly watchForgotten: number;
  readonly watchSilent: number;
  /** Of the lists of a kind that may be answered from a cache: that is behind, and stays so for a while; of a tenth as many watches. */
  readonly oldReads: number;
  /** How far behind watches are, by kind: up to so many milliseconds. */
  readonly watchLagMs: number;
}

/** Nothing goes wrong. */
export const FINE: FaultRates = {
  requestLost: 0,
  answerLost: 0,
  refused429: 0,
  refused500: 0,
  refused403: 0,
  conflict409: 0,
  slow: 0,
  watchCut: 0,
  watchForgotten: 0,
  watchSilent: 0,
  oldReads: 0,
  watchLagMs: 0,
};

/** How far behind a cache is at most, and for how long it stays so. */
const MOST_OLD_MS = 300_000;
const MOST_HELD_MS = 60_000;

interface Streams {
  /** The time of the world. */
  readonly nowMs: () => number;
  /** Which verbs on which kinds may not be used. */
  readonly forbids: Random;
  /** When another writer is faster. */
  readonly others: Random;
  /** How old is what is answered from caches. */
  readonly caches: Random;
}

/** The weather of one stream of random numbers; rates may change while it lasts. */
export class SeededWeather implements Weather {
  rates: FaultRates = FINE;
  readonly #nowMs: () => number;
  #downSinceMs = Infinity;
  readonly #random: Random;
  #lags = new Map<string, number>();
  #lagsOf: FaultRates | undefined;
  readonly #forbids: Random;
  readonly #others: Random;
  readonly #caches: Random;
  /** By kind. */
  readonly #old = new Map<string, OldCache>();
  #forbidden = new Map<string, boolean>();
  #forbiddenOf: FaultRates | undefined;

  constructor(random: Random, { nowMs, forbids, others, caches }: Streams) {
    this.#random = random;
    this.#nowMs = nowMs;
    this.#forbids = forbids;
    this.#others = others;
    this.#caches = caches;
  }

  /** No request reaches the server, and nothing comes from it. */
  get isDown(): boolean {
    return this.#downSinceMs < Infinity;
  }

  set isDown(is: boolean) {
    if (is !== this.isDown) this.#downSinceMs = is ? this.#nowMs() : Infinity;
  }

  /** Infinity: it is not down. */
  get downSinceMs(): number {
    return this.#downSinceMs;
  }

  latencyMs(): number {
    const ms = 0.5 + this.#random() * 12;
    return this.#random() < this.rates.slow ? ms + this.#random() * 20_000 : ms;
  }

  faultOf(request: APIRequest): RequestFault {
    if (this.isDown) return 'request-lost';
    if (this.#isForbidden(request)) return 'refused-403';
    const { requestLost, answerLost, refused429, refused500 } = this.rates;
    let drawn = this.#random();
    const is = (rate: number): boolean => (drawn -= rate) < 0;
    if (is(requestLost)) return 'request-lost';
    if (is(answerLost / 2)) return 'answer-lost';
    if (is(answerLost / 2)) return 'failed-500';
    if (is(refused429)) return 'refused-429';
    if (is(refused500)) return 'refused-500';
    return this.#isOvertaken(request) ? 'overtaken' : 'done';
  }

  watchLifeMs(): number {
    return this.#random() < this.rates.watchCut ? 1_000 + this.#random() * 12_000 : Infinity;
  }

  isForgotten(): boolean {
    return this.#random() < this.rates.watchForgotten;
  }

  /** One kind is ahead of the others, or behind; anew for each rates. */
  lagMs(path: string): number {
    const { watchLagMs } = this.rates;
    if (watchLagMs === 0) return 0;
    if (this.#lagsOf !== this.rates) [this.#lagsOf, this.#lags] = [this.rates, new Map()];
    const kind = path.split('?')[0]!;
    const lag = this.#lags.get(kind) ?? this.#random() ** 2 * watchLagMs;
    this.#lags.set(kind, lag);
    return lag;
  }

  isSilenced(): boolean {
    return this.#random() < this.rates.watchSilent;
  }

  oldCacheOf({ method, path }: APIRequest, nowMs: number): OldCache | undefined {
    const { oldReads } = this.rates;
    if (oldReads === 0 || method !== 'GET') return undefined;
    const kind = path.split('?')[0]!;
    const known = this.#old.get(kind);
    if (known !== undefined && known.untilMs > nowMs) return known;
    const isWatch = /[?&]watch=true/.test(path);
    const mayBeOld = /[?&]resourceVersion=\d/.test(path) && !/[?&]resourceVersionMatch=Exact/.test(path);
    if (!(isWatch || mayBeOld) || this.#caches() >= oldReads * (isWatch ? 0.1 : 1)) return undefined;
    const old = {
      atMs: nowMs - this.#caches() ** 2 * MOST_OLD_MS,
      untilMs: nowMs + this.#caches() * MOST_HELD_MS,
    };
    this.#old.set(kind, old);
    return old;
  }

  #isOvertaken({ body }: APIRequest): boolean {
    const { conflict409 } = this.rates;
    return conflict409 > 0 && namesRevision(body) && this.#others() < conflict409;
  }

  #isForbidden({ method, path }: APIRequest): boolean {
    const { refused403 } = this.rates;
    if (refused403 === 0) return false;
    if (this.#forbiddenOf !== this.rates) [this.#forbiddenOf, this.#forbidden] = [this.rates, new Map()];
    const verb = verbOf(method, path);
    const isForbidden = this.#forbidden.get(verb) ?? this.#forbids() < refused403;
    this.#forbidden.set(verb, isForbidden);
    return isForbidden;
  }
}

/** Whether a change is made only to an object as it was read. */
function namesRevision(body: unknown): boolean {
  const { metadata, preconditions } = (body ?? {}) as Readonly<Record<string, { readonly resourceVersion?: string }>>;
  return (metadata?.resourceVersion ?? preconditions?.resourceVersion ?? '') !== '';
}

/** Method, kind and subresource: what a role grants. */
function verbOf(method: string, path: string): string {
  const [, plural = '', , subresource = ''] =
    /^\/api(?:s\/[^/]+)?\/v[^/]+(?:\/namespaces\/[^/]+(?=\/))?\/([^/?]+)(\/[^/?]+)?(\/[^/?]+)?/.exec(path) ?? [];
  return `${method} ${plural}${subresource}`;
}
