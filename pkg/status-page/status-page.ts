import { isIP } from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';

import { type Clock, toTimestamp } from '../base/clock/clock.ts';
import type { Page } from '../health/page.ts';
import type { Logger } from '../base/log/logger.ts';
import { encode } from './changes.ts';
import { EventStream } from './event-stream.ts';
import type { PageSnapshot } from './snapshot.ts';
import type { PhaseSample } from './view.ts';
import type { WebFile } from './web-files.ts';

export interface StatusPageDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly files: ReadonlyMap<string, WebFile>;
  observe(history: readonly PhaseSample[]): Promise<PageSnapshot>;
  /** How many Machines are in each phase; undefined while that is not known. */
  countMachines(): Readonly<Record<string, number>> | undefined;
}

/** Where it is served, below `/`. */
const PREFIX = '/ui/';
const INDEX = 'status-page/web/index.html';

/** Only what is served here is loaded, and nothing runs that is not a file of ours. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-cache',
};

/**
 * A page that shows what a process sees and does, and changes nothing. Beside the hour's counts, nothing is computed while nobody looks. It is
 * as open as the other paths of its port: whoever reaches the port can read it.
 */
export class StatusPage implements Page {
  readonly #deps: StatusPageDeps;
  readonly #history = new PhaseHistory();
  readonly #stream: EventStream;
  #cancel: (() => void) | undefined;

  constructor(deps: StatusPageDeps) {
    this.#deps = deps;
    const { clock, log } = deps;
    this.#stream = new EventStream({
      clock,
      log,
      read: async () => encode(await deps.observe(this.#history.list())),
    });
  }

  start(): void {
    this.#sample();
  }

  stop(): void {
    this.#cancel?.();
    this.#stream.stop();
  }

  serve(path: string, request: IncomingMessage, response: ServerResponse): boolean {
    if (path === '/' || path === '/ui') {
      // Relative, for proxies that serve it below a path of their own.
      send(response, 302, { location: path === '/' ? 'ui/' : './ui/' }, 'see ui/\n');
      return true;
    }
    if (!path.startsWith(PREFIX)) return false;
    const { host, 'sec-fetch-site': site } = request.headers;
    if (!isAcceptedHost(host)) {
      send(response, 403, {}, 'open the page by an IP address, by localhost, or by the name of a Service\n');
      return true;
    }
    const file = path.slice(PREFIX.length);
    if (file === 'events') {
      if (isOwnRequest(site)) this.#serveEvents(request, response);
      else send(response, 403, {}, 'only the page itself reads its events\n');
      return true;
    }
    const found = this.#deps.files.get(file === '' ? INDEX : file);
    if (found === undefined) return false;
    send(response, 200, { 'content-type': found.type }, request.method === 'HEAD' ? undefined : found.body);
    return true;
  }

  #serveEvents({ method }: IncomingMessage, response: ServerResponse): void {
    if (this.#stream.isFull) {
      send(response, 503, { 'retry-after': '10' }, 'too many browsers read the page\n');
      return;
    }
    response.writeHead(200, {
      ...SECURITY_HEADERS,
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
    });
    if (method === 'HEAD') response.end();
    else this.#stream.add(response);
  }

  #sample(): void {
    const { clock } = this.#deps;
    const phases = this.#deps.countMachines();
    if (phases !== undefined) this.#history.add(phases, clock.now());
    this.#cancel = clock.schedule(SAMPLED_EVERY_MS, () => this.#sample());
  }
}

function send(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | undefined,
): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...SECURITY_HEADERS, ...headers });
  response.end(body);
}

/**
 * Whether the Host header names something that no stranger can make lead here: an address, this host, or a Service. A page of
 * another origin whose DNS name was pointed at this port could read what is shown otherwise.
 */
export function isAcceptedHost(host: string | undefined): boolean {
  const { name } = /^(?<name>\[[^\]]*\]|[^:]*)(?::\d+)?$/.exec(host?.toLowerCase() ?? '')?.groups ?? {};
  if (name === undefined || name === '') return false;
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  return !name.includes('.') || /\.(?:localhost|svc|svc\.cluster\.local)$/.test(name);
}

/** Whether it is a person who opens the page, or the page itself: `site` is the header Sec-Fetch-Site. */
export function isOwnRequest(site: string | string[] | undefined): boolean {
  return site === undefined || site === 'none' || site === 'same-origin';
}

export const SAMPLED_EVERY_MS = 15_000;
const KEPT_MS = 3_600_000;

/** How many Machines were in each phase over the last hour of this process. */
export class PhaseHistory {
  readonly #samples: { readonly sample: PhaseSample; readonly atMs: number }[] = [];

  /** Adds what was counted at `nowMs`, and forgets what is older than an hour. */
  add(phases: Readonly<Record<string, number>>, nowMs: number): void {
    this.#samples.push({ sample: { at: toTimestamp(nowMs), phases }, atMs: nowMs });
    // A clock that was set back leaves samples of the future.
    const isKept = ({ atMs }: { atMs: number }): boolean => atMs <= nowMs && nowMs - atMs <= KEPT_MS;
    this.#samples.splice(0, this.#samples.length, ...this.#samples.filter(isKept));
  }

  list(): readonly PhaseSample[] {
    return this.#samples.map(({ sample }) => sample);
  }
}
