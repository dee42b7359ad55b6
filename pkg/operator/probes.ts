import { reachPresent, type CacheSource } from '../kube/cache/reach-present.ts';
import { isRefusalOfKind, unlessRefused, type ClusterContinuity } from '../kube/cache/cluster-continuity.ts';
import { requireListedIsStored } from '../kube/cache/observed-history.ts';
import type { ReflectedInformer } from '../kube/cache/reflected-informer.ts';
import type { KubeObject } from '../apis/meta.ts';
import { RefusedError } from '../kube/gate/outage.ts';
import { READ_ANEW_WITHIN_MS, type ProbedCluster } from '../kube/gate/outage-detector.ts';
import type { Cluster } from '../kube/gate/gate.ts';
import { ApiError, isForbiddenOrNotServed, isTooManyRequests } from '../kube/client/errors.ts';
import { MINUTE_MS } from '../base/clock/clock.ts';
import { qualified } from './describe-refusal.ts';

/** A cache, and how it is brought up to date. */
export interface ProbedKind extends CacheSource {
  /** See HistoricKind. */
  readonly labelSelector: string | undefined;
  readonly informer: Pick<ReflectedInformer<KubeObject>, 'waitFor' | 'waitUntilWatching' | 'reread' | 'abandon'>;
  /** The server refuses it: work that needs it is held, and nobody waits for it to be caught up with. */
  readonly isGivenUp?: boolean;
  /** The server refuses to have it read anew: gives it up once that has lasted, and throws it until then. */
  readonly giveUp: (refusal: ApiError) => void;
}

/** The caches of a cluster, or some of them. */
interface ProbedCaches {
  readonly cluster: Cluster;
  readonly kinds: readonly ProbedKind[];
}

/** An attempt to read all of a cluster tells which kinds are refused before it is broken off. */
const GRANTED_WITHIN_MS = READ_ANEW_WITHIN_MS - MINUTE_MS;

/**
 * How clusters are probed. One that comes back counts as alive only when its own caches have caught up and are watched again; those of others
 * are none of its business, or a target that is gone for good would never let an outage of the control cluster end.
 */
export function probesOf(
  clusters: readonly { readonly probed: ProbedCluster; readonly continuity: ClusterContinuity }[],
  caches: readonly ProbedCaches[],
): ProbedCluster[] {
  return [...new Set(clusters)].map(({ probed, continuity }) => ({
    cluster: probed.cluster,
    get lackOfCredentials() {
      return probed.lackOfCredentials;
    },
    get isInDoubt() {
      return continuity.isInDoubt;
    },
    get isSettled() {
      return continuity.isSettled;
    },
    listen: (listener) => continuity.listen(listener),
    untilSettled: (signal) => continuity.untilSettled(signal),
    requireHistory: (signal) => continuity.requireHistory(signal),
    async probe(signal) {
      try {
        await (continuity.isEmpty ? probed.probe(signal) : continuity.verify(signal));
      } catch (err) {
        throw isForbiddenOrNotServed(err) ? new RefusedError(err.message, { cause: err }) : err;
      }
    },
    isAnswer: isFromServer,
    async catchUp(signal, { isSetBack }) {
      const kinds = caches.filter(({ cluster }) => cluster === probed.cluster).flatMap((one) => one.kinds);
      // Before that nothing can be verified: what is known is of the history that did not happen.
      if (isSetBack) await reread(kinds, continuity, signal);
      const over = new AbortController();
      const either = AbortSignal.any([signal, over.signal]);
      // Watches that are resumed may break again, and wait until that was looked into.
      const verifying = continuity.keepVerified(either);
      try {
        const granted = isSetBack ? requireGranted(kinds, continuity, either) : Promise.resolve();
        await Promise.race([granted.then(() => catchUp(kinds, continuity, either)), verifying]);
      } finally {
        over.abort(new Error('caught up'));
        await verifying.catch(() => undefined);
      }
    },
  }));
}

/**
 * Only an API server says in a Status what is wrong: whatever stands before a cluster that is gone may answer with a page for ever. That it is
 * overloaded an API server says without one.
 */
function isFromServer(err: unknown): boolean {
  const answer = err instanceof RefusedError ? err.cause : err;
  return isTooManyRequests(answer) || (answer instanceof ApiError && answer.status !== undefined);
}

async function catchUp(
  kinds: readonly ProbedKind[],
  continuity: ClusterContinuity,
  signal: AbortSignal,
): Promise<void> {
  await continuity.untilSettled(signal);
  const readable = kinds.filter(({ isGivenUp }) => isGivenUp !== true);
  await reachPresent(readable, signal);
  // One that we can do without may be refused by now.
  const needed = readable.filter(({ isOptional }) => isOptional !== true);
  await Promise.all(needed.map(({ informer }) => informer.waitUntilWatching(signal)));
}

/**
 * What the cluster has lost of a kind shows when that is listed, and not before: then those are told who take note of it. One that is given up is
 * listed as soon as it is granted; until then, all that needs the cluster is held anyway.
 */
async function requireGranted(
  kinds: readonly ProbedKind[],
  continuity: ClusterContinuity,
  signal: AbortSignal,
): Promise<void> {
  if (await continuity.untilGranted(GRANTED_WITHIN_MS, signal)) return;
  const missing = kinds.filter(({ isGivenUp, isOptional }) => isGivenUp === true && isOptional !== true);
  throw new Error(`not permitted to read ${missing.map(({ resource }) => qualified(resource)).join(', ')}`);
}

/**
 * Takes what was read only when all of it has arrived, at once: nobody sees one kind of the past beside another of the present. Takes nothing,
 * and throws ServerAheadError, while the lists show what etcd does not hold. A kind that the server goes on to refuse keeps no other from being
 * taken: it may have been installed or granted after the backup, and that its definition is gone is seen only once that was read anew.
 */
async function reread(kinds: readonly ProbedKind[], continuity: ClusterContinuity, signal: AbortSignal): Promise<void> {
  const { breaks } = continuity;
  await continuity.requireNotAhead(signal);
  const readings = await Promise.all(
    kinds.map(async (kind) => {
      try {
        const reading = await kind.informer.reread(signal);
        for (const seen of reading.samples) await unlessRefused(requireListedIsStored(kind, seen, signal));
        return { kind, take: reading.take };
      } catch (err) {
        if (!isRefusalOfKind(err)) throw err;
        return { kind, refusal: err, take: () => kind.informer.abandon() };
      }
    }),
  );
  signal.throwIfAborted();
  for (const { kind, refusal } of readings) if (refusal !== undefined) kind.giveUp(refusal);
  for (const { take } of readings) take();
  continuity.restart(breaks);
}
