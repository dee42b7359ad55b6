import {
  Server,
  type sendUnaryData,
  type ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { ServiceImplementation } from 'nice-grpc';
import type { PeerCertificate } from 'node:tls';

import type { Clock } from '../base/clock/clock.ts';
import type { ListenAddress } from '../operator/config/autoscaler.ts';
import { PrivateSocket } from '../driver/grpc/private-socket.ts';
import { ReloadedServerCredentials } from '../driver/grpc/reloaded-server-credentials.ts';
import { CloudProviderDefinition } from './gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import { type ClientAdmission, type ConnectedClient, SelectiveListener } from './selective-listener.ts';

/** How long running calls may go on after `close`. */
const CLOSE_GRACE_MS = 5_000;
/** How long calls of a connection that is to go elsewhere may go on. */
const DROP_GRACE_MS = 1_000;

export type { ClientAdmission, ConnectedClient } from './selective-listener.ts';

type Implementation = ServiceImplementation<CloudProviderDefinition>;

export type RpcName = keyof Implementation;

export type RpcRequest<M extends RpcName> = Parameters<Implementation[M]>[0];
export type RpcReply<M extends RpcName> = Awaited<ReturnType<Implementation[M]>>;

export interface IncomingCall {
  /** Host and port of the client. */
  readonly address: string;
  /** The client's certificate; undefined when it has shown none that our authority has signed. */
  readonly certificate: PeerCertificate | undefined;
  /** Aborted when the client has given up, or its deadline has passed. */
  readonly signal: AbortSignal;
  readonly leftMs: () => number;
}

export type RpcOutcome<M extends RpcName = RpcName> =
  | { readonly reply: RpcReply<M> }
  | { readonly code: number; readonly message: string };

/** Answers every call; never rejects. */
export type RpcHandler<C extends IncomingCall = IncomingCall> = <M extends RpcName>(
  method: M,
  request: RpcRequest<M>,
  call: C,
) => Promise<RpcOutcome<M>>;

export interface GrpcServerOptions {
  readonly listen: ListenAddress;
  readonly credentials: ServerCredentials;
  readonly answer: RpcHandler;
  /** Which clients this process is for, by their certificates; undefined: all. */
  readonly admission?: ClientAdmission;
  readonly clock: Clock;
}

/**
 * The gRPC service that cluster-autoscalers call. It is made of grpc-js itself: deadlines and certificates of calls are known there, and connections
 * can be told to go elsewhere.
 */
export class GrpcServer {
  /** As bound: with the port that was free where 0 was asked for. */
  readonly address: string;
  readonly #server: Server;
  readonly #socket: PrivateSocket | undefined;
  readonly #listener: SelectiveListener | undefined;
  readonly #clock: Clock;

  private constructor(
    address: string,
    {
      server,
      socket,
      listener,
      clock,
    }: { server: Server; socket?: PrivateSocket; listener?: SelectiveListener; clock: Clock },
  ) {
    this.address = address;
    this.#server = server;
    this.#socket = socket;
    this.#listener = listener;
    this.#clock = clock;
  }

  /** Resolves when calls are accepted; rejects when the address cannot be listened on. */
  static async listen({ listen, credentials, answer, admission, clock }: GrpcServerOptions): Promise<GrpcServer> {
    // Channelz would count and keep what each call does, thousands in each loop of an autoscaler, and nobody reads it.
    const server = new Server({ 'grpc.enable_channelz': 0 });
    server.addService(SERVICE, implementation(answer, clock));
    if (listen.kind === 'unix') {
      const bound = await PrivateSocket.bind(listen.path, async (path) => {
        await bind(server, `unix://${path}`, credentials);
      });
      return new GrpcServer(`unix://${listen.path}`, { server, socket: bound, clock });
    }
    const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
    if (admission !== undefined) {
      if (!(credentials instanceof ReloadedServerCredentials))
        throw new Error('clients of another process are known by certificates only');
      const listener = await SelectiveListener.listen({ listen, credentials, admission, server, clock });
      return new GrpcServer(`${host}:${listener.port}`, { server, listener, clock });
    }
    const port = await bind(server, `${host}:${listen.port}`, credentials);
    return new GrpcServer(`${host}:${port}`, { server, clock });
  }

  /** Tells the clients that are connected, or those that are meant, to connect anew: behind a Service they may find another process. */
  drop(isMeant: (client: ConnectedClient) => boolean = () => true): void {
    if (this.#listener !== undefined) this.#listener.drop(isMeant, DROP_GRACE_MS);
    else if (this.#socket === undefined) this.#server.drain(this.address, DROP_GRACE_MS);
  }

  /** Takes no new calls, lets the running ones end for a few seconds, then cancels them. */
  async close(): Promise<void> {
    await Promise.all([this.#socket?.remove(), this.#listener?.close()]);
    const cancel = this.#clock.schedule(CLOSE_GRACE_MS, () => this.#server.forceShutdown());
    try {
      await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    } finally {
      cancel();
    }
  }
}

function bind(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (err, port) => (err === null ? resolve(port) : reject(err)));
  });
}

const METHODS = Object.entries(CloudProviderDefinition.methods) as unknown as [RpcName, Method][];

/** What of a generated method is needed to marshal it: which one it is, the compiler cannot follow. */
interface Method {
  readonly name: string;
  readonly requestType: Codec;
  readonly responseType: Codec;
}

interface Codec {
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

/** The contract in the form of grpc-js. */
const SERVICE: ServiceDefinition = Object.fromEntries(
  METHODS.map(([method, { name, requestType, responseType }]) => [
    method,
    {
      path: `/${CloudProviderDefinition.fullName}/${name}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (message: unknown) => bytesOf(requestType, message),
      requestDeserialize: (bytes: Buffer) => requestType.decode(bytes),
      responseSerialize: (message: unknown) => bytesOf(responseType, message),
      responseDeserialize: (bytes: Buffer) => responseType.decode(bytes),
    },
  ]),
);

function bytesOf(codec: Codec, message: unknown): Buffer {
  const { buffer, byteOffset, byteLength } = codec.encode(message).finish();
  return Buffer.from(buffer, byteOffset, byteLength);
}

function implementation(answer: RpcHandler, clock: Clock): UntypedServiceImplementation {
  const handler =
    (method: RpcName) =>
    (call: ServerUnaryCall<RpcRequest<RpcName>, unknown>, send: sendUnaryData<unknown>): void => {
      const reply = async (): Promise<void> => {
        const gone = new AbortController();
        const end = (): void => gone.abort(GONE);
        if (call.cancelled) end();
        else call.on('cancelled', end);
        const outcome = await answer(method, call.request as never, incoming(call, gone.signal, clock));
        call.off('cancelled', end); // which each call ends with, also one that was answered
        if ('reply' in outcome) send(null, outcome.reply);
        // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- both libraries number codes alike
        else send({ code: outcome.code, details: outcome.message });
      };
      void reply();
    };
  return Object.fromEntries(METHODS.map(([method]) => [method, handler(method)]));
}

const GONE = new Error('the client cancelled the call, or its deadline expired');

function incoming(call: ServerUnaryCall<unknown, unknown>, signal: AbortSignal, clock: Clock): IncomingCall {
  const deadline = call.getDeadline();
  // gRPC counts by the host's clock, and ours follows the API server's: what is left is asked once, and counted down by ours.
  // oxlint-disable-next-line no-restricted-globals
  const leftMs = Number(deadline) - new Date().getTime();
  const sinceMs = clock.monotonicMs();
  return {
    address: call.getPeer(),
    certificate: call.getAuthContext().sslPeerCertificate,
    signal,
    leftMs: () => leftMs - (clock.monotonicMs() - sinceMs),
  };
}
