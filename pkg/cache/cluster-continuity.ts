import type { Clock } from '../clock/clock.ts';
import { ApiError } from '../kube/errors.ts';
import type { HistoricKind } from './known-history.ts';
import { compareLastChange, requireNotOlder } from './known-history.ts';
import type { InformerContinuity } from './reflected-informer.ts';
import { Waiters } from './waiters.ts';

/** Who is told of what is found about a cluster. */
export interface ContinuityListener {
  /** A watch broke: until `verify` has succeeded, nobody knows whether the server goes on where it was. */
  readonly doubted: () => void;
  readonly setBack: (why: string) => void;
}

/** A kind, and what its watches went through. */
interface Member {
  readonly kind: HistoricKind;
  /** Its watch broke since the last verification. */
  isBroken: boolean;
  /** It has to be listed by quorum before anybody may rely on it; if the server refuses to let us, nobody waits for it. */
  mustList: 'no' | 'yes' | 'refused';
  /** In a row. */
  refusals: number;
}

/**
 * Whether one cluster still goes on where its caches are. etcd cannot be restored while the API server runs, so a watch that breaks
 * is the first sign of it: from then on the cluster is in doubt, until quorum reads of all kinds have shown
 * that it has reached what was seen and that the last change of each is part of its history. A kind whose watch broke and whose
 * last change is too old to be compared is listed anew.
 */
export class ClusterContinuity {
  readonly #members = new Set<Member>();
  readonly #waiters: Waiters;
  #listener: ContinuityListener = { doubted: () => undefined, setBack: () => undefined };
  #breaks = 0;
  #verified = 0;

  constructor(clock: Clock) {
    this.#waiters = new Waiters(clock);
  }

  /** One only. */
  listen(listener: ContinuityListener): void {
    this.#listener = listener;
  }

  /** Adds a kind; `remove` takes it out again, because it is not watched after all, and `restore` back in, because it is. */
  add(kind: HistoricKind): InformerContinuity & { remove(): void; restore(): void } {
    const member: Member = { kind, isBroken: false, mustList: 'no', refusals: 0 };
    this.#members.add(member);
    return {
      broke: () => {
        member.isBroken = true;
        this.#breaks += 1;
        this.#waiters.notify();
        this.#listener.doubted();
      },
      untilVerified: async (signal) => {
        const breaks = this.#breaks;
        await this.#waiters.until(() => this.#verified >= breaks, signal);
        return member.mustList === 'no' ? 'same' : 'unknown';
      },
      listed: () => {
        member.mustList = 'no';
        this.#waiters.notify();
      },
      setBack: (why) => this.#listener.setBack(why),
      remove: () => void this.#members.delete(member),
      restore: () => void this.#members.add(member),
    };
  }

  /** Whether there is nothing to compare. */
  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** Whether a watch broke since the last verification. */
  get isInDoubt(): boolean {
    return this.#verified < this.#breaks;
  }

  /** Whether nothing is in doubt, and all that had to be listed anew has been. */
  get isSettled(): boolean {
    return !this.isInDoubt && [...this.#members].every(({ mustList }) => mustList !== 'yes');
  }

  /** Resolves when nothing is in doubt; rejects with the signal's reason. */
  async untilSettled(signal: AbortSignal): Promise<void> {
    await this.#waiters.until(() => this.isSettled, signal);
  }

  /**
   * Asks the server how far it is, with one kind while nothing is in doubt, else with all. Throws SetBackError when it goes on from an
   * earlier state, ApiError when it does not answer.
   */
  async verify(signal: AbortSignal): Promise<void> {
    const breaks = this.#breaks;
    const [first] = this.#members;
    if (first === undefined) return;
    if (!this.isInDoubt) return requireNotOlder(first.kind, signal);
    const members = [...this.#members];
    const broken = members.filter(({ isBroken }) => isBroken);
    for (const member of broken) member.isBroken = false;
    try {
      const found = await Promise.all(members.map((member) => lookAt(member, member === first, signal)));
      members.forEach((member, i) => {
        if (broken.includes(member)) member.mustList = MUST_LIST[found[i] ?? 'unknown'];
      });
    } catch (err) {
      for (const member of broken) member.isBroken = true;
      throw err;
    }
    this.#verified = breaks;
    this.#waiters.notify();
  }

  /** Verifies whenever that is needed, until the signal is aborted; rejects with what `verify` throws, or the signal's reason. */
  async keepVerified(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.#waiters.until(() => this.isInDoubt, signal);
      await this.verify(signal);
    }
  }

  /** After everything was read anew by quorum reads that began at this many `breaks`: there is nothing left to compare with. */
  startAnew(breaks: number): void {
    for (const member of this.#members) member.mustList = 'no';
    this.#verified = Math.max(this.#verified, breaks);
    this.#waiters.notify();
  }

  /** Watches that broke so far. */
  get breaks(): number {
    return this.#breaks;
  }
}

type Found = 'same' | 'unknown' | 'refused';

const MUST_LIST = { same: 'no', unknown: 'yes', refused: 'refused' } as const;

/** A server that has just started refuses everything for a moment. */
const MOST_REFUSALS = 3;

/** Refusals of one kind, if they last, say nothing about the cluster: its cache is listed anew when it may be. */
async function lookAt(member: Member, isProbed: boolean, signal: AbortSignal): Promise<Found> {
  const { kind } = member;
  const [reached, compared] = await Promise.allSettled([
    requireNotOlder(kind, signal),
    compareLastChange(kind, signal),
  ]);
  const failure = [reached, compared].find(({ status }) => status === 'rejected');
  if (failure?.status !== 'rejected') {
    member.refusals = 0;
    return compared.status === 'fulfilled' ? compared.value : 'unknown';
  }
  if (isProbed || !isRefusal(failure.reason)) throw failure.reason as Error;
  member.refusals += 1;
  if (member.refusals < MOST_REFUSALS) throw failure.reason as Error;
  return 'refused';
}

function isRefusal(err: unknown): boolean {
  return ApiError.is(err, 'Forbidden', 'NotServed');
}
