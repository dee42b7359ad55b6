import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Where mutations are made, from the root of the checkout. */
export function sourceFiles(root: string): readonly string[] {
  return globSync('{cmd,pkg,packages}/**/*.ts', { cwd: root, exclude: ['**/*.test.ts', '**/gen/**'] });
}

/** Each with its text. */
export function readSources(root: string): readonly (readonly [file: string, source: string])[] {
  return sourceFiles(root).map((file) => [file, readFileSync(path.join(root, file), 'utf8')]);
}
