import type { IronCoreMachine } from '../../api/machine.ts';
import { DELETION_SENT_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../../apis/meta.ts';

/**
 * What is known of the deletion of a machine at its runtime:
 *
 * | note       | written                          | that the runtime does not show the machine any more                           |
 * |------------|----------------------------------|-------------------------------------------------------------------------------|
 * | none       |                                  | is news: it must have been seen going, or there by the same connection        |
 * | sent       | before DeleteMachine is sent     | is what is expected, unless so many are missing that the runtime lost its state |
 * | unanswered | when no answer has come, or NotFound | is what is expected, if the runtime has kept its state since                  |
 * | accepted   | when the runtime has said so     | is what is expected                                                           |
 */
export type DeletionNote = 'none' | 'sent' | 'unanswered' | 'accepted';

const NOTES: readonly string[] = ['sent', 'unanswered', 'accepted'];

/** What is noted at a Machine that is being deleted, by whatever process. A note that was copied from another Machine is none. */
export function deletionNoteOf(machine: IronCoreMachine): DeletionNote {
  const [note = '', uid] = machine.metadata.annotations?.[DELETION_SENT_ANNOTATION]?.split(' ') ?? [];
  if (!isBeingDeleted(machine) || uid !== machine.metadata.uid || !NOTES.includes(note)) return 'none';
  return note as DeletionNote; // One of them, as was just seen.
}

/** The value of the annotation that notes this; null: it is taken off. */
export function deletionNoteText({ metadata: { uid } }: IronCoreMachine, note: DeletionNote): string | null {
  return note === 'none' ? null : `${note} ${uid}`;
}
