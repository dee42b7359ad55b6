import type { Target } from '../targets/targets.ts';

/** How new pods are kept off the Node while it is drained. */
export type Barrier = 'cordon' | { readonly taint: { readonly key: string; readonly effect: 'NoSchedule' } };

/** One drain: usable for deletion, in-place update, preservation and maintenance alike. */
export interface DrainRequest {
  readonly target: Target;
  readonly nodeName: string;
  /** The drain touches only the Node with this UID; another Node of the same name is left alone. */
  readonly nodeUID: string;
  readonly barrier: Barrier;
  /** Delete pods with grace 0 and wait for nothing. */
  readonly force: boolean;
  /** Wall time (ms since the epoch) at which the drain ends whatever it waits for; from a persisted start. */
  readonly deadlineMs: number;
  /** Evictions of one pod after which it is deleted instead. */
  readonly maxEvictRetries: number;
  /** How long a volume may take to detach from the Node, after the pod's own grace. */
  readonly pvDetachTimeoutMs: number;
  /** How long to wait for a volume to be attached elsewhere. */
  readonly pvReattachTimeoutMs: number;
}

/** A pod that the drain waits for, and why. */
export interface BlockedPod {
  /** `namespace/name`. */
  readonly pod: string;
  readonly reason:
    | 'disruption-budget'
    | 'misconfigured-disruption-budget'
    | 'terminating'
    | 'volume-detach'
    | 'volume-reattach'
    | 'error';
  /** Name of the PodDisruptionBudget, volume or the error's text. */
  readonly detail: string;
}

/** What a running drain waits for; reported whenever it changes. */
export interface DrainProgress {
  readonly remainingPods: number;
  readonly blocked: readonly BlockedPod[];
}

/** How a drain ended. Errors are thrown; a deadline that passed is an outcome. */
export type DrainOutcome =
  | { readonly kind: 'drained' }
  /** The Node does not exist (any more), or another one has its name. */
  | { readonly kind: 'node-gone' }
  /** The deadline passed, or some pods cannot be evicted now; what is left. */
  | { readonly kind: 'incomplete'; readonly progress: DrainProgress };
