import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { impersonating, RefreshingEndpoint } from './endpoint.ts';
import type { Credentials, LoadCredentials, LoadResult } from './endpoint.ts';

function endpoint() {
  const clock = new FakeClock();
  const loads: boolean[] = [];
  let ca = 'one';
  const load = async ({ refresh }: { refresh: boolean }): Promise<Credentials> => {
    loads.push(refresh);
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
    await renewed(one, clock);
    const second = await one.credentials();
    rotate();
    await renewed(one, clock);
    const third = await one.credentials();

    expect(second.headers).not.toEqual(first.headers);
    expect(second.connection).toBe(first.connection);
    expect(third.connection).toEqual({ tls: { ca: 'two' } });
  });

  test('stays the same whole while nothing of it changes', async () => {
    const { one, clock } = scripted(['ok', 'ok']);
    const first = await one.credentials();
    await renewed(one, clock);

    expect(await one.credentials()).toBe(first);
    expect(one.state.loadedMs).toBe(61_000);
  });
});

/** A minute passes, and what is loaded then has come. */
async function renewed(one: RefreshingEndpoint, clock: FakeClock): Promise<void> {
  clock.advance(61_000);
  await one.credentials();
  await clock.advanceAsync(0);
}

/** What the loads of an endpoint come to, one after the other: a token, or that it `fails` or `hangs`. */
function scripted(script: readonly string[]) {
  const clock = new FakeClock();
  const loads: { readonly refresh: boolean; readonly signal: AbortSignal }[] = [];
  const results: LoadResult[] = [];
  const load: LoadCredentials = async (how) => {
    loads.push(how);
    const next = script[loads.length - 1] ?? 'ok';
    if (next === 'fails') throw new Error(`load ${loads.length} failed`);
    if (next === 'hangs') await new Promise(() => undefined);
    return { headers: { Authorization: next }, connection: { tls: {} } };
  };
  const one = new RefreshingEndpoint({ url: 'https://a/', load, clock, onLoad: (result) => results.push(result) });
  return { one, clock, loads, results, token: async () => (await one.credentials()).headers['Authorization'] };
}

describe('a load that hangs', () => {
  test('is ended after 10 s, for all who wait for it, and by its signal', async () => {
    const { one, clock, loads, results } = scripted(['hangs']);
    const waiting = [one.credentials(), one.credentials()].map((each) => each.catch(String));
    await clock.advanceAsync(9_999);
    const before = { ...one.state };
    await clock.advanceAsync(1);

    const why = 'loading the credentials took longer than 10000 ms';
    expect(await Promise.all(waiting)).toEqual([`DeadlineError: ${why}`, `DeadlineError: ${why}`]);
    expect(before).toEqual({ loadedMs: undefined, missingSinceMs: 0, trouble: 'loading is still in progress' });
    expect(one.state).toEqual({ loadedMs: undefined, missingSinceMs: 0, trouble: why });
    expect(loads.map(({ signal }) => signal.aborted)).toEqual([true]);
    expect(results).toEqual([{ ok: false, failures: 1, why }]);
  });

  test('holds nobody up who has credentials that the server has not refused', async () => {
    const { one, clock, loads, token } = scripted(['first', 'hangs', 'second']);
    await token();
    clock.advance(61_000);

    expect([await token(), await token()]).toEqual(['first', 'first']);
    await clock.advanceAsync(10_000);
    expect(await token()).toBe('first');
    expect(one.state).toMatchObject({
      loadedMs: 0,
      missingSinceMs: undefined,
      trouble: expect.stringMatching('longer'),
    });
    await clock.advanceAsync(1_000);
    await token();
    await clock.advanceAsync(0);
    expect(await token()).toBe('second');
    expect(loads).toHaveLength(3);
    expect(one.state.trouble).toBeUndefined();
  });
});

describe('a load that fails', () => {
  test('is repeated after pauses, and nobody waits in between', async () => {
    const { one, clock, loads, token } = scripted(Array.from({ length: 9 }, () => 'fails'));
    const begun: number[] = [];
    for (let s = 0; s <= 100; s++) {
      const before = loads.length;
      await expect(one.credentials()).rejects.toThrow(`load ${loads.length} failed`);
      await expect(one.credentials()).rejects.toThrow('failed');
      if (loads.length > before) begun.push(s);
      clock.advance(1_000);
    }

    expect(begun).toEqual([0, 1, 3, 7, 15, 31, 61, 91]);
    expect(one.state).toEqual({ loadedMs: undefined, missingSinceMs: 0, trouble: 'load 8 failed' });
    clock.advance(60_000);
    await expect(token()).rejects.toThrow('load 9 failed');
    clock.advance(30_000);
    expect(await token()).toBe('ok');
    expect(one.state).toMatchObject({ missingSinceMs: undefined, trouble: undefined });
  });

  test('takes nothing away that the server has not refused', async () => {
    const { one, clock, results, token } = scripted(['first', 'fails', 'second']);
    await token();
    await renewed(one, clock);
    const kept = await token();
    one.refused();
    await expect(token()).rejects.toThrow('load 2 failed');
    const missing = one.state;
    clock.advance(1_000);

    expect(kept).toBe('first');
    expect(missing).toEqual({ loadedMs: 0, missingSinceMs: 61_000, trouble: 'load 2 failed' });
    expect(await token()).toBe('second');
    expect(results).toEqual([
      { ok: true, failures: 0, movedTo: undefined },
      { ok: false, failures: 1, why: 'load 2 failed' },
      { ok: true, failures: 1, movedTo: undefined },
    ]);
  });
});

test.each([
  { what: 'the same', second: 'first', loads: [false, false, true], token: 'third' },
  { what: 'others', second: 'second', loads: [false, false], token: 'second' },
])('a load that began before a refusal, and finds $what', async ({ second, loads: expected, token: last }) => {
  const { one, clock, loads, token } = scripted(['first', second, 'third']);
  await token();
  clock.advance(61_000);
  await token();
  one.refused();

  expect(await token()).toBe(last);
  expect(loads.map(({ refresh }) => refresh)).toEqual(expected);
});

test('what is refused goes on missing since then while a load finds it again that began before', async () => {
  const { one, clock, token } = scripted(['first', 'first', 'hangs']);
  await token();
  clock.advance(61_000);
  await token();
  one.refused();
  clock.advance(5_000);
  void token().catch(() => undefined);
  await clock.advanceAsync(0);

  expect(one.state).toMatchObject({ missingSinceMs: 61_000, trouble: 'loading is still in progress' });
});

test('takes another server with the credentials, and tells it once', async () => {
  const clock = new FakeClock();
  const moved: (string | undefined)[] = [];
  let url = 'https://a/';
  const one = new RefreshingEndpoint({
    url,
    load: async () => ({ headers: {}, connection: { tls: {} }, url }),
    clock,
    onLoad: (result) => moved.push(result.ok ? result.movedTo : result.why),
  });
  const other = impersonating(one, 'somebody');
  await one.credentials();
  url = 'https://b/path/';
  await renewed(one, clock);
  await renewed(one, clock);

  expect([one.url, other.url]).toEqual(['https://b/path', 'https://b/path']);
  expect(moved).toEqual([undefined, 'https://b/path', undefined]);
});

test('who impersonates has the same credentials as long as they are, and their state', async () => {
  const { one, clock } = scripted(['first', 'second']);
  const other = impersonating(one, 'somebody');
  const first = await other.credentials();
  const again = await other.credentials();
  await renewed(one, clock);
  const second = await other.credentials();

  expect(again).toBe(first);
  expect(second.headers).toEqual({ Authorization: 'second', 'Impersonate-User': 'somebody' });
  expect(other.state).toEqual(one.state);
});
