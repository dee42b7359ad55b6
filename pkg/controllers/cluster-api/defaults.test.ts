import { expect, test } from '@jest/globals';

import type { KubeObject } from '../../apis/meta.ts';
import { certificatesExpiryOf, versionFor } from './defaults.ts';

test.each([
  { version: '1.34.0', want: 'v1.34.0' },
  { version: 'v1.34.0', want: undefined },
  { version: '', want: undefined },
  { version: undefined, want: undefined },
])('version $version becomes $want', ({ version, want }) => {
  expect(versionFor(version)).toBe(want);
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
    problem: `annotation ${KEY} is "soon": write a time such as 2027-01-01T00:00:00Z`,
  });
});
