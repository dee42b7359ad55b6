import { type Clock, fromTimestamp } from '../../base/clock/clock.ts';
import { DriverError } from '../../driver/error.ts';
import { abortable, SHARED_MS } from './abortable.ts';
import { type Answer, errorOf, NoAnswerError, retryAfterMsOf } from './answer.ts';
import {
  serviceAddressesOf,
  type Catalog,
  type CatalogEntry,
  endpointOf,
  isOffered,
  type ServiceType,
} from './catalog.ts';
import type { OpenStackCredentials } from './credentials.ts';
import type { HttpClient, HttpRequest } from './http.ts';

export interface ServiceRequest extends Omit<HttpRequest, 'url'> {
  readonly service: ServiceType;
  readonly region: string;
  /** Below the service's endpoint. */
  readonly path: string;
}

interface Token {
  readonly value: string;
  readonly catalog: readonly CatalogEntry[];
  readonly projectID: string | undefined;
  /** When it is renewed, by the monotonic clock. */
  readonly renewAtMs: number;
}

/** What we read of Keystone's answer. */
interface TokenBody {
  readonly expires_at?: unknown;
  readonly issued_at?: unknown;
  readonly project?: { readonly id: string };
  readonly catalog?: readonly CatalogEntry[];
}

/** A token is renewed so long before it expires, or after nine tenths of a short life. */
const MARGIN_MS = 60_000;
/** A login that was refused is not repeated sooner: many machines ask, and accounts are locked after some attempts. */
const REFUSED_MS = 3_000;
/** A request is repeated so often when a service is busy, or fails, for a moment. */
const REPEATS = 2;
const PAUSE_MS = 500;
/** A service that asks for more is not waited for here. */
const LONGEST_PAUSE_MS = 5_000;

/** Told of each request: which service, how, what it answered, and how long that took. */
export type ObserveRequest = (
  labels: { readonly service: string; readonly method: string; readonly code: string },
  seconds: number,
) => void;

/**
 * A login at one cloud, shared by all machines that use the same Secret: one token for all, renewed before it expires, and once more
 * when a service does not accept it. Where a service is busy, or fails (500: two of its transactions met), what can be sent twice is: reads,
 * deletions, and changes to what does not depend on what was there before. What makes something never is.
 */
export class Session {
  readonly #credentials: OpenStackCredentials;
  readonly #http: Pick<HttpClient, 'send' | 'close'>;
  readonly #clock: Clock;
  readonly #observe: ObserveRequest;
  #token: Token | undefined;
  #login: Promise<Token> | undefined;
  #refused: { readonly error: unknown; readonly untilMs: number } | undefined;

  constructor(
    credentials: OpenStackCredentials,
    clock: Clock,
    http: Pick<HttpClient, 'send' | 'close'>,
    observe: ObserveRequest,
  ) {
    this.#credentials = credentials;
    this.#http = http;
    this.#observe = observe;
    this.#clock = clock;
  }

  /** The answer, whatever it says. Throws DriverError when the login fails or a region is unknown, and NoAnswerError. */
  async send({ service, region, path, ...request }: ServiceRequest): Promise<Answer> {
    for (let repeats = 0; ; repeats++) {
      const isLast = repeats === REPEATS;
      const outcome = await this.#sendOnce(service, region, path, request).catch((err: unknown) => {
        if (err instanceof NoAnswerError && request.method === 'GET' && !isLast) return err;
        throw err;
      });
      const pauseMs = isRepeatable(request) && !isLast ? pauseOf(outcome) : undefined;
      if (pauseMs !== undefined) await this.#clock.sleep(pauseMs, request.signal);
      else if (outcome instanceof NoAnswerError) throw outcome;
      else return outcome;
    }
  }

  async offers(service: ServiceType, region: string, signal: AbortSignal): Promise<boolean> {
    return isOffered(this.#catalogOf(await this.#currentToken(signal)), service, region);
  }

  /** The project that is logged in to; undefined where Keystone does not tell. */
  async projectID(signal: AbortSignal): Promise<string | undefined> {
    return (await this.#currentToken(signal)).projectID;
  }

  /** Whether Keystone and Placement answer: without either, Nova's scheduler finds no host and does not say why. */
  async doesSchedulingAnswer(region: string, signal: AbortSignal): Promise<boolean> {
    const { authURL, interface: kind } = this.#credentials;
    const urls = [authURL, ...serviceAddressesOf({ catalog: this.#token?.catalog ?? [], kind }, 'placement', region)];
    const answers = urls.map(async (url) => {
      const answer = await this.#http.send({ method: 'GET', url, signal }).catch((err: unknown) => {
        if (err instanceof NoAnswerError) return undefined;
        throw err;
      });
      return answer !== undefined && answer.status < 500;
    });
    return (await Promise.all(answers)).every(Boolean);
  }

  async close(): Promise<void> {
    await this.#http.close();
  }

  async #sendOnce(
    service: ServiceType,
    region: string,
    path: string,
    request: Omit<HttpRequest, 'url'>,
  ): Promise<Answer> {
    const token = await this.#currentToken(request.signal);
    const answer = await this.#timed(
      service,
      authorized(request, token, endpointOf(this.#catalogOf(token), service, region) + path),
    );
    if (answer.status !== 401) return answer;
    // Revoked, or the keys of Keystone were rotated. A service that refuses a token has done nothing.
    if (this.#token === token) this.#token = undefined;
    const renewed = await this.#currentToken(request.signal);
    return await this.#timed(
      service,
      authorized(request, renewed, endpointOf(this.#catalogOf(renewed), service, region) + path),
    );
  }

  async #timed(service: ServiceType | 'identity', request: HttpRequest): Promise<Answer> {
    const startedMs = this.#clock.monotonicMs();
    let code = 'none';
    try {
      const answer = await this.#http.send(request);
      code = String(answer.status);
      return answer;
    } finally {
      const labels = { service: service === 'volumev3' ? 'volume' : service, method: request.method, code };
      this.#observe(labels, (this.#clock.monotonicMs() - startedMs) / 1_000);
    }
  }

  #catalogOf({ catalog }: Token): Catalog {
    return { catalog, kind: this.#credentials.interface };
  }

  async #currentToken(signal: AbortSignal): Promise<Token> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#token !== undefined && nowMs < this.#token.renewAtMs) return this.#token;
    if (this.#refused !== undefined && nowMs < this.#refused.untilMs) throw this.#refused.error;
    // Not the caller's signal: others wait for the same login.
    this.#login ??= this.#logIn().finally(() => {
      this.#login = undefined;
    });
    return await abortable(this.#login, signal);
  }

  async #logIn(): Promise<Token> {
    const signal = AbortSignal.timeout(SHARED_MS);
    const { authURL: url, auth } = this.#credentials;
    const answer = await this.#timed('identity', {
      method: 'POST',
      url: `${url}/auth/tokens`,
      body: { auth },
      signal,
    }).catch((err: unknown) => {
      // Logging in changes nothing.
      throw err instanceof NoAnswerError ? new NoAnswerError(err.message, false, err) : err;
    });
    if (answer.status !== 201) {
      const error = answer.status === 404 ? noKeystone(url) : errorOf(answer, 'logging in');
      this.#refused = { error, untilMs: this.#clock.monotonicMs() + REFUSED_MS };
      throw error;
    }
    this.#refused = undefined;
    this.#token = tokenOf(answer, this.#clock);
    return this.#token;
  }
}

function noKeystone(url: string): DriverError {
  return new DriverError('InvalidArgument', `secret: authURL: there is no Keystone with version 3 at ${url}`);
}

function authorized(request: Omit<HttpRequest, 'url'>, { value }: Token, url: string): HttpRequest {
  return { ...request, url, headers: { ...request.headers, 'x-auth-token': value } };
}

function tokenOf({ headers, body }: Answer, clock: Clock): Token {
  const { token } = body as { token: TokenBody };
  // By the cloud's own clock, whatever ours says.
  const lifeMs = (fromTimestamp(token.expires_at) ?? 0) - (fromTimestamp(token.issued_at) ?? 0);
  const renewAtMs = clock.monotonicMs() + Math.max(0, Math.max(lifeMs - MARGIN_MS, lifeMs * 0.9 - 1_000));
  const { catalog = [], project } = token;
  return { value: headers['x-subject-token'] ?? '', catalog, projectID: project?.id, renewAtMs };
}

/** Whether a request may be sent twice. One that depends on what was there before would find its own change. */
function isRepeatable({ method, headers = {} }: Pick<HttpRequest, 'method' | 'headers'>): boolean {
  return method !== 'POST' && !('if-match' in headers);
}

/** How long a busy service is waited for; undefined: its answer is taken as it is. */
function pauseOf(outcome: Answer | NoAnswerError): number | undefined {
  if (outcome instanceof NoAnswerError) return PAUSE_MS;
  if (![429, 500, 502, 503, 504].includes(outcome.status)) return undefined;
  const pauseMs = retryAfterMsOf(outcome) ?? PAUSE_MS;
  return pauseMs > LONGEST_PAUSE_MS ? undefined : pauseMs;
}
