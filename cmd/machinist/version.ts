import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { installation } from './installation.ts';

export function version(): string {
  const file = path.join(installation(), 'package.json');
  const parsed: unknown = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  return typeof parsed === 'object' && parsed !== null && 'version' in parsed ? String(parsed.version) : 'unknown';
}
