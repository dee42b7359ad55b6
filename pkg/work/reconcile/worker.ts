import type { Clock } from '../../base/clock/clock.ts';
import { DeadlineError } from '../../base/clock/deadline.ts';
import { DriverError } from '../../driver/error.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { ApiError, isConflict } from '../../kube/client/errors.ts';
import type { LogFields, Logger } from '../../base/log/logger.ts';
import { isReported } from '../../base/log/reported.ts';
import type { PassResult, ReconcileMetrics } from '../../base/metrics/reconcile.ts';
import type { Outcome, Run } from '../workqueue/keyed-queue.ts';
import type { StepResult } from './result.ts';
import { type Random, secureRandom, uuidOf } from '../../base/random/random.ts';

/**
 * One pass over the object of `key`; it reads what it needs, an absent object is no error. What it throws is retried with
 * back-off. `log` carries controller, key and reconcileID.
 */
export type Reconcile = (key: string, signal: AbortSignal, log: Logger) => Promise<StepResult>;

export interface WorkerDeps {
  /** Name in logs and metric label `controller`. */
  readonly controller: string;
  readonly reconcile: Reconcile;
  /** After this the pass's signal is aborted. The key stays occupied until the pass has ended. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random?: Random | undefined;
  readonly log: Logger;
  readonly metrics: ReconcileMetrics;
}

/** Retry of a pass that met an outage, or an unproven cluster. */
const OUTAGE_RETRY_MS = 5_000;
/** A conflict is over as soon as the watch has delivered the other change. */
const LONGEST_CONFLICT_RETRY_MS = 1_000;
/** The server comes back at any moment; when it does not, the gate closes soon. */
const LONGEST_UNREACHABLE_RETRY_MS = 3_000;
/** A first failure is mostly healed by the second attempt. */
const FIRST_REPORTED = 3;

/**
 * Turns queue items into passes: gives each an id, a deadline and a logger, counts how it ended and says when the key runs
 * again. `work` is what a KeyedQueue takes; it never rejects.
 *
 * | pass ended with                     | key runs again                    | log                                       |
 * |-------------------------------------|-----------------------------------|-------------------------------------------|
 * | next, stop                          | with the next event               | debug                                     |
 * | requeue                             | after the time asked for          | debug                                     |
 * | GateClosedError                     | after 5 s, failures kept          | debug                                     |
 * | ApiError Conflict                   | after a back-off of at most 1 s   | debug                                     |
 * | ApiError Unreachable                | after a back-off of at most 3 s   | as below                                  |
 * | deadline, ApiError, DriverError     | after a back-off                  | debug; warn: the third in a row, each 10th |
 * | anything else: a bug                | after a back-off                  | debug; error: the same                    |
 *
 * Several failures, in an AggregateError, count as the worst of them.
 */
export class Worker {
  readonly #deps: WorkerDeps;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
  }

  readonly work = async (key: string, run: Run): Promise<Outcome> => {
    const { clock, controller, metrics, random = secureRandom } = this.#deps;
    const log = this.#deps.log.child({ controller, key, reconcileID: uuidOf(random) });
    const startedMs = clock.monotonicMs();
    const { result, outcome } = await this.#pass(key, run, log);
    metrics.passes.inc({ controller, result });
    metrics.duration.observe({ controller }, (clock.monotonicMs() - startedMs) / 1_000);
    return outcome;
  };

  async #pass(key: string, run: Run, log: Logger): Promise<{ result: PassResult; outcome: Outcome }> {
    const { clock, controller, reconcile, timeoutMs } = this.#deps;
    const timeout = new AbortController();
    // Made only when it is due: an Error records its stack, which would cost more than many a pass.
    const expire = (): void => timeout.abort(new DeadlineError(`a pass of ${controller}`, timeoutMs));
    const cancel = clock.schedule(timeoutMs, expire);
    try {
      const step = await reconcile(key, AbortSignal.any([run.signal, timeout.signal]), log);
      log.debug({ waitingFor: step.kind === 'next' ? undefined : step.waitingFor }, 'reconciled');
      if (step.kind !== 'requeue') return { result: 'success', outcome: { kind: 'done' } };
      return { result: 'requeue', outcome: { kind: 'again', afterMs: step.afterMs } };
    } catch (err) {
      // An aborted call may surface as any error: what counts is who aborted it.
      if (run.signal.aborted) return { result: 'stopped', outcome: { kind: 'done' } };
      return this.#failed(timeout.signal.aborted ? timeout.signal.reason : err, run.failures + 1, log);
    } finally {
      cancel();
    }
  }

  #failed(thrown: unknown, failures: number, log: Logger): { result: PassResult; outcome: Outcome } {
    const err = mainOf(thrown);
    if (err instanceof GateClosedError) {
      log.debug({ reason: err.reason, cluster: err.cluster }, 'the gate was closed');
      // A fence, too, may open again: leadership that was suspended is resumed with what waits. Who has lost it stops the queue.
      return { result: 'gate_closed', outcome: { kind: 'again', afterMs: OUTAGE_RETRY_MS, keepFailures: true } };
    }
    if (isConflict(err)) {
      log.debug({ reason: err.message }, 'conflict, requeued');
      return { result: 'conflict', outcome: { kind: 'retry', maxMs: LONGEST_CONFLICT_RETRY_MS } };
    }
    const result = familyOf(err);
    const what: LogFields =
      result === 'bug' ? { err: thrown } : { reason: (thrown as Error).message, code: codeOf(err) };
    const level = result === 'bug' ? 'error' : 'warn';
    log[failures >= FIRST_REPORTED && isReported(failures) ? level : 'debug']({ ...what, failures }, 'pass failed');
    // No failure of the object: a connection that comes and goes must not keep it waiting for longer than an outage would.
    const isUnreachable = ApiError.is(err, 'Unreachable');
    return {
      result,
      outcome: isUnreachable ? { kind: 'retry', maxMs: LONGEST_UNREACHABLE_RETRY_MS } : { kind: 'retry' },
    };
  }
}

/** What a pass that met several failures is counted as: the one that says most. A bug is never hidden, nor is a closed gate. */
function mainOf(thrown: unknown): unknown {
  if (!(thrown instanceof AggregateError)) return thrown;
  const errors = thrown.errors as readonly unknown[];
  return (
    errors.find((err) => !(err instanceof GateClosedError) && familyOf(err) === 'bug') ??
    errors.find((err) => err instanceof GateClosedError) ??
    errors.find((err) => !isConflict(err)) ??
    errors[0]
  );
}

function familyOf(err: unknown): PassResult {
  if (err instanceof ApiError) return 'api_error';
  if (err instanceof DriverError) return 'driver_error';
  if (err instanceof DeadlineError) return 'timeout';
  return 'bug';
}

function codeOf(err: unknown): string | undefined {
  if (err instanceof ApiError) return err.reason;
  return err instanceof DriverError ? err.code : undefined;
}
