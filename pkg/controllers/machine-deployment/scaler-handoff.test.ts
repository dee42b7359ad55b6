import { expect, test } from '@jest/globals';

import { LAST_SCALER_CHANGE_ANNOTATION, TRIGGER_DELETION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { machine, machineDeployment } from '../../../test/builders.ts';
import type { BuiltMachine } from '../../../test/builders.ts';
import { readHandoff } from './scaler-handoff.ts';

const T1 = '2026-01-01T00:00:01Z';
const T2 = '2026-01-01T00:00:02Z';
const NOW = Date.parse(T2);

const named = (name: string, change?: (m: BuiltMachine) => void): [string, Machine] => [
  name,
  machine((m) => {
    m.metadata.name = name;
    change?.(m);
  }),
];
const owned = new Map([
  named('a'),
  named('b'),
  named('failed', (m) => (m.status.currentStatus.phase = 'Failed')),
  named('going', (m) => (m.metadata.deletionTimestamp = T1)),
]);

test.each([
  { title: 'is absent', list: undefined, choices: [], left: undefined },
  { title: 'is in order', list: `a~${T1},b~${T2}`, choices: [`a ${T1}`, `b ${T2}`], left: undefined },
  {
    title: 'has bare names',
    list: 'a,b',
    scaler: T1,
    choices: [`a ${T1}`, `b ${T1}`],
    left: { list: `a~${T1},b~${T1}` },
  },
  {
    title: 'has bare names without a time',
    list: 'a',
    choices: [`a ${T2}`],
    left: { list: `a~${T2}`, scaler: T2 },
  },
  { title: 'names a stranger', list: `x~${T1},a~${T1}`, choices: [`a ${T1}`], left: { list: `a~${T1}` } },
  { title: 'names what goes or has failed', list: `going~${T1},failed~${T1}`, choices: [], left: { list: null } },
  { title: 'has times that are none', list: 'a~soon', choices: [], left: { list: null } },
  {
    title: 'has entries of another shape',
    list: `a~${T1}~x,~${T1},,b~${T1}`,
    choices: [`b ${T1}`],
    left: { list: `b~${T1}` },
  },
  { title: 'is empty', list: '', choices: [], left: { list: null } },
])('a list that $title marks $choices', ({ list, scaler, choices, left }) => {
  const deployment = machineDeployment((d) => {
    if (list !== undefined) d.metadata.annotations[TRIGGER_DELETION_ANNOTATION] = list;
    if (scaler !== undefined) d.metadata.annotations[LAST_SCALER_CHANGE_ANNOTATION] = scaler;
  });

  const got = readHandoff(deployment, owned, NOW);

  expect(got.choices.map(({ machine: m, time }) => `${m.metadata.name} ${time}`)).toEqual(choices);
  expect(got.annotations).toEqual(
    left === undefined
      ? {}
      : {
          [TRIGGER_DELETION_ANNOTATION]: left.list,
          ...(left.scaler === undefined ? {} : { [LAST_SCALER_CHANGE_ANNOTATION]: left.scaler }),
        },
  );
});
