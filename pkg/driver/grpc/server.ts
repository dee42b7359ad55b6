import { ServerCredentials } from '@grpc/grpc-js';
import { createServer, type Server } from 'nice-grpc';

import type { Clock } from '../../base/clock/clock.ts';
import { requireProtected, type DriverAddress } from './address.ts';
import { HealthDefinition } from './gen/grpc/health/v1/health.ts';
import { DriverServiceDefinition } from './gen/machine/driver/v1/driver.ts';
import { HealthService } from './health.ts';
import { driverService, type ServiceDeps } from './service.ts';
import { PrivateSocket } from './private-socket.ts';
import { ReloadedServerCredentials } from './reloaded-server-credentials.ts';

/** How long running calls may go on after `close`. */
const CLOSE_GRACE_MS = 5_000;

export interface DriverServerOptions extends ServiceDeps {
  /** From parseDriverAddress, which refuses plain text beyond loopback. Port 0 takes a free one. */
  readonly address: DriverAddress;
}

/**
 * A driver that listens: the contract of proto/machine/driver/v1 and the standard health service, on a socket that only this
 * user can open, or on TCP with mutual TLS, whose files are read again while it runs; on plain TCP of loopback only for an address that says `insecure=true`.
 */
export class DriverServer implements AsyncDisposable {
  /** What clients connect to. */
  readonly address: string;
  readonly #server: Server;
  readonly #health: HealthService;
  /** Gives up the socket, or the files that are read again. */
  readonly #release: () => Promise<void>;
  readonly #clock: Clock;

  private constructor(
    address: string,
    server: Server,
    health: HealthService,
    release: () => Promise<void>,
    clock: Clock,
  ) {
    this.address = address;
    this.#server = server;
    this.#health = health;
    this.#release = release;
    this.#clock = clock;
  }

  /**
   * Resolves when the server accepts calls. Rejects when the address cannot be listened on, or another driver does, and with
   * DriverAddressError when every user of the host could call it.
   */
  static async start(options: DriverServerOptions): Promise<DriverServer> {
    const { address, clock } = options;
    requireProtected(address);
    const health = new HealthService();
    const server = createServer({ 'grpc.max_receive_message_length': 16 * 1024 * 1024 });
    server.add(DriverServiceDefinition, driverService(options));
    server.add(HealthDefinition, health);
    if (address.path !== undefined) {
      const socket = await PrivateSocket.bind(address.path, async (path) => {
        await server.listen(`unix://${path}`);
      });
      return new DriverServer(address.target, server, health, () => socket.remove(), clock);
    }
    const host = address.host?.includes(':') ? `[${address.host}]` : address.host;
    const credentials = await credentialsOf(options);
    const release = async (): Promise<void> => credentials?.stop();
    try {
      const port = await server.listen(`${host}:${address.port}`, credentials ?? ServerCredentials.createInsecure());
      return new DriverServer(`dns:///${host}:${port}`, server, health, release, clock);
    } catch (err) {
      await release();
      throw err;
    }
  }

  /** Takes no new calls, lets the running ones end for a few seconds, then cancels them. */
  async close(): Promise<void> {
    this.#health.stop();
    await this.#release();
    const cancel = this.#clock.schedule(CLOSE_GRACE_MS, () => this.#server.forceShutdown());
    try {
      await this.#server.shutdown();
    } finally {
      cancel();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function credentialsOf(options: DriverServerOptions): Promise<ReloadedServerCredentials | undefined> {
  const { address, clock, log } = options;
  if (address.tls === undefined) return undefined;
  const { cert, key, ca } = address.tls;
  const files = { cert, key, clientCA: ca };
  return await ReloadedServerCredentials.load({ files, port: "the driver's port", rejectsStrangers: true, clock, log });
}
