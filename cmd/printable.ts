/** What would move the cursor, change the terminal, or turn text round; names and messages come from outside. */
const UNSAFE = /(?![\n\t])[\p{Cc}\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;
/** The colours of our own. What comes from outside may only be coloured with them, too. */
const COLOUR = new RegExp(`(${['31', '32', '33', '39', '1', '22'].map((code) => `\u001B\\[${code}m`).join('|')})`);

/**
 * A text that a terminal shows and does nothing else with: control characters are shown as `^[`, as kubectl does. Lines, tabs and the colours
 * of our own stay.
 */
export function printable(text: string): string {
  return text
    .split(COLOUR)
    .map((part, i) => (i % 2 === 1 ? part : part.replaceAll(UNSAFE, shown)))
    .join('');
}

function shown(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20 || code === 0x7f) return `^${String.fromCodePoint(code ^ 0x40)}`;
  return `\\u${code.toString(16).padStart(4, '0')}`;
}
