import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect, test } from '@jest/globals';

import { fixedEndpoint } from '../../../hack/control-plane/fixed-endpoint.ts';
import { SystemClock } from '../../base/clock/system-clock.ts';
import type { Endpoint } from './endpoint.ts';
import { HttpReader } from './http-reader.ts';
import { HttpListWatch } from './list-watch.ts';
import { nodes } from './resource.ts';
import { Transport } from './transport.ts';

const MIB = 1024 * 1024;
const MUCH = 64 * MIB;

function endpointOf(server: Server): Endpoint {
  return fixedEndpoint(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { tls: {} });
}

test('a watch that follows another one uses its connection', async () => {
  let connections = 0;
  await using server = createServer((_request, response) => response.end('{"type":"BOOKMARK","object":{}}\n'));
  server.on('connection', () => connections++).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = endpointOf(server);
  const transport = new Transport({ endpoint, clock: new SystemClock(), userAgent: 'test' });
  const source = new HttpListWatch({ transport, resource: nodes });
  const { signal } = new AbortController();

  const seen: string[] = [];
  for (let i = 0; i < 5; i++) for await (const { type } of source.watch({ signal })) seen.push(type);
  await transport.close();

  expect(seen).toEqual(Array.from({ length: 5 }, () => 'BOOKMARK'));
  expect(connections).toBe(1);
});

test('probes of a server that is asked by few connections wait for one another', async () => {
  let connections = 0;
  await using server = createServer((_request, response) => response.end('{"metadata":{"name":"n"}}'));
  server.on('connection', () => connections++).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const clock = new SystemClock();
  const transport = new Transport({ endpoint: endpointOf(server), clock, userAgent: 'test', probeConnections: 1 });
  const prober = new HttpReader(transport, 'probes');

  const found = await Promise.all(['a', 'b', 'c'].map((name) => prober.get(nodes, { name })));
  await transport.close();

  expect(found).toHaveLength(3);
  expect(connections).toBe(1);
});

/** Sends much more than anybody should read, and tells how much of it was taken. */
async function lavishServer(code: number) {
  let sent = 0;
  const server = createServer((_request, response) => {
    response.writeHead(code);
    const send = (): void => {
      if (response.destroyed || sent > MUCH) return void response.end();
      sent += MIB;
      response.write('x'.repeat(MIB), send);
    };
    send();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: endpointOf(server),
    sent: () => sent,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

test('an answer that is larger than the limit ends with an error, and is not read to its end', async () => {
  await using server = await lavishServer(200);
  const { endpoint } = server;
  const transport = new Transport({ endpoint, clock: new SystemClock(), userAgent: 'test', maxBytes: MIB });

  const list = new HttpListWatch({ transport, resource: nodes }).list({ signal: new AbortController().signal });

  await expect(list).rejects.toMatchObject({ name: 'ApiError', reason: 'Unreachable' });
  await transport.close();
  expect(server.sent()).toBeLessThan(MUCH);
});

test('of an endless answer to a watch, the beginning is read and becomes the error', async () => {
  await using server = await lavishServer(500);
  const { endpoint } = server;
  const transport = new Transport({ endpoint, clock: new SystemClock(), userAgent: 'test', maxBytes: MIB });
  const { signal } = new AbortController();

  const watch = new HttpListWatch({ transport, resource: nodes }).watch({ signal });

  await expect(watch.next()).rejects.toMatchObject({
    code: 500,
    message: expect.stringMatching(/^server returned 500: x{1,200}/),
  });
  await transport.close();
  expect(server.sent()).toBeLessThan(MUCH);
});
