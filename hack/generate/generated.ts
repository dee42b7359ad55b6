/** A committed file whose text follows from the code. */
export interface Generated {
  /** From the project's root. */
  readonly path: string;
  readonly text: () => string | Promise<string>;
}

/** A Markdown table; cells must not contain line breaks. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}
