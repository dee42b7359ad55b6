import { PAINT } from './paint.ts';

/** What would move the cursor, change the terminal, or turn text round; names and messages come from outside. */
const UNSAFE = /(?![\n\t])[\p{Cc}\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/**
 * A text that a terminal shows and does nothing else with: control characters are shown as `^[`, as kubectl does, also those of colours. Lines
 * and tabs stay, and what `paint` painted has its colour.
 */
export function printable(text: string): string {
  return text
    .split(PAINT)
    .map((part, i) => (i % 2 === 1 ? `\u001B[${part}m` : part.replaceAll(UNSAFE, shown)))
    .join('');
}

function shown(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20 || code === 0x7f) return `^${String.fromCodePoint(code ^ 0x40)}`;
  return `\\u${code.toString(16).padStart(4, '0')}`;
}
