import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

import { messageOf } from '../../../pkg/driver/errno.ts';
import { PrivateSocket } from '../../../pkg/driver/grpc/private-socket.ts';
import type { Logger } from '../../../pkg/base/log/logger.ts';
import { controlRoutes, type Route } from './control-routes.ts';
import type { Simulation } from './simulation.ts';

/**
 * The control API: lets tests look at the simulated cloud and make it misbehave. JSON over HTTP, without authentication: on a socket that
 * nobody but its owner can open. Its routes are in control-routes.ts.
 */
export class ControlServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #socket: PrivateSocket;

  private constructor(server: Server, socket: PrivateSocket) {
    this.#server = server;
    this.#socket = socket;
  }

  /** Resolves when it listens on the socket `path`. */
  static async start(simulation: Simulation, path: string, log: Logger): Promise<ControlServer> {
    const routes = controlRoutes(simulation);
    const server = createServer((request, response) => {
      answer(routes, request, response).catch((err: unknown) => {
        log.error({ err, path: request.url }, 'control request failed');
        response.destroy();
      });
    });
    const listen = (at: string): Promise<void> =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen({ path: at }, resolve);
      });
    return new ControlServer(server, await PrivateSocket.bind(path, listen));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#socket.remove();
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
