import { expect, test } from '@jest/globals';

import { machine, machineSet, node, type BuiltMachine } from '../../../test/builders.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { Recoveries } from './recoveries.ts';

const SET = machineSet();
/** Of a Node that is healthy for who does not watch that last one. */
const HEALTHY = [...node().status.conditions, { type: 'Tainted', status: 'True' }];
const failed = (change?: (m: BuiltMachine) => void): BuiltMachine =>
  machine((m) => {
    m.status.currentStatus.phase = 'Failed';
    m.status.conditions = [...HEALTHY];
    change?.(m);
  });
const running = failed((m) => void (m.status.currentStatus.phase = 'Running'));

test.each([
  { what: 'its set is looked at', forget: (them: Recoveries) => them.keepOnly(SET, [failed()]), isExpected: false },
  { what: 'it is Running', forget: (them: Recoveries) => them.keepOnly(SET, [running]), isExpected: true },
  { what: 'it is gone', forget: (them: Recoveries) => them.keepOnly(SET, []), isExpected: true },
  { what: 'its set is gone', forget: (them: Recoveries) => them.forget(SET.metadata.uid), isExpected: true },
])('after $what, a recovery is still expected a minute later: $isExpected', ({ forget, isExpected }) => {
  const clock = new FakeClock();
  const recoveries = new Recoveries({ clock });
  expect(recoveries.isExpected(SET, failed(), HEALTHY)).toBe(true);

  forget(recoveries);
  clock.advance(60_000);

  expect(recoveries.isExpected(SET, failed(), HEALTHY)).toBe(isExpected);
});

test('a recovery is expected until the status shows each condition of the Node, and no other', () => {
  const clock = new FakeClock();
  const recoveries = new Recoveries({ clock });
  const more = [...HEALTHY, { type: 'DiskPressure', status: 'False' }];
  const one = failed((m) => void (m.status.conditions = more.toReversed()));
  recoveries.isExpected(SET, one, more);
  clock.advance(60_000);

  expect(recoveries.isExpected(SET, one, HEALTHY)).toBe(true);
  expect(recoveries.isExpected(SET, failed(), more)).toBe(true);
  expect(recoveries.isExpected(SET, one, more)).toBe(false);
});

test('a recovery is expected for ever where no other node conditions could find anything bad', () => {
  const clock = new FakeClock();
  const recoveries = new Recoveries({ clock });
  const conditions = [...node().status.conditions, { type: 'DiskPressure', status: 'False' }];
  const one = failed((m) => void (m.status.conditions = conditions));
  recoveries.isExpected(SET, one, conditions);
  clock.advance(60_000);

  expect(recoveries.isExpected(SET, one, conditions)).toBe(true);
});
