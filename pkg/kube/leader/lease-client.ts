import type { Lease } from '../../apis/wire.ts';
import type { CallOptions, New } from '../client/client.ts';

/**
 * What the elector needs of the API server, for Leases of one namespace. It does not pass the gate (it is what opens the
 * gate) nor any client-side rate limit. Every member throws ApiError.
 */
export interface LeaseClient {
  /** A quorum read; ApiError NotFound when there is none. */
  get(name: string, options?: CallOptions): Promise<Lease>;
  /** POST; ApiError AlreadyExists when somebody else was faster. */
  create(lease: New<Lease>, options?: CallOptions): Promise<Lease>;
  /** PUT of the whole object with its `metadata.resourceVersion`; ApiError Conflict when it was changed meanwhile. */
  replace(lease: Lease, options?: CallOptions): Promise<Lease>;
  /**
   * Yields the Lease as it is now and after each change. Ends when the server ends the watch or the Lease is deleted;
   * throws when the watch breaks. The caller starts it again.
   */
  watch(name: string, signal: AbortSignal): AsyncIterable<Lease>;
}
