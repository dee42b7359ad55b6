import { keep, replace, type MutantEdit } from './edit.ts';
import { bare, child, children, isNode, nameOf, type SyntaxNode } from './syntax.ts';

const BOUNDARIES: ReadonlyMap<string, string> = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
]);
const ARITHMETIC: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%']);
const COMPARISONS: ReadonlySet<string> = new Set(['===', '!==', '<', '<=', '>', '>=', 'in', 'instanceof']);
const SWAPPED: ReadonlyMap<string, string> = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['ceil', 'floor'],
  ['floor', 'ceil'],
]);
/** Calls on a list or a text that give another of its kind. */
const SKIPPED: ReadonlySet<string> = new Set(['filter', 'toSorted', 'toReversed', 'slice', 'trim']);
/** Where a condition is fixed, or its operands are left out, already. */
const TESTS: ReadonlySet<string> = new Set([
  'IfStatement',
  'ConditionalExpression',
  'WhileStatement',
  'DoWhileStatement',
  'ForStatement',
  'LogicalExpression',
]);
const FUNCTIONS: ReadonlySet<string> = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
]);

/** The mutants of an expression. `path` is what lies around it, the innermost last. */
export function ofExpression(node: SyntaxNode, path: readonly SyntaxNode[], source: string): readonly MutantEdit[] {
  const parent = around(path);
  switch (node.type) {
    case 'LogicalExpression':
      return ofChain(node, parent);
    case 'ConditionalExpression':
      return ofBranches(node, source);
    case 'BinaryExpression':
      return ofBinary(node, path, source);
    case 'UnaryExpression':
      return isFixed(node, parent) ? [] : negation(node, source);
    case 'CallExpression':
      return ofCall(node, source);
    case 'ObjectExpression':
      return isInFunction(path) ? elements('element', node, children(node, 'properties'), source) : [];
    case 'ArrayExpression':
      return isInFunction(path) ? elements('element', node, children(node, 'elements'), source) : [];
    default:
      return [];
  }
}

/** What stands in a table at the top of a file is data, of which a test would only be a copy. */
function isInFunction(path: readonly SyntaxNode[]): boolean {
  return path.some(({ type }) => FUNCTIONS.has(type));
}

/** A test that decides what is done: true, and false where that is not the same as the removal of its statement. */
export function ofTest(node: SyntaxNode): readonly MutantEdit[] {
  const test = child(node, 'test');
  if (test === undefined) return [];
  switch (node.type) {
    case 'IfStatement':
      return [
        replace('condition', test, 'true'),
        ...(child(node, 'alternate') === undefined
          ? []
          : [replace('condition', test, 'false', endOf(node, 'consequent'))]),
      ];
    case 'WhileStatement':
    case 'ForStatement':
    case 'DoWhileStatement':
      return [replace('condition', test, 'false', endOf(node, 'body'))];
    default:
      return [];
  }
}

function endOf(node: SyntaxNode, field: string): number {
  return (child(node, field) ?? node).end - 1;
}

/** What a function gives back: the other truth, nothing, or nothing in it. */
export function ofResult(node: SyntaxNode, path: readonly SyntaxNode[], source: string): readonly MutantEdit[] {
  const result = resultOf(node);
  const owner = FUNCTIONS.has(node.type) ? node : path.findLast(({ type }) => FUNCTIONS.has(type));
  if (result === undefined || owner === undefined) return [];
  const declared = child(owner, 'returnType');
  const type = declared === undefined ? '' : source.slice(declared.start, declared.end);
  const text = source.slice(result.start, result.end);
  const given = bare(result);
  const isBoolean = /^: (Promise<)?(boolean|\w+ is [^,]+)>?$/.test(type) || isTruth(given);
  const values = isBoolean ? ['true', 'false'] : [];
  if (/\bundefined\b/.test(type)) values.push('undefined');
  if (/^: (Promise<)?(readonly [\w<>]+\[\]|[\w<>]+\[\])>?$/.test(type)) values.push('[]');
  return values.filter((value) => value !== text).map((value) => replace('result', result, value));
}

function resultOf(node: SyntaxNode): SyntaxNode | undefined {
  if (node.type === 'ReturnStatement') return child(node, 'argument');
  const body = node.type === 'ArrowFunctionExpression' ? child(node, 'body') : undefined;
  return body?.type === 'BlockStatement' ? undefined : body;
}

function isTruth({ type, ...node }: SyntaxNode): boolean {
  const operator = String(node['operator']);
  if (type === 'UnaryExpression') return operator === '!';
  return type === 'BinaryExpression' && COMPARISONS.has(operator);
}

function ofBranches(node: SyntaxNode, source: string): readonly MutantEdit[] {
  const consequent = child(node, 'consequent');
  const alternate = child(node, 'alternate');
  if (consequent === undefined || alternate === undefined) return [];
  return [
    keep('condition', node, consequent, source, alternate.end - 1),
    keep('condition', node, alternate, source, consequent.end - 1),
  ];
}

/** `a && b && c` is one chain: each of its operands is left out. */
function ofChain(node: SyntaxNode, parent: SyntaxNode | undefined): readonly MutantEdit[] {
  if (parent !== undefined && isOfChain(parent, node['operator'])) return [];
  const operands = operandsOf(node, node['operator']);
  return operands.map((operand, i) => {
    const next = operands[i + 1];
    const before = operands[i - 1];
    // With the operator beside it, so that the others stay as they are.
    if (next !== undefined) return replace('operand', { start: operand.start, end: next.start }, '');
    return replace('operand', { start: before?.end ?? operand.start, end: operand.end }, '', operand.end - 1);
  });
}

function isOfChain(node: SyntaxNode, operator: unknown): boolean {
  return node.type === 'LogicalExpression' && node['operator'] === operator;
}

function operandsOf(node: SyntaxNode, operator: unknown): readonly SyntaxNode[] {
  if (!isOfChain(node, operator)) return [node];
  return ['left', 'right'].flatMap((side) => {
    const operand = child(node, side);
    return operand === undefined ? [] : operandsOf(operand, operator);
  });
}

function ofBinary(node: SyntaxNode, path: readonly SyntaxNode[], source: string): readonly MutantEdit[] {
  const operator = String(node['operator']);
  const left = child(node, 'left');
  const right = child(node, 'right');
  if (left === undefined || right === undefined) return [];
  if (ARITHMETIC.has(operator)) {
    if (operator === '+' && [left, right].some(isText)) return [];
    // Both sides of a sum: of a difference or a quotient without its left one nothing is left that is meant.
    return operator === '+'
      ? [...kept('operand', node, left, source), ...kept('operand', node, right, source)]
      : kept('operand', node, left, source);
  }
  const other = BOUNDARIES.get(operator);
  const boundary =
    other === undefined || areUnequal(left, right, path, source)
      ? []
      : [replace('boundary', { start: left.end, end: right.start }, ` ${other} `)];
  const isOpen = COMPARISONS.has(operator) && !isFixed(node, around(path));
  const truths = isOpen ? ['true', 'false'].map((truth) => replace('condition', node, truth)) : [];
  return [...boundary, ...truths];
}

function isText(node: SyntaxNode): boolean {
  const { type, ...rest } = bare(node);
  if (type === 'BinaryExpression') return ['left', 'right'].some((side) => isNode(rest[side]) && isText(rest[side]));
  return type === 'TemplateLiteral' || (type === 'Literal' && typeof rest['value'] === 'string');
}

/** Whether the function has dealt with the two being equal, so that < and <= are the same. */
function areUnequal(left: SyntaxNode, right: SyntaxNode, path: readonly SyntaxNode[], source: string): boolean {
  const owner = path.findLast(({ type }) => FUNCTIONS.has(type));
  const before = owner === undefined ? '' : source.slice(owner.start, right.end);
  const [a, b] = [left, right].map(({ start, end }) => source.slice(start, end));
  return ['===', '!=='].some((operator) => before.includes(`${a} ${operator} ${b}`));
}

/** Whether another mutant already fixes it: it is a test, an operand or a result. */
function isFixed(node: SyntaxNode, parent: SyntaxNode | undefined): boolean {
  if (parent === undefined) return false;
  if (parent.type === 'ReturnStatement' || parent.type === 'UnaryExpression') return true;
  if (parent.type === 'ArrowFunctionExpression') return true;
  const test = child(parent, 'test');
  return TESTS.has(parent.type) && (test === undefined || bare(test) === node);
}

function negation(node: SyntaxNode, source: string): readonly MutantEdit[] {
  return node['operator'] === '!' ? kept('negation', node, child(node, 'argument'), source) : [];
}

function ofCall(node: SyntaxNode, source: string): readonly MutantEdit[] {
  const callee = child(node, 'callee');
  const property = callee?.type === 'MemberExpression' ? child(callee, 'property') : undefined;
  const object = callee === undefined ? undefined : child(callee, 'object');
  if (property === undefined || object === undefined) return [];
  const name = nameOf(property);
  if (nameOf(object) === 'Math' && (name === 'min' || name === 'max')) {
    const given = children(node, 'arguments');
    if (given.length > 2) return elements('operand', node, given, source);
    return given.length === 2 ? given.flatMap((argument) => kept('operand', node, argument, source)) : [];
  }
  if (SKIPPED.has(name)) return kept('call', node, object, source);
  const other = SWAPPED.get(name);
  return other === undefined ? [] : [replace('call', property, other)];
}

/** Each element of a list left out, with the comma that follows it. */
function elements(
  kind: MutantEdit['kind'],
  node: SyntaxNode,
  all: readonly SyntaxNode[],
  source: string,
): readonly MutantEdit[] {
  if (all.length < 2 && all[0]?.type !== 'SpreadElement') return [];
  const said = all.filter((element) => nameOf(child(element, 'value')) !== 'undefined');
  return said.map((element) => {
    const comma = /^\s*,/.exec(source.slice(element.end, node.end))?.[0] ?? '';
    return replace(kind, { start: element.start, end: element.end + comma.length }, '');
  });
}

function kept(
  kind: MutantEdit['kind'],
  node: SyntaxNode,
  part: SyntaxNode | undefined,
  source: string,
): readonly MutantEdit[] {
  return part === undefined || part.type === 'SpreadElement' ? [] : [keep(kind, node, part, source)];
}

/** What lies around an expression, without parentheses and types. */
function around(path: readonly SyntaxNode[]): SyntaxNode | undefined {
  return path.findLast((node) => bare(node) === node);
}
