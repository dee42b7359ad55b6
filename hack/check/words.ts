import { below, parse, type SyntaxNode } from '../mutations/tree/syntax.ts';

/** Words of a dialect that no page of Kubernetes uses, and what is written instead. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['told', 'reported'],
  ['tells?', 'reports'],
  ['anew', 'again'],
  ['nobody', 'no controller, no user'],
  ['somebody', 'a user'],
  ['whoever', 'the user that, the controller that'],
  ['go(?:es|ing)? on', 'continues'],
  ['goes', 'is deleted, is removed'],
  ['stands?', 'is, means'],
  ['lets? go', 'is removed, releases'],
  ['(?:give|gives|given|giving) back', 'uncordon, release'],
  ['is had|be had', 'is available'],
  ['look(?:s|ed)? (?:at|after)', 'check, reconcile'],
  ['for as long as', 'until, while'],
  ['all the same', 'anyway'],
  ['at the latest each', 'at least every'],
  ['tried again', 'retried'],
  ['less and less often', 'with increasing delays'],
  ['lets? alone|left alone', 'not touched'],
  ['for ever', 'forever'],
  ['mean(?:s|ing)? nothing', 'has no effect'],
  ['of ours', 'of Machinist'],
]);

const PATTERNS = [...REFUSED].map(([word, better]) => ({ pattern: new RegExp(`\\b(?:${word})\\b`, 'i'), better }));

/** What is refused in a text, with what is better; undefined when nothing is. */
export function refusedIn(text: string): string | undefined {
  for (const { pattern, better } of PATTERNS) {
    const [found] = pattern.exec(text) ?? [];
    if (found !== undefined) return `${JSON.stringify(found)}, better: ${better}`;
  }
  return undefined;
}

/** A text of a program, with the line where it begins. */
export interface ProgramText {
  readonly line: number;
  readonly text: string;
}

/** The texts of more than one word in TypeScript source; of templates what is between their expressions. */
export function textsIn(file: string, source: string): readonly ProgramText[] {
  const found: ProgramText[] = [];
  const visit = (node: SyntaxNode): void => {
    const text = textOf(node);
    if (typeof text === 'string' && text.includes(' '))
      found.push({ line: source.slice(0, node.start).split('\n').length, text });
    for (const inner of below(node)) visit(inner);
  };
  visit(parse(file, source));
  return found;
}

function textOf({ type, value }: SyntaxNode): unknown {
  if (type === 'Literal') return value;
  return type === 'TemplateElement' && typeof value === 'object' && value !== null && 'cooked' in value
    ? value.cooked
    : undefined;
}
