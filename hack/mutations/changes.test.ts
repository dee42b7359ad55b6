import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { defaultBase, parseDiff } from './changes.ts';

const DIFF = `diff --git a/pkg/a.ts b/pkg/a.ts
--- a/pkg/a.ts
+++ b/pkg/a.ts
@@ -3 +3 @@ function f() {
-  old();
+  new();
@@ -10,2 +10,3 @@
-  x
+  +++ no header
@@ -20,2 +21,0 @@
-  gone
-  gone
diff --git a/pkg/gone.ts b/pkg/gone.ts
--- a/pkg/gone.ts
+++ /dev/null
@@ -1,5 +0,0 @@
diff --git a/pkg/new.ts b/pkg/new.ts
--- /dev/null
+++ b/pkg/new.ts
@@ -0,0 +1,7 @@
`;

test('changed lines are read from a diff: changed, added, and around what was removed', () => {
  expect(Object.fromEntries(parseDiff(DIFF))).toEqual({
    'pkg/a.ts': [
      { first: 3, last: 3 },
      { first: 10, last: 12 },
      { first: 21, last: 22 },
    ],
    'pkg/new.ts': [{ first: 1, last: 7 }],
  });
});

describe('where a change begins, on the main branch', () => {
  const root = mkdtempSync(path.join(tmpdir(), 'changes-'));
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: root, encoding: 'utf8' }).trim();
  const commitAll = (count: number): void => {
    for (let i = 0; i < count; i++) git('commit', '--allow-empty', '--quiet', '--message', 'x');
  };

  beforeAll(() => {
    git('init', '--quiet', '--initial-branch', 'main');
    commitAll(3);
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test('is the commit before', () => {
    expect(defaultBase(root, false)).toEqual({ commit: git('rev-parse', 'HEAD~1') });
  });

  test('is the first of a few commits where time chooses', () => {
    expect(defaultBase(root, true)).toEqual({ commit: git('rev-parse', 'HEAD~2'), newest: git('rev-parse', 'HEAD~1') });
  });

  test('is the release where there is one', () => {
    git('tag', 'v0.1.0');
    expect(defaultBase(root, true)).toEqual({ commit: git('rev-parse', 'HEAD~1') });

    commitAll(2);
    expect(defaultBase(root, true)).toEqual({ commit: git('rev-parse', 'v0.1.0'), newest: git('rev-parse', 'HEAD~1') });
  });

  test('is thirty commits before at most', () => {
    commitAll(30);

    expect(defaultBase(root, true)).toEqual({
      commit: git('rev-parse', 'HEAD~30'),
      newest: git('rev-parse', 'HEAD~1'),
    });
  });

  test('is where the branch left it, on another branch', () => {
    const main = git('rev-parse', 'HEAD');
    git('switch', '--quiet', '--create', 'work');
    commitAll(2);

    expect(defaultBase(root, true)).toEqual({ commit: main });
  });
});
