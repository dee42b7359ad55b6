import { replace, type MutantEdit } from './edit.ts';
import { child, children, nameOf, type SyntaxNode } from './syntax.ts';

/** Patches that fail when the object changed since it was read. */
const WITH_VERSION: ReadonlySet<string> = new Set(['mergePatchIfUnchanged', 'statusPatch']);
/** A weaker intent for one, so that the gate asks for less, or a stronger one, so that it refuses more. */
const INTENTS: ReadonlyMap<unknown, string> = new Map([
  ['destroy', `'change'`],
  ['report', `'change'`],
]);

/** The mutants of what this product promises wherever it writes or waits: what a call says of it is weakened. */
export function ofPromise(node: SyntaxNode, source: string): readonly MutantEdit[] {
  const callee = node.type === 'CallExpression' ? child(node, 'callee') : undefined;
  if (callee === undefined) return [];
  const given = children(node, 'arguments');
  const intents = given.flatMap((argument) => ofIntent(argument));
  if (WITH_VERSION.has(nameOf(callee))) {
    const text = source.slice(node.start, node.end);
    const unsafe = `((patch) => { delete patch.body.metadata.resourceVersion; return patch; })(${text})`;
    return [...intents, replace('precondition', node, unsafe)];
  }
  const [, what] = given;
  if (nameOf(callee) !== 'requeue' || what === undefined) return intents;
  return [replace('requeue', node, `({ kind: 'stop', waitingFor: ${source.slice(what.start, what.end)} })`)];
}

function ofIntent(argument: SyntaxNode): readonly MutantEdit[] {
  const other = argument.type === 'Literal' ? INTENTS.get(argument['value']) : undefined;
  return other === undefined ? [] : [replace('intent', argument, other)];
}
