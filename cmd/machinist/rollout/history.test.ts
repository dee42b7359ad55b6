import { describe, expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../test/builders.ts';
import type { BuiltMachineSet } from '../../../test/builders.ts';
import { CHANGED_ON_CREATION_ANNOTATION, REVISION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import { historyTable, revisionDetails, revisionDiff, revisionsOf, undoOf } from './history.ts';

const pool = machineDeployment((d) => {
  d.metadata.name = 'pool';
  d.metadata.uid = 'pool-uid';
  d.spec.template.spec = { class: { kind: 'MachineClass', name: 'class-3' } };
});
const set = (
  revision: string,
  className: string,
  change: (s: BuiltMachineSet) => void = () => undefined,
): BuiltMachineSet =>
  machineSet((s) => {
    s.metadata.name = `pool-${revision}`;
    s.metadata.ownerReferences = [
      { apiVersion: 'v1', kind: 'MachineDeployment', name: 'pool', uid: 'pool-uid', controller: true },
    ];
    s.metadata.annotations[REVISION_ANNOTATION] = revision;
    s.spec.template.spec = { class: { kind: 'MachineClass', name: className } };
    change(s);
  });
const stranger = set('7', 'x', (s) => (s.metadata.ownerReferences = []));
const revisions = revisionsOf(pool, [
  set('10', 'class-3'),
  set('2', 'class-2', (s) => {
    s.metadata.annotations['kubernetes.io/change-cause'] = 'new image';
    s.status.replicas = 3;
  }),
  stranger,
  set('', 'class-0'),
  set('1', 'class-1'),
]);

test('revisions are those of its own sets, by number', () => {
  expect(revisions.map(({ number }) => number)).toEqual([1, 2, 10]);
});

test('the table shows them all with their causes', () => {
  const nowMs = Date.parse('2026-01-01T03:00:00Z');
  expect(historyTable('pool', revisions, nowMs)).toBe(
    [
      'machinedeployment.machine.sapcloud.io/pool',
      'REVISION  AGE  CLASS    MACHINES  CHANGE-CAUSE',
      '1         3h   class-1  1         <none>',
      '2         3h   class-2  3         new image',
      '10        3h   class-3  1         <none>',
      '',
    ].join('\n'),
  );
});

test('one revision is shown with its template', () => {
  const text = revisionDetails('pool', revisions, 2);

  expect(text).toContain(
    'machinedeployment.machine.sapcloud.io/pool with revision #2\nMachine Template:\n  metadata:\n',
  );
  expect(text).toContain('      name: class-2');
  expect(() => revisionDetails('pool', revisions, 3)).toThrow('unable to find the specified revision');
});

describe('the difference of a revision', () => {
  const labelled = set('4', 'class-3', (s) => {
    s.spec.template.metadata = { labels: { 'machine-template-hash': 'b', a: 'new' }, annotations: { b: '1' } };
    s.spec.template.spec = {
      ...s.spec.template.spec,
      nodeTemplate: { spec: { taints: [{ key: 'k', effect: 'NoExecute' }] } },
    };
  });
  const before = set('3', 'class-2', (s) => {
    s.spec.template.metadata = { labels: { 'machine-template-hash': 'a', a: 'old' } };
  });
  const all = revisionsOf(pool, [labelled, before]);

  test.each([
    { number: 0, what: 'the latest' },
    { number: 4, what: 'the named one' },
  ])('from the one before it has a line for each field: $what', ({ number }) => {
    expect(revisionDiff('pool', all, number)).toBe(
      [
        'machinedeployment.machine.sapcloud.io/pool revision #3 -> #4',
        '+ metadata.annotations.b: "1"',
        '- metadata.labels.a: "old"',
        '+ metadata.labels.a: "new"',
        '- spec.class.name: "class-2"',
        '+ spec.class.name: "class-3"',
        '+ spec.nodeTemplate.spec.taints[0].effect: "NoExecute"',
        '+ spec.nodeTemplate.spec.taints[0].key: "k"',
      ].join('\n'),
    );
  });

  test('that only its label sets apart is none', () => {
    const [older, newer] = ['a', 'b'].map((hash, i) =>
      set(String(i + 1), 'class-1', (s) => (s.spec.template.metadata = { labels: { 'machine-template-hash': hash } })),
    );

    expect(
      revisionDiff(
        'pool',
        revisionsOf(
          pool,
          [older, newer].filter((one) => one !== undefined),
        ),
        0,
      ),
    ).toContain('The templates are equal.');
  });

  test('is none of the oldest, nor of one that does not exist', () => {
    expect(() => revisionDiff('pool', all, 3)).toThrow('revision 3 is the oldest one');
    expect(() => revisionDiff('pool', all, 7)).toThrow('unable to find the specified revision');
    expect(() => revisionDiff('pool', [], 0)).toThrow('unable to find the specified revision');
  });
});

describe('an undo', () => {
  test.each([
    { wanted: 0, want: { kind: 'to', revision: 2 } },
    { wanted: 1, want: { kind: 'to', revision: 1 } },
    { wanted: 10, want: { kind: 'skip' } },
  ])('to revision $wanted comes to $want', ({ wanted, want }) => {
    expect(undoOf(pool, revisions, wanted)).toEqual(want);
  });

  test.each([
    { of: revisions.slice(0, 1), revision: 1 },
    { of: revisions.slice(0, 2), revision: 2 },
  ])('of a template that has no revision yet comes to the last one', ({ of, revision }) => {
    expect(undoOf(pool, of, 0)).toEqual({ kind: 'to', revision });
  });

  test('passes over a set that was changed on its creation, unless its revision is named', () => {
    const changed = set('9', 'by a webhook', (s) => {
      s.metadata.annotations[CHANGED_ON_CREATION_ANNOTATION] = 'true';
    });
    const of = [...revisions.slice(0, 2), ...revisionsOf(pool, [changed])];

    expect([0, 9].map((wanted) => undoOf(pool, of, wanted))).toEqual([
      { kind: 'to', revision: 2 },
      { kind: 'to', revision: 9 },
    ]);
  });

  test.each([
    { title: 'an unknown revision', of: revisions, wanted: 3, says: 'unable to find specified revision 3 in history' },
    {
      title: 'no earlier one',
      of: revisions.slice(2),
      wanted: 0,
      says: 'no rollout history found for machine deployment "pool"',
    },
  ])('is refused for $title', ({ of, wanted, says }) => {
    expect(() => undoOf(pool, of, wanted)).toThrow(says);
  });

  test('is refused while paused', () => {
    const paused = { ...pool, spec: { ...pool.spec, paused: true } };

    expect(() => undoOf(paused, revisions, 0)).toThrow('cannot rollback a paused machine deployment');
  });
});
