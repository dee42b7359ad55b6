import { createServer, request as send, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

import { eventually } from '../expect/eventually.ts';

/** Where a request of EC2 stops: it is not sent, or it is done and its answer does not come. */
export type Stop = 'before' | 'after';

/** A proxy before an EC2 API that holds requests, so that whoever has sent them can be killed meanwhile, or refuses them. */
export class Ec2Gate implements AsyncDisposable {
  readonly #url: string;
  readonly #server: Server;
  #held: { readonly action: string; readonly stop: Stop } | undefined;
  #refused: { readonly action: string; readonly code: string } | undefined;
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

  /** Answers all requests of an action with an error from now on. */
  refuse(action: string, code: string): void {
    this.#refused = { action, code };
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
    this.#refused = undefined;
    for (const response of this.#holding.splice(0)) response.destroy();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const action = new URLSearchParams(body.toString()).get('Action');
    if (action === this.#refused?.action) return void response.writeHead(400).end(errorOf(this.#refused.code));
    const stop = action === this.#held?.action ? this.#held.stop : undefined;
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

/** As EC2 writes it. */
function errorOf(code: string): string {
  return `<Response><Errors><Error><Code>${code}</Code><Message>refused</Message></Error></Errors><RequestID>1</RequestID></Response>`;
}
