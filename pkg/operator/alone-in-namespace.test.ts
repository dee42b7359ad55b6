import { expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { silentLogger } from '../base/log/logger.ts';
import { HeldWork } from '../health/held-work.ts';
import { ApiError } from '../kube/client/errors.ts';
import { AloneInNamespace } from './alone-in-namespace.ts';
import type { OtherManager } from './cells/other-managers.ts';

const NONE: OtherManager = { kind: 'none', againMs: 60_000 };
const UNCLEAR: OtherManager = { kind: 'unclear', text: 'Lease x is held by other', againMs: 5_000 };
const RUNS: OtherManager = { ...UNCLEAR, kind: 'runs' };
const DOWN = new ApiError(0, 'Unreachable', 'no answer');

function scene() {
  const clock = new FakeClock();
  const held = new HeldWork({ clock });
  const lost: string[] = [];
  const logged: string[] = [];
  const looks: string[] = [];
  const found: { now: OtherManager | Error } = { now: NONE };
  const member = new AloneInNamespace({
    namespace: 'machines',
    clock,
    held,
    log: { ...silentLogger, warn: (_fields, message) => void logged.push(message) },
    lost: (reason) => void lost.push(reason),
    others: {
      look: (namespace) => {
        looks.push(namespace);
        return found.now instanceof Error ? Promise.reject(found.now) : Promise.resolve(found.now);
      },
    },
  });
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  const pass = async (ms: number, now: OtherManager | Error): Promise<void> => {
    found.now = now;
    clock.advance(ms);
    await settle();
  };
  return { member, held, lost, logged, looks, found, settle, pass };
}

/** What is known of a start that nobody waits for. */
function begin({ member }: ReturnType<typeof scene>, signal = new AbortController().signal): { end: string } {
  const seen = { end: 'not yet' };
  void member.start(signal).then(
    () => (seen.end = 'began'),
    (err: unknown) => (seen.end = String(err)),
  );
  return seen;
}

test('a process begins at once in a namespace in which nobody leads', async () => {
  const world = scene();

  await world.member.start(new AbortController().signal);

  expect([world.looks, world.held.list(), world.logged]).toEqual([['machines'], [], []]);
  await world.member.stop();
});

test('a process waits for another manager, and for who does not answer, and says so once', async () => {
  const world = scene();
  world.found.now = UNCLEAR;
  const start = begin(world);
  await world.settle();
  await world.pass(5_000, RUNS);
  await world.pass(5_000, DOWN);

  expect(start.end).toBe('not yet');
  expect(world.held.list()).toMatchObject([{ work: 'process', waitsFor: 'others', why: UNCLEAR.text }]);
  expect([world.logged, world.lost]).toEqual([
    ['waits until no other manager leads in the namespace of the Machines'],
    [],
  ]);

  await world.pass(5_000, NONE);
  expect([start.end, world.held.list()]).toEqual(['began', []]);
  await world.member.stop();
});

test('a process ends when another manager runs beside it, and not for a sign, or for who does not answer', async () => {
  const world = scene();
  await world.member.start(new AbortController().signal);
  await world.pass(60_000, UNCLEAR);
  await world.pass(5_000, DOWN);
  expect(world.lost).toEqual([]);

  await world.pass(5_000, RUNS);

  expect(world.lost).toEqual(['another manager is running in namespace machines: Lease x is held by other']);
  await world.member.stop();
});

test('a process that is stopped while it waits looks no more', async () => {
  const world = scene();
  world.found.now = RUNS;
  const start = begin(world);
  await world.settle();

  await world.member.stop();
  await world.pass(60_000, RUNS);

  expect([start.end, world.looks.length, world.lost]).toEqual(['Error: the process is stopping', 1, []]);
});
