import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import { callOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { toTimestamp } from '../../base/clock/clock.ts';
import { Tenure } from './tenure.ts';

const ANSWER_MS = 120_000;
const SECOND = 1_000;

/** Ages in seconds; undefined: it is not being deleted. */
function machineOf(clock: FakeClock, age: number, deletedAgo: number | undefined): Machine {
  return machine((m) => {
    m.metadata.creationTimestamp = toTimestamp(clock.now() - age * SECOND);
    if (deletedAgo !== undefined) m.metadata.deletionTimestamp = toTimestamp(clock.now() - deletedAgo * SECOND);
  });
}

describe('what another process has asked for', () => {
  test.each([
    { what: 'of one older than our time', age: 300, deletedAgo: 20, left: 100 },
    { what: 'of one older than our time, long deleted', age: 300, deletedAgo: 121, left: 0 },
    { what: 'of one that is not being deleted', age: 300, deletedAgo: undefined, left: 0 },
    { what: 'of one made in our time', age: 50, deletedAgo: 20, left: 0 },
    { what: 'of one made when it began, by clocks that may differ', age: 57, deletedAgo: 20, left: 100 },
    { what: 'with a clock that was set back', age: 300, deletedAgo: -900, left: 120 },
  ])('may appear for $left s: $what', ({ age, deletedAgo, left }) => {
    const clock = new FakeClock();
    const tenure = new Tenure(clock);
    tenure.saw(machine(), callOf());
    clock.advance(60 * SECOND);

    expect(tenure.leftMs(machineOf(clock, age, deletedAgo), callOf(), ANSWER_MS)).toBe(left * SECOND);
  });

  test('may appear for a machine made in the time of the leader before', () => {
    const clock = new FakeClock();
    const tenure = new Tenure(clock);
    const next = callOf({ fencingToken: 2n });
    tenure.saw(machine(), callOf({ fencingToken: 1n }));
    clock.advance(60 * SECOND);
    tenure.saw(machine(), next);
    tenure.saw(machine(), next);

    expect(tenure.leftMs(machineOf(clock, 30, 0), next, ANSWER_MS)).toBe(ANSWER_MS);
    expect(tenure.leftMs(machineOf(clock, -30, 0), next, ANSWER_MS)).toBe(0);
  });

  test('is not waited for where nothing says when the deletion began, as for what a forced removal has left', () => {
    const tenure = new Tenure(new FakeClock());
    const stub = { metadata: { name: 'm-1', namespace: 'shoot', uid: 'u' }, spec: {} };

    expect(tenure.leftMs(stub, callOf(), ANSWER_MS)).toBe(0);
  });
});
