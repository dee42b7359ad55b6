import type { Clock } from '../../base/clock/clock.ts';
import { ApiError, REFUSAL_PATIENCE_MS } from '../client/errors.ts';
import type { HistoricKind } from './observed-history.ts';
import { compareLastChange, requireNotAhead, requireNotOlder, requireStored } from './observed-history.ts';
import { SetBackError } from '../gate/outage.ts';
import type { InformerContinuity } from './reflected-informer.ts';
import { Waiters } from '../../base/clock/waiters.ts';

export interface ContinuityListener {
  /** A watch broke: until `verify` has succeeded, nobody knows whether the server goes on where it was. */
  readonly doubted: () => void;
  readonly setBack: (why: string) => void;
}

export interface MemberOptions {
  /** Nobody waits for it while it is given up. */
  readonly isOptional?: boolean;
  /** Told of the refusal when the kind is given up, and of each later one; of undefined when it was listed anew. */
  readonly refused?: ((err: ApiError | undefined) => void) | undefined;
}

/** A kind as its informer and its probe see it. */
export interface MemberContinuity extends InformerContinuity {
  /** The server refuses it, and nobody may rely on its cache. */
  readonly isGivenUp: boolean;
  /**
   * Everything is read anew, and the server refuses this kind while it answers for all others. Returns whether it is given up, as in a
   * verification: it is then relied on again once it is listed.
   */
  giveUp(refusal: ApiError): boolean;
  /** Takes it out, because it is not watched after all; `restore` puts it back in, because it is. */
  remove(): void;
  restore(): void;
}

/** Whether a kind has to be listed by quorum before anybody may rely on its cache; `refused`: it was given up. */
export type MustList = 'no' | 'yes' | 'refused';

interface Member extends MemberOptions {
  readonly kind: HistoricKind;
  /** How many were added before. */
  readonly index: number;
  /** Its watch broke since the last verification. */
  isBroken: boolean;
  mustList: MustList;
  /** Since when it is refused while all else is answered; monotonic. */
  refusedSinceMs: number | undefined;
  /** See InformerContinuity. */
  listAnew: () => void;
}

/**
 * Whether one cluster still goes on where its caches are. A watch that breaks is the first sign that it does not: from then on the cluster
 * is in doubt, until quorum reads of all kinds have shown that it has reached what was seen and that the last change of each is
 * part of its history. When that of a kind whose watch broke cannot be told any more, all kinds are listed anew: one of the
 * past beside one of the present would be worse than both. No watch breaks when etcd is set back while the API server runs, so
 * each verification, in doubt or not, also asks etcd itself for the last change of each kind; where that would be too much for many clusters at
 * rest, only after a while, and always before anything is destroyed.
 *
 * A kind that the server goes on to refuse is given up: the cluster leaves the doubt without it, so that the watches of the others go on.
 * But unless the kind is optional, the cluster is not settled before it was listed anew: nobody acts on a cache that nobody verified.
 */
export class ClusterContinuity {
  /** The first one is probed. */
  #members: ReadonlySet<Member> = new Set();
  #added = 0;
  readonly #clock: Clock;
  readonly #historyForMs: number;
  readonly #waiters: Waiters;
  #listener: ContinuityListener = { doubted: () => undefined, setBack: () => undefined };
  #breaks = 0;
  #verified = 0;
  /** When etcd was asked last, and nothing was wrong; monotonic. */
  #historyMs = -Infinity;

  /** While nothing is in doubt, `verify` asks etcd at most once in `historyForMs`. */
  constructor(clock: Clock, { historyForMs = 0 }: { readonly historyForMs?: number | undefined } = {}) {
    this.#clock = clock;
    this.#historyForMs = historyForMs;
    this.#waiters = new Waiters(clock);
  }

  /** One only. */
  listen(listener: ContinuityListener): void {
    this.#listener = listener;
  }

  /** Adds a kind; the first is the one that is probed, also where others come back before it: nobody relies on a cluster without it. */
  add(kind: HistoricKind, options: MemberOptions = {}): MemberContinuity {
    const listAnew = (): void => undefined;
    const index = this.#added++;
    const state = { isBroken: false, mustList: 'no', refusedSinceMs: undefined, listAnew } as const;
    const member: Member = { ...options, kind, index, ...state };
    this.#members = new Set([...this.#members, member]);
    return {
      get mustList() {
        return member.mustList !== 'no';
      },
      get isGivenUp() {
        return member.mustList === 'refused';
      },
      giveUp: (refusal) => this.#giveUp(member, refusal),
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
        relyOn(member);
        this.#waiters.notify();
      },
      setBack: (why) => this.#listener.setBack(why),
      onMustList: (then) => {
        member.listAnew = then;
      },
      remove: () => {
        this.#members = new Set([...this.#members].filter((one) => one !== member));
      },
      restore: () => {
        this.#members = new Set([...this.#members, member].toSorted(byRank));
      },
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

  /** Whether nothing is in doubt, and all that had to be listed anew has been; an optional kind that was given up does not count. */
  get isSettled(): boolean {
    return this.#isVerifiedBut(({ mustList, isOptional }) => mustList === 'refused' && isOptional === true);
  }

  /** Resolves when nothing is in doubt, and all was listed anew but what was given up; rejects with the signal's reason. */
  async untilSettled(signal: AbortSignal): Promise<void> {
    await this.#waiters.until(() => this.#isVerifiedBut(({ mustList }) => mustList === 'refused'), signal);
  }

  /** Resolves with true when what is given up is optional, with false after `timeoutMs`; rejects with the signal's reason. */
  async untilGranted(timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const isGranted = ({ mustList, isOptional }: Member): boolean => mustList !== 'refused' || isOptional === true;
    return this.#waiters.until(() => [...this.#members].every(isGranted), signal, timeoutMs);
  }

  /**
   * Asks the server how far it is, with one kind while nothing is in doubt, else with all, and etcd for the last change of each. Throws
   * SetBackError when it goes on from an earlier state, ApiError when it does not answer.
   */
  async verify(signal: AbortSignal): Promise<void> {
    const breaks = this.#breaks;
    const [first] = this.#members;
    if (first === undefined) return;
    if (!this.isInDoubt) {
      const isDue = this.#clock.monotonicMs() - this.#historyMs >= this.#historyForMs;
      await Promise.all([requireNotOlder(first.kind, signal), ...(isDue ? [this.requireHistory(signal)] : [])]);
      return;
    }
    const members = [...this.#members];
    const broken = members.filter(({ isBroken }) => isBroken);
    for (const member of broken) member.isBroken = false;
    try {
      this.#judge(await this.#checkKind(members, signal), broken);
    } catch (err) {
      for (const member of broken) member.isBroken = true;
      throw err;
    }
    this.#verified = breaks;
    this.#waiters.notify();
  }

  /** Asks etcd for the last change of each kind that is relied on. Throws as `verify`. */
  async requireHistory(signal: AbortSignal): Promise<void> {
    const askedMs = this.#clock.monotonicMs();
    const [first] = this.#members;
    const relied = [...this.#members].filter(({ mustList }) => mustList === 'no');
    await Promise.all(relied.map((member) => lookAtStored(member.kind, member === first, signal)));
    this.#historyMs = askedMs;
  }

  /** Throws ServerAheadError when lists show the last change of a kind otherwise than etcd, ApiError when the server does not answer. */
  async requireNotAhead(signal: AbortSignal): Promise<void> {
    // One after the other: the first that differs is enough, and this is asked again and again.
    for (const { kind, mustList } of this.#members) {
      if (mustList !== 'refused') await unlessRefused(requireNotAhead(kind, signal));
    }
  }

  /** Verifies whenever that is needed, until the signal is aborted; rejects with what `verify` throws, or the signal's reason. */
  async keepVerified(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.#waiters.until(() => this.isInDoubt, signal);
      await this.verify(signal);
    }
  }

  /** After everything but what was given up was read anew by quorum reads that began at this many `breaks`: there is nothing left to compare with. */
  restart(breaks: number): void {
    for (const member of this.#members) if (member.mustList !== 'refused') relyOn(member);
    this.#verified = Math.max(this.#verified, breaks);
    this.#waiters.notify();
  }

  get breaks(): number {
    return this.#breaks;
  }

  #isVerifiedBut(isLeftOut: (member: Member) => boolean): boolean {
    return !this.isInDoubt && [...this.#members].every((member) => member.mustList === 'no' || isLeftOut(member));
  }

  #giveUp(member: Member, refusal: ApiError): boolean {
    const nowMs = this.#clock.monotonicMs();
    const [probed] = this.#members;
    member.refusedSinceMs ??= nowMs;
    const refusedForMs = nowMs - member.refusedSinceMs;
    const facts = { mustList: member.mustList, isBroken: true, isHistoryLost: false, result: 'refused' } as const;
    if (member === probed || verdictOn({ ...facts, refusedForMs }) !== 'refused') return false;
    member.mustList = 'refused';
    member.refused?.(refusal);
    return true;
  }

  /** Refusals count only when everything else was answered, the probed kind above all: a server that starts refuses all of them. */
  async #checkKind(members: readonly Member[], signal: AbortSignal): Promise<readonly KindCheck[]> {
    const [probed] = members;
    try {
      return await Promise.all(
        members.map(async (member) => ({ member, found: await lookAt(member.kind, member === probed, signal) })),
      );
    } catch (err) {
      // One that was set back has answered: what it refuses goes on being refused while everything is read anew.
      if (!(err instanceof SetBackError)) for (const member of members) member.refusedSinceMs = undefined;
      throw err;
    }
  }

  /** Takes what was found; throws the refusal of a kind that may yet be granted, and then nothing is verified. */
  #judge(looks: readonly KindCheck[], broken: readonly Member[]): void {
    const nowMs = this.#clock.monotonicMs();
    const isHistoryLost = looks.some(({ member, found }) => found === 'unknown' && broken.includes(member));
    const judged = looks.map(({ member, found }) => {
      const isRefused = found instanceof ApiError;
      member.refusedSinceMs = isRefused ? (member.refusedSinceMs ?? nowMs) : undefined;
      const verdict = verdictOn({
        mustList: member.mustList,
        isBroken: broken.includes(member),
        isHistoryLost,
        result: isRefused ? 'refused' : found,
        refusedForMs: nowMs - (member.refusedSinceMs ?? nowMs),
      });
      return { member, found, verdict };
    });
    for (const { found, verdict } of judged) if (verdict === 'wait') throw found as ApiError;
    for (const { member, found, verdict } of judged) {
      const before = member.mustList;
      if (verdict !== 'wait') member.mustList = verdict;
      // One whose watch broke waits for this verification, or for the next.
      const isWatched = !broken.includes(member) && !member.isBroken;
      if (verdict === 'yes' && before === 'no' && isWatched) member.listAnew();
      if (found instanceof ApiError) member.refused?.(found);
    }
  }
}

/** What the server says of a kind: of its history, or that it refuses it. */
interface KindCheck {
  readonly member: Member;
  readonly found: Exclude<KindFacts['result'], 'refused'> | ApiError;
}

/** What a verification that the probed kind has answered knows of a kind. */
export interface KindFacts {
  /** As of before. */
  readonly mustList: MustList;
  readonly isBroken: boolean;
  /** A kind of which no object was ever seen is `empty`. */
  readonly result: 'same' | 'unknown' | 'empty' | 'refused';
  /** A kind whose watch broke was found unknown. */
  readonly isHistoryLost: boolean;
  readonly refusedForMs: number;
}

/**
 * What becomes of a kind by a verification; `wait`: the cluster stays in doubt.
 *
 * | before   | found         | refused for | watch | then                             |
 * |----------|---------------|-------------|-------|----------------------------------|
 * | given up | any           | any         | any   | given up, until it is listed     |
 * | else     | refused       | below 10 s  | any   | wait: the server may be starting |
 * | else     | refused       | 10 s        | any   | given up                         |
 * | else     | any           | –           | any   | to be listed, if one of the kinds whose watch broke is unknown |
 * | else     | same          | –           | broke | relied on                        |
 * | else     | empty         | –           | broke | to be listed                     |
 * | else     | any           | –           | open  | as before: it has missed nothing |
 */
export function verdictOn({ mustList, isBroken, result, isHistoryLost, refusedForMs }: KindFacts): MustList | 'wait' {
  if (mustList === 'refused') return 'refused';
  if (result === 'refused') return refusedForMs < REFUSAL_PATIENCE_MS ? 'wait' : 'refused';
  if (isHistoryLost) return 'yes';
  if (!isBroken) return mustList;
  return result === 'same' ? 'no' : 'yes';
}

/** Throws SetBackError, and ApiError when the server does not answer; the refusal of a kind that is not probed is an answer. */
async function lookAt(kind: HistoricKind, isProbed: boolean, signal: AbortSignal): Promise<KindCheck['found']> {
  const reads = [
    requireNotOlder(kind, signal),
    compareLastChange(kind, signal),
    lookAtStored(kind, isProbed, signal),
  ] as const;
  // A server that was set back never answers the second in time: it asks for a version that is yet to come.
  const [reached, compared, stored] = await Promise.race([Promise.allSettled(reads), setBackIn(reads)]);
  const failures = [reached, compared, stored].flatMap((one) =>
    one.status === 'rejected' ? [one.reason as unknown] : [],
  );
  const refusal = failures.find(isRefusalOfKind);
  const setBack = failures.find((err) => err instanceof SetBackError);
  const failure = setBack ?? failures.find((err) => !isRefusalOfKind(err)) ?? (isProbed ? refusal : undefined);
  if (failure !== undefined) throw failure;
  if (refusal !== undefined) return refusal;
  if (kind.history.lastChange === undefined) return 'empty';
  return [compared, stored].some((one) => one.status === 'fulfilled' && one.value === 'same') ? 'same' : 'unknown';
}

/** Rejects with the first SetBackError of these reads, as soon as there is one. */
function setBackIn(reads: readonly Promise<unknown>[]): Promise<never> {
  return new Promise((_resolve, reject) => {
    for (const read of reads) read.catch((err: unknown) => err instanceof SetBackError && reject(err));
  });
}

/** A GET that fails tells nothing (it may not be granted, or its decryption fails) unless it is of the kind that is probed. */
async function lookAtStored(kind: HistoricKind, isProbed: boolean, signal: AbortSignal): Promise<'same' | 'unknown'> {
  try {
    return await requireStored(kind, signal);
  } catch (err) {
    if (err instanceof SetBackError || (isProbed && !isRefusalOfKind(err))) throw err;
    signal.throwIfAborted();
    return 'unknown';
  }
}

/** Passes over a read of a kind that we may not make. */
export async function unlessRefused(read: Promise<void>): Promise<void> {
  try {
    await read;
  } catch (err) {
    if (!isRefusalOfKind(err)) throw err;
  }
}

/** A refusal that may be of one kind alone, unlike a 401, which is of anyone who asks. */
export function isRefusalOfKind(err: unknown): err is ApiError {
  return ApiError.is(err, 'Forbidden', 'NotServed');
}

/** Those that nobody does without come first. */
function byRank(a: Member, b: Member): number {
  return Number(a.isOptional ?? false) - Number(b.isOptional ?? false) || a.index - b.index;
}

function relyOn(member: Member): void {
  const wasGivenUp = member.mustList === 'refused';
  member.mustList = 'no';
  member.refusedSinceMs = undefined;
  if (wasGivenUp) member.refused?.(undefined);
}
