import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { LAST_APPLIED_NODE_PRESERVE_ANNOTATION, PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../apis/wire.ts';
import { preservedUntilMs } from './machine-state.ts';

/** Values of the preservation annotation that keep a Failed Machine before its expiry time has been set. */
const KEEPING_VALUES: ReadonlySet<string> = new Set(['now', 'when-failed', 'auto-preserved']);

/**
 * Whether a Failed Machine stays because it is, or is about to be, preserved. `node` is its Node as far as known:
 * undefined when the Machine has none, `'missing'` when the Node it names cannot be found (then nothing is preserved).
 */
export function isKeptWhenFailed(machine: Machine, node: Node | 'missing' | undefined, nowMs: number): boolean {
  const untilMs = preservedUntilMs(machine);
  if (untilMs !== undefined) return untilMs > nowMs;
  return KEEPING_VALUES.has(preserveValueOf(machine, node));
}

/** The preservation value in force: the Node's, if it has or had one, otherwise the Machine's own. */
function preserveValueOf(machine: Machine, node: Node | 'missing' | undefined): string {
  const own = machine.metadata.annotations ?? {};
  if (node === undefined) return own[PRESERVE_ANNOTATION] ?? '';
  if (node === 'missing') return '';
  const ofNode = node.metadata.annotations?.[PRESERVE_ANNOTATION] ?? '';
  const lastOfNode = own[LAST_APPLIED_NODE_PRESERVE_ANNOTATION] ?? '';
  return ofNode === '' && lastOfNode === '' ? (own[PRESERVE_ANNOTATION] ?? '') : ofNode;
}
