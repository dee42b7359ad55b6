import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import {
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
  UPGRADE_INDEX_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';
import { machine, type BuiltMachine } from '../../../test/builders.ts';
import { firstVictim, isDeletedBefore, inVictimOrder, rolloutVictimCriteria } from './victim-order.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const SOON = '2026-01-02T01:00:00Z';
const LATER = '2026-01-02T02:00:00Z';
const PAST = '2026-01-01T12:00:00Z';

const named = (name: string, change: (m: BuiltMachine) => void = () => undefined): BuiltMachine =>
  machine((m) => {
    m.metadata.name = name;
    change(m);
  });
const annotated =
  (key: string, value: string) =>
  (m: BuiltMachine): void => {
    m.metadata.annotations[key] = value;
  };
const preserved =
  (untilTime: string, value = 'now') =>
  (m: BuiltMachine): void => {
    m.status.currentStatus.preserveExpiryTime = untilTime;
    m.metadata.annotations[PRESERVE_ANNOTATION] = value;
  };
const phase =
  (value: MachinePhase | '') =>
  (m: BuiltMachine): void => {
    m.status.currentStatus.phase = value;
  };

const asking = (value: string): ((m: BuiltMachine) => void) => annotated(PRESERVE_ANNOTATION, value);
const failing = (value: string): ((m: BuiltMachine) => void) => both(phase('Failed'), asking(value));
const none = (): void => undefined;

// `b` is given up first although its name would put it last.
describe('of two machines goes first', () => {
  test.each([
    {
      rule: 'the one whose deletion is prepared',
      a: phase('Failed'),
      b: annotated(PREPARE_DELETION_ANNOTATION, 'true'),
    },
    {
      rule: 'the one whose deletion is prepared before one of a smaller priority',
      a: annotated(PRIORITY_ANNOTATION, '1'),
      b: annotated(PREPARE_DELETION_ANNOTATION, 'true'),
    },
    {
      rule: 'the smaller priority before one whose preparation was aborted',
      a: annotated(PREPARE_DELETION_ANNOTATION, 'false'),
      b: annotated(PRIORITY_ANNOTATION, '1'),
    },
    { rule: 'the one that is not preserved', a: preserved(SOON), b: annotated(PRIORITY_ANNOTATION, '9') },
    { rule: 'the one whose preservation is over', a: preserved(SOON), b: preserved(PAST) },
    {
      rule: 'a healthy one before one that has failed and is about to be preserved',
      a: failing('when-failed'),
      b: none,
    },
    { rule: 'the one that has failed, with nothing asked for', a: failing('when-failed'), b: failing('false') },
    { rule: 'the one that has failed and had its time', a: failing('now'), b: both(phase('Failed'), preserved(PAST)) },
    { rule: 'the one about to be preserved automatically', a: failing('now'), b: failing('auto-preserved') },
    { rule: 'the one preserved before one about to be', a: failing('now'), b: both(phase('Failed'), preserved(LATER)) },
    { rule: 'the smaller priority of two that run', a: asking('now'), b: annotated(PRIORITY_ANNOTATION, '2') },
    { rule: 'the one preserved automatically', a: preserved(SOON), b: preserved(LATER, 'auto-preserved') },
    { rule: 'the one preserved for a shorter time', a: preserved(LATER), b: preserved(SOON) },
    { rule: 'the smaller priority', a: phase('Failed'), b: annotated(PRIORITY_ANNOTATION, '1') },
    { rule: 'the default priority before a larger one', a: annotated(PRIORITY_ANNOTATION, '4'), b: phase('Running') },
    {
      rule: 'the default priority for one that is no number',
      a: annotated(PRIORITY_ANNOTATION, '4'),
      b: annotated(PRIORITY_ANNOTATION, '1.5'),
    },
    {
      rule: 'the default priority for one that no 64 bits hold',
      a: annotated(PRIORITY_ANNOTATION, '-9223372036854775809'),
      b: annotated(PRIORITY_ANNOTATION, '2'),
    },
    { rule: 'the negative priority', a: annotated(PRIORITY_ANNOTATION, '0'), b: annotated(PRIORITY_ANNOTATION, '-1') },
    { rule: 'the marked one', a: phase('Failed'), b: annotated(MARKED_FOR_DELETION_TIME_ANNOTATION, PAST) },
    {
      rule: 'the one marked earlier',
      a: annotated(MARKED_FOR_DELETION_TIME_ANNOTATION, SOON),
      b: annotated(MARKED_FOR_DELETION_TIME_ANNOTATION, PAST),
    },
    {
      rule: 'the marked one before one whose mark is no time',
      a: annotated(MARKED_FOR_DELETION_TIME_ANNOTATION, 'yes'),
      b: annotated(MARKED_FOR_DELETION_TIME_ANNOTATION, PAST),
    },
    { rule: 'Terminating before Failed', a: phase('Failed'), b: phase('Terminating') },
    { rule: 'Failed before CrashLoopBackOff', a: phase('CrashLoopBackOff'), b: phase('Failed') },
    { rule: 'CrashLoopBackOff before Unknown', a: phase('Unknown'), b: phase('CrashLoopBackOff') },
    { rule: 'Unknown before Pending', a: phase('Pending'), b: phase('Unknown') },
    { rule: 'Pending before Available', a: phase('Available'), b: phase('Pending') },
    { rule: 'Available before Running', a: phase('Running'), b: phase('Available') },
    { rule: 'no phase before Failed', a: phase('Failed'), b: phase('') },
    { rule: 'InPlaceUpdating before Failed, as in the original', a: phase('Failed'), b: phase('InPlaceUpdating') },
    {
      rule: 'the one with a deletionTimestamp, whatever its phase',
      a: phase('Failed'),
      b: (m: BuiltMachine): void => {
        m.metadata.deletionTimestamp = PAST;
      },
    },
    {
      rule: 'the older one',
      a: phase('Running'),
      b: (m: BuiltMachine): void => {
        m.metadata.creationTimestamp = '2025-12-31T00:00:00Z';
      },
    },
  ])('$rule', ({ a, b }) => {
    const order = inVictimOrder([named('a', a), named('b', b)], NOW);

    expect(order.map(({ metadata }) => metadata.name)).toEqual(['b', 'a']);
  });

  test('the first by name, when nothing else differs', () => {
    const order = inVictimOrder([named('b'), named('c'), named('a')], NOW);

    expect(order.map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c']);
  });
});

test('the order is total: it does not depend on the order of the cache', () => {
  const arbitrary = fc.record({
    phase: fc.constantFrom<MachinePhase | ''>('', 'Running', 'Failed', 'Pending', 'InPlaceUpdating'),
    priority: fc.constantFrom(undefined, '1', '3', 'x'),
    marked: fc.constantFrom(undefined, PAST, SOON),
    until: fc.constantFrom(undefined, PAST, SOON, LATER),
  });
  fc.assert(
    fc.property(fc.array(arbitrary, { maxLength: 12, size: 'max' }), fc.infiniteStream(fc.nat()), (specs, random) => {
      const machines = specs.map((spec, i) =>
        named(`m-${i}`, (m) => {
          m.status.currentStatus.phase = spec.phase;
          if (spec.priority !== undefined) m.metadata.annotations[PRIORITY_ANNOTATION] = spec.priority;
          if (spec.marked !== undefined) m.metadata.annotations[MARKED_FOR_DELETION_TIME_ANNOTATION] = spec.marked;
          if (spec.until !== undefined) m.status.currentStatus.preserveExpiryTime = spec.until;
        }),
      );
      const shuffled = machines
        .map((m) => ({ m, key: random.next().value }))
        .toSorted((a, b) => a.key - b.key)
        .map(({ m }) => m);

      const order = inVictimOrder(machines, NOW);
      expect(inVictimOrder(shuffled, NOW)).toEqual(order);
      expect(firstVictim(shuffled, NOW)).toBe(order[0]);
      for (const [at, m] of order.entries()) {
        const before = new Set(order.slice(0, at));
        expect(shuffled.filter(isDeletedBefore(m, NOW))).toEqual(shuffled.filter((one) => before.has(one)));
      }
    }),
  );
});

describe('of two machines of a set whose machines a rollout replaces goes first', () => {
  const index = (value: string): ((m: BuiltMachine) => void) => annotated(UPGRADE_INDEX_ANNOTATION, value);

  test.each([
    { rule: 'the smaller upgrade index, as a number', a: index('10'), b: index('9') },
    { rule: 'the one with an index', a: phase('Failed'), b: index('7') },
    { rule: 'the smaller priority, whatever its index', a: index('1'), b: annotated(PRIORITY_ANNOTATION, '1') },
    { rule: 'the worse phase, where an index means nothing', a: index('0'), b: phase('Failed') },
    { rule: 'the worse phase of two with the same index', a: index('2'), b: both(index('2'), phase('Pending')) },
  ])('$rule', ({ a, b }) => {
    const order = inVictimOrder([named('a', a), named('b', b)], NOW, rolloutVictimCriteria);

    expect(order.map(({ metadata }) => metadata.name)).toEqual(['b', 'a']);
  });

  test('nothing by upgrade index in any other set', () => {
    const order = inVictimOrder([named('a', index('2')), named('b', index('1'))], NOW);

    expect(order.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
  });
});

function both(...changes: ((m: BuiltMachine) => void)[]): (m: BuiltMachine) => void {
  return (m) => {
    for (const change of changes) change(m);
  };
}
