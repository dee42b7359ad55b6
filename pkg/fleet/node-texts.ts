import { fromTimestamp } from '../base/clock/clock.ts';
import { ageOf } from './age.ts';
import type { Attention } from './attention.ts';
import type { TreeNode } from './tree.ts';

export interface Detail {
  readonly attention: Attention;
  readonly text: string;
}

/** Ready and desired machines, or the phase of a Machine. */
export function statusOf({ replicas, phase = '' }: TreeNode): string {
  if (replicas !== undefined) return `${replicas.ready}/${replicas.desired} ready`;
  return phase === '' ? 'New' : phase;
}

/** In one word, why it is in this state; '' where nothing is to be said. */
export function reasonOf({ explanation, troubles = [], ...node }: TreeNode, nowMs: number): string {
  if (explanation === undefined) return troubles[0]?.reason ?? '';
  const { reason } = explanation;
  return isPreserved(node, nowMs) && reason === 'Running' ? 'Preserved' : reason;
}

/** What keeps it from being as requested. Ages count to `nowMs`. */
export function detailsOf(node: TreeNode, nowMs: number): readonly Detail[] {
  const { explanation, troubles = [], attention } = node;
  if (explanation === undefined) {
    return troubles.map(({ text, isProgress }) => ({ attention: isProgress ? 'progressing' : 'attention', text }));
  }
  const { message, waitingFor, since } = explanation;
  if (attention === 'ok') return [];
  const flat = message.replaceAll(/\s+/g, ' ');
  const age = since === undefined ? '' : `(${ageOf(since, nowMs)}) `;
  const text =
    waitingFor === undefined || /^waiting for /i.test(flat)
      ? `${age}${flat}`
      : `${age}Waiting for ${waitingFor}: ${flat}`;
  return [{ attention, text }];
}

function isPreserved({ preservedUntil }: Pick<TreeNode, 'preservedUntil'>, nowMs: number): boolean {
  return (fromTimestamp(preservedUntil) ?? -Infinity) > nowMs;
}
