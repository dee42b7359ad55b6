import { Agent, createServer, request as send } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Bed } from './bed.ts';

/** What becomes of a request: it never arrives, its answer is lost, or it arrives so late that nobody waits for the answer. */
export type Loss = 'request' | 'answer' | { readonly lateMs: number };

/** Decides about each request that changes something; undefined: it goes its way. */
export type LossRule = (method: string, path: string) => Loss | undefined;

/** Stands in front of real services, counts what passes, and loses some of it. */
export class LossyProxy implements AsyncDisposable {
  readonly #servers: Server[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #seen: string[] = [];
  /** Asked about each request but reads. */
  rule: LossRule = () => undefined;

  /** In front of Nova and Neutron, as the region `lossy` has them, and of Keystone. */
  static async start({ settings, lossyPorts }: Bed): Promise<LossyProxy & { readonly authURL: string }> {
    const proxy = new LossyProxy();
    await proxy.#listen(lossyPorts.nova, settings.ports.nova);
    await proxy.#listen(lossyPorts.neutron, settings.ports.neutron);
    const keystone = await proxy.#listen(0, settings.ports.keystone);
    return Object.assign(proxy, { authURL: `http://127.0.0.1:${keystone}/v3` });
  }

  /** Requests so far that match, as `METHOD path`. */
  seen(pattern: RegExp): readonly string[] {
    return this.#seen.filter((line) => pattern.test(line));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    for (const server of this.#servers) {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
  }

  async #listen(port: number, target: number): Promise<number> {
    const server = createServer((req, res) => this.#pass(req, res, target));
    this.#servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    return (server.address() as AddressInfo).port;
  }

  #pass(req: IncomingMessage, res: ServerResponse, target: number): void {
    const { method = 'GET', url = '/' } = req;
    this.#seen.push(`${method} ${url}`);
    const loss = method === 'GET' ? undefined : this.rule(method, url);
    if (loss === 'request') return void req.socket.destroy();
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const forward = (): void => this.#forward(req, res, target, Buffer.concat(chunks), loss !== undefined);
      if (typeof loss === 'object') setTimeout(forward, loss.lateMs);
      else forward();
    });
  }

  #forward(req: IncomingMessage, res: ServerResponse, port: number, body: Buffer, isLost: boolean): void {
    const { method, url, headers } = req;
    const upstream = send({ host: '127.0.0.1', port, method, path: url, headers, agent: this.#agent }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => {
        if (isLost) return void req.socket.destroy();
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        res.end(Buffer.concat(chunks));
      });
    });
    upstream.on('error', () => req.socket.destroy());
    upstream.end(body);
  }
}
