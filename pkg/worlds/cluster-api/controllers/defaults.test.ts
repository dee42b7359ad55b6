import { expect, test } from '@jest/globals';

import type { KubeObject } from '../../../apis/meta.ts';
import { certificatesExpiryOf, withDefaults } from './defaults.ts';

test.each([
  { spec: { version: '1.34.0' }, want: { version: 'v1.34.0', deletion: { nodeDeletionTimeoutSeconds: 10 } } },
  { spec: { version: 'v1.34.0' }, want: { version: 'v1.34.0', deletion: { nodeDeletionTimeoutSeconds: 10 } } },
  { spec: { version: '' }, want: { version: '', deletion: { nodeDeletionTimeoutSeconds: 10 } } },
  {
    spec: { deletion: { nodeDrainTimeoutSeconds: 5 } },
    want: { deletion: { nodeDrainTimeoutSeconds: 5, nodeDeletionTimeoutSeconds: 10 } },
  },
  {
    spec: { version: '1.34.0', deletion: { nodeDeletionTimeoutSeconds: 0 } },
    want: { version: 'v1.34.0', deletion: { nodeDeletionTimeoutSeconds: 0 } },
  },
])('$spec becomes $want, and stays so', ({ spec, want }) => {
  const after = withDefaults(spec);

  expect(after).toEqual(want);
  expect(withDefaults(after)).toBe(after);
});

const EARLY = '2027-01-01T00:00:00Z';
const LATE = '2028-01-01T00:00:00Z';
const KEY = 'machine.cluster.x-k8s.io/certificates-expiry';

const object = (expiry: string | undefined, labels: Record<string, string> = {}): KubeObject => ({
  metadata: {
    name: 'o',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    labels,
    ...(expiry !== undefined && { annotations: { [KEY]: expiry } }),
  },
});
const CONTROL_PLANE = { 'cluster.x-k8s.io/control-plane': '' };

test.each([
  { what: 'its own', machine: object(EARLY, CONTROL_PLANE), bootstrap: object(LATE), want: { date: EARLY } },
  {
    what: 'that of its bootstrap object',
    machine: object(undefined, CONTROL_PLANE),
    bootstrap: object(LATE),
    want: { date: LATE },
  },
  { what: 'none', machine: object(undefined, CONTROL_PLANE), bootstrap: undefined, want: { date: undefined } },
  { what: 'none without a control plane', machine: object(EARLY), bootstrap: object(LATE), want: { date: undefined } },
])('certificates expire at $what', ({ machine, bootstrap, want }) => {
  expect(certificatesExpiryOf(machine, bootstrap)).toEqual(want);
});

test('a time that is none is told', () => {
  expect(certificatesExpiryOf(object('soon', CONTROL_PLANE), undefined)).toEqual({
    problem: `annotation ${KEY} is "soon": set it to a time such as 2027-01-01T00:00:00Z`,
  });
});
