import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Version from package.json, which lies two folders up in a checkout, and one up from the chunks of a bundle. */
export function version(): string {
  for (const up of ['..', '../..']) {
    try {
      const parsed: unknown = JSON.parse(readFileSync(path.resolve(import.meta.dirname, up, 'package.json'), 'utf8'));
      if (typeof parsed === 'object' && parsed !== null && 'version' in parsed) return String(parsed.version);
    } catch (err) {
      if (!(err instanceof Error && 'code' in err && err.code === 'ENOENT')) throw err;
    }
  }
  return 'unknown';
}
