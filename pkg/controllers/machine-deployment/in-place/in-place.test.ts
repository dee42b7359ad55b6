import { describe, expect, test } from '@jest/globals';

import {
  CANDIDATE_FOR_UPDATE_LABEL,
  DELETION_PREPARATION_SINCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_RESULT_LABEL,
  UPDATED_FOR_SET_ANNOTATION,
  UPGRADE_INDEX_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import type { Node } from '../../../apis/wire.ts';
import { machine, node } from '../../../../test/builders.ts';
import {
  isNeedlessCandidate,
  isToBeReleased,
  isUpdated,
  settledSizes,
  sizeInPlace,
  toMove,
  toSelect,
  withNodes,
} from './in-place.ts';
import type { NodeOfMachine } from '../node-marks/node-marker.ts';
import { EMPTY_SET, type SetFacts } from '../sets/set-facts.ts';

interface Made {
  readonly name?: string;
  readonly phase?: MachinePhase;
  readonly reason?: string;
  readonly labels?: Record<string, string>;
  /** What its Node was updated to, and the set of its Machine then. */
  readonly updatedFor?: string;
  readonly isMoved?: boolean;
  readonly index?: string;
  /** Failed and preserved; by its update when that is its last operation. */
  readonly kept?: 'Create' | 'InPlaceUpdate';
  readonly isMaintained?: boolean;
  /** Its Node is deleted, and kept by the finalizer. */
  readonly isNodeDeleted?: boolean;
  readonly isNeverReplaced?: boolean;
  readonly preparation?: 'asked' | 'undone';
}

const CANDIDATE = { [CANDIDATE_FOR_UPDATE_LABEL]: 'true' };
const SELECTED = { ...CANDIDATE, [SELECTED_FOR_UPDATE_LABEL]: 'true' };
const UPDATED = { ...SELECTED, [UPDATE_RESULT_LABEL]: 'successful' };

function made({
  name = 'm',
  phase = 'Running',
  reason,
  labels = CANDIDATE,
  updatedFor,
  isMoved = false,
  index,
  kept,
  isMaintained = false,
  isNodeDeleted = false,
  isNeverReplaced = false,
  preparation,
}: Made): NodeOfMachine {
  const conditions = reason === undefined ? [] : [{ type: 'InPlaceUpdate', status: 'True' as const, reason }];
  return {
    machine: machine((m) => {
      m.metadata.name = name;
      if (isNeverReplaced) m.spec.disableHealthTimeout = true;
      m.status.currentStatus.phase = phase;
      m.status.conditions = conditions;
      if (kept !== undefined) {
        m.status.currentStatus = { phase: 'Failed', preserveExpiryTime: '2026-01-02T00:00:00Z' };
        m.status.lastOperation = { type: kept, state: 'Failed' };
      }
      if (index !== undefined) m.metadata.annotations[UPGRADE_INDEX_ANNOTATION] = index;
      if (isMaintained) m.metadata.annotations = { 'machine.sapcloud.io/maintenance': 'true' };
      if (preparation === 'asked') m.metadata.annotations[PREPARE_DELETION_ANNOTATION] = 'true';
      if (preparation === 'undone') m.metadata.annotations[DELETION_PREPARATION_SINCE_ANNOTATION] = '';
      if (isMoved) m.metadata.labels[UPDATE_RESULT_LABEL] = 'successful';
    }),
    node: node((n) => {
      n.metadata.name = name;
      n.metadata.labels = labels;
      if (updatedFor !== undefined) n.metadata.annotations[UPDATED_FOR_SET_ANNOTATION] = updatedFor;
      if (isNodeDeleted) n.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      n.status.conditions = conditions;
    }),
  };
}

const facts = (name: string, size: number, more: Partial<SetFacts> = {}): SetFacts => ({
  ...EMPTY_SET,
  name,
  size,
  existing: size,
  available: size,
  ...more,
});
const names = (list: readonly NodeOfMachine[]): string[] => list.map(({ machine: m }) => m.metadata.name);
const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const limits = { replicas: 5, surge: 0, unavailable: 2 };

test.each([
  { title: 'has succeeded and is well', of: { labels: UPDATED, reason: 'UpdateSuccessful' }, is: true },
  {
    title: 'has succeeded, which the machine does not show yet',
    of: { labels: UPDATED, reason: 'ReadyForUpdate' },
    is: false,
  },
  { title: 'was successful the time before', of: { labels: CANDIDATE, reason: 'UpdateSuccessful' }, is: false },
  {
    title: 'is still on',
    of: { labels: UPDATED, reason: 'UpdateSuccessful', phase: 'InPlaceUpdating' as const },
    is: false,
  },
])('a machine whose update $title is ready to move: $is', ({ of, is }) => {
  expect(isUpdated(made(of))).toBe(is);
});

test('the Node of a moved machine is given back, one that was only chosen to wait is let go, others stay', () => {
  const done = made({ labels: UPDATED, reason: 'UpdateSuccessful' });
  const waiting = made({ labels: CANDIDATE });
  const underway = made({ labels: SELECTED });

  expect([done, waiting, underway].map(isToBeReleased)).toEqual([true, false, false]);
  expect([done, waiting, underway].map((one) => isNeedlessCandidate(one, 'now'))).toEqual([false, true, false]);
});

describe('sizes that follow from where the machines are', () => {
  test.each([
    { title: 'nothing was moved', now: 2, moved: 0, fresh: 2, old: [3, 3], sizes: {} },
    {
      title: 'a machine was moved, nothing written',
      now: 2,
      moved: 1,
      fresh: 2,
      old: [3, 2],
      sizes: { new: 3, old: 2 },
    },
    { title: 'the new set counts it already', now: 3, moved: 1, fresh: 2, old: [3, 2], sizes: { old: 2 } },
    { title: 'machines of the old set were lost', now: 2, moved: 0, fresh: 2, old: [3, 1], sizes: { old: 1 } },
    { title: 'the new set has other surplus too', now: 1, moved: 1, fresh: 2, old: [3, 3], sizes: { new: 2 } },
  ])('$title', ({ now, moved, fresh, old: [size = 0, left = 0], sizes }) => {
    const newMachines = [
      ...Array.from({ length: moved }, () => made({ isMoved: true })),
      ...Array.from({ length: fresh }, () => made({})),
    ];
    const newSet = { facts: facts('new', now), machines: newMachines };
    const oldSet = { facts: facts('old', size), machines: Array.from({ length: left }, () => made({})) };

    expect(Object.fromEntries(settledSizes(newSet, [oldSet], () => false))).toEqual(sizes);
  });
});

test.each([
  { title: 'stays while the old sets make up the rest', now: 2, old: 3, size: 2 },
  { title: 'fills what old sets have lost', now: 2, old: 2, size: 3 },
  { title: 'takes all when nothing is old', now: 2, old: 0, size: 5 },
  { title: 'shrinks to the replicas', now: 7, old: 0, size: 5 },
  { title: 'stays with surge', now: 2, old: 5, size: 2 },
  { title: 'makes the surge when it was not made for this update', now: 0, old: 5, surge: 2, size: 2 },
  { title: 'makes it again when an update has failed', now: 1, old: 4, surge: 1, size: 2 },
  { title: 'has it no more than once', now: 2, old: 4, surge: 1, size: 2 },
  { title: 'has it no longer than there is an old one', now: 3, old: 0, surge: 1, size: 5 },
  { title: 'waits with it for machines that are going', now: 0, old: 5, existing: 6, surge: 1, size: 0 },
])('the new set $title', ({ now, old, existing = old, surge = 0, size }) => {
  expect(sizeInPlace(facts('new', now), [facts('old', old, { existing })], { ...limits, surge })).toBe(size);
});

test('machines move oldest set first, and no more than the new set has place for', () => {
  const updated = (name: string): NodeOfMachine => made({ name, labels: UPDATED, reason: 'UpdateSuccessful' });
  const older = { facts: facts('a', 2, { createdMs: 1 }), machines: [updated('z'), made({ name: 'y' })] };
  const newer = { facts: facts('b', 2, { createdMs: 2 }), machines: [updated('c'), updated('b')] };

  expect(names(toMove([newer, older], facts('new', 1), limits))).toEqual(['z', 'b', 'c']);
  expect(names(toMove([newer, older], facts('new', 4), limits))).toEqual(['z']);
  expect(names(toMove([newer, older], facts('new', 5), limits))).toEqual([]);
});

describe('choosing Nodes', () => {
  const old = (of: Made[], its: Partial<SetFacts>): Parameters<typeof toSelect>[0] => [
    { facts: facts('old', of.length, its), machines: of.map((one, i) => made({ name: `m-${i}`, ...one })) },
  ];

  interface Row {
    readonly title: string;
    readonly of: Made[];
    /** Of the old set; by default it has what it should. */
    readonly its?: Partial<SetFacts>;
    readonly now?: Partial<SetFacts>;
    /** Machines of the new set. */
    readonly moved?: Made[];
    readonly leftAlone?: string;
    readonly unavailable?: number;
    readonly chosen: string[];
  }

  // promise: maintenance/update-place-select
  // promise: order-updates/update-place-takes-order
  test.each<Row>([
    { title: 'as many as may be unavailable', of: [{}, {}, {}, {}, {}], chosen: ['m-0', 'm-1'] },
    {
      title: 'those with the smallest upgrade index first, and those without one last',
      of: [{}, { index: '3' }, { index: '1' }, { index: 'x' }, {}],
      chosen: ['m-2', 'm-1'],
    },
    {
      title: 'no more while the old set has still to delete what is beyond its size',
      of: Array.from({ length: 9 }, () => ({})),
      its: { size: 5 },
      unavailable: 1,
      chosen: ['m-0'],
    },
    {
      title: 'one less for each that an autoscaler has named, and that goes without being surplus',
      of: [{}, {}, {}, {}, {}],
      its: { missing: 1 },
      chosen: ['m-0'],
    },
    { title: 'none without leave', of: [{}, {}, {}, {}, {}], unavailable: 0, chosen: [] },
    { title: 'fewer while others are under way', of: [{ labels: SELECTED }, {}, {}, {}, {}], chosen: ['m-1'] },
    {
      title: 'none more when enough are under way, drained or not',
      of: [{ labels: SELECTED }, { labels: SELECTED, phase: 'InPlaceUpdating' }, {}, {}, {}],
      chosen: [],
    },
    {
      title: 'no more than the new set lacks, those under way included',
      of: [{ labels: SELECTED }, {}, {}, {}],
      now: { size: 3, available: 3 },
      unavailable: 5,
      chosen: ['m-1'],
    },
    {
      title: 'no available one when others are unavailable anyway',
      of: [{ phase: 'Unknown' }, { phase: 'Unknown' }, {}, {}, {}],
      chosen: [],
    },
    {
      title: 'available ones first',
      of: [{ phase: 'Unknown' }, {}, {}, {}, {}],
      unavailable: 3,
      chosen: ['m-1', 'm-2'],
    },
    {
      title: 'none of those in maintenance, which count as unavailable',
      of: [{ isMaintained: true }, {}, {}, {}, {}],
      chosen: ['m-1'],
    },
    {
      title: 'none of those in maintenance, however many may be unavailable',
      of: [{ isMaintained: true }, {}],
      now: { size: 3, available: 3 },
      unavailable: 5,
      chosen: ['m-1'],
    },
    {
      title: 'none of those whose deletion is prepared, or whose Node is given back after that',
      of: [{ preparation: 'asked' }, { preparation: 'undone' }, {}, {}, {}],
      chosen: ['m-2', 'm-3'],
    },
    { title: 'candidates only', of: [{ labels: {} }, {}, {}, {}, {}], chosen: ['m-1', 'm-2'] },
    {
      title: 'no more than the new set lacks',
      of: [{}, {}, {}, {}, {}],
      now: { size: 4, available: 4 },
      chosen: ['m-0'],
    },
    {
      title: 'none before new machines are available',
      of: [{}, {}, {}, {}, {}],
      now: { size: 1, available: 0 },
      unavailable: 0,
      chosen: [],
    },
    {
      title: 'one in place of a failed one that is preserved',
      of: [{ kept: 'Create' }, {}, {}, {}, {}],
      now: { size: 1, available: 1 },
      unavailable: 0,
      chosen: ['m-1'],
    },
    {
      title: 'none while one that failed in its update is preserved',
      of: [{ labels: SELECTED, kept: 'InPlaceUpdate' }, {}, {}, {}, {}],
      unavailable: 1,
      chosen: [],
    },
    {
      title: 'none while one that says that its update failed is preserved',
      of: [{ labels: { ...CANDIDATE, [UPDATE_RESULT_LABEL]: 'failed' }, kept: 'Create' }, {}, {}, {}, {}],
      unavailable: 1,
      chosen: [],
    },
    {
      title: 'none while one that failed in its update is preserved, without the labels of that',
      of: [{ kept: 'InPlaceUpdate' }, {}, {}, {}, {}],
      unavailable: 1,
      chosen: [],
    },
    {
      title: 'none in place of new machines that failed and are preserved',
      of: [{}, {}, {}, {}, {}],
      now: { size: 1, available: 0, preservedFailed: 1 },
      unavailable: 0,
      chosen: [],
    },
    {
      title: 'one for each new machine that is',
      of: [{}, {}, {}, {}, {}],
      now: { size: 1, available: 1 },
      unavailable: 0,
      chosen: ['m-0'],
    },
    {
      title: 'the next when one refused a moment ago',
      of: [{}, {}, {}, {}, {}],
      unavailable: 1,
      leftAlone: 'm-0',
      chosen: ['m-1'],
    },
    {
      title: 'none while the Node of an updated one is not given back',
      of: [{}, {}, {}, {}],
      now: { size: 1, available: 1 },
      moved: [{ labels: UPDATED, reason: 'UpdateSuccessful' }],
      unavailable: 1,
      chosen: [],
    },
    {
      title: 'none while one that a rollback has found chosen is drained',
      of: [{}, {}, {}, {}],
      now: { size: 1, available: 1 },
      moved: [{ labels: SELECTED, reason: 'SelectedForUpdate' }],
      unavailable: 1,
      chosen: [],
    },
    {
      title: 'those of the new set that were updated to another template, which has a place for no other',
      of: [{}],
      now: { size: 5, available: 5 },
      moved: [
        { name: 'n-0', updatedFor: 'before of new' },
        { name: 'n-1', updatedFor: 'before of old' },
        { name: 'n-2', updatedFor: 'before of new', labels: {} },
        { name: 'n-3', updatedFor: 'before of new' },
        { name: 'n-4' },
      ],
      chosen: ['n-0', 'n-3'],
    },
    {
      title: 'both together, no more than may be unavailable, by their upgrade index',
      of: [{}, { index: '2' }],
      now: { size: 3, available: 3 },
      moved: [
        { name: 'n-0', updatedFor: 'before of new', index: '3' },
        { name: 'n-1', updatedFor: 'before of new', index: '1' },
      ],
      chosen: ['n-1', 'm-1'],
    },
    {
      title: 'the next while a person has selected one of the new set that is no candidate, which has no effect',
      of: [{}, {}, {}, {}],
      now: { size: 1, available: 1 },
      moved: [{ labels: { [SELECTED_FOR_UPDATE_LABEL]: 'true' } }],
      unavailable: 1,
      chosen: ['m-0'],
    },
    {
      title: 'those whose Nodes stay, also if nobody replaces the others',
      of: [{ isNodeDeleted: true }, {}, { isNodeDeleted: true, isNeverReplaced: true }, {}],
      now: { size: 1, available: 1 },
      chosen: ['m-1', 'm-3'],
    },
    {
      title: 'the next once the Node of an updated one was given back',
      of: [{}, {}, {}, {}],
      now: { size: 1, available: 1 },
      moved: [{ labels: {}, reason: 'UpdateSuccessful' }],
      unavailable: 1,
      chosen: ['m-0'],
    },
  ])('takes $title', ({ of, its = {}, now = {}, moved = [], leftAlone, unavailable = 2, chosen }) => {
    const newSet = { facts: facts('new', 0, now), machines: moved.map(made) };
    const isLeftAlone = ({ metadata }: Node): boolean => metadata.name === leftAlone;

    expect(
      names(toSelect(old(of, its), newSet, { replicas: 5, surge: 0, unavailable }, { nowMs: NOW_MS, isLeftAlone })),
    ).toEqual(chosen);
  });
});

test('a Machine on its way out takes no part in an update', () => {
  const going = machine((m) => void (m.metadata.deletionTimestamp = 'now'));

  expect(withNodes([going, machine()], () => undefined)).toHaveLength(1);
});
