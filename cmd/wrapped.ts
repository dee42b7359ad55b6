/** Narrower than this nothing is wrapped any more. */
const NARROWEST = 20;

/** A line in lines of that width, broken between words; the later ones are indented. A word that is too long stays whole. */
export function wrapped(line: string, width: number | undefined, indent: number, breakWith = ''): readonly string[] {
  if (width === undefined || line.length <= width) return [line];
  const most = Math.max(width, indent + NARROWEST);
  const lines: string[] = [];
  let rest = line;
  while (rest.length > most) {
    const from = indentOf(rest);
    const before = rest.lastIndexOf(' ', most - breakWith.length);
    const at = before > from ? before : rest.indexOf(' ', from + 1);
    if (at <= from) break;
    lines.push(`${rest.slice(0, at).trimEnd()}${breakWith}`);
    rest = `${' '.repeat(indent)}${rest.slice(at).trimStart()}`;
  }
  return [...lines, rest];
}

/** Number of spaces before the first word. */
export function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
