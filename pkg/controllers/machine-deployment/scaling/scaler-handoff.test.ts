import { describe, expect, test } from '@jest/globals';

import {
  LAST_SCALER_CHANGE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PRIORITY_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { machine, machineDeployment, machineSet, type BuiltMachine } from '../../../../test/builders.ts';
import { DeploymentWorld, passOver } from '../../../../test/fakes/replicas-world.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { handoff } from './handoff.ts';
import {
  MARKS_A_PASS,
  marksDue,
  missingScalerMarks,
  readHandoff,
  scalerTimeFor,
  strayMarks,
  unacknowledged,
} from './scaler-handoff.ts';

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
  named('kept', (m) => Object.assign(m.status.currentStatus, { phase: 'Failed', preserveExpiryTime: T2 })),
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
  {
    title: 'has bare names and a time that is none',
    list: 'a',
    scaler: 'garbage 1',
    choices: [`a ${T2}`],
    left: { list: `a~${T2}`, scaler: T2 },
  },
  {
    title: 'names a machine more than once',
    list: `a~${T1},b~${T1},a~${T2}`,
    choices: [`a ${T1}`, `b ${T1}`],
    left: { list: `a~${T1},b~${T1}` },
  },
  { title: 'names a stranger', list: `x~${T1},a~${T1}`, choices: [`a ${T1}`], left: { list: `a~${T1}` } },
  { title: 'names what goes or is preserved', list: `going~${T1},kept~${T1}`, choices: [], left: { list: null } },
  { title: 'names what has failed', list: `failed~${T1}`, choices: [`failed ${T1}`], left: undefined },
  { title: 'has times that are none', list: 'a~soon', choices: [], left: { list: null } },
  {
    title: 'has times that only Date.parse takes for some',
    list: 'a~garbage 1,b~2026',
    choices: [],
    left: { list: null },
  },
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

const setThatKnows = (time: string | undefined): ReturnType<typeof machineSet> =>
  machineSet((s) => {
    s.metadata.uid = 'set';
    if (time !== undefined) s.metadata.annotations[LAST_SCALER_CHANGE_ANNOTATION] = time;
  });
const chosen = (priority: string | undefined, mark: string | undefined, owner = 'set'): Machine =>
  machine((m) => {
    m.metadata.ownerReferences = [{ apiVersion: 'v1', kind: 'MachineSet', name: 's', uid: owner, controller: true }];
    if (priority !== undefined) m.metadata.annotations[PRIORITY_ANNOTATION] = priority;
    if (mark !== undefined) m.metadata.annotations[MARKED_FOR_DELETION_TIME_ANNOTATION] = mark;
  });

const going = (of: Machine): Machine => ({ ...of, metadata: { ...of.metadata, deletionTimestamp: T1 } });

describe('the marks of a machine chosen at T2', () => {
  const T0 = '2026-01-01T00:00:00Z';
  const T3 = '2026-01-01T00:00:03Z';

  test.each([
    { title: 'are both written', of: chosen('3', undefined), knows: undefined, priority: '1', mark: T2 },
    { title: 'are there', of: chosen('1', T2), knows: undefined, priority: undefined, mark: undefined },
    { title: 'of an old fork get their time', of: chosen('1', undefined), knows: T1, priority: undefined, mark: T2 },
    {
      title: 'that a joining Node undid get their priority back',
      of: chosen('3', T2),
      knows: T2,
      priority: '1',
      mark: undefined,
    },
    { title: 'that were left over are renewed', of: chosen('3', T0), knows: T1, priority: '1', mark: T2 },
    {
      title: 'move behind a change of the same second',
      of: chosen('3', undefined),
      knows: T2,
      priority: '1',
      mark: T3,
    },
    { title: 'that moved behind it stay there', of: chosen('1', T3), knows: T2, priority: undefined, mark: undefined },
  ])('$title', ({ of, knows, priority, mark }) => {
    expect(missingScalerMarks({ machine: of, time: T2 }, setThatKnows(knows))).toEqual({
      ...(priority === undefined ? {} : { [PRIORITY_ANNOTATION]: priority }),
      ...(mark === undefined ? {} : { [MARKED_FOR_DELETION_TIME_ANNOTATION]: mark }),
    });
  });

  test.each([
    { title: 'chosen no more and its set was not told', of: chosen('1', T2), knows: T1, is: 1 },
    { title: 'chosen no more, and its set knows of no change at all', of: chosen('1', T2), knows: undefined, is: 1 },
    { title: 'still chosen', of: chosen('1', T2), knows: T1, isChosen: true, is: 0 },
    { title: 'going by order of its set', of: chosen('1', T2), knows: T2, is: 0 },
    { title: 'preferred by a person or an old fork', of: chosen('1', undefined), knows: T1, is: 0 },
    { title: 'of another priority by now', of: chosen('3', T2), knows: T1, is: 0 },
    { title: 'of another owner', of: chosen('1', T2, 'other'), knows: T1, is: 0 },
    { title: 'on its way out', of: going(chosen('1', T2)), knows: T1, is: 0 },
  ])('are taken back from a machine that is $title: $is', ({ of, knows, isChosen = false, is }) => {
    const choices = isChosen ? [{ machine: of, time: T2 }] : [];

    expect(strayMarks([of], choices, [setThatKnows(knows)])).toHaveLength(is);
  });

  test('are written for so many in one pass, and no set shrinks before the rest has them', () => {
    const all = (count: number, mark: string | undefined): { machine: Machine; time: string }[] =>
      Array.from({ length: count }, () => ({ machine: chosen('1', mark), time: T2 }));

    const many = marksDue([...all(7, T2), ...all(MARKS_A_PASS + 1, undefined)], [setThatKnows(undefined)]);
    const few = marksDue([...all(7, T2), ...all(MARKS_A_PASS, undefined)], [setThatKnows(undefined)]);

    expect([many.marks.length, many.isAll]).toEqual([500, false]);
    expect([few.marks.length, few.isAll]).toEqual([500, true]);
  });

  test.each([
    { title: 'nothing', of: chosen('1', T2), knows: undefined, is: 1 },
    { title: 'an earlier change', of: chosen('1', T2), knows: T1, is: 1 },
    { title: 'this very change', of: chosen('1', T2), knows: T2, is: 0 },
    { title: 'nothing, but another set has the machine', of: chosen('1', T2, 'other'), knows: undefined, is: 0 },
    { title: 'nothing, but the machine is not marked yet', of: chosen('3', undefined), knows: undefined, is: 0 },
  ])('make it news to a set that knows $title: $is', ({ of, knows, is }) => {
    expect(unacknowledged(setThatKnows(knows), [{ machine: of, time: T2 }])).toHaveLength(is);
  });

  test.each([
    { knows: undefined, change: T1, mark: T2, told: T2 },
    { knows: T3, change: T1, mark: T2, told: T3 },
    { knows: undefined, change: undefined, mark: T2, told: T2 },
    { knows: T0, change: T3, mark: T2, told: T3 },
  ])('a set that knows $knows is told $told of change $change', ({ knows, change, mark, told }) => {
    const deployment = machineDeployment((d) => {
      if (change !== undefined) d.metadata.annotations[LAST_SCALER_CHANGE_ANNOTATION] = change;
    });

    expect(scalerTimeFor(deployment, setThatKnows(knows), [{ machine: chosen('1', mark), time: T2 }])).toBe(told);
  });
});

describe('taking the list over', () => {
  const set = setThatKnows(T1);
  const take = async (client: MemoryClient, list: string | undefined, machines: readonly Machine[]) => {
    const annotations = list === undefined ? {} : { [TRIGGER_DELETION_ANNOTATION]: list };
    const deployment = machineDeployment((d) => void (d.metadata.annotations = annotations));
    const deps = new DeploymentWorld(deployment);
    const observed = { ...deps.observed(deployment), sets: [set], machinesOf: () => machines };
    const pass = { ...passOver(deployment), observed };
    return await handoff({ writer: client, clock: deps.clock }).run(pass);
  };
  const one = (name: string, of: Machine): Machine => ({ ...of, metadata: { ...of.metadata, name } });

  test('takes marks back of the very version that was looked at, before it writes others', async () => {
    const client = new MemoryClient();

    await take(client, `b~${T2}`, [one('a', chosen('1', T2)), one('b', chosen('3', undefined))]);

    expect(client.writes).toMatchObject([
      {
        what: 'machines/a',
        resourceVersion: '1',
        body: {
          metadata: { annotations: { [PRIORITY_ANNOTATION]: '3', [MARKED_FOR_DELETION_TIME_ANNOTATION]: null } },
        },
      },
      { what: 'machines/b', body: { metadata: { annotations: { [PRIORITY_ANNOTATION]: '1' } } } },
    ]);
  });

  test.each([
    { title: 'marked', list: `a~${T2}`, of: chosen('3', undefined) },
    { title: 'unmarked', list: undefined, of: chosen('1', T2) },
  ])('a machine that is gone when it is to be $title is none', async ({ list, of }) => {
    const client = new MemoryClient();
    client.failures.push(new ApiError(404, 'NotFound', 'gone'));

    expect(await take(client, list, [one('a', of)])).toEqual({ kind: 'next' });
  });

  test.each([
    { title: 'marked', list: `a~${T2}`, of: chosen('3', undefined) },
    { title: 'unmarked', list: undefined, of: chosen('1', T2) },
  ])('a machine that cannot be $title keeps its set from shrinking', async ({ list, of }) => {
    const client = new MemoryClient();
    const failure = new ApiError(403, 'Forbidden', 'no');
    client.failures.push(failure);

    await expect(take(client, list, [one('a', of)])).rejects.toBe(failure);
  });

  test('a list of bare names that no machine has leaves no time behind', async () => {
    const client = new MemoryClient();

    await take(client, 'x,y', []);

    expect(client.writes.map(({ body }) => body)).toEqual([
      { metadata: { annotations: { [TRIGGER_DELETION_ANNOTATION]: null } } },
    ]);
  });
});
