import { expect, test } from '@jest/globals';

import type { ControlPlaneReport } from '../api/control-plane.ts';
import type { ClusterInfrastructureReport } from '../api/infrastructure.ts';
import type { DeprecatedCondition } from '../api/machine.ts';
import type { ClusterFacts } from './cluster-conditions.ts';
import { olderClusterConditions } from './older-cluster-conditions.ts';

const reference = (kind: string) => ({ apiGroup: 'g', kind, name: 'n' });
const infrastructure = (report: Partial<ClusterInfrastructureReport>): ClusterFacts['infrastructure'] => ({
  kind: 'found',
  report: {
    provisioned: false,
    controlPlaneEndpoint: undefined,
    failureDomains: undefined,
    ready: undefined,
    ...report,
  },
});
const controlPlane = (report: Partial<ControlPlaneReport>): ClusterFacts['controlPlane'] => {
  const nothing = { initialized: false, isExternal: false, controlPlaneEndpoint: undefined, available: undefined };
  return { kind: 'found', report: { ...nothing, ready: undefined, ...report } };
};
const NONE = { kind: 'none', report: undefined } as const;
const condition = (status: 'True' | 'False', reason: string, message = '') =>
  ({ type: 'Ready', status, reason, message, lastTransitionTime: '' }) as const;

// promise: cluster-api/contracts-providers/cluster-too
test.each<{
  what: string;
  given: Partial<ClusterFacts>;
  wasProvisioned?: boolean;
  before?: readonly DeprecatedCondition[];
  says: readonly string[];
}>([
  {
    what: 'without any object is ready',
    given: { infrastructure: NONE, controlPlane: NONE },
    says: ['InfrastructureReady True', 'ControlPlaneInitialized True', 'Ready True'],
  },
  {
    what: 'waits for its infrastructure',
    given: { infrastructure: infrastructure({}), controlPlane: NONE },
    says: [
      'InfrastructureReady False WaitingForInfrastructure',
      'ControlPlaneInitialized True',
      'Ready False WaitingForInfrastructure',
    ],
  },
  {
    what: 'waits for both, of which the control plane has the word',
    given: { infrastructure: infrastructure({}), controlPlane: controlPlane({}) },
    says: [
      'InfrastructureReady False WaitingForInfrastructure',
      'ControlPlaneReady False WaitingForControlPlane',
      'ControlPlaneInitialized False WaitingForControlPlaneProviderInitialized',
      'Ready False WaitingForControlPlane',
    ],
  },
  {
    what: 'has what it names',
    given: { infrastructure: infrastructure({ provisioned: true }), controlPlane: controlPlane({ initialized: true }) },
    says: ['InfrastructureReady True', 'ControlPlaneReady True', 'ControlPlaneInitialized True', 'Ready True'],
  },
  {
    what: 'passes on what its objects report',
    given: {
      infrastructure: infrastructure({ provisioned: true, ready: condition('True', 'Ready') }),
      controlPlane: controlPlane({ initialized: true, ready: condition('False', 'ScalingUp', '1 of 3') }),
    },
    says: [
      'InfrastructureReady True Ready',
      'ControlPlaneReady False ScalingUp 1 of 3',
      'ControlPlaneInitialized True',
      'Ready False ScalingUp 1 of 3',
    ],
  },
  {
    what: 'says what it said before of what cannot be read, and sums it up',
    given: {
      infrastructure: { kind: 'reading', report: undefined },
      controlPlane: { kind: 'unknown', report: undefined },
    },
    before: [{ type: 'ControlPlaneReady', status: 'False', reason: 'Upgrading', severity: 'Info' }],
    says: ['ControlPlaneInitialized False WaitingForControlPlaneProviderInitialized', 'Ready False Upgrading'],
  },
  {
    what: 'whose infrastructure is missing, and was there, waits for it',
    wasProvisioned: true,
    given: { infrastructure: { kind: 'absent', report: undefined }, controlPlane: NONE },
    says: [
      'InfrastructureReady False WaitingForInfrastructure',
      'ControlPlaneInitialized True',
      'Ready False WaitingForInfrastructure',
    ],
  },
])('under the older contract, a Cluster that $what', ({ given, wasProvisioned = false, before = [], says }) => {
  const facts: ClusterFacts = {
    cluster: {
      metadata: { name: 'c', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
      spec: {
        ...(given.infrastructure?.kind !== 'none' && { infrastructureRef: reference('Sim') }),
        ...(given.controlPlane?.kind !== 'none' && { controlPlaneRef: reference('Plane') }),
      },
      ...(wasProvisioned && { status: { initialization: { infrastructureProvisioned: true } } }),
    },
    infrastructure: NONE,
    controlPlane: NONE,
    connection: { kind: 'here' },
    hasControlPlaneNode: false,
    ...given,
  };

  const said = olderClusterConditions(facts, before).map(({ type, status, reason, message }) => {
    const texts = type === 'ControlPlaneInitialized' ? [reason] : [reason, message];
    return [type, status, ...texts.filter(Boolean)].join(' ');
  });

  expect(said).toEqual(says);
});
