import { expect, test } from '@jest/globals';

import type { KubeObject } from '../../../apis/meta.ts';
import { classLabelOf, isCreatedFor, marked, marksOf, parsePlaceholderID, placeholderID } from './marks.ts';

const marks = { cluster: 'c-1', className: 'small', machineName: 'm-1', machineUID: 'u-1' };

function object(change: { labels?: object; annotations?: object } = {}): KubeObject {
  const { labels, annotations } = marked(marks);
  const metadata = { name: 'any', namespace: 'shoot', uid: 'o', resourceVersion: '1', creationTimestamp: '' };
  return {
    metadata: {
      ...metadata,
      labels: { ...labels, ...change.labels },
      annotations: { ...annotations, ...change.annotations },
    },
  };
}

test('an object says for which machine it was made', () => {
  expect(marksOf(object())).toEqual(marks);
});

test.each([
  { what: 'its own', machine: {}, made: object(), is: true },
  { what: 'of another UID', machine: { machineUID: 'u-2' }, made: object(), is: false },
  { what: 'of another cluster', machine: { cluster: 'c-2' }, made: object(), is: false },
  { what: 'of another name', machine: { machineName: 'm-2' }, made: object(), is: false },
  { what: 'without marks', machine: {}, made: { metadata: { ...object().metadata, labels: {} } }, is: false },
  {
    what: 'without annotations',
    machine: {},
    made: { metadata: { ...object().metadata, annotations: {} } },
    is: false,
  },
])('an object $what was made for a machine: $is', ({ machine, made, is }) => {
  expect(isCreatedFor(made, { ...marks, ...machine })).toBe(is);
});

test('a class is told by a label, however long its name is', () => {
  const long = `${'a'.repeat(60)}.${'b'.repeat(60)}`;

  expect(classLabelOf('shoot.worker-1')).toBe('shoot.worker-1');
  expect(classLabelOf(long)).toMatch(/^a{40}_[0-9a-f]{16}$/);
  expect(classLabelOf(long)).not.toBe(classLabelOf(`${long}x`));
});

test('what has no provider id yet is listed under one that says whose it is', () => {
  const id = placeholderID('shoot', marks);

  expect(id).toBe('cluster-api:///shoot/m-1/u-1');
  expect(parsePlaceholderID(id)).toEqual({ namespace: 'shoot', machineName: 'm-1', machineUID: 'u-1' });
});

test.each(['', 'sim://m-1', 'cluster-api:///shoot/m-1', 'cluster-api:///shoot/m-1/u-1/more', 'x-cluster-api:///a/b/c'])(
  'and %j is none of these',
  (id) => {
    expect(parsePlaceholderID(id)).toBeUndefined();
  },
);
