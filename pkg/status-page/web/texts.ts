import { humanDuration } from '../../fleet/human-duration.ts';
import type { Attention } from '../../fleet/attention.ts';

/** How the page calls what needs a person, what goes forward, and what is well. */
export const ATTENTION_TEXTS: Readonly<Record<Attention, string>> = {
  attention: 'Needs attention',
  progressing: 'In progress',
  ok: 'OK',
};

export function ageText(timestamp: string | undefined, nowMs: number): string {
  const sinceMs = Date.parse(timestamp ?? '');
  return Number.isNaN(sinceMs) ? '' : humanDuration(Math.max(0, nowMs - sinceMs));
}

export function untilOf(timestamp: string | undefined, nowMs: number): string {
  const atMs = Date.parse(timestamp ?? '');
  if (Number.isNaN(atMs)) return '';
  return atMs <= nowMs ? 'now' : `in ${humanDuration(atMs - nowMs)}`;
}

/** `1,234` */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 drain`, `2 drains` */
export function plural(count: number, one: string): string {
  return `${countText(count)} ${one}${count === 1 ? '' : 's'}`;
}

/** The hour and minute of a time, as it is where the browser is. */
export function clockTime(timestamp: string): string {
  const at = new Date(timestamp);
  return `${String(at.getHours()).padStart(2, '0')}:${String(at.getMinutes()).padStart(2, '0')}`;
}
