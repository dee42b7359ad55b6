import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import type { DrainRequest } from '../../../drain/drain.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import type { DrainPurpose, ForceRule } from './record.ts';

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
  readonly forceRule: ForceRule;
  /** Whether a live Machine is (still) one whose Node is to be drained for this purpose. */
  readonly isWanted: (live: Machine) => boolean;
  /** Asked right before the drain begins, when the cache alone is no proof; the pass ends when the answer is no. */
  readonly mayBegin?: () => Promise<boolean>;
  /** What a forced drain that fails is followed by: the rest goes on without it, or it is tried again. */
  readonly onForcedFailure: 'go-on' | 'retry';
}
