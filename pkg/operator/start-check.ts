import { GROUP, VERSION } from '../apis/machine/v1alpha1/group.ts';
import type { Clock } from '../base/clock/clock.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import type { Outages } from '../kube/gate/outages.ts';
import type { HeldWork } from '../health/held-work.ts';
import { AccessReviewer } from '../kube/client/access-review.ts';
import { ApiError, isForbiddenOrNotServed, REFUSAL_PATIENCE_MS } from '../kube/client/errors.ts';
import { readSchemas } from '../kube/client/open-api.ts';
import type { Logger } from '../base/log/logger.ts';
import { describeUnknown, type Schema, unknownFields } from './preflight/known-fields.ts';
import { describeMissing } from './preflight/missing-grants.ts';
import type { Permission } from './preflight/permissions.ts';
import { refusedOf, review } from './preflight/refused.ts';
import { CannotStartError, type Member } from './process/lifecycle.ts';
import { describeUnauthorized, startTogether } from './cannot-start.ts';
import { type ClusterAccess, type Clusters, accessesOf } from './clusters.ts';
import { quiet, retryUnlessRefused } from './retry-until-done.ts';
import { untilOutage } from './target-readiness.ts';
import type { Random } from '../base/random/random.ts';

export interface StartCheckOptions {
  readonly clusters: Clusters;
  readonly permissions: readonly Permission[];
  readonly clock: Clock;
  readonly random?: Random | undefined;
  readonly log: Logger;
  readonly outages: Outages;
  readonly held: HeldWork;
}

/** What is missing and not needed is looked at again so often. */
const RECHECK_MS = 300_000;
/** For one question; an API server that is down is asked again. */
const QUESTION_TIMEOUT_MS = 5_000;

/**
 * Looks, before caches are filled and the process applies for a Lease, whether it may do its work, and whether the control cluster stores all of it.
 *
 * | what is missing                          | what happens                                                                   |
 * |------------------------------------------|--------------------------------------------------------------------------------|
 * | what nothing works without               | asked again for 10 s, then the process ends with one line: CannotStartError    |
 * | what only a part of the work needs       | told in one line after 10 s, and when it was granted; the process goes on      |
 * | an answer of the control cluster         | waited for                                                                     |
 * | an answer of a target that has an outage | nobody waits: it is asked on and on, and whatever is missing then is only told |
 * | credentials that the server accepts      | asked again for 10 s, then the process ends with one line: CannotStartError    |
 * | the right to ask, or the API for it      | told; the caches find out for themselves what they may read                    |
 */
export class StartCheck implements Member {
  readonly name = 'start checks';
  readonly #options: StartCheckOptions;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor(options: StartCheckOptions) {
    this.#options = options;
  }

  async start(signal: AbortSignal): Promise<void> {
    const { clusters, permissions } = this.#options;
    await startTogether(
      accessesOf(clusters).map((access) => {
        const asked = permissions.filter(({ cluster }) => clusters[cluster] === access);
        return this.#startOn(access, asked, signal);
      }),
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the process is stopping'));
    await Promise.all(this.#running);
  }

  async #startOn(access: ClusterAccess, permissions: readonly Permission[], signal: AbortSignal): Promise<void> {
    const { outages } = this.#options;
    const { cluster } = access;
    let isWaitedFor = true;
    const checked = this.#require(access, permissions, AbortSignal.any([signal, this.#stopping.signal])).catch(
      (err: unknown) => {
        if (isWaitedFor) throw err;
        return permissions; // told below, if they are still missing
      },
    );
    this.#running.push(this.#follow(access, checked));
    await (cluster === CONTROL ? checked : Promise.race([checked, untilOutage(outages, cluster)]));
    isWaitedFor = false;
  }

  /** What goes on when nobody waits any more; never rejects. */
  async #follow(access: ClusterAccess, checked: Promise<readonly Permission[]>): Promise<void> {
    const [outcome] = await Promise.allSettled([checked]);
    if (outcome.status === 'rejected') return; // the start has failed of it
    if (access.cluster === CONTROL) await this.#checkFields(access);
    await this.#reportUntilGranted(access, outcome.value);
  }

  /** Resolves with what is missing and not needed. Throws CannotStartError, and the signal's reason. */
  async #require(
    { cluster, transport }: ClusterAccess,
    permissions: readonly Permission[],
    signal: AbortSignal,
  ): Promise<readonly Permission[]> {
    const { clock, random, log, held } = this.#options;
    const reviewer = new AccessReviewer(transport);
    const hold = held.hold({ work: 'process', waitsFor: 'permissions', of: cluster });
    let missing = permissions;
    let hasAnswered = false;
    try {
      await retryUnlessRefused(
        // That a cluster does not answer is told by its outage; what is missing, at the end.
        { clock, random, log: quiet(log), hold, answeredSince: (sinceMs, s) => transport.answeredSince(sinceMs, s) },
        `checking permissions in the ${cluster} cluster`,
        async (s) => {
          hasAnswered = false;
          // What was granted once is not asked again: roles that are being applied do not come and go.
          const found = await review(reviewer, missing, { signal: s, timeoutMs: QUESTION_TIMEOUT_MS });
          missing = [...found.refused, ...found.unanswered];
          if (found.unanswered.length > 0) throw refusalOf(found.error);
          hasAnswered = true;
          const needed = missing.filter(({ lost }) => lost === undefined);
          if (needed.length > 0) throw new ApiError(403, 'Forbidden', describeMissing(needed));
        },
        signal,
      );
      return missing;
    } catch (err) {
      hold.release();
      if (!isForbiddenOrNotServed(err)) throw err;
      if (hasAnswered) throw new CannotStartError(describeMissing(missing), { cause: err });
      if (err.code === 401) throw new CannotStartError(describeUnauthorized(cluster, err), { cause: err });
      log.warn({ cluster, err: err.message }, 'could not check permissions');
      return [];
    }
  }

  /** Never rejects. */
  async #reportUntilGranted({ cluster, transport }: ClusterAccess, permissions: readonly Permission[]): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#stopping;
    const reviewer = new AccessReviewer(transport);
    let missing = permissions;
    let told = '';
    for (let pauseMs = REFUSAL_PATIENCE_MS; !signal.aborted && missing.length > 0; pauseMs = RECHECK_MS) {
      try {
        await clock.sleep(pauseMs, signal);
        missing = await refusedOf(reviewer, missing, { signal, timeoutMs: QUESTION_TIMEOUT_MS });
      } catch (err) {
        if (!signal.aborted) log.debug({ cluster, err }, 'could not check permissions');
        continue;
      }
      const text = describeMissing(missing);
      if (missing.length > 0 && text !== told) log.warn({ cluster, err: text }, 'permissions are missing');
      if (missing.length === 0 && told !== '') log.info({ cluster }, 'permissions were granted');
      told = text;
    }
  }

  /** Fields that the control cluster drops are told: objects work without them. */
  async #checkFields({ cluster, transport }: ClusterAccess): Promise<void> {
    const { log } = this.#options;
    const { signal } = this.#stopping;
    try {
      const schemas = await readSchemas(transport, { group: GROUP, version: VERSION }, { signal });
      const unknown = unknownFields((kind) => schemas.get(kind) as Schema | undefined);
      if (unknown.length > 0) log.warn({ cluster, err: describeUnknown(unknown) }, 'fields are not stored');
    } catch (err) {
      if (!signal.aborted) log.debug({ cluster, err }, 'could not read which fields are stored');
    }
  }
}

/** A server that answers anything, but no review, refuses it: it is not waited for as one that is down. */
function refusalOf(err: unknown): unknown {
  return err instanceof ApiError && err.code > 0
    ? new ApiError(err.code, 'Forbidden', err.message, { cause: err })
    : err;
}
