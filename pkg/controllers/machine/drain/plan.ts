import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import type { DrainRequest } from '../../../drain/drain.ts';
import type { DrainAttempt } from '../../../drain/session.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';

/** What a Node is drained for. Of one machine one drain runs at a time. */
export type DrainPurpose = 'deletion' | 'preparation' | 'in-place-update' | 'preservation' | 'maintenance';

/** Why a drain is forced: asked for by label, past its timeout, or the Node cannot end its pods by itself. */
export type ForceReason = 'label' | 'timeout' | 'not-ready' | 'readonly-filesystem';

/** What is to be drained, for what, and what follows for the pods. */
export interface DrainPlan extends Pick<DrainRequest, 'barrier' | 'nodeCondition'> {
  readonly purpose: DrainPurpose;
  /** Those of its cluster. */
  readonly nodes: NodeAccess;
  readonly node: Node;
  /** Wall time from which the drain timeout counts; persisted somewhere, so that a restart does not give it anew. */
  readonly startMs: number;
  /** The drain timeout does not expire before this wall time, however long ago the drain began. */
  readonly notBeforeMs?: number;
  /** In words why pods are to be deleted instead of evicted at once; undefined unless somebody asks for that. */
  readonly forcedBy: string | undefined;
  /**
   * What may force it besides that: `usual`, its timeout and a broken Node; `broken-node`, that alone; `request`, nothing: who asks for it
   * waits as long as it takes.
   */
  readonly forceRule: 'usual' | 'broken-node' | 'request';
  /** Whether a live Machine is (still) one whose Node is to be drained for this purpose. */
  readonly isWanted: (live: Machine) => boolean;
  /** Asked right before the drain begins, when the cache alone is no proof; the pass ends when the answer is no. */
  readonly mayBegin?: () => Promise<boolean>;
  /** What a forced drain that fails is followed by: the rest goes on without it, or it is tried again. */
  readonly onForcedFailure: 'go-on' | 'retry';
}

/** A drain as it was begun, and what was told of it since. */
export interface DrainRecord extends DrainAttempt, Pick<DrainPlan, 'purpose' | 'forceRule'> {
  readonly nodeUID: string;
  /** Why pods are deleted instead of evicted; undefined for a normal drain. */
  readonly force: ForceReason | undefined;
  /** Monotonic. */
  readonly startedMs: number;
  /** Since when the drain has waited for its present reason, monotonic. */
  reasonSinceMs?: number;
  /** What was told of it last on the Machine, and when (monotonic). */
  reportedReason?: string;
  reportedMs?: number;
  /** When pods that are left are deleted, by wall time; undefined when they never are. */
  forceAtMs?: number | undefined;
  /** It was aborted, because one for this purpose takes its place. */
  yieldsTo?: DrainPurpose;
  failures: number;
}
