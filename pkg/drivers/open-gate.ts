import type { Gate } from '../kube/gate/gate.ts';

/** The gate of drivers whose VMs are Nodes: they act for anyone whom the fencing let through. */
export const openGate: Gate = {
  admit: () => Promise.resolve({ remainingMs: Infinity, fencingToken: 0n }),
};
