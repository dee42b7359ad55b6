import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect, test } from '@jest/globals';

import { fixedEndpoint } from '../../../hack/control-plane/fixed-endpoint.ts';
import { eventually } from '../../../test/expect/eventually.ts';
import { SystemClock } from '../../base/clock/system-clock.ts';
import { REQUEST_CONNECTIONS } from './dispatchers.ts';
import { HttpReader } from './http-reader.ts';
import { nodes } from './resource.ts';
import { Transport } from './transport.ts';

const NEVER = new AbortController().signal;

/** A server that keeps each request until it is told to answer, and a transport to it. */
async function startKeeping(timeoutMs?: number) {
  const asked: { readonly name: string; readonly response: ServerResponse }[] = [];
  const server = createServer(
    ({ url = '' }, response) => void asked.push({ name: url.split('/').at(-1) ?? '', response }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = fixedEndpoint(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { tls: {} });
  const transport = new Transport({ endpoint, clock: new SystemClock(), userAgent: 'test', timeoutMs });
  return {
    transport,
    names: () => asked.map(({ name }) => name),
    answer: (at: number) => void asked[at]?.response.end('{"metadata":{"name":"n"}}'),
    answerAll: () => {
      for (const { response } of asked) response.end('{"metadata":{"name":"n"}}');
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await transport.close();
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

function many(reader: HttpReader, prefix: string, count: number): readonly Promise<unknown>[] {
  return Array.from({ length: count }, (_, i) =>
    reader.get(nodes, { name: `${prefix}-${i}` }, { signal: NEVER }).catch((err: unknown) => err),
  );
}

test('while one of several has many requests under way, that of another one is sent with the next free connection but one', async () => {
  await using server = await startKeeping();
  const [large, small] = ['large', 'small'].map((flow) => new HttpReader(server.transport, 'requests', flow));
  if (large === undefined || small === undefined) throw new Error('no readers');
  void many(large, 'large', 4 * REQUEST_CONNECTIONS);
  await eventually(() => expect(server.names()).toHaveLength(REQUEST_CONNECTIONS));

  void many(small, 'small', 1);
  for (const at of [0, 1]) server.answer(at);
  await eventually(() => expect(server.names()).toHaveLength(REQUEST_CONNECTIONS + 2));

  expect(server.names().slice(REQUEST_CONNECTIONS)).toContain('small-0');
});

test('requests that end in whatever way leave their turn to others', async () => {
  await using server = await startKeeping(500);
  const reader = new HttpReader(server.transport, 'requests', 'one');

  // Without an answer each of them expires, those that wait for a turn as well.
  const ended = await Promise.all(many(reader, 'silent', 2 * REQUEST_CONNECTIONS));
  expect(ended.filter((err) => err instanceof Error)).toHaveLength(2 * REQUEST_CONNECTIONS);
  const before = server.names().length;
  const next = many(reader, 'next', REQUEST_CONNECTIONS);
  await eventually(() => expect(server.names().slice(before)).toHaveLength(REQUEST_CONNECTIONS));
  server.answerAll();

  expect((await Promise.all(next)).filter((err) => err instanceof Error)).toEqual([]);
});
