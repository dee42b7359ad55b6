import { expect, test } from '@jest/globals';

import { CANDIDATE_FOR_SET_ANNOTATION, PREFER_NO_SCHEDULE_KEY } from '../../../apis/machine/v1alpha1/labels.ts';
import { node } from '../../../../test/builders.ts';
import { missingNodeMarks } from './rollout-node-marks.ts';

const HELD = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const CANDIDATE = 'node.machine.sapcloud.io/candidate-for-update';
const SELECTED = 'node.machine.sapcloud.io/selected-for-update';
const RESULT = 'node.machine.sapcloud.io/update-result';
const HELD_BY_US = 'cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm';

test.each([
  { title: 'gets the taint', annotations: [], marks: { taint: true }, want: { taint: true } },
  { title: 'has the taint', annotations: [], tainted: true, marks: { taint: true }, want: undefined },
  { title: 'loses the taint', annotations: [], tainted: true, marks: { taint: false }, want: { taint: false } },
  { title: 'is held', annotations: [], marks: { holdScaleDown: true }, want: { holdScaleDown: true } },
  { title: 'is held by a user', annotations: [HELD], marks: { holdScaleDown: true }, want: undefined },
  { title: 'is held by us', annotations: [HELD, HELD_BY_US], marks: { holdScaleDown: true }, want: undefined },
  {
    title: 'is let go',
    annotations: [HELD, HELD_BY_US],
    marks: { holdScaleDown: false },
    want: { holdScaleDown: false },
  },
  { title: 'stays held by a user', annotations: [HELD], marks: { holdScaleDown: false }, want: undefined },
  {
    title: 'stays held while its machine is preserved',
    annotations: [HELD, HELD_BY_US],
    preserved: true,
    marks: { holdScaleDown: false },
    want: undefined,
  },
  { title: 'needs nothing', annotations: [], marks: {}, want: undefined },
  {
    title: 'loses the label of a candidate with the taint',
    annotations: [],
    tainted: true,
    labels: [CANDIDATE],
    marks: { taint: false },
    want: { taint: false, candidate: false },
  },
  {
    title: 'was made a candidate by a person',
    annotations: [],
    labels: [CANDIDATE],
    marks: { taint: false },
    want: undefined,
  },
  {
    title: 'is updated in place, and keeps the taint until that is over',
    annotations: [],
    tainted: true,
    labels: [CANDIDATE, SELECTED],
    marks: { taint: false },
    want: undefined,
  },
  {
    title: 'is updated in place, and keeps the taint also without its selection',
    annotations: [],
    tainted: true,
    labels: [CANDIDATE, RESULT],
    reason: 'UpdateSuccessful',
    marks: { taint: false },
    want: undefined,
  },
  {
    title: 'is updated in place, and gets the taint',
    annotations: [],
    labels: [CANDIDATE, SELECTED],
    marks: { taint: true },
    want: { taint: true },
  },
  { title: 'is no candidate yet', annotations: [], marks: { candidate: 'now' }, want: { candidate: 'now' } },
  {
    title: 'is a candidate of the original',
    annotations: [],
    labels: [CANDIDATE],
    marks: { candidate: 'now' },
    want: { candidate: 'now' },
  },
  {
    title: 'is a candidate for a template of before',
    annotations: [],
    noted: 'before',
    labels: [CANDIDATE],
    marks: { candidate: 'now' },
    want: { candidate: 'now' },
  },
  {
    title: 'is a candidate for this template',
    annotations: [],
    noted: 'now',
    labels: [CANDIDATE],
    marks: { candidate: 'now' },
    want: undefined,
  },
  {
    title: 'is updated to a template of before',
    annotations: [],
    noted: 'before',
    labels: [CANDIDATE, SELECTED],
    reason: 'ReadyForUpdate',
    marks: { candidate: 'now' },
    want: undefined,
  },
  {
    title: 'was drained for a template of before',
    annotations: [],
    noted: 'before',
    labels: [CANDIDATE, SELECTED],
    reason: 'DrainSuccessful',
    marks: { candidate: 'now' },
    want: undefined,
  },
  {
    title: 'is drained for a template of before',
    annotations: [],
    noted: 'before',
    labels: [CANDIDATE, SELECTED],
    reason: 'SelectedForUpdate',
    marks: { candidate: 'now' },
    want: { candidate: 'now' },
  },
  {
    title: 'is drained for a person',
    annotations: [],
    labels: [CANDIDATE, SELECTED],
    reason: 'SelectedForUpdate',
    marks: { candidate: 'now' },
    want: undefined,
  },
  {
    title: 'was updated to a template of before',
    annotations: [],
    noted: 'before',
    labels: [CANDIDATE, RESULT],
    marks: { candidate: 'now' },
    want: undefined,
  },
  {
    title: 'has lost the label of a candidate while it is updated to a template of before',
    annotations: [],
    noted: 'before',
    labels: [SELECTED],
    reason: 'ReadyForUpdate',
    marks: { candidate: 'now' },
    want: { candidate: 'before' },
  },
])(
  'a node that $title is written: $want',
  ({ annotations, noted, tainted, labels, reason, preserved, marks, want }) => {
    const n = node((built) => {
      for (const label of labels ?? []) built.metadata.labels[label] = 'true';
      for (const key of annotations) built.metadata.annotations[key] = 'true';
      if (noted !== undefined) built.metadata.annotations[CANDIDATE_FOR_SET_ANNOTATION] = noted;
      if (reason !== undefined) built.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason }];
      if (tainted) built.spec.taints = [{ key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' }];
    });

    expect(missingNodeMarks(n, marks, preserved ?? false)).toEqual(want);
  },
);
