import { readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** What a doc comment says, in one line: `comment` without its delimiters. */
export function textOf(comment: string): string {
  return comment.replaceAll(/\s*\n\s*\*\s*/g, ' ').trim();
}

/**
 * Comments of the members of a constant, by member, in their order: of the properties of an object, or of the strings of an array. Throws
 * when one has none, as a row of a page would then say nothing.
 */
export function memberComments(file: string, constant: string): ReadonlyMap<string, string> {
  const source = readFileSync(path.join(ROOT, file), 'utf8');
  const [, body = ''] = new RegExp(`export const ${constant} = [{[]\n([^]*?)\n[}\\]]`).exec(source) ?? [];
  const members = [...body.matchAll(/(?:\/\*\*((?:(?!\*\/)[^])*)\*\/\s+)?^ {2}'?(\w+)'?[:,]/gm)];
  if (members.length === 0) throw new Error(`${file} has no constant ${constant} with members`);
  return new Map(
    members.map(([, comment, name = '']) => {
      if (comment === undefined) throw new Error(`${file}: ${name} of ${constant} has no comment`);
      return [name, textOf(comment)];
    }),
  );
}
