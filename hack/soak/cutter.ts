import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

import { joinSockets } from '../../test/proxy/join-sockets.ts';
import { reset } from '../../test/proxy/reset.ts';

/** A TCP proxy whose connections can all be broken at once; TLS goes through untouched. */
export class Cutter {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, target: URL) {
    this.#server = server;
    server.on('connection', (client) => {
      joinSockets(client, connect(Number(target.port), target.hostname), this.#sockets);
    });
  }

  /** Listens on a free port of loopback, in front of `url`. */
  static async start(url: string): Promise<Cutter> {
    const server = createServer();
    const cutter = new Cutter(server, new URL(url));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return cutter;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Breaks all connections with a reset; new ones are accepted. Returns how many there were. */
  cut(): number {
    const count = this.#sockets.size / 2;
    for (const socket of this.#sockets) reset(socket);
    return count;
  }

  stop(): void {
    this.cut();
    this.#server.close();
  }
}
