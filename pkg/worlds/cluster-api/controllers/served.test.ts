import { expect, test } from '@jest/globals';
import { servedWith } from './index.ts';

// promise: cluster-api/beside/filter-objects-let-alone
test.each([
  { filter: '', labels: {}, want: true },
  { filter: '', labels: { 'cluster.x-k8s.io/watch-filter': 'a' }, want: true },
  { filter: 'a', labels: { 'cluster.x-k8s.io/watch-filter': 'a' }, want: true },
  { filter: 'a', labels: { 'cluster.x-k8s.io/watch-filter': 'b' }, want: false },
  { filter: 'a', labels: undefined, want: false },
])('with filter "$filter" what is labelled $labels is ours: $want', ({ filter, labels, want }) => {
  const metadata = { name: 'm', uid: 'u', resourceVersion: '1', creationTimestamp: '' };

  expect(servedWith(filter)({ metadata: { ...metadata, ...(labels !== undefined && { labels }) } })).toBe(want);
});
