import { Writable } from 'node:stream';

import { expect, test } from '@jest/globals';

import { createLogger } from './logger.ts';

test.each([
  { ms: 43_122.740_004_000_01, want: 43_123 },
  { ms: 0.4, want: 0 },
  { ms: undefined, want: undefined },
])('writes $ms ms as $want', ({ ms, want }) => {
  const lines: string[] = [];
  const output = new Writable({ write: (line, _encoding, done) => (lines.push(String(line)), done()) });
  const log = createLogger('info', output);

  log.info({ ms }, 'did it');
  log.child({ ms }).info({}, 'did it');

  expect(lines.map((line) => (JSON.parse(line) as { ms?: unknown }).ms)).toEqual([want, want]);
});
