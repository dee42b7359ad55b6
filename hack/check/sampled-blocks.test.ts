import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');

interface Block {
  readonly title: string;
  /** What is called directly in it: `test`, `afterEach`, the name of what `sampledTest` gave. */
  readonly calls: ReadonlySet<string>;
}

/** Blocks of a test file, as oxfmt indents them. */
function blocksOf(source: string): readonly Block[] {
  const lines = source.split('\n');
  return lines.flatMap((line, at) => {
    const [, indent, title] = /^( *)describe\w*\((.*)/.exec(line) ?? [];
    if (indent === undefined || title === undefined) return [];
    const inside = lines.slice(at + 1, lines.indexOf(`${indent}});`, at));
    const calls = inside.flatMap((one) => new RegExp(`^${indent}  (\\w+)[.(]`).exec(one)?.[1] ?? []);
    return [{ title, calls: new Set(calls) }];
  });
}

const FILES = globSync('test/**/*.ts', { cwd: ROOT }).flatMap((file) => {
  const source = readFileSync(path.join(ROOT, file), 'utf8');
  const [, inTurn] = /const (\w+) = sampledTest\(/.exec(source) ?? [];
  return inTurn === undefined ? [] : [{ file, source, inTurn }];
});

// Jest refuses the hooks of a block without tests, and with them the whole file.
test.each(FILES)('a block of $file whose tests take turns has one that is always run', ({ source, inTurn }) => {
  const blocks = blocksOf(source).filter(({ calls }) => calls.has(inTurn));
  expect(blocks.filter(({ calls }) => !calls.has('test')).map(({ title }) => title)).toEqual([]);
  expect(blocks.length > 0 || source.includes('\ntest(')).toBe(true);
});
