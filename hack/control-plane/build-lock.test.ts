import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { withLock } from './build-lock.ts';

test('who waits for the build of another process and is stopped ends with what stopped it, and not with an error of its timer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'machinist-lock-'));
  const lock = join(folder, 'lock');
  const building = Promise.withResolvers<void>();
  const other = withLock(lock, () => building.promise);
  const stop = new AbortController();
  const waits = Promise.withResolvers<number>();
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
