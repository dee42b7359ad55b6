import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import type { Registry } from 'prom-client';

import type { Logger } from '../base/log/logger.ts';
import { expose, metricsText } from '../base/metrics/exposition.ts';
import { metricFailures, type MetricFailures } from '../base/metrics/metric-failures.ts';
import type { Checks } from './checks.ts';
import { probePage, type ProbeName } from './probe-page.ts';
import type { Page } from './page.ts';
import type { WorkInProgress } from './work-in-progress.ts';
import { isLocalCaller, isProfileKind, type Profiles, SECONDS, secondsOf } from './profiles.ts';

export interface HealthServerDeps {
  /** IP address to listen on. */
  readonly address: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Of a process that lives; a restart would help where one fails. */
  readonly live: Checks;
  /** Of one that is ready. */
  readonly checks: Checks;
  readonly registry: Registry;
  /** The text that is served in place of its metrics, made for each scrape. */
  readonly scraped?: ((failures: MetricFailures) => Promise<string>) | undefined;
  /** What is being done about single machines. Undefined: nothing ever is. */
  readonly work?: (() => WorkInProgress) | undefined;
  /** Undefined: none are served. */
  readonly page?: Page | undefined;
  /** Undefined: none are taken. */
  readonly profiles?: Profiles | undefined;
  readonly log: Logger;
}

/** The port or address of the health server cannot be used. */
export class HealthServerError extends Error {
  override readonly name = 'HealthServerError';
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Readable;
  readonly fileName?: string;
}

const PLAIN = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json';

const NOT_FOUND: Answer = { status: 404, type: PLAIN, body: 'not found\n' };
/** Longest time until a request has arrived. */
const REQUEST_TIMEOUT_MS = 15_000;

/**
 * One port for probes and metrics, as in the original, plain HTTP: /livez, /healthz and /readyz (probe-page.ts), /metrics, /work (work-in-progress.ts), /configz
 * (an empty object), pages for people (page.ts), and on loopback profiles under /debug/. It runs before and without leadership. Whatever reaches it writes nothing into
 * the log, which would be for anyone to fill, but one line for each metric that cannot be read.
 */
export class HealthServer {
  readonly #deps: HealthServerDeps;
  readonly #server: Server;
  readonly #metricFailures: MetricFailures;
  /** End the profiles that are being taken. */
  readonly #leaving = new Set<() => void>();

  constructor(deps: HealthServerDeps) {
    this.#deps = deps;
    this.#metricFailures = metricFailures(deps.registry, deps.log);
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.keepAliveTimeout = 5_000;
    this.#server.headersTimeout = 10_000;
    this.#server.requestTimeout = REQUEST_TIMEOUT_MS;
  }

  /** Listens; resolves with the port. Throws HealthServerError that names the flag to change. */
  async start(): Promise<number> {
    const { address, port } = this.#deps;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (err) => reject(explain(err, address, port)));
      this.#server.listen({ host: address, port }, resolve);
    });
    this.#server.removeAllListeners('error');
    this.#server.on('error', (err) => this.#deps.log.error({ err }, 'health server failed'));
    return (this.#server.address() as AddressInfo).port; // a TCP server
  }

  /** Answers what was asked, closes idle connections, then all. */
  async stop(): Promise<void> {
    this.#deps.page?.stop();
    if (!this.#server.listening) return;
    for (const leave of this.#leaving) leave();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
      setTimeout(() => this.#server.closeAllConnections(), 1_000).unref();
    });
  }

  /** Never rejects. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (this.#servesPage(request, response)) return;
      const { status, type, body, fileName } = await this.#answer(request, response);
      response.statusCode = status;
      response.setHeader('content-type', type);
      if (fileName !== undefined) response.setHeader('content-disposition', `attachment; filename="${fileName}"`);
      if (typeof body !== 'string') return await pipeline(body, response);
      response.setHeader('content-length', Buffer.byteLength(body));
      response.end(request.method === 'HEAD' ? undefined : body);
    } catch (err) {
      // Mostly a caller that has gone meanwhile.
      this.#deps.log.debug({ err }, 'health request failed');
      if (!response.headersSent) response.writeHead(500, { 'content-type': PLAIN });
      response.end();
    }
  }

  #servesPage(request: IncomingMessage, response: ServerResponse): boolean {
    const { method, url = '/' } = request;
    const [path = '/'] = url.split('?', 1);
    return (method === 'GET' || method === 'HEAD') && this.#deps.page?.serve(path, request, response) === true;
  }

  async #expose(accept: string | undefined): Promise<ReturnType<typeof expose>> {
    const { registry, scraped } = this.#deps;
    const failures = this.#metricFailures;
    return expose((await scraped?.(failures)) ?? (await metricsText(registry, failures)), accept);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<Answer> {
    const { method, url = '/', headers } = request;
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, type: PLAIN, body: 'method not allowed\n' };
    const [path = '/', search] = url.split('?', 2);
    const [, first = '', rest] = /^\/([^/]+)(?:\/(.+))?$/.exec(path) ?? [];
    const query = new URLSearchParams(search);
    switch (first) {
      case 'livez':
      case 'healthz':
      case 'readyz':
        return this.#probe(first, rest, query);
      case 'debug':
        return await this.#profile(rest, query, request, response);
      case 'metrics':
        return rest === undefined ? { status: 200, ...(await this.#expose(headers.accept)) } : NOT_FOUND;
      case 'work':
        return rest === undefined && this.#deps.work !== undefined
          ? { status: 200, type: JSON_TYPE, body: JSON.stringify(this.#deps.work()) }
          : NOT_FOUND;
      case 'configz':
        return rest === undefined ? { status: 200, type: JSON_TYPE, body: '{}' } : NOT_FOUND;
      default:
        return NOT_FOUND;
    }
  }

  #probe(probe: ProbeName, rest: string | undefined, query: URLSearchParams): Answer {
    const { live, checks } = this.#deps;
    const only = rest === undefined ? undefined : decoded(rest);
    return { type: PLAIN, ...probePage(probe, probe === 'readyz' ? checks : live, { only, query }) };
  }

  async #profile(
    kind: string | undefined,
    query: URLSearchParams,
    { method, socket, headers }: IncomingMessage,
    response: ServerResponse,
  ): Promise<Answer> {
    const { profiles } = this.#deps;
    if (profiles === undefined || kind === undefined || !isProfileKind(kind) || method !== 'GET') return NOT_FOUND;
    const { remoteAddress, localAddress } = socket;
    if (!isLocalCaller({ remoteAddress, localAddress, headers })) {
      return {
        status: 403,
        type: PLAIN,
        body: 'profiles are served only on loopback, for example through kubectl port-forward\n',
      };
    }
    const seconds = secondsOf(query);
    if (seconds === undefined) {
      return { status: 400, type: PLAIN, body: `seconds must be a number from ${SECONDS.least} to ${SECONDS.most}\n` };
    }
    const gone = new AbortController();
    const leave = (): void => gone.abort(new Error('the client disconnected'));
    response.once('close', leave);
    this.#leaving.add(leave);
    try {
      const profile = await profiles.take(kind, seconds, gone.signal);
      if (profile === undefined) return { status: 409, type: PLAIN, body: 'another profile is already running\n' };
      return { status: 200, type: 'application/octet-stream', body: profile.content, fileName: profile.fileName };
    } finally {
      this.#leaving.delete(leave);
    }
  }
}

/** A name in a path; of what cannot be decoded, as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function explain(err: Error, address: string, port: number): HealthServerError {
  const code = (err as NodeJS.ErrnoException).code;
  const where = `${address}:${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return new HealthServerError(`listening on ${where}: the port is in use; choose another with --port`, {
        cause: err,
      });
    case 'EACCES':
      return new HealthServerError(`listening on ${where}: not permitted; choose another port with --port`, {
        cause: err,
      });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new HealthServerError(`listening on ${where}: no such address on this host; check --address`, {
        cause: err,
      });
    default:
      return new HealthServerError(`listening on ${where}: ${err.message}`, { cause: err });
  }
}
