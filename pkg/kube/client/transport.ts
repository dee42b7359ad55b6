import type { Dispatcher } from 'undici';

import type { Clock } from '../../base/clock/clock.ts';
import { untilAborted } from '../../base/clock/deadline.ts';
import type { KubeMetrics } from '../../base/metrics/kube.ts';
import type { Address } from './address.ts';
import { Deadline } from './deadline.ts';
import { Dispatchers, NoCredentialsError, type OpenDispatcher, type UsedDispatcher } from './dispatchers.ts';
import type { Endpoint } from './endpoint.ts';
import { ApiError } from './errors.ts';
import { errorOfAnswer, errorOfFailure, isConnectionFailure, isUntrustedServer } from './failure.ts';
import { MUTATE } from './mutate.ts';
import { leases, selfSubjectAccessReviews, selfSubjectRulesReviews } from './resource.ts';
import { ServedVersions } from './served-versions.ts';
import { NotStartedError } from './start-guard.ts';
import { ThrottleClosedError, unlimited, type Throttle } from '../../base/clock/throttle.ts';
import type { DatedAnswer } from '../../base/clock/server-time.ts';

type ReadVerb = 'get' | 'list' | 'watch';
type WriteVerb = 'create' | 'update' | 'patch' | 'delete';
type Verb = ReadVerb | WriteVerb;

/** Asked before each attempt; says how long that attempt may take. What it throws ends the call. */
export type Admit = (signal: AbortSignal) => Promise<number>;

interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly verb: Verb;
  readonly address: Address;
  /** Begins with `?`, or ''. */
  readonly query?: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
  /** For all attempts together, from the moment the rate limit has let the request pass. */
  readonly timeoutMs?: number | undefined;
  /** What is behind the server answers, in a text of its own, whatever its code. */
  readonly isText?: true;
  /** `leases` and `probes` also bypass the rate limit: what waits behind it says nothing about the server. */
  readonly lane?: 'requests' | 'leases' | 'probes';
  /** For whom it is sent: of several, each gets its turn. */
  readonly flow?: string | undefined;
  /** A 429 of an eviction means a PodDisruptionBudget: `never` hands it to the caller at once. */
  readonly retryTooManyRequests?: 'never';
  readonly admit?: Admit | undefined;
  /**
   * For how long the attempt is still admitted, as known now; undefined: as `admit` has said. Asked when its first byte is about to be written
   * (0 takes it for one without an answer), and when its time is up.
   */
  readonly admittedMs?: (() => number | undefined) | undefined;
}

export interface ReadCall extends Call {
  readonly method: 'GET';
  readonly verb: ReadVerb;
  readonly body?: undefined;
  readonly admit?: undefined;
}

interface WriteCall extends Call {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly verb: WriteVerb;
}

/** A mutation that the gate is asked about, before each attempt. */
export interface GatedCall extends WriteCall {
  readonly admit: Admit;
  readonly lane?: 'requests';
}

/** A write of a Lease: past the gate, because it is what opens it. */
export interface LeaseCall extends WriteCall {
  readonly admit?: undefined;
  readonly lane: 'leases';
}

/** One attempt that has ended: what tests, benchmarks and the clock are told. */
export interface RequestRecord extends DatedAnswer {
  readonly method: Call['method'];
  readonly verb: Verb;
  readonly resource: string;
  /** Path with namespace and name left open. */
  readonly template: string;
  /** HTTP status; 0 without an answer. */
  readonly code: number;
}

export interface TransportOptions {
  readonly endpoint: Endpoint;
  readonly clock: Clock;
  /** `machinist/<version> <component>`. */
  readonly userAgent: string;
  readonly throttle?: Throttle;
  readonly timeoutMs?: number | undefined;
  readonly metrics?: KubeMetrics | undefined;
  /** In place of connections of our own making. */
  readonly openDispatcher?: OpenDispatcher | undefined;
  /** Largest answer that is taken, of a server that may send anything; watches have limits of their own. */
  readonly maxBytes?: number | undefined;
  /** See DispatchersOptions. */
  readonly probeConnections?: number | undefined;
  /** Told of every attempt, watches included; must not throw. */
  readonly onRequest?: ((record: RequestRecord) => void) | undefined;
}

/** What may be written past the gate. */
const LEASES = leases.plural;
/** What is asked by POST. */
const REVIEWS: ReadonlySet<string> = new Set([selfSubjectAccessReviews.plural, selfSubjectRulesReviews.plural]);
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRY_AFTER_MS = 1_000;
const MAX_RETRIES = 10;
/** Pauses before a read is repeated whose connection was refused or broke: one of a restarted server's load balancer. */
const RECONNECT_DELAYS_MS = [50, 300];
/**
 * A request that ends without an answer after this time makes the next ones take new connections: sooner, and a slow server
 * would be taken for a broken connection; later, and a Lease would be lost on a half-open one. Requests for Leases may end sooner by
 * themselves: then most of their time counts.
 */
const SILENT_MS = 4_000;
const SILENT_SHARE = 0.9;

/** Of the answer of a server that may send anything to a watch that it refuses. */
const LONGEST_REFUSAL_BYTES = 1024 * 1024;

/** Sends requests to one API server: deadline, rate limit, credentials, metrics, and the few retries that are always safe. */
export class Transport {
  readonly served: ServedVersions;
  readonly #options: TransportOptions;
  readonly #throttle: Throttle;
  readonly #dispatchers: Dispatchers;
  #answeredAtMs = -Infinity;
  #answered = Promise.withResolvers<void>();

  constructor(options: TransportOptions) {
    this.#options = options;
    this.served = new ServedVersions({
      clock: options.clock,
      discover: async (path) =>
        await this.request({ method: 'GET', verb: 'get', address: { path, template: path, label: 'discovery' } }),
    });
    this.#throttle = options.throttle ?? unlimited;
    const { endpoint, clock, openDispatcher: open, maxBytes, probeConnections } = options;
    this.#dispatchers = new Dispatchers(endpoint, clock, { open, maxBytes, probeConnections });
  }

  /**
   * The decoded JSON answer of one read. Throws ApiError or the reason of `call.signal`. Repeats reads whose connection broke,
   * and anything after 429 and Retry-After, as long as the deadline allows.
   */
  async request<T>(call: ReadCall): Promise<T> {
    if ((call.method as string) !== 'GET') throw new TypeError(`${call.method as string} is no read`);
    return this.#request<T>(call);
  }

  /** As `request`, for a question that is asked by POST. */
  async review<T>(
    call: Call & { readonly method: 'POST'; readonly verb: 'create'; readonly admit?: undefined },
  ): Promise<T> {
    if (!REVIEWS.has(call.address.label)) throw new TypeError(`${call.method} ${call.address.path} is no review`);
    return this.#request<T>(call);
  }

  /** As `request`, for what the server only passes on: its text, also where that comes with a code of failure. */
  async text(call: ReadCall): Promise<string> {
    return this.#request<string>({ ...call, isText: true, accept: '*/*' });
  }

  /** As `request`, for a mutation: throws also what `call.admit` throws, and never repeats a mutation that may have happened. */
  async [MUTATE]<T>(call: GatedCall | LeaseCall): Promise<T> {
    if (call.admit === undefined && call.address.label !== LEASES) {
      throw new TypeError(`${call.method} ${call.address.path} was refused by the gate`);
    }
    return this.#request<T>(call);
  }

  async #request<T>(call: Call): Promise<T> {
    const { clock, timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    let untilMs = Infinity;
    for (let retries = 0; ; retries++) {
      if ((call.lane ?? 'requests') === 'requests') await this.#admitted(call);
      if (retries === 0) untilMs = clock.monotonicMs() + (call.timeoutMs ?? timeoutMs);
      try {
        return (await this.#attempt(call, untilMs)) as T;
      } catch (err) {
        const delayMs = this.#retryDelayMs(call, err, retries);
        if (delayMs === undefined || clock.monotonicMs() + delayMs >= untilMs) throw err;
        await clock.sleep(delayMs, call.signal ?? NEVER);
      }
    }
  }

  /**
   * Opens a watch and returns its body. The stream throws when nothing came for `idleMs`, when the connection breaks and
   * when the signal is aborted; leaving the iteration closes the connection.
   */
  async open(call: ReadCall & { signal: AbortSignal }, idleMs: number): Promise<AsyncIterable<Uint8Array>> {
    const { clock, maxBytes } = this.#options;
    const sentMs = clock.monotonicMs();
    const timeouts = { headersTimeout: call.timeoutMs ?? DEFAULT_TIMEOUT_MS, bodyTimeout: idleMs };
    const opened = async (): Promise<Dispatcher.ResponseData> => {
      call.signal.throwIfAborted();
      const used = await untilAborted(this.#dispatchers.use('watches'), call.signal);
      return this.#send(call, used, call.signal, timeouts);
    };
    const answer = await opened().catch((err: unknown) => {
      this.#record(call, sentMs, 0, undefined);
      if (isUntrustedServer(err)) this.#options.endpoint.refused();
      call.signal.throwIfAborted();
      throw failureOf(err, `watching ${call.address.path}`);
    });
    this.#record(call, sentMs, answer.statusCode, headerOf(answer.headers, 'date'));
    if (answer.statusCode === 200) return this.#followed(answer.body);
    const text = await (maxBytes === undefined ? answer.body.text() : beginningOf(answer.body));
    throw this.#refusal(answer.statusCode, headerOf(answer.headers, 'retry-after'), text);
  }

  /**
   * Resolves when the server has answered anything at `sinceMs` (monotonic) or later: it can be reached. Rejects with the
   * signal's reason.
   */
  async answeredSince(sinceMs: number, signal: AbortSignal): Promise<void> {
    while (this.#answeredAtMs < sinceMs) await untilAborted(this.#answered.promise, signal);
  }

  /** Breaks off all requests and watches, and those that wait for the rate limit. */
  async close(): Promise<void> {
    await this.#throttle.close();
    await this.#dispatchers.close();
  }

  /** Ends when the watch that follows can have the connection. */
  async *#followed(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    yield* body;
    await this.#dispatchers.untilFree();
  }

  async #admitted({ method, address, signal = NEVER, flow }: Call): Promise<void> {
    try {
      await this.#throttle.acquire(signal, flow);
    } catch (err) {
      if (!(err instanceof ThrottleClosedError)) throw err;
      throw failureOf(err, `${method} ${address.path}`);
    }
  }

  async #attempt(call: Call, untilMs: number): Promise<unknown> {
    const { clock } = this.#options;
    const admittedMs = call.admit === undefined ? Infinity : await call.admit(call.signal ?? NEVER);
    const sentMs = clock.monotonicMs();
    const leftMs = Math.min(untilMs - sentMs, admittedMs);
    if (leftMs <= 0) throw expired(call, 0, undefined);
    // A slow server may need longer than what was left of the leadership; when that is renewed meanwhile, so is the admission.
    const moreMs = (): number => Math.min(untilMs - clock.monotonicMs(), call.admittedMs?.() ?? 0);
    using deadline = new Deadline(clock, leftMs, call.signal, moreMs);
    const lane = call.lane ?? 'requests';
    let used: UsedDispatcher | undefined;
    const flow = lane === 'requests' ? call.flow : undefined;
    let turn: Disposable | undefined;
    let onWayMs = Infinity;
    let code = 0;
    let date: string | undefined;
    try {
      deadline.signal.throwIfAborted();
      do {
        turn?.[Symbol.dispose]();
        turn = undefined;
        used = await untilAborted(this.#dispatchers.use(lane), deadline.signal);
        // For a connection, where several wait for them; one alone waits for undici.
        if (flow !== undefined) turn = await used.turns.acquire(deadline.signal, flow);
      } while (turn !== undefined && !this.#dispatchers.isUsed(lane, used));
      // A process that was paused hears of its network first, and of its timers only then.
      const mayStart = (): boolean => {
        const nowMs = clock.monotonicMs();
        return nowMs < untilMs && (call.admittedMs?.() ?? sentMs + admittedMs - nowMs) > 0;
      };
      onWayMs = clock.monotonicMs();
      const answer = await this.#send(call, used, deadline.signal, { ...NO_TIMEOUTS, mayStart });
      const text = await answer.body.text();
      code = answer.statusCode;
      date = headerOf(answer.headers, 'date');
      const isAnswered = code < 300 || (call.isText === true && !isStatus(text));
      if (!isAnswered) throw this.#refusal(code, headerOf(answer.headers, 'retry-after'), text);
      if (call.isText === true) return text;
      return text === '' ? undefined : (JSON.parse(text) as unknown);
    } catch (err) {
      if (err instanceof ApiError) throw err;
      if (isUntrustedServer(err)) this.#options.endpoint.refused();
      // Anyone who broke it off: that nothing came for so long tells about the connection.
      const silentMs =
        lane === 'leases' ? Math.min(SILENT_MS, SILENT_SHARE * (call.timeoutMs ?? SILENT_MS)) : SILENT_MS;
      const isSilent = clock.monotonicMs() - onWayMs >= silentMs;
      if (isSilent && used !== undefined) this.#dispatchers.renew(lane, used.dispatcher);
      if (deadline.expired && used === undefined)
        throw this.#waitedForCredentials(call, clock.monotonicMs() - sentMs, err);
      if (deadline.expired || err instanceof NotStartedError) throw expired(call, clock.monotonicMs() - sentMs, err);
      call.signal?.throwIfAborted();
      throw failureOf(err, `${call.method} ${call.address.path}`);
    } finally {
      turn?.[Symbol.dispose]();
      this.#record(call, sentMs, code, date);
    }
  }

  async #send(
    call: Call,
    { dispatcher, headers, origin, prefix }: UsedDispatcher,
    signal: AbortSignal,
    options: { headersTimeout: number; bodyTimeout: number; mayStart?: () => boolean },
  ): Promise<Dispatcher.ResponseData> {
    signal.throwIfAborted();
    const answer = dispatcher.request({
      origin,
      path: `${prefix}${call.address.path}${call.query ?? ''}`,
      method: call.method,
      headers: {
        ...headers,
        'User-Agent': this.#options.userAgent,
        Accept: call.accept ?? 'application/json',
        ...(call.body === undefined ? {} : { 'Content-Type': call.contentType ?? 'application/json' }),
      },
      body: call.body === undefined ? null : JSON.stringify(call.body),
      // Else a DELETE with a body, as ours have, costs its connection, and the next request a TLS handshake.
      reset: false,
      signal,
      ...options,
    });
    // While it waits for a connection, undici hears of an abort only afterwards (and then sends nothing).
    return untilAborted(answer, signal);
  }

  #waitedForCredentials(call: Call, afterMs: number, cause: unknown): ApiError {
    const { trouble = 'loading is still in progress' } = this.#options.endpoint.state ?? {};
    const message = `${call.method} ${call.address.path}: no credentials within ${Math.round(afterMs)} ms (${trouble})`;
    return new ApiError(0, 'NoCredentials', message, { cause });
  }

  #refusal(code: number, retryAfter: string | undefined, text: string): ApiError {
    if (code === 401) this.#options.endpoint.refused();
    return errorOfAnswer(code, retryAfter, text, this.#options.clock.now());
  }

  /** How long to wait before the call is repeated; undefined when it must not be. */
  #retryDelayMs(call: Call, err: unknown, retries: number): number | undefined {
    if (!(err instanceof ApiError) || retries >= MAX_RETRIES) return undefined;
    // The credentials may have been replaced since we loaded them; a refused request did nothing.
    if (err.code === 401) return retries === 0 ? 0 : undefined;
    if (err.code === 429) {
      return call.retryTooManyRequests === 'never' ? undefined : (err.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS);
    }
    if (call.method !== 'GET') return undefined;
    if (err.code >= 500) return err.retryAfterMs;
    return isConnectionFailure(err) ? RECONNECT_DELAYS_MS[retries] : undefined;
  }

  #record(call: Call, sentMs: number, code: number, date: string | undefined): void {
    const { method, verb, address } = call;
    const { label: resource, template } = address;
    const receivedMs = this.#options.clock.monotonicMs();
    this.note({ method, verb, resource, template, code, date, sentMs, receivedMs });
  }

  /** Counts an attempt that has ended: one of this transport, or of another thread of this process to the same server. */
  note(record: RequestRecord): void {
    const { metrics, onRequest } = this.#options;
    const { method, template, code, sentMs, receivedMs } = record;
    if (code !== 0) this.#noteAnswer(receivedMs);
    const { host, origin, pathname } = new URL(this.#options.endpoint.url);
    metrics?.requests.inc({ code: code === 0 ? '<error>' : String(code), method, host });
    metrics?.latency.observe(
      { verb: method, url: `${origin}${pathname.replace(/\/$/, '')}${template}` },
      (receivedMs - sentMs) / 1_000,
    );
    onRequest?.(record);
  }

  #noteAnswer(atMs: number): void {
    this.#answeredAtMs = atMs;
    this.#answered.resolve();
    this.#answered = Promise.withResolvers<void>();
  }
}

/** The deadline of the call bounds everything. */
const NO_TIMEOUTS = { headersTimeout: 0, bodyTimeout: 0 };

/** The error that the lack of an answer means, or that nothing could be asked. */
function failureOf(err: unknown, action: string): ApiError {
  if (!(err instanceof NoCredentialsError)) return errorOfFailure(err, action);
  return new ApiError(0, 'NoCredentials', `${action}: ${err.message}`, { cause: err });
}

function expired(call: Call, afterMs: number, cause: unknown): ApiError {
  const message = `${call.method} ${call.address.path}: no response within ${Math.round(afterMs)} ms`;
  return new ApiError(0, 'DeadlineExceeded', message, { cause });
}

/** For callers that never abort; their calls still have a deadline. */
const NEVER = new AbortController().signal;

function headerOf(headers: Record<string, string | string[] | undefined>, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Whether an answer is one of the API server itself that says why something failed. */
function isStatus(text: string): boolean {
  return /^\s*\{[^]*"kind"\s*:\s*"Status"/.test(text);
}

/** As much of an answer as anybody would read. */
async function beginningOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > LONGEST_REFUSAL_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}
