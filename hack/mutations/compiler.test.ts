import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { Compiler } from './compiler.ts';

const SOURCE = `import { basename } from 'b';
export function named(path: string | undefined): { name: string; size?: number } {
  const size = 1;
  if (path === undefined) return { name: 'none' };
  return { name: basename(path), size };
}
`;

describe('a change', () => {
  let root: string;
  let compiler: Compiler;

  beforeAll(() => {
    root = mkdtempSync(path.join(tmpdir(), 'machinist-compiler-'));
    const write = (name: string, text: string): void => writeFileSync(path.join(root, name), text);
    write('tsconfig.json', JSON.stringify({ compilerOptions: { strict: true, noUnusedLocals: true, types: [] } }));
    write('b.d.ts', `declare module 'b' { export function basename(path: string): string; }`);
    write('a.ts', SOURCE);
    compiler = new Compiler(root);
  });

  afterAll(() => {
    compiler[Symbol.dispose]();
    rmSync(root, { recursive: true });
  });

  function refuses(from: string, to: string): boolean {
    const start = SOURCE.indexOf(from);
    return compiler.refuses('a.ts', { start, end: start + from.length, text: to });
  }

  test.each([
    { title: 'that leaves out a property that is needed', from: 'name: basename(path), ', refused: true },
    {
      title: 'that leaves out the guard of a type',
      from: "if (path === undefined) return { name: 'none' };",
      refused: true,
    },
    { title: 'that leaves out an optional property, and a local unused', from: ', size }', to: ' }', refused: false },
    { title: 'that the types allow', from: "'none'", to: "''", refused: false },
  ])('$title is refused: $refused', ({ from, to = '', refused }) => {
    expect(refuses(from, to)).toBe(refused);
  });

  test('is judged by itself, and leaves the file as it is', () => {
    refuses('name: basename(path), ', '');

    expect(refuses("'none'", "''")).toBe(false);
    expect(readFileSync(path.join(root, 'a.ts'), 'utf8')).toBe(SOURCE);
  });
});
