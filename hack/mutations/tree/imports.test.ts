import { expect, test } from '@jest/globals';

import { Imports } from './imports.ts';

const IMPORTS = new Imports(
  new Map([
    ['pkg/a/a.test.ts', ['pkg/a/a.ts']],
    ['pkg/a/b.ts', ['pkg/a/a.ts']],
    ['pkg/a/aa.test.ts', ['pkg/a/b.ts']],
    ['pkg/b/b.test.ts', ['pkg/a/a.ts']],
    ['pkg/b/c.test.ts', ['pkg/a/b.ts', 'pkg/b/b.ts']],
    ['test/integration/a.test.ts', ['pkg/a/a.ts']],
    ['pkg/c/c.test.ts', ['pkg/c/c.ts']],
  ]),
);

test('unit tests of a file: the one of its name, then those nearest to it, of which those of its folder come before others that are nearer', () => {
  expect(IMPORTS.unitTestsOf('pkg/a/a.ts')).toEqual([
    'pkg/a/a.test.ts',
    'pkg/a/aa.test.ts',
    'pkg/b/b.test.ts',
    'pkg/b/c.test.ts',
  ]);
});

test('a file that no unit test loads has none', () => {
  expect(IMPORTS.unitTestsOf('pkg/d/d.ts')).toEqual([]);
});
