import type { SyntaxNode } from './syntax.ts';

/** A change of text: what lies between two offsets, and what is put there. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** What a mutant does to the code. */
export type MutantKind =
  | 'statement' // removed, or the `else` of one
  | 'operand' // of && || ?? + - * / or of Math.min and Math.max left out
  | 'condition' // fixed to true or false
  | 'result' // of a function fixed to true, false, undefined or []
  | 'boundary' // < for <=, > for >=, and the reverse
  | 'call' // some for every; filter, sort or slice left out
  | 'negation' // left out
  | 'await' // left out
  | 'element' // of an object or array left out
  | 'case' // of a switch left out
  | 'intent' // of a write: change for destroy or report
  | 'precondition' // of a patch left out: the version that it was computed from
  | 'requeue'; // only waits for an event

/** An edit that makes a mutant. */
export interface MutantEdit extends Edit {
  readonly kind: MutantKind;
  /** Offset of what must be run for the mutant to make a difference. */
  readonly at: number;
}

/** The text with a change in it. */
export function apply(source: string, { start, end, text }: Edit): string {
  return source.slice(0, start) + text + source.slice(end);
}

/** An edit that puts `text` in the place of a node. `at` is by default where it begins. */
export function replace(
  kind: MutantKind,
  { start, end }: Pick<SyntaxNode, 'start' | 'end'>,
  text: string,
  at = start,
): MutantEdit {
  return { kind, start, end, text, at };
}

/** An edit that leaves only a part of an expression. */
export function keep(kind: MutantKind, node: SyntaxNode, part: SyntaxNode, source: string, at?: number): MutantEdit {
  return replace(kind, node, parenthesized(part, source), at);
}

const SIMPLE: ReadonlySet<string> = new Set([
  'Identifier',
  'Literal',
  'MemberExpression',
  'CallExpression',
  'ParenthesizedExpression',
  'ThisExpression',
  'TemplateLiteral',
  'ArrayExpression',
]);

function parenthesized(part: SyntaxNode, source: string): string {
  const text = source.slice(part.start, part.end);
  return SIMPLE.has(part.type) ? text : `(${text})`;
}
