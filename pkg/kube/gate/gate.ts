/**
 * What a mutation does to the world, in rising order of danger.
 * report: says something (Events, status that shows an outage); passes even then.
 * create: makes an API object. change: alters one.
 * destroy: deletes, evicts, moves a Machine to Failed, scales a set down, or calls any mutating driver method; it needs a
 * recent proof that every cluster concerned is alive.
 */
export type Intent = 'report' | 'create' | 'change' | 'destroy';

/** Name of a cluster: `control`, or the name of a target cluster. */
export type Cluster = string;

/** The cluster that holds Machines, Secrets and Leases. */
export const CONTROL: Cluster = 'control';

export interface Admission {
  /** How long the fence stays open as of now; the request must have ended by then, unless `leftMs` says more. Infinity without leader election. */
  readonly remainingMs: number;
  /** `leaseTransitions` of the Lease under which we act; drivers refuse an older one than they have seen. Decimal. */
  readonly fencingToken: bigint;
  /**
   * How long the fence stays open by what is known now, 0 when it has closed since; absent: nobody knows more than `remainingMs`. Asked again
   * right before the first byte is written, and when the time is up: leadership may have been renewed meanwhile.
   */
  readonly leftMs?: () => number;
}

/** Why the gate refused. fenced: leadership may have passed on. outage: a cluster was unreachable for too long. unproven: no recent proof of life. */
export type GateClosedReason = 'fenced' | 'outage' | 'unproven';

/** Thrown instead of sending a mutation. It is no failure of the object: reconcilers requeue without back-off growth. */
export class GateClosedError extends Error {
  override readonly name = 'GateClosedError';
  readonly reason: GateClosedReason;
  readonly cluster: Cluster | undefined;

  constructor(reason: GateClosedReason, cluster: Cluster | undefined, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
    this.cluster = cluster;
  }
}

/** Asked before every API write and every driver mutation; there is no way around it. */
export interface Gate {
  /** Admits one mutation that concerns `clusters`, and the control cluster, or throws GateClosedError. May probe a cluster first. */
  admit(intent: Intent, clusters: readonly Cluster[], signal: AbortSignal): Promise<Admission>;
}
