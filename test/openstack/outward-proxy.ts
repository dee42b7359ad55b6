import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** What stands between many companies and a cloud: it connects to where it is asked to, and remembers where that was. */
export class OutwardProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Hosts with ports. */
  readonly asked: string[] = [];
  refuses = false;

  private constructor(server: Server) {
    this.#server = server;
    server.on('connect', ({ url = '' }, client: Socket) => this.#connect(url, client));
  }

  static async start(): Promise<OutwardProxy> {
    const server = createServer();
    const proxy = new OutwardProxy(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #connect(target: string, client: Socket): void {
    this.asked.push(target);
    if (this.refuses) return void client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    const { hostname, port } = new URL(`http://${target}`);
    const server = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      server.pipe(client).pipe(server);
    });
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy()).on('close', () => this.#sockets.delete(socket));
    }
  }
}
