import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { bundledEnv } from '../../hack/test/programs.ts';

const SOURCES = resolve(import.meta.dirname, '../..');

/** What a program of cmd/ is started with. */
export interface ProgramFile {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
}

/** A program as the test command has bundled it; of those that it does not bundle, and without it, the sources. */
export function programFile(command: string): ProgramFile {
  const folder = process.env['MACHINIST_TEST_PROGRAMS'];
  const bundled = folder === undefined ? '' : join(folder, 'cmd', command, 'main.js');
  if (folder !== undefined && existsSync(bundled))
    return { file: bundled, env: { ...process.env, ...bundledEnv(folder) } };
  return { file: join(SOURCES, 'cmd', command, 'main.ts'), env: process.env };
}
