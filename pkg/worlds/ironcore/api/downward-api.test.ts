import { expect, test } from '@jest/globals';

import { downwardValues, parseFieldPath, type MetadataField } from './downward-api.ts';

const METADATA = {
  name: 'm',
  namespace: 'ns',
  uid: 'u',
  labels: { 'example.com/team': 'a' },
  annotations: { note: 'n' },
};

test.each([
  { path: 'metadata.name', value: 'm' },
  { path: 'metadata.namespace', value: 'ns' },
  { path: 'metadata.uid', value: 'u' },
  { path: "metadata.labels['example.com/team']", value: 'a' },
  { path: "metadata.annotations['note']", value: 'n' },
  { path: "metadata.labels['not-there']", value: '' },
])('$path is read', ({ path, value }) => {
  const field = parseFieldPath(path) as MetadataField; // Each of them is one.

  expect(downwardValues(new Map([['x', field]]), METADATA)).toEqual({ x: value });
});

test.each([
  '',
  'spec.power',
  'metadata.labels',
  "metadata.labels['']",
  'metadata.labels[a]',
  "metadata.finalizers['a']",
])('"%s" is no field that is handed on', (path) => {
  expect(parseFieldPath(path)).toBeUndefined();
});
