import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { CreationBrake, describeStop, isSpent, SETS_A_MINUTE } from './creation-brake.ts';

const clock = (): FakeClock => new FakeClock();

function create(brake: CreationBrake, count: number): void {
  for (let i = 0; i < count; i++) brake.createdMachine('d');
}

describe('what one owner may create within a minute', () => {
  test('is three times what may exist, and twenty', () => {
    const brake = new CreationBrake({ clock: clock() });
    brake.observe('d', 2, 3);
    create(brake, 28);

    expect([brake.room('d'), isSpent(brake.spending('d'))]).toEqual([1, false]);
    create(brake, 1);
    expect([brake.room('d'), isSpent(brake.spending('d'))]).toEqual([0, true]);
    expect(brake.room('another')).toBe(Infinity);
  });

  test('is free again a minute later, or when somebody released it', () => {
    const time = clock();
    const brake = new CreationBrake({ clock: time });
    brake.observe('d', 2, 3);
    create(brake, 29);
    time.advance(59_000);
    expect(brake.room('d')).toBe(0);
    time.advance(1_000);
    expect(brake.room('d')).toBe(29);

    create(brake, 29);
    brake.forget('d');
    brake.observe('d', 2, 3);
    expect(brake.room('d')).toBe(29);
  });

  test('keeps what was allowed when it was created, although less is asked for now', () => {
    const brake = new CreationBrake({ clock: clock() });
    brake.observe('d', 500, 550);
    create(brake, 500);
    brake.observe('d', 5, 6);

    expect(isSpent(brake.spending('d'))).toBe(false);
  });

  test('is as much more as was asked for: replicas that go up and down are followed', () => {
    const brake = new CreationBrake({ clock: clock() });
    for (let i = 0; i < 10; i++) {
      brake.observe('d', 0, 0);
      brake.observe('d', 10, 10);
      create(brake, 10);
    }

    expect(isSpent(brake.spending('d'))).toBe(false);
  });

  test('is ten MachineSets', () => {
    const brake = new CreationBrake({ clock: clock() });
    brake.observe('d', 2, 3);
    for (let i = 1; i < SETS_A_MINUTE; i++) brake.createdSet('d');
    expect(isSpent(brake.spending('d'))).toBe(false);
    brake.createdSet('d');

    const spending = brake.spending('d');
    expect(isSpent(spending)).toBe(true);
    expect(describeStop('MachineDeployment d', spending)).toContain(
      'has created 10 MachineSets within a minute (limit: 10)',
    );
  });

  test.each([
    { what: 'Machines', create: (brake: CreationBrake) => create(brake, 29) },
    {
      what: 'MachineSets',
      create: (brake: CreationBrake) => {
        for (let i = 0; i < SETS_A_MINUTE; i++) brake.createdSet('d');
      },
    },
  ])('counts $what whose owner was forgotten before the answer came', (row) => {
    const brake = new CreationBrake({ clock: clock() });
    brake.observe('d', 2, 3);
    brake.observe('another', 2, 3); // owners that have created nothing make room for it

    row.create(brake);
    expect([brake.room('d'), isSpent(brake.spending('d'))]).toEqual([Infinity, false]);
    brake.observe('d', 2, 3);
    expect(isSpent(brake.spending('d'))).toBe(true);
  });

  test('never stops who only follows the replicas, however they change', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ to: fc.nat(500), afterMs: fc.nat(5_000) })), (steps) => {
        const time = clock();
        const brake = new CreationBrake({ clock: time });
        let machines = 0;
        for (const { to, afterMs } of steps) {
          brake.observe('d', to, to);
          expect(brake.room('d')).toBeGreaterThanOrEqual(to - machines);
          create(brake, Math.max(0, to - machines));
          machines = to;
          expect(isSpent(brake.spending('d'))).toBe(false);
          time.advance(afterMs);
        }
      }),
    );
  });
});
