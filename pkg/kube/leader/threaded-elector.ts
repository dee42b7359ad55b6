import type { Lease } from '../../apis/wire.ts';
import { untilAborted } from '../../base/clock/deadline.ts';
import type { LeaseElector, ElectorDeps } from './elector.ts';
import type { ElectorReport, ElectorState, LeaseOrder } from './lease-messages.ts';
import type { LeaseOutage } from './lease-trouble.ts';

export interface ThreadedElectorDeps extends Pick<ElectorDeps, 'name' | 'labels' | 'metrics' | 'lost' | 'announce'> {
  /** The memory of the fence of this leadership. */
  readonly fence: { readonly memory: SharedArrayBuffer; close(): void };
}

export interface LeaseOrders {
  /** Starts the thread unless it runs. */
  start(): void;
  send(order: LeaseOrder): void;
}

const NOTHING_YET: ElectorState = {
  isLeading: false,
  lease: undefined,
  holder: undefined,
  trouble: undefined,
  isSuspended: false,
  ended: undefined,
};

/** The main thread's side of an elector that runs in the thread of the Leases; what can be read is as last told. */
export class ThreadedElector implements LeaseElector {
  readonly #deps: ThreadedElectorDeps;
  readonly #orders: LeaseOrders;
  #state: ElectorState = NOTHING_YET;
  #hasStarted = false;
  /** `lost` was called, or the Lease is no longer needed: the end of the thread is no news any more. */
  #isOver = false;
  #hasThreadEnded = false;
  readonly #acquired = Promise.withResolvers<boolean>();
  readonly #released = Promise.withResolvers<void>();
  /** Those who wait for a token above theirs. */
  readonly #raises = new Map<bigint, PromiseWithResolvers<string | undefined>>();

  constructor(deps: ThreadedElectorDeps, orders: LeaseOrders) {
    this.#deps = deps;
    this.#orders = orders;
    deps.metrics.isLeader.set({ lease: deps.name }, 0);
  }

  get isLeading(): boolean {
    return this.#state.isLeading;
  }

  get lease(): Lease | undefined {
    return this.#state.lease;
  }

  get holder(): string | undefined {
    return this.#state.holder;
  }

  get trouble(): LeaseOutage | undefined {
    return this.#state.trouble;
  }

  get isSuspended(): boolean {
    return this.#state.isSuspended;
  }

  get ended(): string | undefined {
    return this.#state.ended;
  }

  async acquire(signal: AbortSignal): Promise<void> {
    const { name, fence, labels } = this.#deps;
    signal.throwIfAborted();
    this.#hasStarted = true;
    this.#orders.start();
    this.#orders.send({ kind: 'acquire', name, fence: fence.memory, ...(labels && { labels }) });
    const stop = (): void => this.#orders.send({ kind: 'stop-acquiring', name });
    signal.addEventListener('abort', stop, { once: true });
    try {
      const isLeading = await this.#acquired.promise;
      signal.throwIfAborted();
      // The thread ended; `lost` was called and ends the process, which aborts the signal.
      if (!isLeading) await untilAborted(new Promise<never>(() => undefined), signal);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async release(mutationsEnded: () => Promise<void>): Promise<void> {
    await mutationsEnded();
    this.#isOver = true;
    if (!this.#hasStarted) {
      this.#state = { ...this.#state, ended: this.#state.ended ?? 'no longer a candidate' };
      return;
    }
    this.#orders.send({ kind: 'release', name: this.#deps.name });
    await this.#released.promise;
  }

  async raiseAbove(token: bigint): Promise<string | undefined> {
    if (this.#hasThreadEnded || !this.isLeading) return this.ended ?? 'the Lease is not held';
    const asked = this.#raises.get(token);
    const raise = asked ?? Promise.withResolvers<string | undefined>();
    if (asked === undefined) {
      this.#raises.set(token, raise);
      this.#orders.send({ kind: 'raise', name: this.#deps.name, above: token });
    }
    return await raise.promise;
  }

  /** Takes in what the thread says of this Lease; what comes after its end is too late. */
  onMessage(report: ElectorReport): void {
    const { announce, lost, metrics, name: lease } = this.#deps;
    if (this.#hasThreadEnded) return;
    switch (report.kind) {
      case 'state':
        this.#state = report.state;
        break;
      case 'acquired':
        this.#acquired.resolve(report.isLeading);
        break;
      case 'released':
        this.#released.resolve();
        break;
      case 'raised':
        this.#raised(report.above, report.why);
        break;
      case 'lost':
        this.#isOver = true;
        lost(report.reason);
        break;
      case 'announce':
        announce(report.lease, report.message);
        break;
      case 'is-leader':
        metrics.isLeader.set({ lease }, report.value);
        break;
      case 'renewal':
        metrics.renewals.inc({ lease, result: report.result });
        break;
    }
  }

  /** The thread ended although nobody told it to: nobody renews the Lease any more, and nobody answers. */
  threadEnded(why: string): void {
    const { fence, lost, metrics, name } = this.#deps;
    fence.close();
    this.#hasThreadEnded = true;
    const ended = this.#state.ended ?? `lost leadership: ${why}`;
    this.#state = { ...this.#state, isLeading: false, isSuspended: false, lease: undefined, ended };
    metrics.isLeader.set({ lease: name }, 0);
    this.#acquired.resolve(false);
    this.#released.resolve();
    for (const token of this.#raises.keys()) this.#raised(token, ended);
    if (!this.#isOver) lost(`leadership of ${name} was lost: ${why}`);
    this.#isOver = true;
  }

  #raised(token: bigint, why: string | undefined): void {
    this.#raises.get(token)?.resolve(why);
    this.#raises.delete(token);
  }
}
