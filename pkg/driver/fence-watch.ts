import type { Clock } from '../base/clock/clock.ts';
import type { Admission, Cluster, Gate } from '../kube/gate/gate.ts';

/** One for all: an abort without a reason makes an Error with a stack, for each mutation of a driver. */
const OVER = new Error('the call has ended');

/**
 * Watches the fence for the length of one driver mutation. Making a VM takes minutes and the fence is only open for seconds
 * at a time, so the call does not end with the admission it began with: when that runs out the gate is asked again, as
 * `report`, which only the fence can refuse. `signal` is aborted, with what the gate threw, when it does.
 */
export class FenceWatch implements Disposable {
  readonly #gate: Gate;
  readonly #clusters: readonly Cluster[];
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  readonly #over = new AbortController();
  #cancelTimer: (() => void) | undefined;

  constructor(parts: { gate: Gate; clusters: readonly Cluster[]; clock: Clock }, admission: Admission) {
    this.#gate = parts.gate;
    this.#clusters = parts.clusters;
    this.#clock = parts.clock;
    this.#wait(admission);
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  [Symbol.dispose](): void {
    this.#over.abort(OVER);
    this.#cancelTimer?.();
  }

  #wait({ remainingMs }: Admission): void {
    if (remainingMs === Infinity || this.#over.signal.aborted) return;
    this.#cancelTimer = this.#clock.schedule(remainingMs, () => void this.#query());
  }

  async #query(): Promise<void> {
    try {
      this.#wait(await this.#gate.admit('report', this.#clusters, this.#over.signal));
    } catch (err) {
      this.#stop.abort(err);
    }
  }
}
