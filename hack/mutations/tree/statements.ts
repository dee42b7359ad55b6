import { replace, type MutantEdit } from './edit.ts';
import { bare, child, children, nameOf, type SyntaxNode } from './syntax.ts';

/** Where statements stand one after the other. */
const LISTS: ReadonlySet<string> = new Set(['BlockStatement', 'Program', 'StaticBlock', 'SwitchCase']);
const REMOVABLE: ReadonlySet<string> = new Set([
  'ExpressionStatement',
  'ForStatement',
  'ForOfStatement',
  'WhileStatement',
  'ThrowStatement',
  'ReturnStatement',
  'ContinueStatement',
  'BreakStatement',
]);
const JUMPS: ReadonlySet<string> = new Set([
  'ThrowStatement',
  'ReturnStatement',
  'ContinueStatement',
  'BreakStatement',
]);
const LEVELS: ReadonlySet<string> = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal']);

/** The mutants of a statement as one. `path` is what lies around it, the innermost last. */
export function ofStatement(node: SyntaxNode, path: readonly SyntaxNode[]): readonly MutantEdit[] {
  if (node.type === 'IfStatement') return ofIf(node, path);
  if (node.type === 'SwitchCase') {
    const isOne = child(node, 'test') !== undefined && children(node, 'consequent').length > 0;
    return isOne ? [replace('case', node, '', node.end - 1)] : [];
  }
  if (!REMOVABLE.has(node.type) || !stands(node, path)) return [];
  const awaited = awaitOf(node);
  return awaited === undefined ? [remove(node, path)] : [remove(node, path), awaited];
}

/** Whether a node is a call of a logger: what logs say is not tested word by word. */
export function isLog(node: SyntaxNode): boolean {
  const callee = node.type === 'CallExpression' ? child(node, 'callee') : undefined;
  if (callee?.type !== 'MemberExpression' || !LEVELS.has(nameOf(child(callee, 'property')))) return false;
  const logger = child(callee, 'object');
  return /^#?(log|logger)$/i.test(nameOf(logger?.type === 'MemberExpression' ? child(logger, 'property') : logger));
}

/** An `if` without `else` is a guard, and removed with what it guards; else each branch is a mutant of its own. */
function ofIf(node: SyntaxNode, path: readonly SyntaxNode[]): readonly MutantEdit[] {
  const consequent = child(node, 'consequent');
  const otherwise = child(node, 'alternate');
  if (consequent === undefined || onlyLogs(consequent)) return [];
  if (otherwise === undefined) return [remove(node, path)];
  return [replace('statement', { start: consequent.end, end: otherwise.end }, '', otherwise.end - 1)];
}

/** Whether all that is done is a line of the log. */
function onlyLogs(node: SyntaxNode): boolean {
  const { type } = node;
  if (type === 'BlockStatement') return children(node, 'body').every(onlyLogs) && children(node, 'body').length > 0;
  const expression = type === 'ExpressionStatement' ? child(node, 'expression') : undefined;
  return type === 'VariableDeclaration' || (expression !== undefined && isLog(bareCall(expression)));
}

function remove(node: SyntaxNode, path: readonly SyntaxNode[]): MutantEdit {
  // What a guard guards, or a loop repeats, is its end.
  return replace('statement', node, LISTS.has(path.at(-1)?.type ?? '') ? '' : '{}', node.end - 1);
}

/** Whether it is worth being removed by itself: what is the whole of a guard goes with the guard, and the end of a function is its result. */
function stands(node: SyntaxNode, path: readonly SyntaxNode[]): boolean {
  const parent = path.at(-1);
  if (parent === undefined) return false;
  const expression = child(node, 'expression');
  if (expression !== undefined && (isLog(bareCall(expression)) || !hasEffect(expression))) return false;
  if (parent.type === 'IfStatement') return false;
  const isOnly = parent.type === 'BlockStatement' && children(parent, 'body').length === 1;
  if (isOnly && path.at(-2)?.type === 'IfStatement') return false;
  if (!JUMPS.has(node.type)) return true;
  if (parent.type === 'SwitchCase') return node.type !== 'BreakStatement' && children(parent, 'consequent').length > 1;
  const owner = path.at(-2)?.type;
  return (
    parent.type === 'BlockStatement' && (owner === 'IfStatement' || owner === 'TryStatement' || owner === 'CatchClause')
  );
}

function bareCall(expression: SyntaxNode): SyntaxNode {
  const inner = bare(expression);
  return inner.type === 'ChainExpression' ? (child(inner, 'expression') ?? inner) : inner;
}

/** Not a directive, nor what a constructor must begin with. */
function hasEffect(expression: SyntaxNode): boolean {
  const isSuper = expression.type === 'CallExpression' && child(expression, 'callee')?.type === 'Super';
  return !isSuper && expression.type !== 'Literal';
}

function awaitOf(node: SyntaxNode): MutantEdit | undefined {
  const expression = node.type === 'ExpressionStatement' ? child(node, 'expression') : undefined;
  const argument = expression?.type === 'AwaitExpression' ? child(expression, 'argument') : undefined;
  if (expression === undefined || argument === undefined) return undefined;
  return replace('await', { start: expression.start, end: argument.start }, 'void ');
}
