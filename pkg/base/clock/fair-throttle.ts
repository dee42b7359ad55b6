import type { Clock } from './clock.ts';
import { type Throttle, unlimited } from './throttle.ts';

/** One that waits for its turn. */
interface Waiting {
  readonly signal: AbortSignal;
  readonly granted: () => void;
  readonly refused: (err: unknown) => void;
}

/** For what nobody aborts. */
const NEVER = new AbortController().signal;

/**
 * A limited rate in whose use flows take turns: a flow with thousands of requests lets one with a single request go first, as API Priority and
 * Fairness does on the other side. Within a flow, first come is first served. `waited` is told of each wait.
 */
export function fairly(
  throttle: Throttle,
  { clock, waited }: { readonly clock: Clock; readonly waited: (waitedMs: number) => void },
): Throttle {
  if (throttle === unlimited) return throttle;
  // In the order of their turns.
  const flows = new Map<string, Waiting[]>();
  let isGranting = false;

  /** Never rejects. */
  async function grant(): Promise<void> {
    if (isGranting) return;
    isGranting = true;
    while (flows.size > 0) {
      try {
        await throttle.acquire(NEVER);
      } catch (err) {
        for (const { refused } of [...flows.values()].flat()) refused(err);
        flows.clear();
        break;
      }
      next()?.granted();
    }
    isGranting = false;
  }

  /** The first of the flow whose turn it is. One that gave up has used no turn up. */
  function next(): Waiting | undefined {
    for (const [flow, waiting] of flows) {
      flows.delete(flow);
      const first = waiting.findIndex(({ signal }) => !signal.aborted);
      const left = first === -1 ? [] : waiting.slice(first + 1);
      if (left.length > 0) flows.set(flow, left);
      if (first !== -1) return waiting[first];
    }
    return undefined;
  }

  return {
    async acquire(signal, flow = '') {
      signal.throwIfAborted();
      const fromMs = clock.monotonicMs();
      const turn = Promise.withResolvers<void>();
      const abort = (): void => turn.reject(signal.reason as Error);
      signal.addEventListener('abort', abort, { once: true });
      const waiting: Waiting = { signal, granted: turn.resolve, refused: turn.reject };
      const same = flows.get(flow);
      if (same === undefined) flows.set(flow, [waiting]);
      else same.push(waiting);
      void grant();
      try {
        await turn.promise;
      } finally {
        signal.removeEventListener('abort', abort);
      }
      waited(clock.monotonicMs() - fromMs);
    },
    close: () => throttle.close(),
  };
}
