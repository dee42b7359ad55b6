import { DELETION_HOOK } from '../api/keys.ts';
import { isBeingDeleted, type KubeObject } from '../../../apis/meta.ts';

/**
 * What there may be of a machine, in the order in which it is deleted. The Secret, which a machine has read when it runs, goes first: of
 * what is left without Machine and infrastructure, nobody could say any more which VM it was of.
 */
export const PARTS = ['secret', 'machine', 'infrastructure', 'bootstrap'] as const;
export type Part = (typeof PARTS)[number];

/** What a deletion does next. release: nothing of ours is to hold it any more. wait: somebody else has to see it off first. */
export type Removal<Piece> =
  | { readonly kind: 'release' | 'delete' | 'wait'; readonly piece: Piece }
  | { readonly kind: 'done' };

/**
 * How a deletion goes on: one thing after the other, each when the one before it is gone. Our hook goes before the deletion, and also where
 * somebody else was first: whichever of the two was the last thing that happened, the next call goes on from it.
 */
export function nextRemoval<Piece extends { readonly part: Part; readonly object: KubeObject }>(
  pieces: readonly Piece[],
): Removal<Piece> {
  for (const part of PARTS) {
    const piece = pieces.find((one) => one.part === part);
    if (piece === undefined) continue;
    if (hasDeletionHook(piece.object)) return { kind: 'release', piece };
    return { kind: isBeingDeleted(piece.object) ? 'wait' : 'delete', piece };
  }
  return { kind: 'done' };
}

/** Whether our hook keeps the infrastructure of a Machine, whoever deletes that. */
export function hasDeletionHook({ metadata: { annotations = {} } }: KubeObject): boolean {
  return annotations[DELETION_HOOK] !== undefined;
}
