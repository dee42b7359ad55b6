import type { IronCoreMachine } from '../../api/machine.ts';
import { DELETION_SENT_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import { keyOf, refOf } from '../../../../apis/meta.ts';
import { GateClosedError } from '../../../../kube/gate/gate.ts';
import { RuntimeError } from '../../runtime/error.ts';
import { ApiError, ignoreNotFound } from '../../../../kube/client/errors.ts';
import { mergePatch } from '../../../../kube/client/patch.ts';
import { ironCoreMachines } from '../../api/resources.ts';
import { deletionNoteOf, deletionNoteText, type DeletionNote } from './deletion-note.ts';
import type { PassCollaborators } from './machine-pass.ts';

type Deps = Pick<PassCollaborators, 'machines' | 'writer' | 'missing'>;

/** Writes on Machines what is known of the deletion of their machines, for whoever comes after this process. */
export class DeletionNotes {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Unless the Machine says so already. Throws ApiError. */
  async write(observed: IronCoreMachine, note: DeletionNote, signal: AbortSignal): Promise<void> {
    const { machines, missing, writer } = this.#deps;
    const isKnown = missing.deletionOf(observed) === note;
    // What is about to be sent is not sent before that is written.
    missing.deletion(observed, note === 'sent' && !isKnown ? 'none' : note);
    const current = machines.get(keyOf(observed)) ?? observed;
    if (isKnown && deletionNoteOf(current) === note) return;
    const annotations = { [DELETION_SENT_ANNOTATION]: deletionNoteText(observed, note) };
    const patch = mergePatch(observed, { metadata: { annotations } });
    await writer.patch('change', ironCoreMachines, refOf(observed), patch, { signal }).catch(ignoreNotFound);
    missing.deletion(observed, note);
  }

  /**
   * The runtime has not accepted that the machine goes, but failed with `err`, so that it is no news of it that counts, should it lose its
   * state. What cannot be written now, because leadership or the API server was lost, is known to this process and written later; the next
   * one finds it as sent.
   */
  async takeBack(observed: IronCoreMachine, err: unknown, signal: AbortSignal): Promise<void> {
    const isRefused = err instanceof GateClosedError || (err instanceof RuntimeError && !err.unanswered);
    // What it has accepted once it was told again because it goes on being shown.
    const isAccepted = this.#deps.missing.deletionOf(observed) === 'accepted';
    const note = isRefused ? 'none' : isAccepted ? 'accepted' : 'unanswered';
    await this.write(observed, note, signal).catch((why: unknown) => {
      if (!(signal.aborted || why instanceof ApiError || why instanceof GateClosedError)) throw why;
    });
  }
}
