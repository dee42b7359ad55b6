import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { showTree } from './tree/show-tree.ts';

let directory: string;
let server: Server;
const sockets = new Set<Socket>();

beforeEach(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'command-cluster-'));
  server = createServer((socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await new Promise((resolve) => server.close(resolve));
  rmSync(directory, { recursive: true });
});

/** What `machinist tree` says on standard error, with a kubeconfig of this server. */
async function complaintsOf(url: string, requestTimeout: number): Promise<readonly string[]> {
  const kubeconfig = path.join(directory, 'kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server: url } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user: { token: 't' } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  const said: string[] = [];
  const terminal = {
    out: (line: string) => void said.push(`stdout: ${line}`),
    err: (line: string) => void said.push(line),
    env: {},
    columns: 80,
  };
  await showTree([], { kubeconfig, requestTimeout, watch: false, output: 'text' }, terminal);
  return said;
}

test('a command says which server it waits for before its time to wait is up', async () => {
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;

  expect(await complaintsOf(url, 2_500)).toEqual([
    `Waiting for an answer from ${url}…`,
    expect.stringMatching(/^Unable to connect to the server: /),
  ]);
});

test('a command that is answered, or refused a connection, does not say that it waits', async () => {
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  server.listen();

  expect(await complaintsOf(`https://127.0.0.1:${port}`, 10_000)).toEqual([
    expect.stringMatching(/^Unable to connect to the server: .*ECONNREFUSED/),
  ]);
});
