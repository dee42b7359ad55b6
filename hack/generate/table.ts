/** A Markdown table, formatted as prettier does; cells must not contain line breaks. */
export async function table(header: readonly string[], rows: readonly (readonly string[])[]): Promise<string> {
  const { format } = await import('prettier');
  return format([line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n'), { parser: 'markdown' });
}

function line(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
