import { POOL_CLAIMS_ANNOTATION, TAKE_OVER_CLAIMS_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Lease } from '../../../apis/wire.ts';

/**
 * By what a machine at a runtime says which process looked after it last: one start of a process, and how often that had renewed the Lease
 * of the pool by then. What a backup brings back is an older Lease. It has not heard of the processes that came after it, nor of the
 * renewals since, while the machines at the runtime go on saying so.
 */
export interface PoolClaim {
  /** Different for each start of a process. */
  readonly process: string;
  /** From 1. */
  readonly renewals: number;
}

/** Up to which renewal claims of a process are known, oldest process first. */
export type RecordedClaims = ReadonlyMap<string, number>;

/** So many processes are noted; the oldest are forgotten first. One that is started over and over does not get there in a night. */
const MOST = 200;
/** Machines that say nothing younger are claimed anew, long before what they say is forgotten. */
const LASTING = 100;

const CLAIM = /^([\w-]{1,64}):([1-9]\d{0,14})$/;

/** A claim as a machine, or a note, has it; undefined: it is none. */
export function claimFrom(text: string): PoolClaim | undefined {
  const [, process, renewals] = CLAIM.exec(text) ?? [];
  return process === undefined ? undefined : { process, renewals: Number(renewals) };
}

export function claimText({ process, renewals }: PoolClaim): string {
  return `${process}:${renewals}`;
}

export function isRecordedClaim(known: RecordedClaims, { process, renewals }: PoolClaim): boolean {
  return renewals <= (known.get(process) ?? 0);
}

/** Whether a machine with this claim has to be claimed anew before the claim is forgotten, or because somebody has given it to this cluster. */
export function isForgottenSoon(known: RecordedClaims, { process }: PoolClaim): boolean {
  return ![...known.keys()].slice(-LASTING).includes(process);
}

/** The claims that a Lease notes. It begins with the UID of the Lease itself: one that was copied from another one says nothing. */
export function recordedClaims({ metadata }: Pick<Lease, 'metadata'>): RecordedClaims {
  const [own, ...claims] = metadata.annotations?.[POOL_CLAIMS_ANNOTATION]?.split(' ') ?? [];
  return own === metadata.uid ? claimsFrom(claims) : new Map();
}

/** The claims that somebody gives to this cluster: those of another one that has ended. */
export function grantedClaims({ metadata }: Pick<KubeObject, 'metadata'>): RecordedClaims {
  return claimsFrom((metadata.annotations?.[TAKE_OVER_CLAIMS_ANNOTATION] ?? '').split(',').map((text) => text.trim()));
}

function claimsFrom(texts: readonly string[]): RecordedClaims {
  return new Map(
    texts.map(claimFrom).flatMap((claim) => (claim === undefined ? [] : [[claim.process, claim.renewals]])),
  );
}

/** The value of the annotation of a Lease. */
export function claimsNote({ metadata }: Pick<Lease, 'metadata'>, known: RecordedClaims): string {
  return [metadata.uid, ...[...known].map(([process, renewals]) => claimText({ process, renewals }))].join(' ');
}

/** What is known when a process has renewed the Lease of which this was known. The youngest are last. */
export function withClaim(known: RecordedClaims, { process, renewals }: PoolClaim): RecordedClaims {
  const others = [...known].filter(([one]) => one !== process);
  return new Map([...others.slice(-(MOST - 1)), [process, Math.max(renewals, known.get(process) ?? 0)]]);
}

/** What the Leases of this process's pools note of claims. */
export class PoolClaims {
  readonly #process: string;
  readonly #recorded = new Map<string, RecordedClaims>();

  constructor({ process }: { readonly process: string }) {
    this.#process = process;
  }

  /** What is to be noted when the Lease of a pool is renewed: `found` is what it says so far. A Lease may have been set back meanwhile. */
  next(pool: string, found: RecordedClaims): RecordedClaims {
    const before = this.#recorded.get(pool) ?? new Map<string, number>();
    const all = [...found, ...before].reduce(
      (known, [process, renewals]) => withClaim(known, { process, renewals }),
      new Map() as RecordedClaims,
    );
    return withClaim(all, { process: this.#process, renewals: (all.get(this.#process) ?? 0) + 1 });
  }

  /** The Lease of a pool says so now. */
  noted(pool: string, known: RecordedClaims): void {
    this.#recorded.set(pool, known);
  }

  /** What is known of a pool; undefined: nothing yet. */
  of(pool: string): RecordedClaims | undefined {
    return this.#recorded.get(pool);
  }

  /** The claim of this process on machines of a pool; undefined: its Lease does not know it yet. */
  ownOf(pool: string): PoolClaim | undefined {
    const renewals = this.#recorded.get(pool)?.get(this.#process);
    return renewals === undefined ? undefined : { process: this.#process, renewals };
  }
}
