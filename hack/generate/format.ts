import type { FormatConfig } from 'oxfmt';

/** Pages that people write, and those that are generated to look like them. */
export const PROSE: FormatConfig = { proseWrap: 'always', printWidth: 140 };

/** The text as `npm run format` would leave it in a file of this ending. Throws Error if it is not of its language. */
export async function formatted(ending: 'md' | 'yaml', text: string, options: FormatConfig = {}): Promise<string> {
  // Loaded when it is needed: tests load what generates, too.
  const { format } = await import('oxfmt');
  const { code, errors } = await format(`text.${ending}`, text, options);
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  return code;
}
