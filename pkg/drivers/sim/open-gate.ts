import type { Gate } from '../../gate/gate.ts';

/** The simulated cloud's own gate: nodes act on their API server anyone who leads. */
export const openGate: Gate = {
  admit: () => Promise.resolve({ remainingMs: Infinity, fencingToken: 0n }),
};
