import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { RefreshingEndpoint } from './endpoint.ts';
import type { Credentials } from './endpoint.ts';

function endpoint() {
  const clock = new FakeClock();
  const loads: boolean[] = [];
  let ca = 'one';
  const load = async (anew: boolean): Promise<Credentials> => {
    loads.push(anew);
    return { headers: { Authorization: `Bearer ${loads.length}` }, connection: { tls: { ca } } };
  };
  return {
    clock,
    loads,
    rotate: () => {
      ca = 'two';
    },
    endpoint: new RefreshingEndpoint({ url: 'https://server/', load, clock }),
  };
}

describe('RefreshingEndpoint', () => {
  test('loads once for all who ask at the same time', async () => {
    const { endpoint: one, loads } = endpoint();

    const [a, b] = await Promise.all([one.credentials(), one.credentials()]);

    expect(a).toBe(b);
    expect(loads).toEqual([false]);
  });

  test('keeps credentials for a minute', async () => {
    const { endpoint: one, loads, clock } = endpoint();
    await one.credentials();
    clock.advance(59_000);
    await one.credentials();
    clock.advance(2_000);
    await one.credentials();

    expect(loads).toEqual([false, false]);
  });

  test('loads anew after a refusal, but not for each of many', async () => {
    const { endpoint: one, loads, clock } = endpoint();
    await one.credentials();
    one.refused();
    await one.credentials();
    one.refused();
    await one.credentials();
    clock.advance(6_000);
    one.refused();
    await one.credentials();

    expect(loads).toEqual([false, true, true]);
  });

  test('keeps the connection while its content stays the same', async () => {
    const { endpoint: one, clock, rotate } = endpoint();
    const first = await one.credentials();
    clock.advance(61_000);
    const second = await one.credentials();
    rotate();
    clock.advance(61_000);
    const third = await one.credentials();

    expect(second.headers).not.toEqual(first.headers);
    expect(second.connection).toBe(first.connection);
    expect(third.connection).toEqual({ tls: { ca: 'two' } });
  });

  test('tries again after loading failed', async () => {
    let tries = 0;
    const load = async (): Promise<Credentials> => {
      if (++tries === 1) throw new Error('no such file');
      return { headers: {}, connection: { tls: {} } };
    };
    const one = new RefreshingEndpoint({ url: 'https://server', load, clock: new FakeClock() });

    await expect(one.credentials()).rejects.toThrow('no such file');
    await expect(one.credentials()).resolves.toBeDefined();
  });
});
