import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { machines } from '../../pkg/kube/client/resource.ts';
import { CommandCluster } from './command-cluster.ts';
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

/** Returns the path. */
function writeKubeconfig(url: string, user: object = { token: 't' }): string {
  const kubeconfig = path.join(directory, 'kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server: url } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  return kubeconfig;
}

/** What `machinist tree` says on standard error, with a kubeconfig of this server. */
async function complaintsOf(url: string, requestTimeout: number, user?: object): Promise<readonly string[]> {
  const kubeconfig = writeKubeconfig(url, user);
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

test('a command says that it waits for the credential plugin, and for which', async () => {
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    interactiveMode: 'Never',
    command: process.execPath,
    args: ['-e', 'setTimeout(() => undefined, 2500)'],
  };

  expect(await complaintsOf('https://127.0.0.1:1', 2_500, { exec })).toEqual([
    `Waiting for credential plugin ${process.execPath}…`,
    expect.stringContaining(process.execPath),
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

test.each([
  { what: 'an hour ahead', skewMs: 3_600_000, want: 3_600_000 },
  { what: 'an hour behind', skewMs: -3_600_000, want: -3_600_000 },
  { what: 'two seconds ahead', skewMs: 2_000, want: 0 },
])('ages are counted by the clock of the server, which is $what of this host', async ({ skewMs, want }) => {
  const host = new SystemClock();
  const api = createHttpServer((_request, response) => {
    response.setHeader('Date', new Date(host.now() + skewMs).toUTCString());
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ kind: 'MachineList', metadata: { resourceVersion: '1' }, items: [] }));
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  const { port } = api.address() as AddressInfo;
  await using cluster = await CommandCluster.open({
    kubeconfig: writeKubeconfig(`http://127.0.0.1:${port}`),
    env: {},
    command: 'test',
  });

  await cluster.list(machines);
  const aheadMs = cluster.now() - host.now();
  await new Promise((resolve) => api.close(resolve));

  expect(Math.abs(aheadMs - want)).toBeLessThan(2_000);
});
