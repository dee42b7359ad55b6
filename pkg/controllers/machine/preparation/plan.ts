import { skipsDrain, type DeletionPolicy } from '../../machine-facts/deletion-policy.ts';

export interface PreparationFacts {
  /** Annotation `machine.sapcloud.io/prepare-deletion` is `true`. */
  readonly isRequested: boolean;
  /** It has begun before: recorded on the Machine. */
  readonly hasBegun: boolean;
  readonly policy: DeletionPolicy | undefined;
  /** How many hooks hold up the drain. */
  readonly hooks: number;
  readonly hasNode: boolean;
}

export type PreparationStep = 'nothing' | 'begin' | 'await-hooks' | 'drain' | 'delete' | 'abort';

/**
 * What is to be done about the preparation of a deletion. Until the DELETE is accepted it can be aborted:
 *
 * | asked | begun | policy           | hooks | Node | then                                                         |
 * |-------|-------|------------------|-------|------|--------------------------------------------------------------|
 * | no    | no    |                  |       |      | nothing                                                      |
 * | no    | yes   |                  |       |      | abort: what was cordoned for it is uncordoned                |
 * | yes   |       | unsafe, forced   |       |      | delete                                                       |
 * | yes   | no    | none, graceful   |       |      | begin: recorded before anything happens to the Node          |
 * | yes   | yes   | none, graceful   | some  |      | await-hooks                                                  |
 * | yes   | yes   | none, graceful   | none  | yes  | drain, then delete                                           |
 * | yes   | yes   | none, graceful   | none  | no   | delete                                                       |
 */
export function planPreparation({ isRequested, hasBegun, policy, hooks, hasNode }: PreparationFacts): PreparationStep {
  if (!isRequested) return hasBegun ? 'abort' : 'nothing';
  if (skipsDrain(policy)) return 'delete';
  if (!hasBegun) return 'begin';
  if (hooks > 0) return 'await-hooks';
  return hasNode ? 'drain' : 'delete';
}
