import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Version from package.json, which lies two folders up in a checkout, and one up from the chunks of a bundle. */
export function version(): string {
  const files = ['..', '../..'].map((up) => path.resolve(import.meta.dirname, up, 'package.json'));
  const file = files.find((one) => existsSync(one));
  const parsed: unknown = file === undefined ? undefined : JSON.parse(readFileSync(file, 'utf8'));
  return typeof parsed === 'object' && parsed !== null && 'version' in parsed ? String(parsed.version) : 'unknown';
}
