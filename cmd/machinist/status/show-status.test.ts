import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { showStatus } from './show-status.ts';

test('status waits for as long as --request-timeout says', async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as AddressInfo;
  const directory = mkdtempSync(path.join(tmpdir(), 'show-status-'));
  const kubeconfig = path.join(directory, 'kubeconfig');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      users: [{ name: 'u', user: {} }],
    }),
  );
  const said: string[] = [];
  const terminal = { out: () => undefined, err: (line: string) => void said.push(line), env: {} };

  const code = await showStatus(
    { kubeconfig, requestTimeout: 300, output: 'text', url: [], selector: 'app=machinist' },
    terminal,
  );
  silent.closeAllConnections();
  silent.close();
  rmSync(directory, { recursive: true });

  expect(code).toBe(1);
  expect(said.join('\n')).toMatch(/no response within \d{3,4} ms/);
});
