import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import type { Trial } from './trial.ts';
import { runUnitLevel } from './unit.ts';
import type { Verdict } from './verdict.ts';

test('a change that no unit test can reach is told of as that, and nothing is run', async () => {
  // Neither Jest nor its configuration is here: to start it would fail.
  const root = mkdtempSync(path.join(tmpdir(), 'machinist-unit-level-'));
  const trial: Trial = {
    file: 'a.ts',
    title: 'a: true becomes false',
    edit: { start: 0, end: 4, text: 'false' },
    isRow: false,
  };
  const told: Verdict[] = [];

  const verdicts = await runUnitLevel(
    root,
    [trial],
    () => [],
    new AbortController().signal,
    (verdict) => told.push(verdict),
  );

  expect(verdicts).toEqual([{ trial, kind: 'unreached', detail: '' }]);
  expect(told).toEqual(verdicts);
  rmSync(root, { recursive: true });
});
