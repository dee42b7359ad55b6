import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

import { messageOf } from '../../driver/errno.ts';
import { PrivateSocket } from '../../driver/grpc/private-socket.ts';
import type { Logger } from '../../log/logger.ts';
import { controlRoutes } from './control-routes.ts';
import type { Route } from './control-routes.ts';
import type { Simulation } from './simulation.ts';

/** Where the control API listens: a socket, or a port of loopback (0 takes a free one). */
export type ControlAddress = { readonly path: string } | { readonly port: number };

/**
 * The control API: lets tests look at the simulated cloud and make it misbehave. JSON over HTTP, without authentication: for
 * sockets and loopback only. Its routes are in control-routes.ts.
 */
export class ControlServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #socket: PrivateSocket | undefined;

  private constructor(server: Server, socket: PrivateSocket | undefined) {
    this.#server = server;
    this.#socket = socket;
  }

  /** Resolves when it listens. */
  static async start(simulation: Simulation, address: ControlAddress, log: Logger): Promise<ControlServer> {
    const routes = controlRoutes(simulation);
    const server = createServer((request, response) => {
      answer(routes, request, response).catch((err: unknown) => {
        log.error({ err, path: request.url }, 'control request failed');
        response.destroy();
      });
    });
    const listen = (at: { path: string } | { host: string; port: number }): Promise<void> =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(at, resolve);
      });
    if ('port' in address) {
      await listen({ host: '127.0.0.1', port: address.port });
      return new ControlServer(server, undefined);
    }
    return new ControlServer(server, await PrivateSocket.bind(address.path, (path) => listen({ path })));
  }

  /** The port listened on; undefined for a socket. */
  get port(): number | undefined {
    const address = this.#server.address();
    return typeof address === 'object' ? address?.port : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#socket?.remove();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function answer(routes: readonly Route[], request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = decodedPath(request.url ?? '/');
  const route = routes.find(
    ({ method, pattern }) =>
      method === request.method &&
      pattern.length === path.length &&
      pattern.every((segment, i) => segment === '*' || segment === path[i]),
  );
  if (route === undefined) return send(response, 404, { error: `no route ${request.method} ${request.url}` });
  try {
    const body = await text(request);
    const parameter = path[route.pattern.indexOf('*')] ?? '';
    send(response, 200, await route.run(parameter, body === '' ? undefined : (JSON.parse(body) as unknown)));
  } catch (err) {
    send(response, 400, { error: messageOf(err) });
  }
}

/** Undecoded where it is no URL: no route has such a path. */
function decodedPath(url: string): readonly string[] {
  const segments = url.split('/').slice(1);
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return segments;
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body ?? {})}\n`);
}
