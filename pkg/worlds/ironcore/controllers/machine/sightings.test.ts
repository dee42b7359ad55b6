import { describe, expect, test } from '@jest/globals';

import { runtimeMachine } from '../../../../../test/fakes/runtime-machine.ts';
import { MachineState } from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { UID_LABEL } from './keys.ts';
import { listRuntimeMachines, Sightings } from './sightings.ts';

const { signal } = new AbortController();
const there = (id: string, uid = 'u'): RuntimeMachine => runtimeMachine({ id, labels: { [UID_LABEL]: uid } });
const going = (id: string, uid = 'u'): RuntimeMachine => {
  const machine = there(id, uid);
  return { ...machine, metadata: { ...machine.metadata, deletedAt: 1n } };
};
const terminating = (id: string): RuntimeMachine => {
  const machine = there(id);
  return { ...machine, status: { ...machine.status, state: MachineState.MACHINE_TERMINATING } };
};

describe('that a machine is gone is vouched for by', () => {
  test.each([
    { what: 'the connection that has shown it', machines: [there('a')], now: 1, id: true, uid: true },
    { what: 'no other connection', machines: [there('a')], now: 2, id: false, uid: false },
    {
      what: 'nobody who does not know by which connection',
      machines: [there('a')],
      now: undefined,
      id: false,
      uid: false,
    },
    { what: 'that it was going', machines: [going('a')], now: 2, id: true, uid: true },
    { what: 'no guest that was shutting down', machines: [terminating('a')], now: 2, id: false, uid: false },
    { what: 'all machines of its Machine only', machines: [going('a'), there('b')], now: 2, id: true, uid: false },
    { what: 'no other machine', machines: [there('b', 'v')], now: 1, id: false, uid: false },
  ])('$what', ({ machines, now, id, uid }) => {
    const sightings = new Sightings();

    sightings.saw('p', { machines, connection: 1 });

    expect([sightings.vouchesFor('p', { id: 'a' }, now), sightings.vouchesFor('p', { uid: 'u' }, now)]).toEqual([
      id,
      uid,
    ]);
    expect(sightings.vouchesFor('q', { id: 'a' }, now)).toBe(false);
  });

  test('whoever told it to go, also when it is still there at first', () => {
    const sightings = new Sightings();
    sightings.saw('p', { machines: [there('a')], connection: 1 });

    sightings.deletionSent('p', 'a', 'u');
    sightings.saw('p', { machines: [there('a')], connection: 1 });

    expect(sightings.vouchesFor('p', { id: 'a' }, 2)).toBe(true);
    sightings.forget('p');
    expect(sightings.vouchesFor('p', { id: 'a' }, 2)).toBe(false);
  });
});

describe('the runtime has kept its state since a machine was made', () => {
  const madeAt = (id: string, createdAt: bigint): RuntimeMachine => {
    const machine = there(id);
    return { ...machine, metadata: { ...machine.metadata, createdAt } };
  };
  const a = madeAt('a', 10n);
  const older = madeAt('b', 10n);
  const younger = madeAt('b', 11n);

  test.each([
    { what: 'shows a younger one that was beside it', before: [a, younger], after: [younger], keeps: true },
    { what: 'shows one that is as old', before: [a, older], after: [older], keeps: false },
    { what: 'shows a younger one that nobody saw beside it', before: [a], after: [younger], keeps: false },
    { what: 'shows nothing', before: [a, younger], after: [], keeps: false },
    { what: 'does not say how old it is', before: [madeAt('a', 0n), younger], after: [younger], keeps: false },
    { what: 'has never shown it', before: [younger], after: [younger], keeps: false },
  ])('$keeps, when it $what', ({ before, after, keeps }) => {
    const sightings = new Sightings();
    sightings.saw('p', { machines: before, connection: 1 });

    sightings.saw('p', { machines: after, connection: 2 });

    expect(sightings.remembers('p', 'a', 2)).toBe(keeps);
    expect(sightings.remembers('q', 'a', 2)).toBe(false);
    expect(sightings.remembers('p', 'a', undefined)).toBe(false);
    expect(sightings.remembers('p', 'a', 3)).toBe(false);
  });

  test('not because of one that was made since', () => {
    const sightings = new Sightings();
    sightings.saw('p', { machines: [a], connection: 1 });

    sightings.saw('p', { machines: [younger], connection: 2 });
    sightings.saw('p', { machines: [younger], connection: 3 });

    expect(sightings.remembers('p', 'a', 3)).toBe(false);
  });
});

test('a connection that was lost during a look is none', async () => {
  let connection = 0;
  const runtime = {
    version: async () => ({ name: 'iri', version: '1', connection: connection++ }),
    machines: async () => [],
  };

  expect((await listRuntimeMachines(runtime, {}, signal)).connection).toBeUndefined();
});
