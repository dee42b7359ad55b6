import { connect as open } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterEach, describe, expect, test } from '@jest/globals';
import { Gauge, Registry } from 'prom-client';

import { silentLogger, type Logger } from '../../pkg/base/log/logger.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { Checks } from '../../pkg/health/checks.ts';
import { Program } from '../e2e/program.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { HealthServer } from '../../pkg/health/server.ts';
import type { WorkInProgress } from '../../pkg/health/work-in-progress.ts';

const servers: HealthServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function serve(
  checks = new Checks(),
  registry = new Registry(),
  log: Logger = silentLogger,
  work?: () => WorkInProgress,
) {
  const live = new Checks();
  live.add({ name: 'ping', check: () => ({ ok: true }) });
  const server = new HealthServer({ address: '127.0.0.1', port: 0, live, checks, registry, work, log });
  servers.push(server);
  const port = await server.start();
  const get = async (path: string, method = 'GET', accept = '*/*') => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { accept } });
    return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.text() };
  };
  return { port, get };
}

const failing = { name: 'driver', check: () => ({ ok: false, detail: 'no connection' }) };
const throwing = {
  name: 'broken',
  check: () => {
    throw new Error('oops');
  },
};

describe('the health server', () => {
  test('serves what is being done about single machines, each time anew, and nothing below', async () => {
    const machines = ['ns/a', 'ns/b'];
    const { get } = await serve(undefined, undefined, undefined, () => ({
      activities: [
        { machine: machines.shift() ?? '', activity: 'create', since: '2026-01-01T00:00:00Z', isQueued: false },
      ],
      retries: [],
      exhausted: [],
      drains: [],
    }));

    const answers = [await get('/work'), await get('/work'), await get('/work/a')];

    expect(answers.map(({ status, type }) => `${status} ${type}`)).toEqual([
      '200 application/json',
      '200 application/json',
      '404 text/plain; charset=utf-8',
    ]);
    expect(answers.slice(0, 2).map(({ body }) => JSON.parse(body) as unknown)).toMatchObject([
      { activities: [{ machine: 'ns/a' }], drains: [] },
      { activities: [{ machine: 'ns/b' }] },
    ]);
  });

  test.each([
    { path: '/healthz', status: 200, body: 'OK' },
    { path: '/readyz', status: 200, body: 'ok' },
    { path: '/configz', status: 200, body: '{}' },
    { path: '/work', status: 404, body: 'not found\n' },
    { path: '/livez', status: 200, body: 'ok' },
    { path: '/livez?verbose', status: 200, body: '[+] ping ok\nlivez check passed\n' },
    { path: '/livez/ping', status: 200, body: 'ok' },
    { path: '/livez/%', status: 404, body: 'no such check\n' },
    { path: '/metrics/x', status: 404, body: 'not found\n' },
    { path: '/debug/pprof/', status: 404, body: 'not found\n' },
    { path: '/debug/profile', status: 404, body: 'not found\n' },
    { path: '/', status: 404, body: 'not found\n' },
    { path: '//', status: 404, body: 'not found\n' },
    { path: '///readyz', status: 404, body: 'not found\n' },
    { path: '/%', status: 404, body: 'not found\n' },
    { path: '/healthz?a=%', status: 200, body: 'OK' },
  ])('answers $path with $status', async ({ path, status, body }) => {
    const { get } = await serve();

    expect(await get(path)).toMatchObject({ status, body });
  });

  test('is healthy while not ready', async () => {
    const checks = new Checks();
    checks.add(failing);
    const { get } = await serve(checks);

    expect(await get('/healthz')).toMatchObject({ status: 200 });
    expect(await get('/readyz')).toMatchObject({
      status: 503,
      body: '[-] driver failed: no connection\nreadyz check failed\n',
    });
  });

  test('a check that throws has failed, the others are still shown', async () => {
    const checks = new Checks();
    checks.add(throwing);
    checks.add({ name: 'fine', check: () => ({ ok: true }) });
    const { get } = await serve(checks);

    expect((await get('/readyz')).body).toBe('[-] broken failed: oops\n[+] fine ok\nreadyz check failed\n');
  });

  test.each([
    { accept: 'application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1', type: 'application/openmetrics-text' },
    { accept: 'application/json', type: 'text/plain; version=0.0.4' },
  ])('serves the metrics to who accepts $accept as $type', async ({ accept, type }) => {
    const { get } = await serve();

    expect((await get('/metrics', 'GET', accept)).type).toContain(type);
  });

  test('serves the metrics as Prometheus text', async () => {
    const registry = new Registry();
    new Gauge({ name: 'some_gauge', help: 'Some gauge.', registers: [registry] }).set(7);
    const { get } = await serve(new Checks(), registry);

    const { status, type, body } = await get('/metrics');

    expect(status).toBe(200);
    expect(type).toContain('text/plain');
    expect(body).toContain('# HELP some_gauge Some gauge.');
    expect(body).toContain('some_gauge 7');
  });

  test('serves the other metrics when one cannot be read', async () => {
    const registry = new Registry();
    new Gauge({ name: 'some_gauge', help: 'Some gauge.', registers: [registry] }).set(7);
    const collect = (): never => {
      throw new Error('no cache');
    };
    void new Gauge({ name: 'broken', help: 'Broken.', registers: [registry], collect });
    const { get } = await serve(new Checks(), registry);

    expect(await get('/metrics')).toMatchObject({ status: 200, body: expect.stringContaining('some_gauge 7') });
  });

  test('refuses to be written to', async () => {
    const { get } = await serve();

    expect(await get('/healthz', 'POST')).toMatchObject({ status: 405 });
  });

  test('names the flag when its port is taken', async () => {
    const { port } = await serve();
    const second = new HealthServer({
      address: '127.0.0.1',
      port,
      live: new Checks(),
      checks: new Checks(),
      registry: new Registry(),
      log: silentLogger,
    });

    await expect(second.start()).rejects.toThrow(
      `listening on 127.0.0.1:${port}: the port is in use; choose another with --port`,
    );
  });
});

/** What a server sends to anyone who writes `bytes` to its port, and then nothing more. */
async function answerTo(port: number, bytes: string, isCut: boolean): Promise<string> {
  const socket = open({ host: '127.0.0.1', port });
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  let answer = '';
  socket.on('error', () => undefined);
  socket.on('data', (data) => (answer += data.toString('latin1')));
  socket.write(Buffer.from(bytes, 'latin1'));
  if (isCut) {
    await sleep(20);
    socket.resetAndDestroy();
  } else socket.end();
  await ended;
  return answer;
}

describe('whatever reaches the port of the health server', () => {
  const host = 'Host: localhost\r\n';
  test.each([
    { what: 'no path', bytes: `GET // HTTP/1.1\r\n${host}\r\n`, status: '404' },
    {
      what: 'a path that cannot be decoded',
      bytes: `GET /readyz/%ff%?exclude=% HTTP/1.1\r\n${host}\r\n`,
      status: '404',
    },
    { what: 'an address that is none', bytes: `GET http://[::1/ HTTP/1.1\r\n${host}\r\n`, status: '404' },
    { what: 'no host', bytes: 'GET /livez HTTP/1.1\r\n\r\n', status: '400' },
    { what: 'a host that is none', bytes: 'GET /livez HTTP/1.1\r\nHost: a b\0\r\n\r\n', status: '400' },
    { what: 'a host of another', bytes: 'GET /livez HTTP/1.1\r\nHost: ///\r\n\r\n', status: '200' },
    { what: 'half a request', bytes: 'GET /readyz HT', status: '400' },
    { what: 'a request that is broken off', bytes: 'GET /readyz HTTP/1.1\r\nHo', isCut: true, status: '' },
    {
      what: 'an answer that nobody reads',
      bytes: `GET /metrics HTTP/1.1\r\n${host}\r\n`,
      isCut: true,
      status: undefined,
    },
    { what: 'a proxy request', bytes: `CONNECT a:1 HTTP/1.1\r\n${host}\r\n`, status: '' },
    {
      what: 'a web socket',
      bytes: `GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      status: '404',
    },
    { what: 'headers without end', bytes: `GET / HTTP/1.1\r\n${host}X: ${'x'.repeat(100_000)}\r\n\r\n`, status: '431' },
    { what: 'TLS', bytes: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', status: '400' },
    { what: 'something else', bytes: '\r\n\r\nSSH-2.0-x\r\n', status: '400' },
  ])('writes nothing into the log: $what', async ({ bytes, isCut = false, status }) => {
    const lines: string[] = [];
    const note = (_fields: object, message: string): void => void lines.push(message);
    const { port, get } = await serve(new Checks(), new Registry(), {
      ...silentLogger,
      error: note,
      warn: note,
      info: note,
    });

    const answer = await answerTo(port, bytes, isCut);
    const after = await get('/livez');

    const seen = /^HTTP\/1\.1 (\d+) /.exec(answer)?.[1] ?? '';
    expect(seen).toBe(status ?? seen);
    expect(after.status).toBe(200);
    expect(lines).toEqual([]);
  });
});

test('with --profiling, profiles are given to who asks from loopback by a local name, in the formats of Chrome DevTools', async () => {
  const port = await freePort();
  await using program = new Program('machinist', [
    'run',
    '--profiling',
    `--port=${port}`,
    '--address=127.0.0.1',
    `--target-kubeconfig=${connect().kubeconfig}`,
    '--leader-elect=false',
    '--namespace=nowhere',
    '--controllers=secret',
  ]);
  const get = async (path: string): Promise<{ status: number; name: string | null; body: string }> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: answer.status, name: answer.headers.get('content-disposition'), body: await answer.text() };
  };
  await eventually(async () => expect((await get('/livez')).status).toBe(200), { timeoutMs: 120_000 });

  const cpu = await get('/debug/profile?seconds=1');
  const allocations = await get('/debug/allocations?seconds=1');
  const heap = await get('/debug/heap');
  const other = await get('/debug/other');
  const endless = await get('/debug/profile?seconds=999');
  const foreign = await answerTo(port, 'GET /debug/heap HTTP/1.1\r\nHost: evil.example\r\n\r\n', false);

  expect([cpu.status, allocations.status, heap.status, other.status]).toEqual([200, 200, 200, 404]);
  expect(endless).toMatchObject({ status: 400, body: 'seconds must be a number from 1 to 300\n' });
  expect([cpu.name, allocations.name, heap.name]).toEqual([
    'attachment; filename="machinist.cpuprofile"',
    'attachment; filename="machinist.heapprofile"',
    'attachment; filename="machinist.heapsnapshot"',
  ]);
  const samples = (JSON.parse(cpu.body) as { samples: readonly number[] }).samples;
  expect(samples.length).toBeGreaterThan(10);
  expect(JSON.parse(allocations.body)).toMatchObject({ head: { children: expect.any(Array) } });
  expect(JSON.parse(heap.body)).toMatchObject({ snapshot: { meta: { node_fields: expect.any(Array) } } });
  expect(foreign).toMatch(/^HTTP\/1\.1 403 /);
  expect(program.stdout).not.toContain('"level":"error"');
}, 180_000);
