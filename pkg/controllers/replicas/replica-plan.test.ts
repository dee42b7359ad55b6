import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import {
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';
import { machine, type BuiltMachine } from '../../../test/builders.ts';
import { isMarkedForDeletion, planReplicas, type ReplicaFacts, type ReplicaPlan } from './replica-plan.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const PAST = '2026-01-01T12:00:00Z';

const named = (name: string, phase: MachinePhase | '' = 'Running', change?: (m: BuiltMachine) => void): BuiltMachine =>
  machine((m) => {
    m.metadata.name = name;
    m.status.currentStatus.phase = phase;
    change?.(m);
  });
const being = (name: string, change?: (m: BuiltMachine) => void): BuiltMachine =>
  named(name, 'Running', (m) => {
    m.metadata.deletionTimestamp = PAST;
    change?.(m);
  });
const marked = (name: string, time: string, priority = '1'): BuiltMachine =>
  named(name, 'Running', (m) => {
    m.metadata.annotations[PRIORITY_ANNOTATION] = priority;
    m.metadata.annotations[MARKED_FOR_DELETION_TIME_ANNOTATION] = time;
  });
const updated = (name: string, phase: MachinePhase = 'Running'): BuiltMachine =>
  named(name, phase, (m) => {
    m.metadata.labels[UPDATE_RESULT_LABEL] = 'successful';
  });

function plan(facts: Partial<ReplicaFacts> & Pick<ReplicaFacts, 'desired' | 'machines'>): ReplicaPlan {
  return planReplicas({
    isFrozen: false,
    isReplaced: false,
    isScaleUpDisabled: false,
    room: Infinity,
    isCrowded: false,
    scalerChangedAtMs: undefined,
    isSwinging: false,
    nowMs: NOW,
    isKept: () => false,
    ...facts,
  });
}

const victimsOf = ({ victims }: ReplicaPlan): string[] =>
  victims.map(({ machine: m, reason }) => `${m.metadata.name} ${reason}`);

describe('a set whose size swings', () => {
  const withVM = (m: BuiltMachine, providerID = `sim:///${m.metadata.name}`): BuiltMachine => {
    m.spec.providerID = providerID;
    return m;
  };
  const priority = (value: string) => (m: BuiltMachine) => {
    m.metadata.annotations[PRIORITY_ANNOTATION] = value;
  };

  test.each([
    { title: 'keeps what runs', target: withVM(named('a')), kept: 1 },
    { title: 'keeps what is joining', target: withVM(named('a', 'Pending')), kept: 1 },
    { title: 'keeps what has the usual priority', target: withVM(named('a', 'Running', priority('3'))), kept: 1 },
    { title: 'cancels what has no VM yet', target: withVM(named('a', ''), ''), kept: 0 },
    { title: 'gives up what is Unknown', target: withVM(named('a', 'Unknown')), kept: 0 },
    { title: 'gives up what has failed', target: withVM(named('a', 'Failed')), kept: 0 },
    { title: 'gives up what somebody chose', target: withVM(named('a', 'Running', priority('1'))), kept: 0 },
    { title: 'gives up what an autoscaler marked', target: withVM(marked('a', PAST)), kept: 0 },
    { title: 'gives up what was marked alone', target: withVM(marked('a', PAST, '3')), kept: 0 },
  ])('$title', ({ target, kept }) => {
    const got = plan({ desired: 0, machines: [target], isSwinging: true });

    expect([got.victims.length, got.kept]).toEqual([1 - kept, kept]);
    expect(plan({ desired: 0, machines: [target] }).victims).toHaveLength(1);
  });

  test('lets go of what an autoscaler has named, at the time of its change', () => {
    const machines = [withVM(marked('a', PAST)), withVM(named('b')), withVM(named('c'))];

    expect(victimsOf(plan({ desired: 1, machines, isSwinging: true, scalerChangedAtMs: NOW }))).toEqual(['a marked']);
    expect(victimsOf(plan({ desired: 3, machines, isSwinging: true, scalerChangedAtMs: NOW }))).toEqual(['a marked']);
  });
});

describe('a set below its size', () => {
  test.each([
    { title: 'creates what is missing', machines: [named('a')], create: 2 },
    { title: 'does not count machines on their way out', machines: [named('a'), being('b')], create: 2 },
    { title: 'does not count the phase Terminating', machines: [named('a'), named('b', 'Terminating')], create: 2 },
    { title: 'counts failed machines, which wait until it is full', machines: [named('a', 'Failed')], create: 2 },
  ])('$title', ({ machines, create }) => {
    expect(plan({ desired: 3, machines })).toEqual({ create, victims: [], heldBack: undefined, kept: 0 });
  });

  test('creates and deletes nothing while frozen', () => {
    expect(plan({ desired: 3, machines: [named('a', 'Failed')], isFrozen: true })).toEqual({
      create: 0,
      victims: [],
      heldBack: 'frozen',
      kept: 0,
    });
  });

  test.each([
    { title: 'it is frozen', held: { isFrozen: true } },
    { title: 'scaling up is disabled', held: { isScaleUpDisabled: true } },
    { title: 'there is no room while others are going', held: { room: 0 } },
  ])('gives up what the autoscaler marked, and nothing else, although $title', ({ held }) => {
    const machines = [marked('a', PAST), named('b', 'Failed'), named('c')];

    expect(victimsOf(plan({ desired: 4, machines, scalerChangedAtMs: NOW, ...held }))).toEqual(['a marked']);
  });

  test('gives up what has failed, too, while as many live as may, but nothing that is kept or was just updated', () => {
    const machines = [
      marked('a', PAST),
      named('b', 'Failed'),
      named('c'),
      named('d', 'Failed'),
      updated('e', 'Failed'),
    ];
    const isKept = (m: Machine): boolean => m.metadata.name === 'd';

    const got = plan({ desired: 6, machines, scalerChangedAtMs: NOW, room: 0, isCrowded: true, isKept });

    expect([victimsOf(got), got.heldBack]).toEqual([['a marked', 'b failed'], 'no-room']);
  });

  test('fills up first, when it may, before it gives up what the autoscaler marked', () => {
    expect(plan({ desired: 2, machines: [marked('a', PAST)], scalerChangedAtMs: NOW })).toMatchObject({
      create: 1,
      victims: [],
    });
  });

  test('creates nothing while scaling up is disabled', () => {
    expect(plan({ desired: 1, machines: [], isScaleUpDisabled: true }).heldBack).toBe('scale-up-disabled');
  });
});

describe('a set of its size', () => {
  // promise: openstack/maintenance/none-made-place-failed
  test('deletes failed machines, whose replacement follows once they are going', () => {
    expect(victimsOf(plan({ desired: 2, machines: [named('a'), named('b', 'Failed')] }))).toEqual(['b failed']);
    expect(plan({ desired: 2, machines: [named('a'), being('b')] }).create).toBe(1);
  });

  test('keeps failed machines that are preserved', () => {
    const got = plan({ desired: 1, machines: [named('a', 'Failed')], isKept: () => true });

    expect(got).toEqual({ create: 0, victims: [], heldBack: undefined, kept: 0 });
  });

  describe('that shrinks while the preservation of a failed one is about to begin', () => {
    const failing = (name: string): BuiltMachine =>
      named(name, 'Failed', (m) => void (m.metadata.annotations[PRESERVE_ANNOTATION] = 'when-failed'));

    test.each([
      { title: 'gives up a healthy one', machines: [failing('a'), named('b'), named('c')], victims: ['b surplus'] },
      { title: 'gives up failed ones all the same', machines: ['a', 'b', 'c'].map(failing), victims: ['a surplus'] },
      {
        title: 'gives up no healthy one where its Node says otherwise',
        machines: [failing('a'), named('b'), named('c')],
        isKept: () => false,
        victims: ['a surplus'],
      },
    ])('$title', ({ machines, victims, isKept = (): boolean => true }) => {
      expect(victimsOf(plan({ desired: 2, machines, isKept }))).toEqual(victims);
    });
  });

  test('deletes failed machines also while frozen', () => {
    expect(victimsOf(plan({ desired: 1, machines: [named('a', 'Failed')], isFrozen: true }))).toEqual(['a failed']);
  });

  test.each([
    { title: 'marked before the scaler changed the replicas', target: marked('a', PAST), gone: true },
    { title: 'marked after it', target: marked('a', '2026-01-01T13:00:01Z'), gone: false },
    { title: 'of another priority', target: marked('a', PAST, '2'), gone: false },
    { title: 'with a priority that is 1 only as a number', target: marked('a', PAST, '+1'), gone: false },
    { title: 'without a mark', target: named('a'), gone: false },
  ])('a machine $title goes: $gone', ({ target, gone }) => {
    const scalerChangedAtMs = Date.parse('2026-01-01T13:00:00Z');

    expect(victimsOf(plan({ desired: 1, machines: [target], scalerChangedAtMs }))).toEqual(gone ? ['a marked'] : []);
  });
});

describe('a set above its size', () => {
  // promise: deletions-aborted/lowering-replicas-deletes-exactly
  test('deletes exactly the machine whose deletion is prepared, and creates none in its place', () => {
    const prepared = named(
      'm-2',
      'Running',
      (m) => void (m.metadata.annotations[PREPARE_DELETION_ANNOTATION] = 'true'),
    );
    const machines = [named('m-1', 'Pending'), prepared, named('m-3')];

    const three = plan({ desired: 3, machines });
    expect([three.create, victimsOf(three)]).toEqual([0, []]);
    const two = plan({ desired: 2, machines });
    expect([two.create, victimsOf(two)]).toEqual([0, ['m-2 surplus']]);
    const swinging = plan({ desired: 2, machines, isSwinging: true });
    expect(victimsOf(swinging)).toEqual(['m-2 surplus']);
  });

  test('deletes the surplus by rank, and each machine once', () => {
    const machines = [named('a'), named('b', 'Failed'), marked('c', PAST), named('d')];

    const got = plan({ desired: 2, machines, scalerChangedAtMs: NOW });

    expect(victimsOf(got)).toEqual(['c marked', 'b surplus']);
  });

  test('never deletes what an in-place update has just handed over', () => {
    const machines = [updated('a', 'Failed'), updated('b'), named('c')];

    expect(victimsOf(plan({ desired: 0, machines }))).toEqual(['c surplus']);
  });
});

describe('over any history', () => {
  const event = fc.oneof(
    fc.record({ do: fc.constant('scale' as const), to: fc.integer({ min: 0, max: 8 }) }),
    fc.record({ do: fc.constant('fail' as const), which: fc.nat(7) }),
    fc.record({ do: fc.constant('run' as const), which: fc.nat(7) }),
    fc.record({ do: fc.constant('gone' as const), which: fc.nat(7) }),
    fc.record({ do: fc.constant('freeze' as const), on: fc.boolean() }),
    // A pass that dies after a few of its writes.
    fc.record({ do: fc.constant('pass' as const), writes: fc.integer({ min: 0, max: 8 }) }),
  );

  test('no more machines live than are wanted, nothing is deleted twice, and it converges', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60, size: 'max' }), (events) => {
        const world = new Model();
        for (const e of events) world.apply(e);
        world.isFrozen = false;
        for (let i = 0; i < 4; i++) world.pass(Infinity);

        expect(world.living()).toHaveLength(world.desired);
        expect(world.living().filter((m) => m.status.currentStatus.phase === 'Failed')).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  type Event = typeof event extends fc.Arbitrary<infer E> ? E : never;

  /** The API server and the machine controller, as far as a set sees them. */
  class Model {
    desired = 0;
    isFrozen = false;
    readonly #deleted = new Set<string>();
    #machines: BuiltMachine[] = [];
    #next = 0;

    living(): BuiltMachine[] {
      return this.#machines.filter((m) => m.metadata.deletionTimestamp === undefined);
    }

    apply(e: Event): void {
      const living = this.living();
      switch (e.do) {
        case 'scale':
          this.desired = e.to;
          return;
        case 'freeze':
          this.isFrozen = e.on;
          return;
        case 'fail':
        case 'run': {
          const m = living[e.which];
          if (m !== undefined) m.status.currentStatus.phase = e.do === 'fail' ? 'Failed' : 'Running';
          return;
        }
        case 'gone': {
          const going = this.#machines.filter((m) => m.metadata.deletionTimestamp !== undefined)[e.which];
          this.#machines = this.#machines.filter((m) => m !== going);
          return;
        }
        case 'pass':
          this.pass(e.writes);
      }
    }

    pass(writes: number): void {
      const before = this.living().length;
      const { create, victims } = plan({ desired: this.desired, machines: this.#machines, isFrozen: this.isFrozen });
      must(create === 0 || victims.length === 0, 'either create or delete');
      must(before + create <= Math.max(before, this.desired), 'not more than wanted');

      for (const { machine: victim } of victims.slice(0, writes)) {
        must(!this.#deleted.has(victim.metadata.name), 'not deleted twice');
        this.#deleted.add(victim.metadata.name);
        victim.metadata.deletionTimestamp = PAST;
      }
      for (let i = 0; i < Math.min(create, writes); i++) this.#machines.push(named(`m-${this.#next++}`, 'Pending'));
    }
  }
});

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`violated: ${what}`);
}

test.each([
  { what: 'before the change', time: PAST, changedAtMs: NOW, want: true },
  { what: 'at the change', time: PAST, changedAtMs: Date.parse(PAST), want: true },
  { what: 'after the change', time: PAST, changedAtMs: Date.parse(PAST) - 1, want: false },
  { what: 'where no autoscaler changed anything', time: PAST, changedAtMs: undefined, want: false },
  { what: 'with another priority', time: PAST, priority: '2', changedAtMs: NOW, want: false },
  { what: 'at a time that nobody can read', time: 'soon', changedAtMs: NOW, want: false },
])('a mark of the autoscaler $what counts: $want', ({ time, priority, changedAtMs, want }) => {
  expect(isMarkedForDeletion(marked('a', time, priority), changedAtMs)).toBe(want);
});
