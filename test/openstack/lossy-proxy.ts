import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request as send } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createPki, readCredential } from '../../hack/control-plane/pki.ts';
import type { SecretTexts } from '../drivers/requests.ts';

/** The services that it stands in front of. */
export const LOSSY = ['keystone', 'nova', 'neutron', 'cinder'] as const;
type Lossy = (typeof LOSSY)[number];

/**
 * What becomes of a request: it never arrives; its answer is lost; it arrives later, when nobody waits for the answer; it arrives with a
 * token that is not good any more; something in front of the service refuses it.
 */
export type Loss =
  | 'request'
  | 'answer'
  | 'token'
  | { readonly at: Promise<void> }
  | { readonly status: number; readonly retryAfter: string };

/** Decides about a request; undefined: it goes its way. */
export type LossRule = (method: string, path: string) => Loss | undefined;

const PASSES: LossRule = () => undefined;

/**
 * Stands in front of real services, with certificates of an authority of its own, counts what passes, and loses some of it. The catalog
 * names it in region `lossy`.
 */
export class LossyProxy implements AsyncDisposable {
  readonly #servers: Server[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #seen: string[] = [];
  #rule = PASSES;
  readonly ports: Readonly<Record<Lossy, number>>;
  /** Of the authority, PEM. */
  readonly caCert: string;

  private constructor(ports: LossyProxy['ports'], caCert: string) {
    this.ports = ports;
    this.caCert = caCert;
  }

  /** In front of services at these ports of loopback. */
  static async start(targets: Readonly<Record<Lossy, number>>): Promise<LossyProxy> {
    const directory = await mkdtemp(join(tmpdir(), 'proxy-'));
    const files = await createPki(directory, ['127.0.0.1']);
    const { certificate: cert, key } = readCredential(files.server, files.serverKey);
    const { certificate: caCert } = readCredential(files.ca, files.caKey);
    await rm(directory, { recursive: true });
    const ports = { keystone: 0, nova: 0, neutron: 0, cinder: 0 };
    const proxy = new LossyProxy(ports, caCert);
    for (const name of LOSSY) ports[name] = await proxy.#listen({ cert, key }, targets[name]);
    return proxy;
  }

  /** What a Secret holds to reach Keystone through it, and to trust it. */
  get secret(): SecretTexts {
    return { authURL: `https://127.0.0.1:${this.ports.keystone}/v3`, caCert: this.caCert };
  }

  /** Asked about each request from now on; nothing is counted yet. */
  begin(rule: LossRule = PASSES): void {
    this.#rule = rule;
    this.#seen.length = 0;
  }

  /** Requests since `begin` that match, as `METHOD path`. */
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

  async #listen(credential: { readonly cert: string; readonly key: string }, target: number): Promise<number> {
    const server = createServer(credential, (req, res) => this.#pass(req, res, target));
    this.#servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    return (server.address() as AddressInfo).port;
  }

  #pass(req: IncomingMessage, res: ServerResponse, target: number): void {
    const { method = 'GET', url = '/' } = req;
    this.#seen.push(`${method} ${url}`);
    const loss = this.#rule(method, url);
    if (loss === 'request') return void req.socket.destroy();
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      if (typeof loss === 'object' && 'status' in loss) {
        res.writeHead(loss.status, { 'retry-after': loss.retryAfter });
        return void res.end('too many requests');
      }
      const forward = (): void => this.#forward(req, res, { target, body: Buffer.concat(chunks), loss });
      if (typeof loss === 'object') void loss.at.then(forward);
      else forward();
    });
  }

  #forward(
    req: IncomingMessage,
    res: ServerResponse,
    { target: port, body, loss }: { readonly target: number; readonly body: Buffer; readonly loss: Loss | undefined },
  ): void {
    const { method, url } = req;
    const headers = loss === 'token' ? { ...req.headers, 'x-auth-token': 'expired' } : req.headers;
    const upstream = send({ host: '127.0.0.1', port, method, path: url, headers, agent: this.#agent }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => {
        if (loss === 'answer' || typeof loss === 'object') return void req.socket.destroy();
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        res.end(Buffer.concat(chunks));
      });
    });
    upstream.on('error', () => req.socket.destroy());
    upstream.end(body);
  }
}
