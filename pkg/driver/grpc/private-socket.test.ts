import { lstat, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { PrivateSocket } from './private-socket.ts';

/** Tries to listen at `s` in a directory of its own, which `prepare` fills before. */
async function bindAt(
  prepare: (path: string) => Promise<void>,
): Promise<{ readonly isTaken: boolean; readonly is: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'socket-'));
  const path = join(directory, 's');
  const server = createServer();
  try {
    await prepare(path);
    const listen = (at: string): Promise<void> => new Promise((resolve) => server.listen(at, resolve));
    const isTaken = await PrivateSocket.bind(path, listen).then(
      () => false,
      (err: unknown) =>
        String(err).startsWith(`Error: cannot determine whether another process is listening on ${path}: `) &&
        String(err).endsWith('. Remove it if none is'),
    );
    const found = await lstat(path);
    return { isTaken, is: found.isSocket() ? 'a socket' : 'what was there' };
  } finally {
    server.close();
    await rm(directory, { recursive: true });
  }
}

test('a socket is bound where there is none, and in the place of what nobody listens on', async () => {
  const bound = { isTaken: false, is: 'a socket' };

  expect(await bindAt(async () => undefined)).toEqual(bound);
  expect(await bindAt(async (path) => await writeFile(path, ''))).toEqual(bound);
});

test('what cannot be asked is not replaced: somebody may listen', async () => {
  // As to a socket whose owner lets nobody else connect, or has no room for one more: neither is refused.
  const loop = async (path: string): Promise<void> => await symlink(path, path);

  expect(await bindAt(loop)).toEqual({ isTaken: true, is: 'what was there' });
});
