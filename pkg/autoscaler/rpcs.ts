import type { RpcName, RpcReply, RpcRequest } from './grpc-server.ts';

export interface RpcCall {
  /** Who calls: the name that the certificate shows, or where it comes from. */
  readonly peer: string;
  /** Aborted when the client gave up, its deadline has passed, or this process no longer leads. */
  readonly signal: AbortSignal;
  /** How long the client still waits; Infinity when it has not said so. */
  readonly leftMs: () => number;
  /** Adds to the line of the log about this call. */
  readonly report: (outcome: string) => void;
}

/** What answers each method; ServerErrors are for the client, anything else is a fault of ours or of an API server. */
export type Rpcs = {
  readonly [M in RpcName]: (request: RpcRequest<M>, call: RpcCall) => RpcReply<M> | Promise<RpcReply<M>>;
};
