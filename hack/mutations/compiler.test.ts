import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

const CONFIG = {
  compilerOptions: { strict: true, noUnusedLocals: true, types: [], lib: ['es2024'] },
  exclude: ['web'],
};
const WEB_CONFIG = { extends: '../tsconfig.json', compilerOptions: { lib: ['es2024', 'dom'] }, exclude: [] };
const WEB_SOURCE = 'export const title: string = document.title;\n';

describe('a change', () => {
  let root: string;
  let compiler: Compiler;

  beforeAll(() => {
    root = mkdtempSync(path.join(tmpdir(), 'machinist-compiler-'));
    const write = (name: string, text: string): void => writeFileSync(path.join(root, name), text);
    write('tsconfig.json', JSON.stringify(CONFIG));
    write('b.d.ts', `declare module 'b' { export function basename(path: string): string; }`);
    write('a.ts', SOURCE);
    mkdirSync(path.join(root, 'web'));
    write('web/tsconfig.json', JSON.stringify(WEB_CONFIG));
    write('web/page.ts', WEB_SOURCE);
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

  test.each([
    { title: 'has', from: 'title;', to: 'head;', refused: true },
    { title: 'has not', from: 'title;', to: 'URL;', refused: false },
  ])('of what another tsconfig.json names is judged by that one: it $title an error', ({ from, to, refused }) => {
    const start = WEB_SOURCE.indexOf(from);

    expect(compiler.refuses('web/page.ts', { start, end: start + from.length, text: to })).toBe(refused);
  });

  test('is judged by itself, and leaves the file as it is', () => {
    refuses('name: basename(path), ', '');

    expect(refuses("'none'", "''")).toBe(false);
    expect(readFileSync(path.join(root, 'a.ts'), 'utf8')).toBe(SOURCE);
  });
});
