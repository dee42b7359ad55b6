import type { MutantEdit } from './edit.ts';
import { ofExpression, ofResult, ofTest } from './expressions.ts';
import { placesOf } from './places.ts';
import { ofPromise } from './promises.ts';
import { isLog, ofStatement } from './statements.ts';
import { below, parse, type SyntaxNode } from './syntax.ts';

/** A change of the source that a tool has made. */
export interface Mutant extends MutantEdit {
  /** From the root of the checkout. */
  readonly file: string;
  /** Name of the function, method or constant that it is in. */
  readonly place: string;
  /** Lines of that, the first one of the file 1. */
  readonly lines: readonly [first: number, last: number];
  /** The text that is replaced. */
  readonly from: string;
}

/** All mutants of a file, in the order of its text. */
export function mutantsOf(file: string, source: string): readonly Mutant[] {
  const seen = new Set<string>();
  const mutants: Mutant[] = [];
  for (const { name, node, start, end } of placesOf(parse(file, source))) {
    const lines = [lineAt(source, start), lineAt(source, end)] as const;
    for (const edit of editsIn(node, [], source)) {
      const key = `${edit.start} ${edit.end} ${edit.text}`;
      const from = source.slice(edit.start, edit.end);
      if (!seen.has(key) && from !== edit.text) mutants.push({ file, place: name, lines, from, ...edit });
      seen.add(key);
    }
  }
  return mutants;
}

function lineAt(source: string, offset: number): number {
  return source.slice(0, offset).split('\n').length;
}

function editsIn(node: SyntaxNode, path: readonly SyntaxNode[], source: string): readonly MutantEdit[] {
  if (isLog(node)) return [];
  const own = [
    ...ofStatement(node, path),
    ...ofTest(node),
    ...ofResult(node, path, source),
    ...ofExpression(node, path, source),
    ...ofPromise(node, source),
  ];
  // What an error says is text.
  const inside = node.type === 'NewExpression' && path.at(-1)?.type === 'ThrowStatement' ? [] : below(node);
  const deeper = [...path, node];
  return [...own, ...inside.flatMap((one) => editsIn(one, deeper, source))];
}
