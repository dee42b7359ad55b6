import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { instantOf } from '../../base/clock/host-clock.ts';
import { LeaseFence } from '../../kube/gate/fence.ts';
import { openedNow } from './cell-fence.ts';

const DEADLINE_MS = 10_000;

test('the fence of a cell that begins late has been open since then, and closes and opens with that of its shard', () => {
  const clock = new FakeClock();
  const shard = new LeaseFence({ clock, renewDeadlineMs: DEADLINE_MS });
  const renew = (token: number): void => shard.renewed(instantOf(clock), token);
  renew(3);
  for (let i = 0; i < 100; i++) {
    clock.advance(5_000);
    renew(3);
  }
  const beganMs = clock.monotonicMs();
  const cell = openedNow(shard, beganMs);

  expect(cell).toMatchObject({ openSinceMs: beganMs, token: 3n, remainingMs: DEADLINE_MS });
  clock.advance(DEADLINE_MS);
  expect(cell).toMatchObject({ openSinceMs: undefined, remainingMs: 0 });
  clock.advance(1_000);
  renew(4);
  expect(cell).toMatchObject({ openSinceMs: clock.monotonicMs(), token: 4n, remainingMs: DEADLINE_MS });
});
