import type { Pod } from '../apis/wire.ts';
import type { Target } from '../kube/targets/targets.ts';

/**
 * How new pods are kept off the Node while it is drained. A `marked-cordon` carries annotation CORDONED_BY_MAINTENANCE_ANNOTATION where it
 * is ours: a Node that somebody else had cordoned before is left cordoned afterwards, but for an update in place that succeeds. A `deletion-cordon` is one too, unless the API server
 * refuses that.
 */
export type Barrier =
  | 'cordon'
  | 'marked-cordon'
  | 'deletion-cordon'
  | { readonly taint: { readonly key: string; readonly effect: 'NoSchedule' } };

/** A condition to put on the Node before anything leaves it; one of that type and status is left as it is. */
export interface DrainCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/**
 * Volume id, as the provider spells it in `status.volumesAttached` of Nodes, of a PersistentVolume's spec; undefined for
 * a volume that is not the provider's.
 */
export type VolumeIDOf = (pvSpec: unknown, signal: AbortSignal) => Promise<string | undefined>;

/**
 * What a drain does about a pod. leaves: it is sent away, when all pods of lower order have gone. completes: it is waited for, and not sent
 * away; its order is 0. stays: it is let alone.
 */
export type PodRule = (
  | { readonly behavior: 'leaves'; readonly order: number }
  | { readonly behavior: 'completes' | 'stays' }
) & {
  /** What says so, for people: `MachineDrainRule x`; absent: nobody has asked for it. */
  readonly by?: string;
};

/** One drain: usable for deletion, in-place update, preservation and maintenance alike. */
export interface DrainRequest {
  readonly target: Target;
  readonly nodeName: string;
  /** The drain touches only the Node with this UID; another Node of the same name is left alone. */
  readonly nodeUID: string;
  readonly barrier: Barrier;
  /** Told to the Node first, so that everybody sees why it empties. */
  readonly nodeCondition?: DrainCondition;
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
  /** Pods with volumes leave with all the others, and no volume is waited for. Without it they leave one by one, each with its volumes. */
  readonly isVolumeBlind?: boolean;
  /**
   * Asked when the drain begins: whether nobody on the Node ends pods, because its kubelet does not answer. Pods are evicted with the shortest
   * grace then, and one whose grace has been over for a moment counts as gone. What it throws ends the drain.
   */
  readonly isNodeSilent?: (signal: AbortSignal) => Promise<boolean>;
  /**
   * Asked when the drain begins: what is done about each pod but those of DaemonSets and mirror pods, which stay. Without it all leave at
   * once. What it throws ends the drain; a forced one goes on as without it.
   */
  readonly rules?: (signal: AbortSignal) => Promise<(pod: Pod) => PodRule>;
  /** The driver's GetVolumeIDs for one volume. Without it, only CSI volumes and VolumeAttachments are recognised. */
  readonly volumeIDOf?: VolumeIDOf;
}

export interface BlockedPod {
  /** `namespace/name`. */
  readonly pod: string;
  /**
   * ending: within its grace. terminating: its grace is long over. turn: pods with volumes go one after the other. order: pods that go
   * first are still there. completion: it is not sent away, and has not completed. The rest is what it says.
   */
  readonly reason:
    | 'disruption-budget'
    | 'misconfigured-disruption-budget'
    | 'error'
    | 'terminating'
    | 'volume-detach'
    | 'volume-reattach'
    | 'turn'
    | 'order'
    | 'completion'
    | 'ending';
  /**
   * Name of the PodDisruptionBudget (with its namespace if it is misconfigured) or volumes, the error's text, when the grace ends (a timestamp),
   * what holds the pod, or what says that it is to go later, or not to be sent away.
   */
  readonly detail: string;
}

/** What a running drain waits for; reported whenever it changes. */
export interface DrainProgress {
  readonly remainingPods: number;
  readonly blocked: readonly BlockedPod[];
}

/** How a drain ended. A deadline that passed is an outcome; what is thrown is an error, or the reason of the signal. */
export type DrainOutcome =
  | { readonly kind: 'drained' }
  /** The Node does not exist (any more), or another one has its name. */
  | { readonly kind: 'node-gone' }
  /** The deadline passed, or some pods cannot be evicted now; what is left. */
  | { readonly kind: 'incomplete'; readonly progress: DrainProgress };

/**
 * Drains one Node and resolves by the deadline of the request at the latest (a drain that starts after it still takes
 * one look of a few seconds). It can be repeated: pods that are already leaving are only waited for. `report` is called
 * whenever what it waits for has changed. Throws ApiError or DeadlineError when the Node or its pods cannot be looked at, and
 * the signal's reason when it is aborted; what was begun goes on in the cluster.
 */
export type Drain = (
  request: DrainRequest,
  signal: AbortSignal,
  report?: (progress: DrainProgress) => void,
) => Promise<DrainOutcome>;

/** Time between two evictions of one pod; the retries of the original are counted in it. */
export const EVICTION_RETRY_MS = 20_000;

/**
 * How often one pod's eviction is repeated before the pod is deleted: as often as configured, but never longer than the
 * drain's timeout.
 */
export function effectiveEvictRetries(maxEvictRetries: number, drainTimeoutMs: number): number {
  return Math.max(0, Math.trunc(Math.min(maxEvictRetries, drainTimeoutMs / EVICTION_RETRY_MS)));
}
