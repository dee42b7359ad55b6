import { expect, test } from '@jest/globals';

import { machineDeployment, type BuiltMachineDeployment } from '../../../test/builders.ts';
import { TRIGGER_DELETION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { writeOutcomeOf } from './write.ts';

const base = machineDeployment(({ metadata, spec }) => {
  Object.assign(metadata, { resourceVersion: '7', generation: 3 });
  spec.replicas = 2;
});

test.each<{ title: string; now: (d: BuiltMachineDeployment) => void; entries?: string[]; want: string }>([
  { title: 'nothing has changed', now: () => undefined, want: 'open' },
  {
    title: 'the status has changed',
    now: ({ metadata }) => void (metadata.resourceVersion = '8'),
    want: 'missed',
  },
  {
    title: 'it has the size that was asked for',
    now: ({ metadata, spec }) => {
      Object.assign(metadata, { resourceVersion: '8', generation: 4 });
      spec.replicas = 4;
    },
    want: 'done',
  },
  {
    title: 'it has another size',
    now: ({ metadata, spec }) => {
      Object.assign(metadata, { resourceVersion: '8', generation: 4 });
      spec.replicas = 5;
    },
    want: 'unknown',
  },
  {
    title: 'it was changed twice, to the size that was asked for',
    now: ({ metadata, spec }) => {
      Object.assign(metadata, { resourceVersion: '9', generation: 5 });
      spec.replicas = 4;
    },
    want: 'unknown',
  },
  {
    title: 'it lists one of two names',
    now: ({ metadata }) => {
      Object.assign(metadata, { resourceVersion: '9', generation: 5 });
      metadata.annotations[TRIGGER_DELETION_ANNOTATION] = 'x,a~t';
    },
    entries: ['a~t', 'b~t'],
    want: 'unknown',
  },
  {
    title: 'it lists both names',
    now: ({ metadata }) => {
      Object.assign(metadata, { resourceVersion: '9', generation: 5 });
      metadata.annotations[TRIGGER_DELETION_ANNOTATION] = 'b~t,a~t';
    },
    entries: ['a~t', 'b~t'],
    want: 'done',
  },
  {
    title: 'it is another one of the same name',
    now: ({ metadata }) => void (metadata.uid = 'another'),
    want: 'unknown',
  },
])('a write to 4 whose answer did not come, when $title, is $want', ({ now, entries = [], want }) => {
  const changed = structuredClone(base);
  now(changed);

  expect(writeOutcomeOf({ base, replicas: 4, entries }, changed)).toBe(want);
});
