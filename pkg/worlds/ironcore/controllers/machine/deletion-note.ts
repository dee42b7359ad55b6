import { DELETION_SENT_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, keyOf } from '../../../../apis/meta.ts';
import { ApiError } from '../../../../kube/client/errors.ts';
import { GateClosedError } from '../../../../kube/gate/gate.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import { RuntimeError } from '../../runtime/error.ts';
import { annotateMachine } from './annotate.ts';
import type { PassCollaborators } from './machine-pass.ts';

/**
 * What is known of the deletion of a machine at its runtime:
 *
 * | note       | written                          | that the runtime does not show the machine any more                           |
 * |------------|----------------------------------|-------------------------------------------------------------------------------|
 * | none       |                                  | is news: it must have been seen going, or there by the same connection        |
 * | sent       | before DeleteMachine is sent     | is what is expected, if few are missing, and what the runtime shows is no older |
 * | unanswered | when no answer has come, or NotFound | is what is expected, if the runtime has kept its state since                  |
 * | accepted   | when the runtime has said so     | is what is expected                                                           |
 */
export type DeletionNote = 'none' | 'sent' | 'unanswered' | 'accepted';

const NOTES: readonly string[] = ['sent', 'unanswered', 'accepted'];

/** What is noted at a Machine that is being deleted, by whatever process. A note that was copied from another Machine is none. */
export function deletionNoteOf(machine: Pick<IronCoreMachine, 'metadata'>): DeletionNote {
  const [note = '', uid] = machine.metadata.annotations?.[DELETION_SENT_ANNOTATION]?.split(' ') ?? [];
  if (!isBeingDeleted(machine) || uid !== machine.metadata.uid || !NOTES.includes(note)) return 'none';
  return note as DeletionNote; // One of them, as was just seen.
}

/** The value of the annotation that notes this; null: it is taken off. */
function deletionNoteText({ metadata: { uid } }: IronCoreMachine, note: DeletionNote): string | null {
  return note === 'none' ? null : `${note} ${uid}`;
}

export type DeletionNoteDeps = Pick<PassCollaborators, 'machines' | 'writer' | 'missing'>;

/** Writes on a Machine what is known of the deletion of its machine, for whoever comes after this process. Throws ApiError. */
export async function noteDeletion(
  { machines, missing, writer }: DeletionNoteDeps,
  observed: IronCoreMachine,
  note: DeletionNote,
  signal: AbortSignal,
): Promise<void> {
  const isKnown = missing.deletionOf(observed) === note;
  // What is about to be sent is not sent before that is written.
  missing.deletion(observed, note === 'sent' && !isKnown ? 'none' : note);
  const current = machines.get(keyOf(observed)) ?? observed;
  if (isKnown && deletionNoteOf(current) === note) return;
  const text = deletionNoteText(observed, note);
  await annotateMachine({ writer }, observed, { [DELETION_SENT_ANNOTATION]: text }, signal);
  missing.deletion(observed, note);
}

/**
 * The runtime has not accepted that the machine goes, but failed with `err`, so that it is no news of it that counts, should it lose its
 * state. What cannot be written now, because leadership or the API server was lost, is known to this process and written later; the next
 * one finds it as sent.
 */
export async function takeBackDeletion(
  deps: DeletionNoteDeps,
  observed: IronCoreMachine,
  err: unknown,
  signal: AbortSignal,
): Promise<void> {
  const isRefused = err instanceof GateClosedError || (err instanceof RuntimeError && !err.unanswered);
  // What it has accepted once it was told again because it goes on being shown.
  const isAccepted = deps.missing.deletionOf(observed) === 'accepted';
  const note = isRefused ? 'none' : isAccepted ? 'accepted' : 'unanswered';
  await noteDeletion(deps, observed, note, signal).catch((why: unknown) => {
    if (!(signal.aborted || why instanceof ApiError || why instanceof GateClosedError)) throw why;
  });
}
