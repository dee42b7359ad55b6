import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { LAST_APPLIED_NODE_PRESERVE_ANNOTATION, PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../apis/wire.ts';

/** What annotation `node.machine.sapcloud.io/preserve` may say, on Machines and on Nodes. */
export const PRESERVE_VALUES = ['now', 'when-failed', 'auto-preserved', 'false'] as const;

export type PreserveValue = (typeof PRESERVE_VALUES)[number];

/** What is asked for, both annotations considered: '' is nothing; `illegal` that the Node says what nobody understands. */
export type RequestedPreservation = PreserveValue | '' | 'illegal';

/**
 * What is asked for a machine. `node` is its Node as far as known: undefined when the Machine names none, `missing` when the one
 * that it names cannot be found.
 *
 * | Node                | taken from the Node before | what counts                        |
 * |---------------------|----------------------------|------------------------------------|
 * | none named          | any                        | the Machine's value                |
 * | missing             | any                        | the Machine's value, else the Node's last one |
 * | not annotated       | nothing                    | the Machine's value                |
 * | not annotated       | something                  | nothing: it was taken back         |
 * | annotated           | any                        | the Node's value                   |
 * | an unknown value    | any                        | `illegal`: nothing new begins      |
 *
 * A Machine's own value that nobody understands counts as none.
 */
export function requestedPreservation(machine: Machine, node: Node | 'missing' | undefined): RequestedPreservation {
  const annotations = machine.metadata.annotations ?? {};
  const own = understood(annotations[PRESERVE_ANNOTATION]);
  if (node === undefined) return own;
  const last = annotations[LAST_APPLIED_NODE_PRESERVE_ANNOTATION] ?? '';
  if (node === 'missing') return own === '' ? understood(last) : own;
  const ofNode = node.metadata.annotations?.[PRESERVE_ANNOTATION];
  if (ofNode === undefined) return last === '' ? own : '';
  return isUnderstood(ofNode) ? ofNode : 'illegal';
}

export function isUnderstood(text: string): text is PreserveValue {
  return (PRESERVE_VALUES as readonly string[]).includes(text);
}

function understood(text: string | undefined): PreserveValue | '' {
  return text !== undefined && isUnderstood(text) ? text : '';
}
