import { createServer, request as send, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

import { eventually } from '../expect/eventually.ts';

/** Where a request of EC2 stops: it is not sent, or it is done and its answer does not come. */
export type Stop = 'before' | 'after';

/** A proxy before an EC2 API that holds requests, so that whoever has sent them can be killed meanwhile. */
export class Ec2Gate implements AsyncDisposable {
  readonly #url: string;
  readonly #server: Server;
  #held: { readonly action: string; readonly stop: Stop } | undefined;
  #holding: ServerResponse[] = [];

  private constructor(url: string) {
    this.#url = url;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  static async start(url: string): Promise<Ec2Gate> {
    const gate = new Ec2Gate(url);
    await new Promise<void>((resolve, reject) => {
      gate.#server.once('error', reject);
      gate.#server.listen(0, '127.0.0.1', resolve);
    });
    return gate;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Stops all requests of an action from now on. */
  hold(action: string, stop: Stop): void {
    this.#held = { action, stop };
  }

  /** Resolves when so many requests stand still. */
  async holds(count: number): Promise<void> {
    await eventually(() => this.#holding.length >= count, {
      timeoutMs: 300_000,
      describe: `${count} requests of ${this.#held?.action}`,
    });
  }

  /** Breaks the connections of what stands still, and lets everything through from now on. */
  open(): void {
    this.#held = undefined;
    for (const response of this.#holding.splice(0)) response.destroy();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const isHeld = new URLSearchParams(body.toString()).get('Action') === this.#held?.action;
    const stop = isHeld ? this.#held?.stop : undefined;
    if (stop === 'before') return void this.#holding.push(response);
    const answer = await this.#forward(request, body);
    if (stop === 'after') return void this.#holding.push(response);
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }

  async #forward({ method, url, headers }: IncomingMessage, body: Buffer) {
    return await new Promise<{ status: number; headers: IncomingMessage['headers']; body: Buffer }>(
      (resolve, reject) => {
        const upstream = send(new URL(url ?? '/', this.#url), { method, headers }, (answer) => {
          buffer(answer).then(
            (all) => resolve({ status: answer.statusCode ?? 502, headers: answer.headers, body: all }),
            reject,
          );
        });
        upstream.once('error', reject);
        upstream.end(body);
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
