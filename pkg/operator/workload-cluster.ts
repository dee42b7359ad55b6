import { reachPresent } from '../kube/cache/reach-present.ts';
import { type ApiError, isConflict } from '../kube/client/errors.ts';
import { outageReasonOf } from '../kube/gate/outage.ts';
import type { Target } from '../kube/targets/targets.ts';
import type { ClusterAccess } from './clusters.ts';
import { probesOf } from './probes.ts';
import { TargetRefusedError } from './target-refused-error.ts';
import { TargetCluster, type TargetClusterOptions } from './target-cluster.ts';
import type { OpenTargetOptions, TargetClustersOptions } from './target-clusters.ts';
import { readClusterUID } from './cluster-uid.ts';

/**
 * Whether what is known of a cluster is of the present. Monotonic: `sinceMs` is when it was, for the last time; `lostSinceMs`, when its API server
 * has answered a probe for the last time; undefined: it may be well, and still be read, be set back, or have refused our credentials.
 */
export type WorkloadState =
  | {
      readonly kind: 'reached';
      /** UID of its Namespace kube-system, which tells it from others. */
      readonly identity: string;
    }
  | {
      readonly kind: 'unreachable';
      readonly why: string;
      readonly sinceMs: number;
      readonly lostSinceMs: number | undefined;
    };

/** The way to a cluster in which some Machines have their Nodes, until it is closed. */
export interface WorkloadCluster {
  readonly target: Target;
  readonly state: WorkloadState;
  close(): void;
}

/** Pause before what was refused, or not answered, is asked again. */
const AGAIN_MS = 2_000;

/** A target cluster that is read from now on, until it is closed, and what is known of it. */
export class OpenWorkload {
  readonly cluster: TargetCluster;
  readonly target: Target;
  /** Why it must not be used, as operators are told. */
  claimProblem: string | undefined;
  readonly #options: TargetClusterOptions & OpenTargetOptions & Pick<TargetClustersOptions, 'claim'>;
  readonly #closing = new AbortController();
  /** Since when it is not used, if it is not. */
  #unusedMs: number;
  #refusal: ApiError | undefined;
  #failure: unknown;
  /** Known when all has been read. */
  #identity: string | undefined;

  constructor(access: ClusterAccess, options: TargetClustersOptions & TargetClusterOptions & OpenTargetOptions) {
    const { clock, outages, intercept, gate, changed } = options;
    this.#options = options;
    this.#unusedMs = clock.monotonicMs();
    const refused = (err: ApiError): void => {
      this.#refusal = err;
      changed();
    };
    this.cluster = TargetCluster.cached(access, { ...options, later: { refused } });
    this.target = this.cluster.behind(gate, intercept);
    for (const probed of probesOf([access], [this.cluster.caches])) outages.add(probed, () => changed());
    void this.#read();
  }

  get state(): WorkloadState {
    const { outage, silentSinceMs, answeredMs, lastError } =
      this.#options.outages.state(this.cluster.access.cluster) ?? {};
    const sinceMs = silentSinceMs ?? this.#unusedMs;
    const isSilent = outage !== undefined && outageReasonOf(outage) === 'unreachable';
    // It may answer again, and not be read yet, or not let us.
    const lostSinceMs = isSilent ? Math.max(sinceMs, answeredMs ?? sinceMs) : undefined;
    const since = { sinceMs, lostSinceMs };
    if (outage !== undefined) return { kind: 'unreachable', why: outage.why, ...since };
    if (this.#identity !== undefined) return { kind: 'reached', identity: this.#identity };
    const err = this.#refusal ?? this.#failure;
    const why = err instanceof Error ? err.message : (lastError ?? 'loading is still in progress');
    return { kind: 'unreachable', why, ...since };
  }

  /** Resolves when nothing of it runs any more; never rejects. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('no Machine has its Node in the cluster any more'));
    const { access, caches } = this.cluster;
    await Promise.allSettled([this.#options.outages.remove(access.cluster), caches.stop()]);
    await Promise.allSettled([access.transport.close()]);
  }

  /** What was read before the claim was lost is read again with it. Throws ApiError. */
  async claimAgain(signal: AbortSignal): Promise<void> {
    if (this.#identity === undefined) return;
    try {
      await this.#claim(this.#identity, signal);
    } catch (err) {
      if (!isConflict(err)) throw err;
      this.#identity = undefined;
      this.#unusedMs = this.#options.clock.monotonicMs();
      this.#options.changed();
      void this.#read();
    }
  }

  async #claim(uid: string, signal: AbortSignal): Promise<void> {
    const { claim, secret } = this.#options;
    try {
      await claim?.(uid, secret, signal);
      this.claimProblem = undefined;
    } catch (err) {
      this.claimProblem = err instanceof TargetRefusedError ? err.forOperators : (err as Error).message;
      throw err;
    }
  }

  /** Resolves when the caches show the present, or it is closed; never rejects. */
  async #read(): Promise<void> {
    const { clock, changed } = this.#options;
    const { access, caches } = this.cluster;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await caches.untilFilled(signal);
        await reachPresent(caches.kinds, signal);
        const uid = await readClusterUID(access.reader, signal);
        await this.#claim(uid, signal);
        this.#identity = uid;
        return changed();
      } catch (err) {
        if (signal.aborted) return;
        this.#failure = err;
        changed();
        await clock.sleep(AGAIN_MS, signal).catch(() => undefined);
      }
    }
  }
}
