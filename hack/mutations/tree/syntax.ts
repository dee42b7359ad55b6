import { parseSync, visitorKeys } from 'oxc-parser';

/** A node of a syntax tree (ESTree, TS-ESTree), as far as all have the same fields; the others are looked up by name. */
export interface SyntaxNode {
  readonly type: string;
  /** Offsets into the text. */
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** Types say nothing at run time; an expression with one around it does. */
const WITH_EXPRESSION: ReadonlySet<string> = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSParameterProperty',
]);

/** The syntax tree of TypeScript source. Throws SyntaxError when it is none. */
export function parse(file: string, source: string): SyntaxNode {
  const { program, errors } = parseSync(file, source);
  const [error] = errors;
  if (error !== undefined) throw new SyntaxError(`${file}: ${error.message}`);
  return program as unknown as SyntaxNode;
}

/** Whether a field of a node is a node. */
export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

/** The node in a field, if there is one. */
export function child(node: SyntaxNode, field: string): SyntaxNode | undefined {
  const value = node[field];
  return isNode(value) ? value : undefined;
}

/** The nodes in a field that holds a list; holes are left out. */
export function children(node: SyntaxNode, field: string): readonly SyntaxNode[] {
  const value = node[field];
  return Array.isArray(value) ? value.filter(isNode) : [];
}

/** All nodes directly below one that are there at run time, in the order of the text. */
export function below(node: SyntaxNode): readonly SyntaxNode[] {
  const fields = visitorKeys[node.type] ?? [];
  return fields.flatMap((field) => [...children(node, field), ...listOf(child(node, field))]).filter(isAtRunTime);
}

function listOf(node: SyntaxNode | undefined): readonly SyntaxNode[] {
  return node === undefined ? [] : [node];
}

function isAtRunTime({ type, importKind, exportKind, declare }: SyntaxNode): boolean {
  if (importKind === 'type' || exportKind === 'type' || declare === true) return false;
  return !type.startsWith('TS') || WITH_EXPRESSION.has(type);
}

/** The expression without the parentheses and types around it. */
export function bare(node: SyntaxNode): SyntaxNode {
  const isWrapped = node.type === 'ParenthesizedExpression' || WITH_EXPRESSION.has(node.type);
  const inner = isWrapped ? child(node, 'expression') : undefined;
  return inner === undefined ? node : bare(inner);
}

/** The name of an identifier or a private name, `this` included; empty for anything else. */
export function nameOf(node: SyntaxNode | undefined): string {
  if (node?.type === 'ThisExpression') return 'this';
  if (node?.type === 'Literal') return String(node['value']);
  if (node?.type !== 'Identifier' && node?.type !== 'PrivateIdentifier') return '';
  return `${node.type === 'PrivateIdentifier' ? '#' : ''}${String(node['name'])}`;
}
