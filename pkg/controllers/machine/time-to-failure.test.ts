import { expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../test/durations.ts';
import { machine } from '../../../test/builders.ts';
import { newMachineWorld } from '../../../test/fakes/new-machine-world.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { toTimestamp } from '../../base/clock/clock.ts';

const FAILS_BY_HEALTH = { timeout: 'health', leftMs: 7 * MINUTE };
const FAILS_BY_CREATION = { timeout: 'creation', leftMs: 17 * MINUTE };

/** In the phase for three minutes. */
function inPhase(phase: NonNullable<NonNullable<Machine['status']>['currentStatus']>['phase'], nowMs: number): Machine {
  return machine((m) => {
    m.metadata.creationTimestamp = toTimestamp(nowMs - 3 * MINUTE);
    m.status.currentStatus = { phase: phase ?? '', lastUpdateTime: toTimestamp(nowMs - 3 * MINUTE) };
  });
}

test.each<{
  what: string;
  phase: Parameters<typeof inPhase>[0];
  change?: (one: Machine) => void;
  trustedMs?: number;
  want: object | undefined;
}>([
  { what: 'waits for its VM', phase: '', want: FAILS_BY_CREATION },
  { what: 'has no VM after a failure', phase: 'CrashLoopBackOff', want: FAILS_BY_CREATION },
  { what: 'waits for its Node', phase: 'Pending', want: FAILS_BY_CREATION },
  { what: 'is unhealthy', phase: 'Unknown', want: FAILS_BY_HEALTH },
  {
    what: 'is unhealthy, and was seen for a minute only',
    phase: 'Unknown',
    trustedMs: MINUTE,
    want: { timeout: 'health', leftMs: 9 * MINUTE },
  },
  { what: 'is unhealthy when nothing can be seen', phase: 'Unknown', trustedMs: 0, want: undefined },
  { what: 'is healthy', phase: 'Running', want: undefined },
  { what: 'has failed', phase: 'Failed', want: undefined },
  {
    what: 'is being deleted',
    phase: 'Pending',
    change: (m) => (m.metadata.deletionTimestamp = toTimestamp(0)),
    want: undefined,
  },
  {
    what: 'is unhealthy without a limit',
    phase: 'Unknown',
    change: (m) => (m.spec.disableHealthTimeout = true),
    want: undefined,
  },
  {
    what: 'is past its health timeout, and waits for others',
    phase: 'Unknown',
    change: (m) => (m.spec.healthTimeout = '2m'),
    want: undefined,
  },
  { what: 'has no members yet', phase: '', change: (m) => void delete m.status, want: FAILS_BY_CREATION },
])('when a machine that $what becomes Failed', ({ phase, change, trustedMs, want }) => {
  const world = newMachineWorld();
  world.clock.advance(10 * SECOND);
  const one = inPhase(phase, world.clock.now());
  change?.(one);
  if (trustedMs !== undefined) world.trustedForMs = () => trustedMs;

  expect(world.steps.timeToFailure(one, undefined)).toEqual(want);
});
