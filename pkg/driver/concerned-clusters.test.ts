import { describe, expect, test } from '@jest/globals';

import type { MachineOrStub } from './driver.ts';
import { concernedClusters } from './concerned-clusters.ts';

const machine = (labels: Record<string, string>, deletionTimestamp?: string): MachineOrStub => ({
  metadata: {
    name: 'm-1',
    namespace: 'shoot',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    labels,
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  },
  spec: {},
});
const force = { 'force-deletion': 'True' };
const since = '2026-01-01T00:00:00Z';

describe('concernedClusters', () => {
  test.each([
    { what: 'a machine', of: machine({}), target: 'target', clusters: ['control', 'target'] },
    { what: 'a machine without target', of: machine({}), target: undefined, clusters: ['control'] },
    { what: 'a machine being deleted', of: machine({}, since), target: 'target', clusters: ['control', 'target'] },
    { what: 'a machine being deleted by force', of: machine(force, since), target: 'target', clusters: ['control'] },
    { what: 'a machine with the label alone', of: machine(force), target: 'target', clusters: ['control', 'target'] },
    {
      what: 'a machine with a label that is no bool',
      of: machine({ 'force-deletion': 'please' }, since),
      target: 'target',
      clusters: ['control', 'target'],
    },
    {
      what: 'a VM without machine',
      of: { metadata: { name: 'm-1', namespace: 'shoot' }, spec: { providerID: 'x' } },
      target: 'target',
      clusters: ['control', 'target'],
    },
  ])('are $clusters for $what', ({ of, target, clusters }) => {
    expect(concernedClusters(of, target)).toEqual(clusters);
  });
});
