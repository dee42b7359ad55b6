import { afterEach, describe, expect, test } from '@jest/globals';
import { Gauge, Registry } from 'prom-client';

import { silentLogger } from '../../pkg/log/logger.ts';
import { Checks } from '../../pkg/health/checks.ts';
import { HealthServer } from '../../pkg/health/server.ts';

const servers: HealthServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function serve(checks = new Checks(), registry = new Registry()) {
  const server = new HealthServer({ address: '127.0.0.1', port: 0, checks, registry, log: silentLogger });
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
  test.each([
    { path: '/healthz', status: 200, body: 'OK' },
    { path: '/readyz', status: 200, body: 'ok' },
    { path: '/configz', status: 200, body: '{}' },
    { path: '/debug/pprof/', status: 404, body: 'not found\n' },
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

  test('refuses to be written to', async () => {
    const { get } = await serve();

    expect(await get('/healthz', 'POST')).toMatchObject({ status: 405 });
  });

  test('names the flag when its port is taken', async () => {
    const { port } = await serve();
    const second = new HealthServer({
      address: '127.0.0.1',
      port,
      checks: new Checks(),
      registry: new Registry(),
      log: silentLogger,
    });

    await expect(second.start()).rejects.toThrow(
      `listening on 127.0.0.1:${port}: the port is in use; choose another with --port`,
    );
  });
});
