import type { ExternalGrpcNode } from './gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import type { NodeGroup } from './groups.ts';
import type { RpcCall } from './rpcs.ts';

/** What a mutation has done to `spec.replicas`; equal when there was nothing to do. */
export interface Mutated {
  readonly before: number;
  readonly after: number;
  /** Machines that are to go, by name. */
  readonly machines: readonly string[];
}

/**
 * What an autoscaler may change. Each is one write or none, and resolves when it is visible to readers of the caches. Refusals are ServerErrors of nice-grpc,
 * with a message that says what to do, and nothing was written; whatever else is thrown is answered as UNAVAILABLE or INTERNAL.
 */
export interface Mutations {
  /** `delta` is greater than 0. */
  increase(group: NodeGroup, delta: number, call: RpcCall): Promise<Mutated>;
  delete(group: NodeGroup, nodes: readonly ExternalGrpcNode[], call: RpcCall): Promise<Mutated>;
  /** `delta` is less than 0. */
  decrease(group: NodeGroup, delta: number, call: RpcCall): Promise<Mutated>;
}

/** A sentence for the audit: what was done, or that there was nothing to do. */
export function describeMutated({ before, after, machines }: Mutated): string {
  const size = before === after ? `size remains ${before}` : `size ${before} -> ${after}`;
  return machines.length === 0 ? size : `${size}, without ${machines.join(', ')}`;
}
