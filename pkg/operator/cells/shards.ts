import { createHash } from 'node:crypto';

import {
  CELL_REPLICA_LABEL,
  CELL_REVISION_LABEL,
  CELL_TARGET_SERVER_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../apis/wire.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import type { Fence } from '../../kube/gate/fence.ts';
import type { LeaseElector } from '../../kube/leader/elector.ts';
import { createElection, type Election, leaseClientOf } from '../election.ts';
import type { ManagerProcess } from '../manager-process.ts';
import type { Member } from '../process/lifecycle.ts';
import { applicantsAmong, inTheWayOf, isMixed, replicaFor } from './assignment.ts';
import { shardLeaseName } from './lease-names.ts';
import { type Replica, Replicas } from './replicas.ts';
import { revisionOf, targetServerOf } from './revision.ts';

/** A part of the cells, for as long as this process looks after them. */
export interface HeldShard {
  readonly index: number;
  readonly fence: Fence;
  /** Undefined without leader election. */
  readonly elector: LeaseElector | undefined;
}

export interface ShardsOptions {
  readonly process: ManagerProcess;
  /** How many there are, in all replicas. */
  readonly count: number;
  /** Leases of the replicas. */
  readonly leases: Informer<Lease>;
  /** Announces who leads, on the Leases. */
  readonly recorder: Recorder;
  /** The cells of a shard may be looked after from now on. Must not throw. */
  readonly gained: (shard: HeldShard) => void;
  /** They must not be any more: resolves when the last mutation has ended. Never rejects. */
  readonly leave: (shard: HeldShard, graceMs: number) => Promise<void>;
}

/** A candidacy for a shard, and what became of it. */
interface Candidacy {
  readonly stop: AbortController;
  readonly shard: HeldShard;
  isHeld: boolean;
  /** Settles when it is no longer a candidate, or holds the shard; never rejects. */
  acquiring: Promise<void>;
  /** Once it is left. */
  leaving?: Promise<void>;
}

/** Of a Lease for which nobody competes. */
const UNCOUNTED = {
  isLeader: { set: () => undefined },
  renewals: { inc: () => undefined },
};

/** A replica that ends is no longer live at once, and its cells end later. */
const ENDED_MS = 60_000;
/** What is given to others while the process goes on gets so long to end what runs. */
const HANDOVER_GRACE_MS = 20_000;

/**
 * The shards that this process holds: each has a Lease, under the protocol of every other leadership. A replica is a candidate for those that
 * rendezvous hashing gives it among the replicas that live, and hands over, one after the other, those that it gives to another, once
 * nobody has come or gone for the duration of a Lease, and no upgrade runs.
 */
export class Shards implements Member {
  readonly name = 'shards of the cells';
  readonly #options: ShardsOptions;
  readonly #replicas: Replicas;
  readonly #revision: string;
  readonly #target: string;
  readonly #candidacies = new Map<number, Candidacy>();
  readonly #stopping = new AbortController();
  #membership: Election | undefined;
  #running: Promise<void> = Promise.resolve();
  #isHandingOver = false;
  #lastLive = '';
  #trouble: string | undefined;
  #changedMs: number;

  constructor(options: ShardsOptions) {
    const { clock, identity, version } = options.process.options;
    this.#options = options;
    const target = options.process.clusters.target?.endpoint;
    this.#revision = revisionOf(identity, version, target);
    this.#target = targetServerOf(target);
    this.#replicas = new Replicas({ clock, leases: options.leases });
    this.#changedMs = clock.monotonicMs();
  }

  /** Those that are held. */
  get held(): readonly HeldShard[] {
    return [...this.#candidacies.values()].flatMap(({ isHeld, shard }) => (isHeld ? [shard] : []));
  }

  /** One of them, if it is held. */
  holding(index: number): HeldShard | undefined {
    const candidacy = this.#candidacies.get(index);
    return candidacy?.isHeld === true ? candidacy.shard : undefined;
  }

  /** This one, as its Lease shows it; undefined: not yet, or not any more. */
  get #own(): Replica | undefined {
    const { identity } = this.#options.process.options;
    return this.#replicas.live.find((replica) => replica.identity === identity);
  }

  /** This one included, also before its own Lease is seen. */
  get #live(): readonly Replica[] {
    const { identity } = this.#options.process.options;
    const { live } = this.#replicas;
    if (this.#own !== undefined) return live;
    const shards = String(this.#options.count);
    return [...live, { identity, shards, revision: this.#revision, target: this.#target, since: '' }];
  }

  /** How many replicas live. */
  get replicas(): number {
    // Without leader election nobody says that it lives.
    return Math.max(1, this.#replicas.live.length);
  }

  /** Whether no other one is known to live that has another target cluster for all cells, or one for each. */
  get haveOneTarget(): boolean {
    return this.#live.every(({ target }) => ['', this.#target].includes(target));
  }

  /** Whether all are of one revision, for so long that what another one has begun has ended, too. */
  get areSettled(): boolean {
    return !isMixed(this.#live) && this.#options.process.options.clock.monotonicMs() - this.#changedMs >= ENDED_MS;
  }

  /** Why no further shard is applied for; undefined: nothing keeps us from it. */
  get trouble(): string | undefined {
    const { count } = this.#options;
    const own = this.#own;
    const among = (others: readonly Replica[]): Replica | undefined =>
      own === undefined ? others.find(({ shards }) => shards !== String(count)) : inTheWayOf(own, others);
    const other = among(this.#replicas.live);
    if (other !== undefined)
      return `replica ${other.identity} has --cell-shards=${other.shards}, this one ${count}: two replicas could manage one namespace, so no further shard is taken before one of them ends`;
    // All of the others may have been asked to end at once: then they released their own Leases first, and their cells still end.
    const ended = among(this.#replicas.endedWithin(ENDED_MS));
    return ended === undefined
      ? undefined
      : `a replica with --cell-shards=${ended.shards}, this one has ${count}, may still be ending: no shard is taken for ${ENDED_MS / 1_000} s`;
  }

  async start(signal: AbortSignal): Promise<void> {
    const { process, count, recorder } = this.#options;
    const { identity, config } = process.options;
    if (!config.leader.enabled) {
      for (let index = 0; index < count; index++) this.#apply(index);
      return;
    }
    const name = `machinist-replica-${createHash('sha256').update(identity).digest('hex').slice(0, 16)}`;
    const labels = {
      [CELL_REPLICA_LABEL]: String(count),
      [CELL_REVISION_LABEL]: this.#revision,
      [CELL_TARGET_SERVER_LABEL]: this.#target,
    };
    // Nobody else can hold it: it says nothing about who leads.
    this.#membership = createElection(name, recorder, process, { labels, metrics: UNCOUNTED });
    await this.#membership.elector?.acquire(signal);
    this.#running = this.#keepSettling();
  }

  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort(new Error('the process is stopping'));
    await this.#running;
    const { count } = this.#options;
    const release = (): Promise<void> | undefined => this.#membership?.elector?.release(() => Promise.resolve());
    // First of all, so that the others wait for the shards when they are released; but one that divides them otherwise could manage a
    // namespace of another shard that still ends.
    const isFirst = this.#replicas.live.every(({ shards }) => shards === String(count));
    if (isFirst) await release();
    await Promise.all([...this.#candidacies.values()].map((candidacy) => this.#leave(candidacy, graceMs)));
    if (!isFirst) await release();
  }

  /** Never rejects. */
  async #keepSettling(): Promise<void> {
    const { clock, config } = this.#options.process.options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#settle();
      await this.#forgetAbandoned();
      await clock.sleep(config.leader.retryPeriodMs, signal).catch(() => undefined);
    }
  }

  #settle(): void {
    const { process, count } = this.#options;
    const { identity, config, clock } = process.options;
    const live = this.#live;
    const names = live
      .map((replica) => replica.identity)
      .toSorted()
      .join();
    if (names !== this.#lastLive) {
      this.#lastLive = names;
      this.#changedMs = clock.monotonicMs();
      process.options.log.info({ replicas: live.length }, 'other replicas share the cells from now on');
    }
    const { trouble } = this;
    if (trouble !== undefined && trouble !== this.#trouble)
      process.options.log.error({ err: trouble }, 'took no shard');
    this.#trouble = trouble;
    const isSettled = clock.monotonicMs() - this.#changedMs >= config.leader.leaseDurationMs && !isMixed(live);
    // One of another number would not take what it is given, nor would one that has come after such a one.
    const takers = live.filter((one) => one.shards === String(count) && inTheWayOf(one, live) === undefined);
    const applicants = applicantsAmong(takers);
    // Whoever does not see that it lives itself may not see the others: what is known of them is old, or not complete yet.
    const isUpToDate = this.#own !== undefined;
    for (let index = 0; index < count; index++) {
      const isOurs = replicaFor(index, applicants) === identity;
      const candidacy = this.#candidacies.get(index);
      if (candidacy === undefined) {
        if (isOurs && trouble === undefined && isUpToDate) this.#apply(index);
      } else if ((!isOurs || trouble !== undefined) && !candidacy.isHeld)
        candidacy.stop.abort(new Error('another replica is to hold the shard'));
      else if (!isOurs && isSettled) this.#handOver(candidacy);
    }
  }

  /** One after the other: what is handed over is looked after by nobody for a moment. */
  #handOver(candidacy: Candidacy): void {
    if (this.#isHandingOver) return;
    this.#isHandingOver = true;
    void this.#leave(candidacy, HANDOVER_GRACE_MS).finally(() => {
      this.#isHandingOver = false;
    });
  }

  #apply(index: number): void {
    const { process, recorder } = this.#options;
    const { fence, elector } = createElection(shardLeaseName(index), recorder, process);
    const candidacy: Candidacy = {
      stop: new AbortController(),
      shard: { index, fence, elector },
      isHeld: false,
      acquiring: Promise.resolve(),
    };
    this.#candidacies.set(index, candidacy);
    candidacy.acquiring = this.#acquire(candidacy);
  }

  /** Never rejects. */
  async #acquire(candidacy: Candidacy): Promise<void> {
    const { stop, shard } = candidacy;
    const signal = AbortSignal.any([stop.signal, this.#stopping.signal]);
    try {
      await shard.elector?.acquire(signal);
    } catch {
      // Only with the signal; the Lease may have been taken all the same.
      if (this.#stopping.signal.aborted) return;
      await shard.elector?.release(() => Promise.resolve());
      this.#candidacies.delete(shard.index);
      return;
    }
    candidacy.isHeld = true;
    this.#options.gained(shard);
  }

  /** Never rejects. One that is left already is left once: its Lease is not released before its cells have ended. */
  #leave(candidacy: Candidacy, graceMs: number): Promise<void> {
    candidacy.leaving ??= this.#release(candidacy, graceMs);
    return candidacy.leaving;
  }

  async #release(candidacy: Candidacy, graceMs: number): Promise<void> {
    const { shard } = candidacy;
    await candidacy.acquiring;
    const wasHeld = candidacy.isHeld;
    candidacy.isHeld = false;
    const leave = (): Promise<void> => (wasHeld ? this.#options.leave(shard, graceMs) : Promise.resolve());
    await (shard.elector === undefined ? leave() : shard.elector.release(leave));
    this.#candidacies.delete(shard.index);
  }

  /** Never rejects: another replica, or the next round, does what fails. */
  async #forgetAbandoned(): Promise<void> {
    const { process } = this.#options;
    const { log } = process.options;
    if (this.holding(0) === undefined) return;
    for (const lease of this.#replicas.abandoned) {
      await leaseClientOf(process)
        .delete(lease, { signal: this.#stopping.signal })
        .catch((err: unknown) =>
          log.debug({ lease: lease.metadata.name, err }, 'could not delete the Lease of a replica'),
        );
    }
  }
}
