import { isMembers, type Members } from '../api-server/json.ts';

const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;
/** What is younger was written while the answers came. */
const DAY_MS = 86_400_000;
const UUID = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g;

/** Makes answers of two servers comparable: what each chooses itself is told by the order in which it was first seen. */
export class Normaliser {
  readonly #known = new Map<string, string>();
  readonly #names: readonly (readonly [string, string])[];

  /** `names`: texts that differ between servers, and what stands for them. */
  constructor(names: readonly (readonly [string, string])[]) {
    this.#names = names;
  }

  of(value: unknown): unknown {
    return this.#of(value, '');
  }

  #of(value: unknown, name: string): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#of(item, ''));
    if (isMembers(value)) return this.#members(value);
    return typeof value === 'string' ? this.#text(value, name) : value;
  }

  #members(members: Members): Members {
    const entries = Object.entries(members).filter(([name]) => name !== 'managedFields');
    const generated = typeof members['generateName'] === 'string' ? members['generateName'] : undefined;
    return Object.fromEntries(
      entries.map(([name, value]) => [
        name,
        name === 'name' && generated !== undefined ? `${generated}xxxxx` : this.#of(value, name),
      ]),
    );
  }

  #text(text: string, name: string): string {
    if (name === 'resourceVersion' && text !== '') return this.#placeholder('rv', text);
    if (name === 'continue' && text !== '') return 'token';
    if (TIMESTAMP.test(text)) return Math.abs(Date.now() - Date.parse(text)) < DAY_MS ? 'now' : text;
    const named = this.#names.reduce((all, [from, to]) => all.replaceAll(from, to), text);
    return named.replaceAll(/ \(\d+\)/g, ' (rv)').replaceAll(UUID, (uid) => this.#placeholder('uid', uid));
  }

  #placeholder(kind: string, text: string): string {
    const key = `${kind} ${text}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const seen = [...this.#known.keys()].filter((other) => other.startsWith(`${kind} `)).length;
    this.#known.set(key, `${kind}-${seen}`);
    return `${kind}-${seen}`;
  }
}
