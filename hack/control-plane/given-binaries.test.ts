import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { findGiven } from './given-binaries.ts';

test.each([
  {
    what: 'its checksums prove nothing',
    checksum: '',
    code: 'checksum-missing',
    says: 'http://127.attacker.invalid/x',
  },
  {
    what: 'a named checksum would prove it',
    checksum: 'a'.repeat(64),
    code: 'download-failed',
    says: 'check the network',
  },
])('a server that leads to another host without encryption: $what', async ({ checksum, code, says }) => {
  const home = mkdtempSync(join(tmpdir(), 'machinist-given-'));
  const server = createServer((_request, response) =>
    response.writeHead(302, { location: 'http://127.attacker.invalid/x' }).end(),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const env = {
    HOME: home,
    MACHINIST_BINARIES: `http://127.0.0.1:${(server.address() as AddressInfo).port}/envtest.tar.gz`,
    MACHINIST_BINARIES_CHECKSUM: checksum,
  };

  await expect(findGiven('etcd', { env, log: () => undefined })).rejects.toMatchObject({
    code,
    message: expect.stringContaining(says),
  });

  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(home, { recursive: true });
});
