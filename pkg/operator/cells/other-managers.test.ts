import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { Lease } from '../../apis/wire.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../../kube/leader/names.ts';
import { OtherManagers } from './other-managers.ts';

const { signal } = new AbortController();
const LEASE_S = 15;
const MINUTE_MS = 60_000;

function start() {
  const clock = new FakeClock();
  const stored = new Map<string, Lease | ApiError>();
  const asked: string[] = [];
  const others = new OtherManagers({
    clock,
    leases: new Set([MANAGER_LEASE, MACHINE_LEASE]),
    reader: {
      get: ((_resource: unknown, { name }: { name: string }) => {
        asked.push(name);
        const found = stored.get(name) ?? new ApiError(404, 'NotFound', 'no such Lease');
        return found instanceof ApiError ? Promise.reject(found) : Promise.resolve(found);
      }) as never,
    },
  });
  const look = async (): Promise<string> => (await others.look('cell', signal)).kind;
  const lookIn = async (ms: number): Promise<string> => {
    clock.advance(ms);
    return await look();
  };
  const write = (holderIdentity: string, renewTime = '', leaseDurationSeconds = LEASE_S): void =>
    void stored.set(MACHINE_LEASE, {
      metadata: { name: MACHINE_LEASE, uid: 'uid' },
      spec: { holderIdentity, leaseDurationSeconds, renewTime },
    } as unknown as Lease);
  return { others, stored, asked, look, lookIn, write };
}

test.each([
  ['there are none', () => undefined],
  ['nobody holds one', ({ write }: ReturnType<typeof start>) => write('')],
])('a namespace has no other manager if, of its Leases, %s', async (_what, given) => {
  const scene = start();
  given(scene);

  expect(await scene.look()).toBe('none');
});

test('a Lease that is left of a manager is told from that of one that runs by its renewals, and by no clock', async () => {
  const { look, lookIn, write } = start();

  write('left', '2020-01-01T00:00:00.000000Z');
  const first = await look();
  const before = await lookIn(LEASE_S * 1_000 - 1);
  const then = await lookIn(1);

  expect([first, before, then]).toEqual(['unclear', 'unclear', 'none']);
});

test('a manager that renews its Lease runs until the duration after its last renewal', async () => {
  const { look, lookIn, write } = start();
  write('other', '1');
  await look();

  write('other', '2');
  const renewed = await lookIn(5_000);
  write('other', '3');
  const again = await lookIn(LEASE_S * 1_000);
  const still = await lookIn(LEASE_S * 1_000 - 1);
  const ended = await lookIn(1);

  expect([renewed, again, still, ended]).toEqual(['runs', 'runs', 'runs', 'none']);
});

test('a manager that has released its Lease does not run', async () => {
  const { look, lookIn, write } = start();
  write('other', '1');
  await look();
  write('other', '2');
  await lookIn(5_000);

  write('', '3');

  expect(await lookIn(5_000)).toBe('none');
});

test('a manager that starts later is noticed within a minute and a few seconds', async () => {
  const { look, lookIn, write } = start();
  await look();

  write('other', '1');
  const soon = await lookIn(MINUTE_MS - 1);
  const appeared = await lookIn(1);
  write('other', '2');
  const renewed = await lookIn(5_000);

  expect([soon, appeared, renewed]).toEqual(['none', 'unclear', 'runs']);
});

test('a Lease that a backup brings back is not one that is renewed, also after one that was', async () => {
  const { stored, look, lookIn, write } = start();
  write('other', '1');
  await look();
  write('other', '2');
  await lookIn(5_000);
  stored.clear();
  await lookIn(LEASE_S * 1_000);

  write('other', '1');

  expect(await lookIn(MINUTE_MS)).toBe('unclear');
});

test.each<{ what: string; again: string | undefined; kinds: readonly string[] }>([
  { what: 'says nothing any more after a minute', again: undefined, kinds: ['unclear', 'unclear', 'none'] },
  { what: 'does once its holder has made it again', again: '2', kinds: ['unclear', 'unclear', 'unclear'] },
])('a Lease that would last for years and was deleted $what', async ({ again, kinds }) => {
  const { stored, look, lookIn, write } = start();
  write('other', '1', 2 ** 31);
  await look();
  stored.clear();

  const deleted = await lookIn(5_000);
  const before = await lookIn(MINUTE_MS - 1);
  if (again !== undefined) write('other', again, 2 ** 31);
  const after = await lookIn(1);

  expect([deleted, before, after]).toEqual(kinds);
});

test('what was seen long ago says nothing about a Lease that was renewed in between', async () => {
  const { look, lookIn, write } = start();
  write('other', '1');
  await look();

  write('other', '2');

  expect(await lookIn(60 * MINUTE_MS)).toBe('unclear');
});

test('each Lease is read once a minute while none is held, and every five seconds while one is', async () => {
  const { asked, look, lookIn, write } = start();

  await look();
  await lookIn(MINUTE_MS - 1);
  const atRest = asked.length;
  write('other', '1');
  await lookIn(1);
  await lookIn(4_999);
  const before = asked.length;
  await lookIn(1);

  expect([atRest, before, asked.length]).toEqual([2, 4, 6]);
});

test('that nobody answers is said, and says nothing about other managers', async () => {
  const { others, stored, write, lookIn, look } = start();
  write('other', '1');
  await look();
  write('other', '2');
  await lookIn(5_000);

  stored.set(MACHINE_LEASE, new ApiError(503, 'ServiceUnavailable', 'later'));
  const unanswered = lookIn(5_000);

  await expect(unanswered).rejects.toThrow('later');
  write('other', '2');
  expect((await others.look('cell', signal)).kind).toBe('runs');
});

test('a Lease that a restore of the cluster sets back is not one that is renewed', async () => {
  const { lookIn, look, stored, write } = start();
  write('left', '2026-03-01T00:00:00.000000Z');
  await look();
  await lookIn(LEASE_S * 1_000);
  stored.clear();
  write('left', '2026-02-01T00:00:00.000000Z');

  expect([await lookIn(MINUTE_MS), await lookIn(LEASE_S * 1_000)]).toEqual(['unclear', 'none']);
});

test('Leases that may not be read keep nothing from going on after ten seconds: until then, the server may be starting', async () => {
  const { look, lookIn, stored, write } = start();
  for (const name of [MANAGER_LEASE, MACHINE_LEASE]) stored.set(name, new ApiError(403, 'Forbidden', 'no'));

  expect([await look(), await lookIn(5_000), await lookIn(5_000)]).toEqual(['unclear', 'unclear', 'none']);
  write('other', '1');
  expect([await lookIn(MINUTE_MS), await lookIn(LEASE_S * 1_000)]).toEqual(['unclear', 'none']);
});
