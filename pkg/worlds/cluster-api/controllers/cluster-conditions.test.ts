import { expect, test } from '@jest/globals';

import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ClusterAPICondition } from '../api/condition.ts';
import type { ControlPlaneReport } from '../api/control-plane.ts';
import { clusterConditions, isInitialized, isProvisioned, type ClusterFacts } from './cluster-conditions.ts';

const REFERENCE = { apiGroup: 'g', kind: 'Plane', name: 'p' };
const NAMED = { infrastructureRef: { ...REFERENCE, kind: 'Sim' }, controlPlaneRef: REFERENCE };
const REPORT: ControlPlaneReport = {
  initialized: false,
  isExternal: false,
  controlPlaneEndpoint: undefined,
  available: undefined,
  ready: undefined,
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
  connection: { kind: 'here' },
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

const PROBE_BEFORE = { type: 'RemoteConnectionProbe', status: 'True', reason: 'ProbeSucceeded', message: '' } as const;
const READY = { type: 'Available', status: 'True', reason: 'Available', message: '' } as const;

// promise: cluster-api/clusters/available-connection
test.each<{ what: string; more: Partial<ClusterFacts>; before?: object; probe: string; available: string }>([
  { what: 'is in the target cluster', more: {}, probe: 'True ProbeSucceeded', available: 'True Available' },
  {
    what: 'is reached',
    more: { connection: { kind: 'reached' } },
    probe: 'True ProbeSucceeded',
    available: 'True Available',
  },
  {
    what: 'is not asked, without Machines',
    more: { connection: { kind: 'unused' } },
    probe: 'Unknown NotProbed',
    available: 'True Available',
  },
  {
    what: 'has not been reached yet',
    more: { connection: { kind: 'unreachable', why: 'w', isOver: false } },
    probe: 'False ProbeFailed',
    available: 'False NotAvailable',
  },
  {
    what: 'was reached a moment ago',
    before: PROBE_BEFORE,
    more: { connection: { kind: 'unreachable', why: 'w', isOver: false } },
    probe: 'True ProbeSucceeded',
    available: 'True Available',
  },
  {
    what: 'was not asked a moment ago, without Machines',
    before: { ...PROBE_BEFORE, status: 'Unknown', reason: 'NotProbed' },
    more: { connection: { kind: 'unreachable', why: 'w', isOver: false } },
    probe: 'False ProbeFailed',
    available: 'False NotAvailable',
  },
  {
    what: 'was reached long ago',
    before: PROBE_BEFORE,
    more: { connection: { kind: 'unreachable', why: 'w', isOver: true } },
    probe: 'False ProbeFailed',
    available: 'False NotAvailable',
  },
])('a Cluster whose API server $what says $probe, $available', ({ more, before, probe, available }) => {
  const given = facts({}, more);
  const conditions = before === undefined ? [] : [{ ...before, lastTransitionTime: '' } as ClusterAPICondition];
  const told = clusterConditions({ ...given, cluster: { ...given.cluster, status: { conditions } } });
  const of = (type: string) => told.find((one) => one.type === type);

  expect([of('RemoteConnectionProbe'), of('Available')].map((one) => `${one?.status} ${one?.reason}`)).toEqual([
    probe,
    available,
  ]);
});

// promise: cluster-api/clusters/available-connection
test.each<{ what: string; given: ClusterFacts; says: string; available: string }>([
  {
    what: 'reports that it is available',
    given: facts(NAMED, plane({ initialized: true, available: { ...READY, lastTransitionTime: '' } }), {
      infrastructureProvisioned: true,
    }),
    says: 'True Available',
    available: 'True',
  },
  {
    what: 'reports that it is not',
    given: facts(
      { controlPlaneRef: REFERENCE },
      {
        ...plane({
          initialized: true,
          available: { ...READY, status: 'False', reason: 'R', message: 'm', lastTransitionTime: '' },
        }),
      },
    ),
    says: 'False R',
    available: 'False',
  },
  {
    what: 'reports nothing, and is initialized',
    given: facts({ controlPlaneRef: REFERENCE }, plane({ initialized: true })),
    says: 'True Available',
    available: 'True',
  },
  {
    what: 'is not initialized',
    given: facts({ controlPlaneRef: REFERENCE }, plane({})),
    says: 'False NotAvailable',
    available: 'False',
  },
  {
    what: 'was deleted',
    given: facts(
      { controlPlaneRef: REFERENCE },
      { controlPlane: { kind: 'absent', report: undefined } },
      {
        controlPlaneInitialized: true,
      },
    ),
    says: 'False ObjectDeleted',
    available: 'False',
  },
  {
    what: 'cannot be read',
    given: facts(
      { controlPlaneRef: REFERENCE },
      {
        controlPlane: { kind: 'unknown', problem: 'p', report: undefined },
      },
    ),
    says: 'Unknown InternalError',
    available: 'Unknown',
  },
  {
    what: 'is to be made of a class',
    given: facts({ topology: {} }),
    says: 'False ObjectDoesNotExist',
    available: 'False',
  },
])('a Cluster whose control plane $what: $says', ({ given, says, available }) => {
  const told = clusterConditions(given);
  const of = (type: string) => told.find((one) => one.type === type);

  const plain = of('ControlPlaneAvailable');
  expect([`${plain?.status} ${plain?.reason}`, of('Available')?.status]).toEqual([says, available]);
});

// promise: cluster-api/clusters/available-connection
test.each([
  { polarity: undefined, status: 'True', available: 'True' },
  { polarity: undefined, status: 'False', available: 'False' },
  { polarity: 'Negative', status: 'False', available: 'True' },
  { polarity: 'Negative', status: 'True', available: 'False' },
] as const)('a gate of a Cluster counts: $polarity $status', ({ polarity, status, available }) => {
  const gate = { conditionType: 'Net', ...(polarity !== undefined && { polarity }) };
  const given = facts({ availabilityGates: [gate] });
  const conditions = [{ type: 'Net', status, reason: 'R', message: '', lastTransitionTime: '' }];
  const told = clusterConditions({ ...given, cluster: { ...given.cluster, status: { conditions } } });

  expect(told.find(({ type }) => type === 'Available')?.status).toBe(available);
});
