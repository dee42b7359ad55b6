/**
 * Key of the one method of a Transport that changes anything. Anyone who holds a Transport can read; only who imports this can
 * write: the gated writer, and the client for Leases, which are what opens the gate. `pkg/operator/one-gate.test.ts` proves it.
 */
export const MUTATE: unique symbol = Symbol('mutate');
