import { expect, test } from '@jest/globals';

import { jsonPathOf } from './json-path.ts';

const OBJECT = {
  spec: { a: { b: 1 } },
  metadata: { labels: { 'topology.kubernetes.io/zone': 'z' } },
  status: {
    conditions: [
      { type: 'A', reason: 'a' },
      { type: 'B', reason: 'b' },
      { type: 'B', reason: 'c' },
    ],
  },
};

test.each([
  { path: '.spec.a.b', value: 1 },
  { path: '.spec.none.b', value: undefined },
  { path: '.metadata.labels.topology\\.kubernetes\\.io/zone', value: 'z' },
  { path: '.status.conditions[?(@.type=="B")].reason', value: 'b' },
  { path: ".status.conditions[?(@.type=='A')].reason", value: 'a' },
  { path: '.status.conditions[?(@.type=="C")].reason', value: undefined },
  { path: '.spec[?(@.type=="B")].reason', value: undefined },
])('$path is $value', ({ path, value }) => {
  expect(jsonPathOf(path)(OBJECT)).toBe(value);
});

test.each(['', 'spec', '.spec[*]', '.spec..b', '.spec[0]', '.spec.a b[1]', '.spec[?(@.n>1)]'])(
  'a path that is more than names and filters by one member is rejected: %p',
  (path) => {
    expect(() => jsonPathOf(path)).toThrow(`${path} is more than names and filters by one member`);
  },
);
