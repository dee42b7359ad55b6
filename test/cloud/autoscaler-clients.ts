import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ChannelCredentials } from '@grpc/grpc-js';
import { type Channel, type Client, createChannel, createClient } from 'nice-grpc';

import { createPki, issueClient, type PkiFiles, readCredential } from '../../hack/control-plane/pki.ts';
import { CloudProviderDefinition } from '../../pkg/autoscaler/gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import type { LogFields, Logger } from '../../pkg/base/log/logger.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { eventually } from '../expect/eventually.ts';
import { joinSockets } from '../proxy/join-sockets.ts';

export type AutoscalerClient = Client<typeof CloudProviderDefinition>;

/** Autoscalers with certificates of one authority, and what a manager needs to serve them. */
export class AutoscalerClients implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'autoscalers-'));
  readonly #channels: Channel[] = [];
  #pki!: PkiFiles;

  static async create(): Promise<AutoscalerClients> {
    const clients = new AutoscalerClients();
    clients.#pki = await createPki(clients.#directory, ['127.0.0.1', 'localhost']);
    return clients;
  }

  /** Flags of a manager that listens on any port. */
  get flags(): Readonly<Record<string, string>> {
    const { server, serverKey, ca } = this.#pki;
    return {
      'autoscaler-grpc-address': '127.0.0.1:0',
      'autoscaler-tls-cert': server,
      'autoscaler-tls-key': serverKey,
      'autoscaler-tls-client-ca': ca,
    };
  }

  /** One whose certificate is for `user`; without it, one that has none. */
  async connect(address: string, user?: string): Promise<AutoscalerClient> {
    const authority = readCredential(this.#pki.ca, this.#pki.caKey);
    const own = user === undefined ? undefined : await issueClient(authority, { user });
    const credentials = ChannelCredentials.createSsl(
      Buffer.from(authority.certificate),
      own && Buffer.from(own.key),
      own && Buffer.from(own.certificate),
    );
    const channel = createChannel(address, credentials);
    this.#channels.push(channel);
    return createClient(CloudProviderDefinition, channel);
  }

  [Symbol.dispose](): void {
    for (const channel of this.#channels) channel.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** A log in which a manager says where it listens for autoscalers. */
export class PortLog {
  readonly log: Logger;
  #address: string | undefined;

  constructor() {
    const info = (fields: LogFields, message: string): void => {
      if (message === 'listening for autoscalers') this.#address = String(fields['listen']);
    };
    this.log = { ...silentLogger, info };
  }

  async address(): Promise<string> {
    return await eventually(() => {
      if (this.#address === undefined) throw new Error('it does not listen yet');
      return this.#address;
    });
  }
}

/** One address before several servers, each of which gets every so-manieth connection. */
export class Balancer implements Disposable {
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(targets: readonly string[]) {
    this.#server = createServer((socket) => {
      const port = Number(/\d+$/.exec(targets[this.connections++ % targets.length] ?? '')?.[0]);
      joinSockets(socket, connect(port, '127.0.0.1'), this.#sockets);
    });
  }

  static async before(...targets: readonly string[]): Promise<Balancer> {
    const balancer = new Balancer(targets);
    await new Promise<void>((resolve) => balancer.#server.listen(0, '127.0.0.1', resolve));
    return balancer;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
