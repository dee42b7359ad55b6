/** A token of the Common Expression Language. */
export interface Token {
  readonly type: 'name' | 'number' | 'text' | 'sign' | 'end';
  readonly text: string;
}

const PATTERN =
  /\s*(?:(?<name>[A-Za-z_]\w*)|(?<number>\d+)|'(?<single>[^']*)'|"(?<double>[^"]*)"|(?<sign>\|\||&&|==|!=|<=|>=|\.\?|[-!<>?:.,()[\]]))/y;

/** The tokens of an expression. Throws for what no rule of the project's definitions uses. */
export function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  PATTERN.lastIndex = 0;
  while (PATTERN.lastIndex < source.trimEnd().length) {
    const from = PATTERN.lastIndex;
    const groups = PATTERN.exec(source)?.groups;
    if (groups === undefined) throw new Error(`unknown in an expression: ${source.slice(from, from + 20)}`);
    const { name, number, single, double, sign } = groups;
    if (name !== undefined) tokens.push({ type: 'name', text: name });
    else if (number !== undefined) tokens.push({ type: 'number', text: number });
    else if (sign !== undefined) tokens.push({ type: 'sign', text: sign });
    else tokens.push({ type: 'text', text: unescaped(single ?? double ?? '') });
  }
  return [...tokens, { type: 'end', text: '' }];
}

const unescaped = (text: string): string => text.replaceAll(/\\(.)/g, '$1');
