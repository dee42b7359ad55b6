import { createServer, Agent, request as send } from 'node:https';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { pipeline, Transform } from 'node:stream';
import type { TLSSocket } from 'node:tls';

import { requestOf } from './request-of.ts';
import type { ApiRequest } from './request-of.ts';

/** What such a proxy needs: the server, its own certificate (the server's will do), and an administrator's. */
export interface HttpFaultProxyOptions {
  readonly url: string;
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
  /** In group system:masters: who connects with a client certificate is impersonated through it. */
  readonly admin: { readonly certificate: string; readonly key: string };
}

/** An answer that takes the place of the server's. */
export interface Fault {
  readonly matches: (request: ApiRequest) => boolean;
  readonly status: number;
  readonly retryAfterSeconds?: number;
  /** Status reason of the body; plain text without it, as the server's own overload filter answers. */
  readonly reason?: string;
  /** How many requests are answered so; all by default. */
  readonly times?: number;
  /** Lets the server do it first: a lost answer. */
  readonly afterwards?: boolean;
}

/**
 * An HTTP proxy in front of an API server that counts requests and answers some of them itself. Bearer tokens pass through;
 * the user of a client certificate (kubelets) is impersonated. HTTP/1.1 only.
 */
export class HttpFaultProxy implements AsyncDisposable {
  readonly #options: HttpFaultProxyOptions;
  readonly #server: Server;
  /** With the administrator's certificate, for impersonation; the server would prefer it to any token. */
  readonly #impersonating: Agent;
  readonly #plain: Agent;
  readonly #counts = new Map<string, number>();
  readonly #seen: ApiRequest[] = [];
  readonly #accepted: ApiRequest[] = [];
  /** Answers that are under way. */
  readonly #open = new Set<{ readonly request: ApiRequest; stall(): void }>();
  #faults: { readonly fault: Fault; left: number }[] = [];
  #delayMs = 0;

  private constructor(options: HttpFaultProxyOptions) {
    const { certificate: cert, key, ca, admin } = options;
    this.#options = options;
    this.#impersonating = new Agent({ ca, cert: admin.certificate, key: admin.key, keepAlive: true });
    this.#plain = new Agent({ ca, keepAlive: true });
    this.#server = createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: false }, (req, res) =>
      this.#answer(req, res),
    );
  }

  /** Listens on a free port of loopback. */
  static async start(options: HttpFaultProxyOptions): Promise<HttpFaultProxy> {
    const proxy = new HttpFaultProxy(options);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  /** The address for clients. */
  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Requests by `verb resource`, faults included, since the start or `reset`. */
  counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Number of requests that match, since the start or `reset`. */
  count(matches: (request: ApiRequest) => boolean): number {
    return this.#seen.filter(matches).length;
  }

  /** Number of requests that match and that the server itself has begun to answer with success, since the start or `reset`. */
  accepted(matches: (request: ApiRequest) => boolean): number {
    return this.#accepted.filter(matches).length;
  }

  /** Forgets the counts. */
  reset(): void {
    this.#counts.clear();
    this.#seen.length = 0;
    this.#accepted.length = 0;
  }

  /** Answers matching requests with a fault from now on; the returned function ends it. */
  inject(fault: Fault): () => void {
    const entry = { fault, left: fault.times ?? Infinity };
    this.#faults.push(entry);
    return () => {
      this.#faults = this.#faults.filter((other) => other !== entry);
    };
  }

  /** Every answer takes so long from now on, watches aside. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Answers under way to matching requests say nothing any more, and do not end; says how many. New ones are answered. */
  stall(matches: (request: ApiRequest) => boolean): number {
    const stalled = [...this.#open].filter(({ request }) => matches(request));
    for (const one of stalled) one.stall();
    return stalled.length;
  }

  /** Breaks all connections; new ones are accepted. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#impersonating.destroy();
    this.#plain.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #answer(req: IncomingMessage, res: ServerResponse): void {
    const request = requestOf(req.method ?? 'GET', req.url ?? '/', req.headers['user-agent']);
    const name = `${request.verb} ${request.resource}`;
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    this.#seen.push(request);

    const entry = this.#faults.find(({ fault, left }) => left > 0 && fault.matches(request));
    if (entry === undefined && this.#delayMs > 0 && request.verb !== 'watch') {
      const forward = (): void => (res.destroyed ? undefined : this.#forward(request, req, res)); // the client may have given up
      setTimeout(forward, this.#delayMs).unref();
      return;
    }
    if (entry === undefined) return this.#forward(request, req, res);
    entry.left -= 1;
    if (entry.fault.afterwards === true) return this.#forward(request, req, res, entry.fault);
    req.resume();
    refuse(res, entry.fault);
  }

  /** Hands the request on, and the answer back, unless `instead` takes its place. */
  #forward(request: ApiRequest, req: IncomingMessage, res: ServerResponse, instead?: Fault): void {
    const { hostname, port } = new URL(this.#options.url);
    const hasToken = req.headers.authorization !== undefined;
    const agent = hasToken ? this.#plain : this.#impersonating;
    const headers = { ...req.headers, ...(hasToken ? {} : impersonation(req)) };
    const upstream = send({ hostname, port, method: req.method, path: req.url, headers, agent }, (answer) => {
      if (instead !== undefined) {
        answer.resume();
        answer.once('end', () => refuse(res, instead));
        return;
      }
      if (answer.statusCode === 200) this.#accepted.push(request);
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      res.flushHeaders();
      let isStalled = false;
      const open = { request, stall: (): void => void (isStalled = true) };
      this.#open.add(open);
      const unlessStalled = new Transform({
        transform: (chunk, _encoding, done) => (isStalled ? done() : done(null, chunk)),
        flush: (done) => (isStalled ? undefined : done()),
      });
      res.once('close', () => this.#open.delete(open));
      pipeline(answer, unlessStalled, res, () => upstream.destroy());
    });
    upstream.on('error', () => res.destroy());
    res.on('close', () => upstream.destroy());
    req.pipe(upstream);
  }
}

function refuse(res: ServerResponse, { status, retryAfterSeconds, reason }: Fault): void {
  if (retryAfterSeconds !== undefined) res.setHeader('Retry-After', String(retryAfterSeconds));
  if (reason === undefined) {
    res.writeHead(status, { 'Content-Type': 'text/plain' }).end('injected fault\n');
    return;
  }
  const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: 'injected fault', reason, code: status };
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

/** Headers that make the server see the client's user, though our own certificate is what it is shown. */
function impersonation(req: IncomingMessage): IncomingHttpHeaders & { 'Impersonate-Group'?: string[] } {
  const socket = req.socket as TLSSocket;
  const subject = socket.authorized
    ? (socket.getPeerCertificate().subject as { CN?: string; O?: string | string[] })
    : {};
  if (subject.CN === undefined) return { 'impersonate-user': 'system:anonymous' };
  const groups = subject.O === undefined ? [] : [subject.O].flat();
  return { 'impersonate-user': subject.CN, 'Impersonate-Group': groups };
}
