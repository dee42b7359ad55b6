import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { describeWait, type LockHolder, withLock } from './build-lock.ts';

test('who waits for the build of another process and is stopped ends with what stopped it, and not with an error of its timer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'machinist-lock-'));
  const lock = join(folder, 'lock');
  const building = Promise.withResolvers<void>();
  const other = withLock(lock, () => building.promise);
  const stop = new AbortController();
  const waits = Promise.withResolvers<LockHolder>();
  const reason = new Error('stopped by SIGINT');

  const waiting = withLock(lock, () => Promise.resolve('built'), { signal: stop.signal, onWait: waits.resolve });
  waiting.catch(() => undefined); // looked at below
  await waits.promise;
  stop.abort(reason);

  await expect(waiting).rejects.toBe(reason);
  building.resolve();
  await other;
  rmSync(folder, { recursive: true });
});

test('who waits for the build of another process reads who that is, since when it works, and what it said last', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'machinist-lock-'));
  const lock = join(folder, 'lock');
  const building = Promise.withResolvers<void>();
  const other = withLock(lock, (note) => {
    note('building etcd 3.6.16… 20 s');
    return building.promise;
  });
  const waits = Promise.withResolvers<LockHolder>();

  const waiting = withLock(lock, () => Promise.resolve('built'), { onWait: waits.resolve });
  const holder = await waits.promise;
  building.resolve();

  expect(holder).toEqual({ pid: process.pid, heldMs: expect.any(Number), lastLine: 'building etcd 3.6.16… 20 s' });
  expect(await waiting).toBe('built');
  await other;
  expect(readdirSync(folder)).toEqual([]);
  rmSync(folder, { recursive: true });
});

test.each([
  {
    holder: { pid: 4711, heldMs: 80_400, lastLine: 'building etcd 3.6.16… 20 s' },
    says: 'waiting for process 4711, which builds it, for 80 s: building etcd 3.6.16… 20 s',
  },
  {
    holder: { pid: 4711, heldMs: 0, lastLine: undefined },
    says: 'waiting for process 4711, which builds it, for 0 s…',
  },
  {
    holder: { pid: 4711, heldMs: undefined, lastLine: undefined },
    says: 'waiting for process 4711, which builds it…',
  },
])('$says', ({ holder, says }) => {
  expect(describeWait(holder, 'builds it')).toBe(says);
});
