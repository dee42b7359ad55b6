export interface NodeFacts {
  /** How many Machines it may belong to. */
  readonly machines: number;
  /** Its VM was deleted by us. */
  readonly isLeftOver: boolean;
  /** It carries the annotation that nobody manages it. */
  readonly isMarked: boolean;
  /** It carries our finalizer. */
  readonly hasFinalizer: boolean;
  /** For how long nobody has been seen to have it. */
  readonly unownedForMs: number;
}

export type NodeDecision = 'leave' | 'mark' | 'unmark' | 'remove' | { readonly waitMs: number };

/**
 * What to do about a Node:
 *
 * | Machines | Node                                            | verdict                               |
 * |----------|-------------------------------------------------|---------------------------------------|
 * | some     | marked                                          | unmark                                |
 * | some     | not marked                                      | leave                                 |
 * | none     | of a machine that we have deleted               | remove: it joined too late            |
 * | none     | for less than a machine may take to be known    | wait                                  |
 * | none     | for longer                                      | mark, and take our finalizer away     |
 */
export function decideOnNode(facts: NodeFacts, creationTimeoutMs: number): NodeDecision {
  const { machines, isLeftOver, isMarked, hasFinalizer, unownedForMs } = facts;
  if (machines > 0) return isMarked ? 'unmark' : 'leave';
  if (isLeftOver) return 'remove';
  if (isMarked && !hasFinalizer) return 'leave';
  return unownedForMs < creationTimeoutMs ? { waitMs: creationTimeoutMs - unownedForMs } : 'mark';
}
