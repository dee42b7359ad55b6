import { equal, isMembers } from '../json.ts';
import { parseDuration } from '../../../../pkg/apis/duration.ts';
import { quantityAsNumber } from '../../../../pkg/apis/quantity.ts';
import { type Token, tokensOf } from './tokens.ts';

/** What names stand for. */
export type Scope = Readonly<Record<string, unknown>>;
/** An expression that can be evaluated. Throws RuleError for what has no value. */
export type Expression = (scope: Scope) => unknown;

/** An expression has no value: a field is missing, or of another type. */
export class RuleError extends Error {
  override readonly name = 'RuleError';
}

/** A value that may be absent, as `oldSelf` under `optionalOldSelf`. */
export class Optional {
  readonly value: unknown;

  /** Undefined: absent. */
  constructor(value: unknown) {
    this.value = value;
  }
}

/**
 * Compiles an expression of the Common Expression Language, as far as rules of this project's definitions use it: numbers are integers,
 * and macros are `has`, `all`, `exists` and `exists_one`. Throws for anything else.
 */
export function compile(source: string): Expression {
  const parser = new Parser(tokensOf(source));
  return parser.whole();
}

type Macro = (items: readonly unknown[], test: (item: unknown) => boolean) => boolean;

const MACROS: ReadonlyMap<string, Macro> = new Map<string, Macro>([
  ['all', (items, test) => items.every(test)],
  ['exists', (items, test) => items.some(test)],
  ['exists_one', (items, test) => items.filter(test).length === 1],
]);

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Expression {
    const expression = this.#conditional();
    if (this.#peek().type !== 'end') throw new Error(`unexpected in an expression: ${this.#peek().text}`);
    return expression;
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? { type: 'end', text: '' };
  }

  #take(...signs: string[]): string | undefined {
    const { type, text } = this.#peek();
    if ((type !== 'sign' && text !== 'in') || !signs.includes(text)) return undefined;
    this.#next += 1;
    return text;
  }

  #expect(sign: string): void {
    if (this.#take(sign) === undefined) throw new Error(`expected ${sign} before ${this.#peek().text}`);
  }

  #name(): string {
    const { type, text } = this.#peek();
    if (type !== 'name') throw new Error(`expected a name instead of ${text}`);
    this.#next += 1;
    return text;
  }

  #conditional(): Expression {
    const test = this.#or();
    if (this.#take('?') === undefined) return test;
    const yes = this.#conditional();
    this.#expect(':');
    const no = this.#conditional();
    return (scope) => (test(scope) === true ? yes(scope) : no(scope));
  }

  #or(): Expression {
    const parts = [this.#and()];
    while (this.#take('||') !== undefined) parts.push(this.#and());
    return parts.length === 1 ? parts[0]! : (scope) => decided(parts, scope, true);
  }

  #and(): Expression {
    const parts = [this.#relation()];
    while (this.#take('&&') !== undefined) parts.push(this.#relation());
    return parts.length === 1 ? parts[0]! : (scope) => decided(parts, scope, false);
  }

  #relation(): Expression {
    const left = this.#unary();
    const operator = this.#take('==', '!=', '<', '<=', '>', '>=', 'in');
    if (operator === undefined) return left;
    const right = this.#unary();
    return (scope) => compared(operator, left(scope), right(scope));
  }

  #unary(): Expression {
    if (this.#take('!') !== undefined) {
      const negated = this.#unary();
      return (scope) => !(negated(scope) as boolean);
    }
    return this.#member();
  }

  #member(): Expression {
    let value = this.#primary();
    for (;;) {
      const sign = this.#take('.', '.?', '[');
      if (sign === undefined) return value;
      const of = value;
      if (sign === '[') {
        const key = this.#conditional();
        this.#expect(']');
        value = (scope) => memberOf(of(scope), key(scope));
        continue;
      }
      const name = this.#name();
      if (sign === '.?') value = (scope) => optionalMemberOf(of(scope), name);
      else if (this.#take('(') === undefined) value = (scope) => memberOf(of(scope), name);
      else value = this.#method(of, name);
    }
  }

  #method(of: Expression, name: string): Expression {
    const macro = MACROS.get(name);
    if (macro !== undefined) {
      const each = this.#name();
      this.#expect(',');
      const test = this.#conditional();
      this.#expect(')');
      return (scope) => macro(itemsOf(of(scope), name), (item) => test({ ...scope, [each]: item }) === true);
    }
    const given = this.#arguments();
    return (scope) =>
      called(
        name,
        of(scope),
        given.map((one) => one(scope)),
      );
  }

  #arguments(): Expression[] {
    const given: Expression[] = [];
    if (this.#take(')') !== undefined) return given;
    do given.push(this.#conditional());
    while (this.#take(',') !== undefined);
    this.#expect(')');
    return given;
  }

  #primary(): Expression {
    const { type, text } = this.#peek();
    if (this.#take('(') !== undefined) {
      const inner = this.#conditional();
      this.#expect(')');
      return inner;
    }
    if (this.#take('[') !== undefined) return this.#list();
    this.#next += 1;
    if (type === 'number') return () => Number(text);
    if (type === 'text') return () => text;
    if (type !== 'name') throw new Error(`unexpected in an expression: ${text}`);
    if (text === 'true' || text === 'false') return () => text === 'true';
    if (this.#take('(') === undefined) return (scope) => (text in scope ? scope[text] : text);
    if (text === 'has') return this.#has();
    const given = this.#arguments();
    return (scope) => called(text, given[0]?.(scope));
  }

  #list(): Expression {
    const items: Expression[] = [];
    do items.push(this.#conditional());
    while (this.#take(',') !== undefined);
    this.#expect(']');
    return (scope) => items.map((item) => item(scope));
  }

  /** Only the last member may be absent. */
  #has(): Expression {
    const from = this.#next;
    this.#conditional();
    const until = this.#next;
    this.#expect(')');
    const name = this.#tokens[until - 1]?.text ?? '';
    const of = new Parser([...this.#tokens.slice(from, until - 2), { type: 'end', text: '' }]).whole();
    return (scope) => {
      const value = of(scope);
      if (!isMembers(value)) throw new RuleError(`no such field: ${name}`);
      return Object.hasOwn(value, name);
    };
  }
}

/** `||` and `&&`: an operand that decides makes up for another one that has no value. */
function decided(parts: readonly Expression[], scope: Scope, deciding: boolean): boolean {
  let failed: unknown;
  for (const part of parts) {
    try {
      if (part(scope) === deciding) return deciding;
    } catch (err) {
      failed ??= err;
    }
  }
  if (failed !== undefined) throw failed;
  return !deciding;
}

function compared(operator: string, left: unknown, right: unknown): boolean {
  switch (operator) {
    case '==':
      return equal(left, right);
    case '!=':
      return !equal(left, right);
    case 'in':
      return Array.isArray(right) ? right.some((item) => equal(item, left)) : isIn(left, right);
    default:
      return ordered(operator, left, right);
  }
}

function isIn(key: unknown, members: unknown): boolean {
  if (!isMembers(members)) throw new RuleError('no such overload: in');
  return Object.hasOwn(members, String(key));
}

function ordered(operator: string, left: unknown, right: unknown): boolean {
  if (typeof left !== 'number' || typeof right !== 'number') throw new RuleError(`no such overload: ${operator}`);
  if (operator === '<') return left < right;
  if (operator === '<=') return left <= right;
  return operator === '>' ? left > right : left >= right;
}

function memberOf(value: unknown, name: unknown): unknown {
  if (!isMembers(value) || !Object.hasOwn(value, String(name))) throw new RuleError(`no such field: ${String(name)}`);
  return value[String(name)];
}

function optionalMemberOf(value: unknown, name: string): Optional {
  const inner = value instanceof Optional ? value.value : value;
  return new Optional(isMembers(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined);
}

function itemsOf(value: unknown, macro: string): unknown[] {
  if (Array.isArray(value)) return value as unknown[];
  if (isMembers(value)) return Object.keys(value);
  throw new RuleError(`no such overload: ${macro}`);
}

function called(name: string, value: unknown, given: readonly unknown[] = []): unknown {
  switch (name) {
    case 'hasValue':
      return (value as Optional).value !== undefined;
    case 'value':
      if ((value as Optional).value === undefined) throw new RuleError('optional.none() dereference');
      return (value as Optional).value;
    case 'size':
      return isMembers(value) ? Object.keys(value).length : (value as string | unknown[]).length;
    case 'type':
      return typeof value === 'number' ? 'int' : typeof value;
    case 'matches':
      if (typeof value !== 'string') throw new RuleError('no such overload: matches');
      return new RegExp(String(given[0]), 'u').test(value);
    case 'contains':
      return String(value).includes(String(given[0]));
    case 'string':
      return String(value);
    case 'int':
      return Number(value);
    case 'quantity':
      return quantityOf(value);
    case 'isGreaterThan':
      return (value as number) > (given[0] as number);
    case 'duration':
      return durationOf(value);
    default:
      throw new Error(`unknown function: ${name}`);
  }
}

function durationOf(value: unknown): number {
  const ns = parseDuration(String(value));
  if (ns === undefined) throw new RuleError('invalid duration');
  return ns;
}

function quantityOf(value: unknown): number {
  const number = quantityAsNumber(String(value));
  if (number === undefined) throw new RuleError('invalid quantity');
  return number;
}
