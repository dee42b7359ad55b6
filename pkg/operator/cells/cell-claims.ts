import type { KubeObject } from '../../apis/meta.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/logger.ts';
import { ApiError } from '../../kube/client/errors.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import { CONTROL } from '../../kube/gate/gate.ts';
import type { Outages } from '../../kube/gate/outages.ts';
import { TargetRefusedError } from '../target-refused-error.ts';
import { CommonClaim, type CommonClaimOptions } from './common-claim.ts';
import { CELL_EVENTS } from './events.ts';
import { cellSubject, type RunningCellOptions } from './running-cell.ts';
import type { TargetClaims } from './target-claims.ts';
import type { WorkloadClaims } from './workload-claims.ts';

export interface CellClaimsOptions {
  readonly targets: TargetClaims;
  readonly workloads: Pick<WorkloadClaims, 'claim'>;
  /** Undefined: there is no target cluster of all cells. */
  readonly common: Pick<CommonClaimOptions, 'reader' | 'untilPresent'> | undefined;
  /** Of the process. */
  readonly outages: Outages;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly log: Logger;
}

/** After a restore of the control cluster, so long only those claim clusters who have them. */
const CLAIM_AGAIN_MS = 120_000;

/** Who waits for so long for an answer that lets it claim its cluster counts as one that must not have it. */
const LONG_MS = 60_000;

/** The clusters that the cells of a process claim, and what is said of those that they must not have. */
export class CellClaims {
  readonly #options: CellClaimsOptions;
  readonly #common: CommonClaim | undefined;
  /** Last reported of cells whose target cluster another namespace has. */
  readonly #taken = new Map<string, string>();
  /** Since when cells wait, monotonic, for another reason than that. */
  readonly #waiting = new Map<string, number>();
  /** Looks in a row that failed. */
  #failedLooks = 0;
  /** UIDs of the clusters that a namespace has, also while its cell is made anew. */
  readonly #had = new Map<string, Set<string>>();
  /** When the control cluster had been set back and was read anew; monotonic. */
  #setBackMs = -Infinity;

  constructor(options: CellClaimsOptions) {
    const { common, targets, outages, clock } = options;
    this.#options = options;
    // Also by a process without cells yet.
    outages.onChange(({ cluster, isOver, isSetBack }) => {
      if (cluster === CONTROL && isOver && isSetBack === true) this.setBack();
    });
    this.#common =
      common &&
      new CommonClaim({
        ...common,
        claims: targets,
        clock,
        requireSettled: (signal) => this.#requireSettled(outages, signal),
      });
  }

  /** What is said of cells that must not have their target cluster, by namespace. */
  get taken(): ReadonlyMap<string, string> {
    return this.#taken;
  }

  /** When the control cluster had been set back last; monotonic. */
  get setBackMs(): number {
    return this.#setBackMs;
  }

  /** Which of its clusters a cell has claimed may be forgotten now. */
  setBack(): void {
    this.#setBackMs = this.#options.clock.monotonicMs();
    this.#common?.mayBeLost();
  }

  /** Whether the target cluster of all cells, if they have one, is still claimed. Throws TargetRefusedError when it must not be used any more. */
  async lookAgain(signal: AbortSignal): Promise<void> {
    try {
      await this.#common?.lookAgain(signal);
      this.#failedLooks = 0;
    } catch (err) {
      if (err instanceof TargetRefusedError) throw err;
      signal.throwIfAborted();
      this.#failedLooks += 1;
      const level = this.#failedLooks > 1 ? 'warn' : 'debug';
      this.#options.log[level]({ err }, 'could not look for the claim of the target cluster of all cells');
    }
  }

  /** The cell has ended. */
  ended(namespace: string): void {
    this.#taken.delete(namespace);
    this.#waiting.delete(namespace);
    this.#common?.ended(namespace);
  }

  /** The namespace is no cell any more. */
  released(namespace: string): void {
    this.#had.delete(namespace);
  }

  /** How a cell claims, whose `outages` tell whether the control cluster is what it knows. */
  of(
    namespace: KubeObject,
    outages: () => Outages | undefined,
  ): Pick<RunningCellOptions, 'claimTarget' | 'claimCommonTarget' | 'claimNoTarget' | 'claimWorkload'> {
    const { targets, workloads } = this.#options;
    const { name } = namespace.metadata;
    const told = new Map<string, string>();
    return {
      claimTarget: (uid, signal) =>
        this.#telling(
          namespace,
          this.#inTurn(uid, name, outages(), signal, () => targets.claim(uid, name, signal)),
        ),
      claimCommonTarget: (signal) => this.#telling(namespace, this.#common?.takeFor(name, signal) ?? Promise.resolve()),
      claimNoTarget: () => this.#telling(namespace, targets.requireNoNodes(name)),
      // What is said is told once of each Secret.
      claimWorkload: async (uid, secret, signal) => {
        try {
          const claim = (): Promise<void> => workloads.claim(uid, { namespace: name, name: secret }, signal);
          await this.#inTurn(uid, name, outages(), signal, claim);
          told.delete(secret);
        } catch (err) {
          if (err instanceof TargetRefusedError && told.get(secret) !== err.forOperators) {
            this.#report(namespace, err);
            told.set(secret, err.forOperators);
          }
          throw err;
        }
      },
    };
  }

  /** Rejects as that does; why a cell must not have a target cluster is told once. */
  async #telling(namespace: KubeObject, claiming: Promise<void>): Promise<void> {
    const { name } = namespace.metadata;
    try {
      await claiming;
      this.#waiting.delete(name);
      if (this.#taken.delete(name)) this.#options.log.info({ cell: name }, 'a cell may use its target cluster again');
    } catch (err) {
      if (err instanceof TargetRefusedError) {
        // It is tried again every few seconds.
        if (this.#taken.get(name) !== err.forOperators) this.#report(namespace, err);
        this.#taken.set(name, err.forOperators);
      } else if (err instanceof ApiError) this.#wait(name, err);
      throw err;
    }
  }

  /** An answer that keeps a cell from its cluster is shown when it lasts; that there is none is an outage. */
  #wait(name: string, { code, message }: ApiError): void {
    const { clock, log } = this.#options;
    const nowMs = clock.monotonicMs();
    const sinceMs = this.#waiting.get(name) ?? nowMs;
    this.#waiting.set(name, sinceMs);
    if (code === 0 || nowMs - sinceMs < LONG_MS) return;
    const why = `waiting for its target cluster: ${message}`;
    if (this.#taken.get(name) !== why) log.warn({ cell: name, err: message }, 'a cell waits for its target cluster');
    this.#taken.set(name, why);
  }

  /**
   * Who has a cluster claims it whenever that may be forgotten; who does not have it waits meanwhile, and asks first whether the control
   * cluster is what we know. Throws ApiError.
   */
  async #inTurn(
    uid: string,
    name: string,
    outages: Outages | undefined,
    signal: AbortSignal,
    claim: () => Promise<void>,
  ): Promise<void> {
    const had = this.#had.get(name) ?? new Set();
    if (!had.has(uid)) await this.#requireSettled(outages, signal);
    try {
      await claim();
    } catch (err) {
      if (err instanceof TargetRefusedError) had.delete(uid);
      throw err;
    }
    this.#had.set(name, had.add(uid));
  }

  async #requireSettled(outages: Outages | undefined, signal: AbortSignal): Promise<void> {
    const isKnown = (await outages?.prove(CONTROL, signal)) ?? false;
    if (isKnown && this.#options.clock.monotonicMs() - this.#setBackMs >= CLAIM_AGAIN_MS) return;
    const message = 'the control cluster does not respond or was restored; the cluster is claimed a little later';
    throw new ApiError(503, 'ServiceUnavailable', message);
  }

  /** Only the log says which other namespace has the cluster: whoever reads Events has no business with it. */
  #report(namespace: KubeObject, { event, message, forOperators }: TargetRefusedError): void {
    const { recorder, log } = this.#options;
    recorder.record({ subject: cellSubject(namespace), type: CELL_EVENTS[event], reason: event, message });
    log.warn({ cell: namespace.metadata.name, err: forOperators }, 'a cell must not use a cluster');
  }
}
