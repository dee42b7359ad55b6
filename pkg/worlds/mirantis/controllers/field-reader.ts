import { isObject, membersOf } from '../../../apis/members.ts';

/** What is wrong with something that a user wrote: which field, and what would be right. */
export type Problem = string;

/** Reads the members of an object that users wrote, and notes of each what is wrong with it. */
export class FieldReader {
  readonly problems: Problem[] = [];
  readonly #members: Readonly<Record<string, unknown>>;
  readonly #path: string;

  constructor(value: unknown, path: string) {
    this.#path = path;
    this.#members = membersOf(value);
    if (!isObject(value) && value !== undefined) this.problems.push(`${path}: must be an object`);
  }

  wrong(name: string, what: string): void {
    this.problems.push(`${this.#path}.${name}: ${what}`);
  }

  raw(name: string): unknown {
    return this.#members[name];
  }

  /** A text that has to be there. */
  text(name: string, remedy: string): string {
    const value = this.#members[name];
    if (typeof value === 'string' && value !== '') return value;
    this.wrong(name, `must be ${remedy}`);
    return '';
  }

  /** One of some texts that has to be there. */
  oneOf(name: string, allowed: readonly string[]): void {
    if (!allowed.some((one) => one === this.#members[name])) this.wrong(name, `must be ${allowed.join(' or ')}`);
  }

  /** A yes or no; absent: no. */
  flag(name: string): boolean {
    const value = this.#members[name] ?? false;
    if (typeof value === 'boolean') return value;
    this.wrong(name, 'must be true or false');
    return false;
  }

  /** A whole number from 1; absent: undefined. */
  whole(name: string): number | undefined {
    const value = this.#members[name] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value < 1e9) return value;
    this.wrong(name, 'must be a whole number from 1');
    return undefined;
  }

  /** The entries of a list; absent: none. */
  list(name: string): readonly unknown[] {
    const value = this.#members[name] ?? [];
    if (Array.isArray(value)) return value as readonly unknown[];
    this.wrong(name, 'must be a list');
    return [];
  }
}
