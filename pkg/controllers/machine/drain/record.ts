import type { DrainAttempt } from '../../../drain/session.ts';

/** What a Node is drained for. Of one machine one drain runs at a time. */
export type DrainPurpose = 'deletion' | 'preparation' | 'in-place-update' | 'preservation' | 'maintenance';

/** Why a drain is forced: asked for by label, past its timeout, or the Node cannot end its pods by itself. */
export type ForceReason = 'label' | 'timeout' | 'not-ready' | 'readonly-filesystem';

/** What may force a drain that nobody asks to force: its timeout and a broken Node, a broken Node alone, or nothing. */
export type ForceRule = 'usual' | 'broken-node' | 'request';

export interface DrainRecord extends DrainAttempt {
  readonly purpose: DrainPurpose;
  readonly nodeUID: string;
  /** Why pods are deleted instead of evicted; undefined for a normal drain. */
  readonly force: ForceReason | undefined;
  readonly forceRule: ForceRule;
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
