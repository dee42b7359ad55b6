import type { Clock } from './clock.ts';
import { type Throttle, unlimited } from './throttle.ts';
import { Turns } from './turns.ts';

/** For what nobody aborts. */
const NEVER = new AbortController().signal;

/** A limited rate in whose use flows take turns. `waited` is told of each wait. */
export function fairly(
  throttle: Throttle,
  { clock, waited }: { readonly clock: Clock; readonly waited: (waitedMs: number) => void },
): Throttle {
  if (throttle === unlimited) return throttle;
  const turns = new Turns();
  let isGranting = false;

  /** Never rejects. */
  async function grant(): Promise<void> {
    if (isGranting) return;
    isGranting = true;
    while (!turns.isEmpty) {
      try {
        await throttle.acquire(NEVER);
      } catch (err) {
        turns.refuse(err);
        break;
      }
      turns.grant();
    }
    isGranting = false;
  }

  return {
    async acquire(signal, flow = '') {
      const fromMs = clock.monotonicMs();
      const turn = turns.wait(signal, flow);
      void grant();
      await turn;
      waited(clock.monotonicMs() - fromMs);
    },
    close: () => throttle.close(),
  };
}
