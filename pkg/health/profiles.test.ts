import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';

import { describe, expect, test } from '@jest/globals';

import { SystemClock } from '../base/clock/system-clock.ts';
import { isLocalCaller, Profiles, secondsOf, type Profile } from './profiles.ts';

const aborted = AbortSignal.abort(new Error('the client disconnected'));

async function parsed(profile: Profile | undefined): Promise<Record<string, unknown>> {
  if (profile === undefined) throw new Error('none was taken');
  return JSON.parse(await text(profile.content)) as Record<string, unknown>;
}

describe('profiles', () => {
  test('of the CPU are what Chrome DevTools opens as .cpuprofile', async () => {
    const profile = await new Profiles(new SystemClock()).take('profile', 300, aborted);

    expect(profile?.fileName).toMatch(/\.cpuprofile$/);
    expect(await parsed(profile)).toEqual({
      nodes: expect.any(Array),
      startTime: expect.any(Number),
      endTime: expect.any(Number),
      samples: expect.any(Array),
      timeDeltas: expect.any(Array),
    });
  });

  test('of allocations are what Chrome DevTools opens as .heapprofile', async () => {
    const profile = await new Profiles(new SystemClock()).take('allocations', 300, aborted);

    expect(profile?.fileName).toMatch(/\.heapprofile$/);
    expect(await parsed(profile)).toMatchObject({
      head: { callFrame: expect.any(Object), children: expect.any(Array) },
    });
  });

  test('are taken one at a time', async () => {
    const profiles = new Profiles(new SystemClock());
    const stop = new AbortController();
    const first = profiles.take('profile', 300, stop.signal);

    const second = await profiles.take('allocations', 300, aborted);
    stop.abort();
    (await first)?.content.destroy();
    await setImmediate();
    const third = await profiles.take('allocations', 300, aborted);

    expect(second).toBeUndefined();
    expect(third).toBeDefined();
  });

  test.each([
    { query: '', seconds: 30 },
    { query: 'seconds=5', seconds: 5 },
    { query: 'seconds=1', seconds: 1 },
    { query: 'seconds=300', seconds: 300 },
    { query: 'seconds=301', seconds: undefined },
    { query: 'seconds=0', seconds: undefined },
    { query: 'seconds=-1', seconds: undefined },
    { query: 'seconds=', seconds: undefined },
    { query: 'seconds=x', seconds: undefined },
  ])('asked for with "$query" last $seconds s', ({ query, seconds }) => {
    expect(secondsOf(new URLSearchParams(query))).toBe(seconds);
  });

  const here = { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1', headers: { host: 'localhost:10258' } };
  test.each([
    { who: 'a person on this host', caller: here, isLocal: true },
    {
      who: 'the same by IPv6',
      caller: { remoteAddress: '::1', localAddress: '::1', headers: { host: '[::1]:1' } },
      isLocal: true,
    },
    { who: 'the same on a socket of both', caller: { ...here, remoteAddress: '::ffff:127.0.0.1' }, isLocal: true },
    { who: 'another host', caller: { ...here, remoteAddress: '10.0.0.1' }, isLocal: false },
    {
      who: 'a proxy of the pod that was asked from elsewhere',
      caller: { ...here, localAddress: '10.0.0.1' },
      isLocal: false,
    },
    { who: 'a connection that is gone', caller: { ...here, remoteAddress: undefined }, isLocal: false },
    {
      who: 'a name that was made to lead here',
      caller: { ...here, headers: { host: 'evil.example' } },
      isLocal: false,
    },
    {
      who: 'a name that begins like ours',
      caller: { ...here, headers: { host: 'localhost.evil.example' } },
      isLocal: false,
    },
    { who: 'nobody', caller: { ...here, headers: {} }, isLocal: false },
    {
      who: 'a page of another origin',
      caller: { ...here, headers: { ...here.headers, origin: 'https://x' } },
      isLocal: false,
    },
    {
      who: 'an image in a page',
      caller: { ...here, headers: { ...here.headers, 'sec-fetch-site': 'cross-site' } },
      isLocal: false,
    },
    {
      who: 'an address that was typed',
      caller: { ...here, headers: { ...here.headers, 'sec-fetch-site': 'none' } },
      isLocal: true,
    },
  ])('are given to $who: $isLocal', ({ caller, isLocal }) => {
    expect(isLocalCaller(caller)).toBe(isLocal);
  });
});
