import { randomInt } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';

import type { Credential } from '../../../hack/control-plane/pki.ts';
import type { APIAnswer, APIRequest } from '../api-server/api-server.ts';
import { Failure } from '../api-server/failure.ts';
import type { Representation } from '../api-server/representation.ts';
import type { Watch, WatchEvent } from '../api-server/watch.ts';

/** What is served, and to whom. */
export interface FrontOptions<User> {
  readonly credential: Credential;
  /** Whose client certificates are looked at; without it nobody is asked for one. */
  readonly clientCA?: string;
  /** Who asks; undefined: nobody who is known. */
  readonly authenticate: (request: IncomingMessage) => User | undefined;
  /** May throw a Failure. */
  readonly handle: (request: APIRequest, user: User) => APIAnswer;
  /** 0: a free one. */
  readonly port: number;
}

const HOST = '127.0.0.1';
/** As much as kube-apiserver takes. */
const LARGEST_BODY_BYTES = 3 * 1024 * 1024;
const BOOKMARK_MS = 60_000;
/** Before a watch ends, it says how far it has come. */
const LAST_BOOKMARK_S = 2;
/** Of watches that do not say how long they last. */
const WATCH_S = { least: 1_800, most: 3_600 };
/** As long as kube-apiserver keeps a connection that nobody uses. */
const IDLE_MS = 90_000;
const HEALTH = /^\/(healthz|livez|readyz)$/;
/** What is decoded here; the server says of anything else that it does not take it. */
const JSON_TYPE = /^application\/([a-z-]+\+)?json(;|$)/;
/** JSON is YAML. */
const APPLY_TYPE = /^application\/apply-patch\+yaml(;|$)/;

/** A simulated API server on loopback, over HTTPS. Its clients are programs of the host; time on the wire is the host's. */
export class HTTPSFront implements AsyncDisposable {
  readonly url: string;
  readonly #http: Server;

  private constructor(http: Server) {
    this.#http = http;
    this.url = `https://${HOST}:${(http.address() as AddressInfo).port}`;
  }

  /** Throws what listening throws, such as EADDRINUSE. */
  static async open<User>(options: FrontOptions<User>): Promise<HTTPSFront> {
    const { credential, clientCA, port } = options;
    const { certificate: cert, key } = credential;
    const clients = clientCA === undefined ? {} : { ca: clientCA, requestCert: true, rejectUnauthorized: false };
    const http = createServer({ cert, key, minVersion: 'TLSv1.2', ...clients }, (request, response) => {
      void answer(options, request, response);
    });
    http.keepAliveTimeout = IDLE_MS;
    await new Promise<void>((resolve, reject) => {
      http.once('error', reject).listen(port, HOST, resolve);
    });
    return new HTTPSFront(http);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#http.close(resolve));
    this.#http.closeAllConnections();
    await closed;
  }
}

async function answer<User>(
  { authenticate, handle }: FrontOptions<User>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    if (HEALTH.test(request.url ?? '')) return void response.end('ok');
    const user = authenticate(request);
    if (user === undefined) throw new Failure(401, 'Unauthorized', 'Unauthorized');
    const answered = handle(await decoded(request), user);
    if ('watch' in answered) return follow(answered.watch, answered.representation, response);
    send(response, answered.code, answered.body);
  } catch (err) {
    if (response.headersSent) return void response.destroy();
    const failure = err instanceof Failure ? err : new Failure(500, 'InternalError', String(err));
    send(response, failure.code, failure.body);
  }
}

/** Throws a Failure. */
async function decoded(request: IncomingMessage): Promise<APIRequest> {
  const { method = 'GET', url: path = '/', headers } = request;
  const contentType = headers['content-type'];
  const text = await textOf(request);
  const isJSON =
    contentType === undefined ||
    JSON_TYPE.test(contentType) ||
    (APPLY_TYPE.test(contentType) && text.trimStart().startsWith('{'));
  if (text !== '' && !isJSON && method !== 'PATCH') {
    const message = `${contentType} is not supported: the simulation takes JSON. Use kubectl apply or create with -f FILE`;
    throw new Failure(415, 'UnsupportedMediaType', message);
  }
  return { method, path, contentType, accept: headers.accept, ...(text !== '' && isJSON && { body: parsed(text) }) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (err) {
    throw new Failure(400, 'BadRequest', `the body of the request is no JSON: ${String(err)}`);
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LARGEST_BODY_BYTES) {
      const message = `Request entity too large: limit is ${LARGEST_BODY_BYTES}`;
      throw new Failure(413, 'RequestEntityTooLarge', message);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function send(response: ServerResponse, code: number, body: object | string): void {
  const isText = typeof body === 'string';
  response.writeHead(code, { 'content-type': isText ? 'text/plain; charset=utf-8' : 'application/json' });
  response.end(isText ? body : JSON.stringify(body));
}

function follow(watch: Watch, representation: Representation, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  const emit = (event: WatchEvent): void => {
    if (response.writableEnded) return;
    response.write(`${JSON.stringify(representation.event(event))}\n`);
    if (event.type === 'ERROR') response.end();
  };
  const stop = watch.follow(emit, () => response.end());
  const seconds = watch.timeoutSeconds ?? randomInt(WATCH_S.least, WATCH_S.most);
  const tell = (): void => emit(watch.bookmark());
  const bookmarks = watch.hasBookmarks ? setInterval(tell, BOOKMARK_MS) : undefined;
  const last = watch.hasBookmarks ? setTimeout(tell, (seconds - LAST_BOOKMARK_S) * 1_000) : undefined;
  const end = setTimeout(() => response.end(), seconds * 1_000);
  response.on('close', () => {
    stop();
    clearInterval(bookmarks);
    clearTimeout(last);
    clearTimeout(end);
  });
}
