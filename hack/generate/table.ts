import { formatted } from './format.ts';

/** A Markdown table; cells must not contain line breaks. */
export async function table(header: readonly string[], rows: readonly (readonly string[])[]): Promise<string> {
  return formatted('md', [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n'));
}

function line(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
