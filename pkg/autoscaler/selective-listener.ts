import { constants, createServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { PeerCertificate, Server as TlsServer, TLSSocket } from 'node:tls';

import { type Server, ServerCredentials } from '@grpc/grpc-js';

import type { Clock } from '../base/clock/clock.ts';
import type { ReloadedServerCredentials } from '../driver/grpc/reloaded-server-credentials.ts';

/** A client as its connection shows it. */
export interface ConnectedClient {
  /** Host and port, as a call has it. */
  readonly address: string;
  /** Undefined when it has shown none that our authority has signed. */
  readonly certificate: PeerCertificate | undefined;
}

/** Why a client is to go to another process. */
export interface Elsewhere {
  /** Told to it. */
  readonly reason: string;
  /** After that: those who call again at once would do nothing else while there is no such process. */
  readonly afterMs: number;
}

/** Asked about each client when it has connected. Undefined: it stays. */
export type ClientAdmission = (certificate: PeerCertificate | undefined) => Elsewhere | undefined;

export interface SelectiveListenerOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly credentials: ReloadedServerCredentials;
  readonly admission: ClientAdmission;
  /** Gets the connections that stay. */
  readonly server: Server;
  readonly clock: Clock;
}

/** Those who were sent away have so long to go. */
const LEAVE_MS = 1_000;

interface Connection extends ConnectedClient {
  readonly drain: (graceMs: number) => void;
}

/**
 * A port of several processes behind one address, each of which answers some clients. One that is another's is told so as the first word on
 * its connection (GOAWAY, with no call accepted): gRPC then connects anew and sends the same call there, at once and for as long as it may
 * take. After an answer UNAVAILABLE it would fail instead, and after a connection that is cut wait longer each time.
 */
export class SelectiveListener {
  readonly port: number;
  readonly #tls: TlsServer;
  readonly #open: Set<Connection>;
  /** Also those whose handshake is not over. */
  readonly #sockets: Set<Socket>;

  private constructor(tls: TlsServer, open: Set<Connection>, sockets: Set<Socket>) {
    this.port = (tls.address() as AddressInfo).port;
    this.#tls = tls;
    this.#open = open;
    this.#sockets = sockets;
  }

  /** Resolves when connections are accepted; rejects when the address cannot be listened on. */
  static async listen({
    listen,
    credentials,
    admission,
    server,
    clock,
  }: SelectiveListenerOptions): Promise<SelectiveListener> {
    const open = new Set<Connection>();
    const sockets = new Set<Socket>();
    const farewell = sayingFarewell(clock);
    const tls = credentials.server((socket) => {
      socket.on('error', () => undefined);
      const certificate = certificateOf(socket);
      const elsewhere = admission(certificate);
      if (elsewhere === undefined) {
        stay(socket, certificate, { server, open });
        return;
      }
      clock.schedule(elsewhere.afterMs, () => {
        if (!socket.destroyed) farewell(socket, elsewhere.reason);
      });
    });
    tls.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    // A handshake that fails concerns its client alone.
    tls.on('tlsClientError', (_err, socket) => socket.destroy());
    await new Promise<void>((resolve, reject) => {
      tls.once('error', reject);
      tls.listen(listen.port, listen.host, resolve);
    });
    return new SelectiveListener(tls, open, sockets);
  }

  /** Tells these clients to connect anew once the calls that run have ended, for which they have so long. */
  drop(isMeant: (client: ConnectedClient) => boolean, graceMs: number): void {
    for (const connection of this.#open) if (isMeant(connection)) connection.drain(graceMs);
  }

  /** Accepts none any more; those that stay are the server's to end. */
  async close(): Promise<void> {
    const staying = new Set([...this.#open].map(({ address }) => address));
    const closed = new Promise<void>((resolve) => this.#tls.close(() => resolve()));
    for (const socket of this.#sockets) if (!staying.has(addressOf(socket))) socket.destroy();
    if (staying.size === 0) await closed;
  }
}

function stay(
  socket: TLSSocket,
  certificate: PeerCertificate | undefined,
  { server, open }: { readonly server: Server; readonly open: Set<Connection> },
): void {
  // One for each, so that each can be told to go.
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const connection = { address: addressOf(socket), certificate, drain: (ms: number) => injector.drain(ms) };
  open.add(connection);
  socket.on('close', () => {
    open.delete(connection);
    injector.destroy();
  });
  injector.injectConnection(socket);
}

/** What says on a connection that no call is accepted there, and why. */
function sayingFarewell(clock: Clock): (socket: TLSSocket, reason: string) => void {
  const server = createServer();
  let said = '';
  // Made while the connection is handed over.
  server.on('session', (session) => {
    session.on('error', () => undefined);
    session.goaway(constants.NGHTTP2_NO_ERROR, 0, Buffer.from(said));
    clock.schedule(LEAVE_MS, () => session.destroy());
  });
  return (socket, reason) => {
    said = reason;
    server.emit('connection', socket);
  };
}

function certificateOf(socket: TLSSocket): PeerCertificate | undefined {
  if (!socket.authorized) return undefined;
  const certificate: Partial<PeerCertificate> = socket.getPeerCertificate();
  return certificate.raw === undefined ? undefined : (certificate as PeerCertificate);
}

function addressOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}
