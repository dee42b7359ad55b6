import { describe, expect, test } from '@jest/globals';

import type { BlockedPod } from './drain.ts';
import { blockOf, describeProgress, isBlocked, mainHold, mainWait, blockReasonOf } from './progress-text.ts';

const of = (pod: string, reason: BlockedPod['reason'], detail = ''): BlockedPod => ({ pod, reason, detail });

describe('what a drain waits for, in words', () => {
  test.each([
    { what: 'nothing is known of the pods yet', pods: 2, blocked: [], says: 'Waiting for 2 pods.' },
    {
      what: 'a budget that allows one at a time',
      pods: 2,
      blocked: [of('a/ending', 'ending', '2026-01-01T00:00:30Z'), of('a/next', 'disruption-budget', 'web')],
      says: 'Waiting for 2 pods: a/next (PodDisruptionBudget web currently allows no eviction); a/ending (terminating until 2026-01-01T00:00:30Z).',
    },
    {
      what: 'a budget that allows none',
      pods: 1,
      blocked: [of('a/b', 'misconfigured-disruption-budget', 'a/zero')],
      says: 'Waiting for 1 pod: a/b (pod disruption budget a/zero is misconfigured and requires zero voluntary evictions: correct it).',
    },
    {
      what: 'a pod that a finalizer holds',
      pods: 1,
      blocked: [of('a/b', 'terminating', 'held by finalizer x')],
      says: 'Waiting for 1 pod: a/b (not terminating: held by finalizer x).',
    },
    {
      what: 'volumes of a pod that is still there',
      pods: 2,
      blocked: [of('a/1', 'ending', 'soon'), of('a/1', 'volume-detach', 'pv-1'), of('a/2', 'turn')],
      says: 'Waiting for 2 pods: a/1 (volume pv-1 is still attached here); a/2 (waiting for its turn: pods with volumes are evicted one at a time).',
    },
    {
      what: 'volumes alone',
      pods: 0,
      blocked: [of('a/1', 'volume-reattach', 'pv-1')],
      says: 'Waiting for volumes of deleted pods: a/1 (waiting for volume pv-1 to be attached to another node).',
    },
    {
      what: 'rules and labels that hold pods back',
      pods: 3,
      blocked: [of('a/1', 'order', 'MachineDrainRule late'), of('a/2', 'order'), of('a/3', 'completion', 'label x')],
      says: 'Waiting for 3 pods: a/3 (not evicted; waiting for it to complete, required by label x); a/1 (waiting for other pods to leave first, required by MachineDrainRule late); a/2 (waiting for other pods to leave first).',
    },
    {
      what: 'more pods than anybody reads',
      pods: 9,
      blocked: [1, 2, 3, 4, 5, 6, 7].map((i) => of(`a/${i}`, 'error', 'no answer')),
      says: 'Waiting for 9 pods: a/1, a/2, a/3, a/4, a/5 (no answer); and 4 more.',
    },
  ])('$what', ({ pods, blocked, says }) => {
    expect(describeProgress({ remainingPods: pods, blocked })).toBe(says);
  });

  test('says when those that are left are deleted', () => {
    const text = describeProgress({ remainingPods: 1, blocked: [] }, Date.parse('2026-01-01T02:00:00Z'));

    expect(text).toBe('Waiting for 1 pod. Remaining pods are deleted at 2026-01-01T02:00:00Z.');
  });
});

describe('what holds a drain up, whose pod it ever is', () => {
  test.each([
    { blocked: [of('a/1', 'ending', 'soon'), of('a/2', 'order', 'x'), of('a/3', 'turn')], hold: undefined },
    { blocked: [], hold: undefined },
    {
      blocked: [of('a/1', 'ending', 'soon'), of('a/2', 'disruption-budget', 'web')],
      hold: 'PodDisruptionBudget web currently allows no eviction',
    },
    { blocked: [of('a/1', 'volume-detach', 'pv-1'), of('a/2', 'completion', 'x')], hold: undefined },
    { blocked: [of('a/1', 'volume-reattach', 'pv-1')], hold: undefined },
    // What the condition does not say would be told with each look.
    { blocked: [of('a/1', 'completion', 'x'), of('a/2', 'turn')], hold: undefined },
  ])('is $hold', ({ blocked, hold }) => {
    const progress = { remainingPods: blocked.length, blocked };

    expect(mainHold(progress)).toBe(hold);
    expect(mainWait(progress) ?? '').toContain(hold ?? '');
  });
});

describe('the reason of a wait', () => {
  test.each([
    { blocked: [], reason: '', held: false },
    { blocked: [of('a', 'ending', 'soon'), of('b', 'turn')], reason: '', held: false },
    {
      blocked: [of('a', 'disruption-budget', 'x'), of('b', 'disruption-budget', 'x')],
      reason: 'disruption-budget x',
      held: true,
    },
    { blocked: [of('a', 'volume-detach', 'pv-1')], reason: 'volume-detach', held: false },
    { blocked: [of('a', 'terminating', 'long'), of('b', 'error', 'x')], reason: 'error, terminating', held: true },
  ])('of $blocked is "$reason"', ({ blocked, reason, held }) => {
    const progress = { remainingPods: blocked.length, blocked };

    expect(blockReasonOf(progress)).toBe(reason);
    expect(isBlocked(progress)).toBe(held);
  });
});

test('of several things that hold a drain up, the one that is told first counts', () => {
  const blocked = [of('a', 'turn'), of('b', 'error', 'x'), of('c', 'disruption-budget', 'y')];

  expect(blockOf({ remainingPods: 3, blocked })).toBe('disruption-budget');
});
