import { setImmediate } from 'node:timers/promises';

import { expect, test } from '@jest/globals';

import type { Credentials } from '../client/endpoint.ts';
import { RelayedEndpoint } from './relayed-endpoint.ts';

function endpoint() {
  const asked: number[] = [];
  return { asked, relayed: new RelayedEndpoint({ url: 'https://server', requestRenewal: () => asked.push(1) }) };
}

function credentials(token: string, ca = 'ca'): Credentials {
  return { headers: { Authorization: token }, connection: { tls: { ca } } };
}

test('waits for the first credentials', async () => {
  const { relayed, asked } = endpoint();
  const waiting = relayed.credentials();

  relayed.refused(); // they are on their way
  relayed.report(credentials('one'));

  expect(await waiting).toEqual(credentials('one'));
  expect(asked).toEqual([]);
});

test('asks once for others when some were refused, and waits for them', async () => {
  const { relayed, asked } = endpoint();
  relayed.report(credentials('one'));

  relayed.refused();
  relayed.refused();
  const waiting = relayed.credentials();
  await setImmediate();
  relayed.report(credentials('two'));

  expect(await waiting).toEqual(credentials('two'));
  expect(asked).toHaveLength(1);
});

test('says why there are none, until there are', async () => {
  const { relayed } = endpoint();

  relayed.fail('reading the kubeconfig: no such file');
  await expect(relayed.credentials()).rejects.toThrow('reading the kubeconfig: no such file');
  relayed.report(credentials('one'));

  expect(await relayed.credentials()).toEqual(credentials('one'));
});

test('keeps the connection while only the token changes', async () => {
  const { relayed } = endpoint();
  relayed.report(credentials('one'));
  const { connection } = await relayed.credentials();

  relayed.report(credentials('two'));
  const same = await relayed.credentials();
  relayed.report(credentials('two', 'another authority'));
  const other = await relayed.credentials();

  expect(same.connection).toBe(connection);
  expect(other.connection).toEqual({ tls: { ca: 'another authority' } });
});
