import { Writable } from 'node:stream';

import { expect, test } from '@jest/globals';

import { createLogger, type LogLevel } from './logger.ts';

test.each([
  { ms: 43_122.740_004_000_01, want: 43_123 },
  { ms: 0.4, want: 0 },
  { ms: undefined, want: undefined },
])('writes $ms ms as $want', ({ ms, want }) => {
  const lines: string[] = [];
  const output = new Writable({ write: (line, _encoding, done) => (lines.push(String(line)), done()) });
  const log = createLogger('info', { destination: output });

  log.info({ ms, retryInMs: ms, skewMs: ms }, 'did it');
  log.child({ ms, retryInMs: ms, skewMs: ms }).info({}, 'did it');

  for (const line of lines) {
    const { ms: took, retryInMs, skewMs } = JSON.parse(line) as Record<string, unknown>;
    expect([took, retryInMs, skewMs]).toEqual([want, want, want]);
  }
  expect(lines).toHaveLength(2);
});

/** What is logged of an error, parsed. */
function logged(level: LogLevel, err: unknown): unknown {
  const lines: string[] = [];
  const destination = new Writable({ write: (line, _encoding, done) => (lines.push(String(line)), done()) });
  createLogger(level, { destination }).error({ err }, 'failed');
  return (JSON.parse(lines.join('')) as { err: unknown }).err;
}

test('of an error are written its class, words and code, and nothing that others have hung on it', () => {
  const err = Object.assign(new TypeError('oops'), { code: 'E1', request: { token: 'planted' } });

  expect(logged('info', err)).toEqual({ type: 'TypeError', message: 'oops', code: 'E1' });
});

test('a stack is written at level debug only, also of an error of another thread', () => {
  const foreign = Object.assign(Object.create(null) as object, { name: 'Error', message: 'oops', stack: 'where' });

  expect(logged('info', foreign)).toEqual({ type: 'Error', message: 'oops' });
  expect(logged('debug', foreign)).toEqual({ type: 'Error', message: 'oops', stack: 'where' });
});

test.each([
  { what: 'its cause', cause: new Error('no route'), want: 'asking: no route' },
  { what: 'a cause that it tells itself', cause: new Error('ask'), want: 'asking' },
])('an error says $what', ({ cause, want }) => {
  expect(logged('info', new Error('asking', { cause }))).toEqual({ type: 'Error', message: want });
});

test.each(['providerSpec', 'userData', 'secret', 'data', 'token', 'authorization'])(
  'what is logged as %s, or stands in a field as that, is not shown',
  (name) => {
    const lines: string[] = [];
    const destination = new Writable({ write: (line, _encoding, done) => (lines.push(String(line)), done()) });
    const log = createLogger('debug', { destination });

    log.info({ [name]: 'planted' }, 'did it');
    log.info({ object: { [name]: { inner: 'planted' } } }, 'did it');
    log.child({ [name]: 'planted' }).info({}, 'did it');

    expect(lines).toHaveLength(3);
    expect(lines.join('')).not.toContain('planted');
  },
);

test('text is written where it is asked for', () => {
  const lines: string[] = [];
  const destination = new Writable({ write: (line, _encoding, done) => (lines.push(String(line)), done()) });

  createLogger('info', { destination, format: 'text' }).child({ lease: 'l' }).info({ ms: 1.2 }, 'did it');

  expect(lines.join('')).toMatch(/^\d{4}-\S+Z INFO {2}did it lease=l ms=1\n$/);
});
