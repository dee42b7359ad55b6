import { expect, test } from '@jest/globals';

import { cloneOf, type Template } from './clone.ts';

const template = (spec: unknown, kind = 'DevMachineTemplate'): Template =>
  ({
    apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
    kind,
    metadata: {
      name: 'small',
      namespace: 'ns',
      uid: 'uid-of-template',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { 'of-the-template': 'itself' },
      finalizers: ['keep'],
    },
    spec,
  }) as Template;

test('a clone has what its template describes, and nothing of the template itself', () => {
  const owner = { apiVersion: 'v1', kind: 'Owner', name: 'o', uid: 'u' };
  const spec = {
    template: {
      metadata: { labels: { a: '1', empty: '', bad: 7 }, annotations: { b: '2' }, name: 'ignored', finalizers: ['x'] },
      spec: { backend: { inMemory: {} } },
    },
  };

  const clone = cloneOf(template(spec), {
    name: 'm-1',
    clusterName: 'c',
    labels: { a: 'given' },
    annotations: { d: '4' },
    owner,
  });

  expect(clone).toEqual({
    apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2',
    kind: 'DevMachine',
    metadata: {
      name: 'm-1',
      namespace: 'ns',
      labels: { a: 'given', empty: '', 'cluster.x-k8s.io/cluster-name': 'c' },
      annotations: {
        b: '2',
        d: '4',
        'cluster.x-k8s.io/cloned-from-name': 'small',
        'cluster.x-k8s.io/cloned-from-groupkind': 'DevMachineTemplate.infrastructure.cluster.x-k8s.io',
      },
      ownerReferences: [owner],
    },
    spec: { backend: { inMemory: {} } },
  });
});

test.each([
  { kind: 'DevMachine', spec: { template: { spec: {} } }, says: 'must end in Template' },
  { kind: 'Template', spec: { template: { spec: {} } }, says: 'must end in Template' },
  { kind: 'DevMachineTemplate', spec: {}, says: 'spec.template is empty' },
  { kind: 'DevMachineTemplate', spec: undefined, says: 'spec.template is empty' },
])('a $kind with spec $spec is no template: $says', ({ kind, spec, says }) => {
  expect(cloneOf(template(spec, kind), { name: 'm-1', clusterName: 'c' })).toEqual({
    problem: expect.stringContaining(says),
  });
});
