import { apply } from './edit.ts';
import { below, child, parse, type SyntaxNode } from './syntax.ts';

/** Far more turns than the loops of a file take in all tests of another file together. */
const MOST_TURNS = 5_000_000;
const TURN = `if ((mutantTurns = (mutantTurns ?? 0) + 1) > ${MOST_TURNS}) throw new Error('a loop without an end');`;
const LOOPS: ReadonlySet<string> = new Set([
  'ForStatement',
  'ForInStatement',
  'ForOfStatement',
  'WhileStatement',
  'DoWhileStatement',
]);

/** The source with loops that throw once they have turned for too long: a mutant that never ends holds up all others. */
export function withEnds(file: string, source: string): string {
  const bodies = loopsIn(parse(file, source)).flatMap((loop) => child(loop, 'body') ?? []);
  const edits = bodies.flatMap(({ type, start, end }) =>
    type === 'BlockStatement'
      ? [{ start: start + 1, end: start + 1, text: ` ${TURN}` }]
      : [
          { start, end: start, text: `{ ${TURN} ` },
          { start: end, end, text: ' }' },
        ],
  );
  if (edits.length === 0) return source;
  return `${edits.toSorted((a, b) => b.start - a.start).reduce(apply, source)}\nvar mutantTurns;\n`;
}

function loopsIn(node: SyntaxNode): readonly SyntaxNode[] {
  const own = LOOPS.has(node.type) ? [node] : [];
  return [...own, ...below(node).flatMap(loopsIn)];
}
