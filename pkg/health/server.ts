import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Registry } from 'prom-client';

import type { Logger } from '../log/logger.ts';
import { expose } from '../metrics/exposition.ts';
import type { Checks, Readiness } from './checks.ts';

/** What the server shows, and where. */
export interface HealthServerParts {
  /** IP address to listen on. */
  readonly address: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly checks: Checks;
  readonly registry: Registry;
  readonly log: Logger;
}

/** The port or address of the health server cannot be used. */
export class HealthServerError extends Error {
  override readonly name = 'HealthServerError';
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const PLAIN = 'text/plain; charset=utf-8';

/**
 * One port for probes and metrics, as in the original, plain HTTP: /healthz (200 from the start on), /readyz (?verbose lists
 * the checks), /metrics, /configz (an empty object). Profiling is not served. It runs before and without leadership.
 */
export class HealthServer {
  readonly #parts: HealthServerParts;
  readonly #server: Server;

  constructor(parts: HealthServerParts) {
    this.#parts = parts;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.keepAliveTimeout = 5_000;
    this.#server.headersTimeout = 10_000;
  }

  /** Listens; resolves with the port. Throws HealthServerError that names the flag to change. */
  async start(): Promise<number> {
    const { address, port } = this.#parts;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (err) => reject(explain(err, address, port)));
      this.#server.listen({ host: address, port }, resolve);
    });
    this.#server.removeAllListeners('error');
    this.#server.on('error', (err) => this.#parts.log.error({ err }, 'health server failed'));
    return (this.#server.address() as AddressInfo).port; // a TCP server
  }

  /** Answers what was asked, closes idle connections, then all. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
      setTimeout(() => this.#server.closeAllConnections(), 1_000).unref();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: Answer;
    try {
      answer = await this.#answer(request);
    } catch (err) {
      this.#parts.log.error({ err }, 'health request failed');
      answer = { status: 500, type: PLAIN, body: 'internal error\n' };
    }
    const { status, type, body } = answer;
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  async #answer({ method, url = '/', headers }: IncomingMessage): Promise<Answer> {
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, type: PLAIN, body: 'method not allowed\n' };
    const [path = '/', query] = url.split('?', 2);
    switch (path) {
      case '/healthz':
        return { status: 200, type: PLAIN, body: 'OK' };
      case '/readyz': {
        const readiness = this.#parts.checks.run();
        return {
          status: readiness.ok ? 200 : 503,
          type: PLAIN,
          body: show(readiness, new URLSearchParams(query).has('verbose')),
        };
      }
      case '/metrics':
        return { status: 200, ...(await expose(this.#parts.registry, headers.accept)) };
      case '/configz':
        return { status: 200, type: 'application/json', body: '{}' };
      default:
        return { status: 404, type: PLAIN, body: 'not found\n' };
    }
  }
}

/** In the form of the API server's own /readyz; failures are listed also without `verbose`. */
function show({ ok, checks }: Readiness, verbose: boolean): string {
  if (ok && !verbose) return 'ok';
  const lines = checks.map(({ name, ok: passes, detail }) => {
    const more = detail === undefined ? '' : `: ${detail}`;
    return passes ? `[+] ${name} ok${more}` : `[-] ${name} failed${more}`;
  });
  return `${[...lines, ok ? 'readyz check passed' : 'readyz check failed'].join('\n')}\n`;
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
      return new HealthServerError(`listening on ${where}: no such address on this host; see --address`, {
        cause: err,
      });
    default:
      return new HealthServerError(`listening on ${where}: ${err.message}`, { cause: err });
  }
}
