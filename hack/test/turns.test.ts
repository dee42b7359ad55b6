import { existsSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { LEVELS } from './levels.ts';
import { TURNS, waitingFor } from './turns.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const FILES = TURNS.flatMap(({ files }) => files);

describe('test files that take turns', () => {
  test('are there, above the unit level, and each once', () => {
    expect(FILES.filter((file) => !existsSync(path.join(ROOT, file)))).toEqual([]);
    const levels = FILES.map((file) => file.split('/')[1]);
    expect(levels.filter((level) => level === 'unit' || !LEVELS.some((one) => one === level))).toEqual([]);
    expect(new Set(FILES).size).toBe(FILES.length);
  });

  test.each(TURNS)('$kind: a run takes $least of them, and each commit may take others', ({ files, least }) => {
    const taken = new Set<string>();
    for (let commit = 0; commit < 100; commit++) {
      const waiting = waitingFor({ how: 'sample', seed: String(commit) });
      const chosen = files.filter((file) => !waiting.includes(file));
      expect(chosen).toHaveLength(least);
      for (const file of chosen) taken.add(file);
    }

    expect([...taken].toSorted()).toEqual(files);
  });

  test.each([{ choice: { how: 'all' } }, { choice: { how: 'matching', pattern: /^$/ } }] as const)(
    'all run when asked for: $choice.how',
    ({ choice }) => {
      expect(waitingFor(choice)).toEqual([]);
    },
  );
});
