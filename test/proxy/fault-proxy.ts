import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

import { reset } from './reset.ts';

/** What the network does to connections. `to-client` and `to-server` swallow one direction and keep the other. */
export type NetworkState = 'up' | 'refuse' | 'stall' | 'swallow-to-client' | 'swallow-to-server';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** Nothing gets through any more, and nobody is told. */
  isDead: boolean;
}

/**
 * A TCP proxy in front of one server, for making the network fail. TLS goes through untouched, so that clients need no other
 * certificates: its address is loopback as the server's is. New connections meet the present state too.
 */
export class FaultProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #target: { host: string; port: number };
  readonly #pairs = new Set<Pair>();
  #state: NetworkState = 'up';
  #delayMs = 0;
  #accepted = 0;

  private constructor(server: Server, target: { host: string; port: number }) {
    this.#server = server;
    this.#target = target;
    server.on('connection', (client) => this.#accept(client));
  }

  /** Listens on a free port of loopback, in front of `url`. */
  static async start(url: string): Promise<FaultProxy> {
    const { hostname, port } = new URL(url);
    // A half-closed connection must stay half-closed on the other side.
    const server = createServer({ allowHalfOpen: true });
    const proxy = new FaultProxy(server, { host: hostname, port: Number(port) });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  /** The address for clients. */
  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Connections accepted since the start. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#pairs.size;
  }

  /** Breaks all connections with a reset; new ones are accepted. */
  cut(): void {
    for (const { client, server } of this.#pairs) {
      reset(client);
      reset(server);
    }
  }

  /** The connections that are open now swallow everything from now on, without a word; new ones work: a lost state of NAT. */
  strand(): void {
    for (const pair of this.#pairs) pair.isDead = true;
  }

  /** Changes the state of the network. `refuse` also cuts; leaving a stall delivers what was held back. */
  set(state: NetworkState): void {
    this.#state = state;
    if (state === 'refuse') this.cut();
    for (const pair of this.#pairs) this.#apply(pair);
  }

  /** Holds back every piece of data for so long, in both directions. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    client.on('error', ignore);
    if (this.#state === 'refuse') {
      reset(client);
      return;
    }
    this.#accepted += 1;
    const server = connect({ ...this.#target, allowHalfOpen: true });
    const pair = { client, server, isDead: false };
    this.#pairs.add(pair);
    this.#pipe(client, server, 'swallow-to-server', pair);
    this.#pipe(server, client, 'swallow-to-client', pair);
    this.#apply(pair);
  }

  #apply({ client, server }: Pair): void {
    for (const socket of [client, server]) {
      if (this.#state === 'stall') socket.pause();
      else socket.resume();
    }
  }

  #pipe(from: Socket, to: Socket, swallowed: NetworkState, pair: Pair): void {
    from.setNoDelay(true);
    from.on('error', ignore);
    from.on('data', (data) => {
      if (this.#state === swallowed || pair.isDead) return;
      this.#later(() => {
        if (!to.write(data)) from.pause();
      });
    });
    to.on('drain', () => this.#apply(pair));
    from.on('end', () => this.#later(() => to.end()));
    from.on('close', () => {
      this.#pairs.delete(pair);
      this.#later(() => to.destroy());
    });
  }

  #later(run: () => void): void {
    if (this.#delayMs === 0) run();
    else setTimeout(run, this.#delayMs).unref();
  }
}

/** A broken connection is what this proxy is for; the other side is told by 'close'. */
function ignore(): void {
  // Nothing to do.
}
