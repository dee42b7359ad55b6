import { expect, test } from '@jest/globals';

import type { ClusterAPICluster } from '../../apis/cluster-api/cluster.ts';
import type { ControlPlaneReport } from '../../apis/cluster-api/control-plane.ts';
import { clusterConditions, isInitialized, isProvisioned, type ClusterFacts } from './cluster-conditions.ts';

const REFERENCE = { apiGroup: 'g', kind: 'Plane', name: 'p' };
const NAMED = { infrastructureRef: { ...REFERENCE, kind: 'Sim' }, controlPlaneRef: REFERENCE };
const REPORT: ControlPlaneReport = {
  initialized: false,
  isExternal: false,
  controlPlaneEndpoint: undefined,
  available: undefined,
};
const NONE = { kind: 'none', report: undefined } as const;

const facts = (
  spec: ClusterAPICluster['spec'],
  more: Partial<ClusterFacts> = {},
  initialization: object = {},
): ClusterFacts => ({
  cluster: {
    metadata: { name: 'c', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
    ...(spec !== undefined && { spec }),
    status: { initialization },
  },
  infrastructure: NONE,
  controlPlane: NONE,
  hasControlPlaneNode: false,
  ...more,
});
const plane = (report: Partial<ControlPlaneReport>): Partial<ClusterFacts> => ({
  controlPlane: { kind: 'found', report: { ...REPORT, ...report } },
});

// promise: cluster-api/clusters/control-plane-contract
test.each<{ what: string; given: ClusterFacts; want: boolean; says: string }>([
  { what: 'names none', given: facts({}), want: true, says: 'True Initialized' },
  {
    what: 'says that it is',
    given: facts(NAMED, plane({ initialized: true })),
    want: true,
    says: 'True Initialized',
  },
  {
    what: 'does not say so, although a Machine of it has a Node',
    given: facts(NAMED, { ...plane({}), hasControlPlaneNode: true }),
    want: false,
    says: 'False NotInitialized',
  },
  {
    what: 'does not exist',
    given: facts(NAMED, { controlPlane: { kind: 'absent', report: undefined } }),
    want: false,
    says: 'Unknown ObjectDoesNotExist',
  },
  {
    what: 'was once, and is gone',
    given: facts(NAMED, { controlPlane: { kind: 'absent', report: undefined } }, { controlPlaneInitialized: true }),
    want: true,
    says: 'True Initialized',
  },
  {
    what: 'cannot be read',
    given: facts(NAMED, { controlPlane: { kind: 'unknown', problem: 'p', report: undefined } }),
    want: false,
    says: 'Unknown InternalError',
  },
  {
    what: 'cannot be read, while a Machine of it has a Node',
    given: facts(NAMED, {
      controlPlane: { kind: 'unknown', problem: 'p', report: undefined },
      hasControlPlaneNode: true,
    }),
    want: true,
    says: 'True Initialized',
  },
  {
    what: 'is to be made of a class',
    given: facts({ topology: {} }),
    want: false,
    says: 'Unknown ObjectDoesNotExist',
  },
  {
    what: 'was made of a class by somebody else',
    given: facts({ ...NAMED, topology: {} }, plane({ initialized: true })),
    want: true,
    says: 'True Initialized',
  },
])('a Cluster whose control plane $what: $says', ({ given, want, says }) => {
  const said = clusterConditions(given).find(({ type }) => type === 'ControlPlaneInitialized');

  expect([isInitialized(given), `${said?.status} ${said?.reason}`]).toEqual([want, says]);
});

// promise: cluster-api/clusters/topology-supported
test.each([
  { what: 'without infrastructure', spec: {}, want: true },
  { what: 'with infrastructure that is not provisioned', spec: NAMED, want: false },
  { what: 'of a class', spec: { topology: {} }, want: false },
])('a Cluster $what is provisioned: $want', ({ spec, want }) => {
  const given = facts(spec);
  const said = clusterConditions(given).find(({ type }) => type === 'TopologyReconciled');

  expect(isProvisioned(given)).toBe(want);
  expect(said?.reason).toBe('topology' in spec ? 'NotSupported' : undefined);
});
