import { DriverError } from '../../driver/error.ts';
import { type Answer, errorOf, NoAnswerError } from './answer.ts';
import type { ServiceType } from './catalog.ts';
import type { HttpRequest } from './http.ts';
import type { Session } from './session.ts';

/** One service of one region. What it refuses is thrown as DriverError, which says what it was asked for. */
export class ServiceClient {
  readonly #session: Session;
  readonly #service: ServiceType;
  readonly region: string;

  constructor(session: Session, service: ServiceType, region: string) {
    this.#session = session;
    this.#service = service;
    this.region = region;
  }

  async isOffered(signal: AbortSignal): Promise<boolean> {
    return await this.#session.offers(this.#service, this.region, signal);
  }

  /** The answer, whatever it says; no answer is a NoAnswerError. */
  async raw(
    method: HttpRequest['method'],
    path: string,
    signal: AbortSignal,
    more: Pick<HttpRequest, 'body' | 'headers'> = {},
  ): Promise<Answer> {
    return await this.#session.send({ service: this.#service, region: this.region, method, path, signal, ...more });
  }

  /** The body of a success; undefined for 404 where that is `allowed`. */
  async call<T>(
    what: string,
    method: HttpRequest['method'],
    path: string,
    signal: AbortSignal,
    more: Pick<HttpRequest, 'body' | 'headers'> & { readonly allowed?: readonly number[] } = {},
  ): Promise<T | undefined> {
    const { allowed = [], ...request } = more;
    const answer = await this.raw(method, path, signal, request).catch(orUnavailable(what));
    if (answer.status < 300) return answer.body as T; // what the service's documentation promises
    if (allowed.includes(answer.status)) return undefined;
    throw errorOf(answer, what);
  }

  async get<T>(
    what: string,
    path: string,
    signal: AbortSignal,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<T> {
    return (await this.call<T>(what, 'GET', path, signal, { headers })) as T;
  }
}

/** For `catch` of a request: throws Unavailable where there was no answer. */
export function orUnavailable(what: string): (err: unknown) => never {
  return (err) => {
    throw err instanceof NoAnswerError ? unavailable(what, err) : err;
  };
}

export function unavailable(what: string, err: NoAnswerError): DriverError {
  return new DriverError('Unavailable', `${what}: ${err.message}`, { cause: err });
}
