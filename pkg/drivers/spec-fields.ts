import { DriverError } from '../driver/error.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** A mistake in a provider spec or secret; the same input cannot succeed. */
export function invalid(message: string): DriverError {
  return new DriverError('InvalidArgument', message, { terminal: true });
}

/** `value` as an object with none but these members (any if left out). Throws InvalidArgument that names `path`. */
export function fields(value: unknown, path: string, names?: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(`${path}: must be an object`);
  const unknown = Object.keys(value).find((name) => names !== undefined && !names.includes(name));
  if (unknown !== undefined) throw invalid(`${path}.${unknown}: unknown field, must be one of ${names?.join(', ')}`);
  return value as Fields; // narrowed above
}

/** `value` as text that is not empty. Throws InvalidArgument that names `path`. */
export function text(value: unknown, path: string): string {
  if (typeof value !== 'string' || value === '') throw invalid(`${path}: must be a non-empty string`);
  return value;
}

/** The same where it may be missing, or empty. */
export function optionalText(value: unknown, path: string): string | undefined {
  return value === undefined || value === '' ? undefined : text(value, path);
}

/** A member of what may be no object. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Fields)[name] : undefined;
}

/** `value` as an object whose members are all texts. Throws InvalidArgument that names the member. */
export function texts(value: unknown, path: string): Readonly<Record<string, string>> {
  const entries = Object.entries(fields(value, path));
  return Object.fromEntries(entries.map(([key, member]) => [key, text(member, `${path}.${key}`)]));
}

/** `value` as a number of at least `least`. Throws InvalidArgument that names `path`. */
export function atLeast(least: number, value: unknown, path: string, unit: string): number {
  if (typeof value === 'number' && value >= least) return value;
  throw invalid(`${path}: must be a number of ${unit}, at least ${least}`);
}

/** `value` as a boolean. Throws InvalidArgument that names `path`. */
export function flag(value: unknown, path: string): boolean {
  if (typeof value !== 'boolean') throw invalid(`${path}: must be true or false`);
  return value;
}

/** The user data of a Secret. Throws InvalidArgument when it is missing or empty. */
export function userDataOf(secretData: Readonly<Record<string, Uint8Array>>): string {
  const userData = new TextDecoder().decode(secretData['userData'] ?? new Uint8Array());
  if (userData.trim() === '') throw invalid('secret: userData is missing or empty');
  return userData;
}
