import { describe, expect, test } from '@jest/globals';

import type { KubeObject } from '../../../apis/meta.ts';
import { bootstrapDataIn, bootstrapSecret } from './bootstrap-secret.ts';
import { readBootstrap, type BootstrapReport } from './bootstrap.ts';
import { reportedCondition } from './condition.ts';
import type { ContractVersion } from './contract.ts';
import { readControlPlane } from './control-plane.ts';
import {
  readClusterInfrastructure,
  readInfrastructure,
  type ClusterInfrastructureReport,
  type InfrastructureReport,
} from './infrastructure.ts';

const of = (spec: unknown, status: unknown): KubeObject =>
  ({ metadata: { name: 'm-1', uid: 'uid', resourceVersion: '1', creationTimestamp: '' }, spec, status }) as KubeObject;

interface Row<Report> {
  readonly contract: ContractVersion;
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly want: Partial<Report>;
}

describe('an infrastructure object', () => {
  test.each<Row<InfrastructureReport>>([
    { contract: 'v1beta2', status: { initialization: { provisioned: true } }, want: { provisioned: true } },
    { contract: 'v1beta2', status: { ready: true }, want: { provisioned: false } },
    { contract: 'v1beta1', status: { ready: true }, want: { provisioned: true } },
    { contract: 'v1beta1', status: { initialization: { provisioned: true } }, want: { provisioned: false } },
    { contract: 'v1beta2', status: { initialization: { provisioned: 'true' } }, want: { provisioned: false } },
    { contract: 'v1beta2', want: { provisioned: false, addresses: [], providerID: undefined, ready: undefined } },
    { contract: 'v1beta2', spec: 'nonsense', status: [], want: { provisioned: false, addresses: [] } },
    { contract: 'v1beta2', spec: { providerID: 'x://1' }, want: { providerID: 'x://1' } },
    { contract: 'v1beta1', spec: { providerID: 'x://1' }, want: { providerID: 'x://1' } },
    { contract: 'v1beta2', spec: { providerID: '' }, want: { providerID: undefined } },
    { contract: 'v1beta2', spec: { providerID: 'x'.repeat(513) }, want: { providerID: undefined } },
    { contract: 'v1beta2', spec: { failureDomain: 'a' }, want: { failureDomain: undefined, wantedFailureDomain: 'a' } },
    { contract: 'v1beta2', status: { failureDomain: 'a' }, want: { failureDomain: 'a' } },
    {
      contract: 'v1beta1',
      spec: { failureDomain: 'a' },
      status: { failureDomain: 'b' },
      want: { failureDomain: 'b', wantedFailureDomain: 'a' },
    },
    {
      contract: 'v1beta2',
      status: {
        addresses: [
          { type: 'InternalIP', address: '10.0.0.1' },
          { type: 'Carrier', address: 'pigeon' },
          { type: 'Hostname', address: 7 },
          null,
        ],
      },
      want: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] },
    },
    {
      contract: 'v1beta2',
      status: { failureReason: 'InsufficientResources' },
      want: { failure: { reason: 'InsufficientResources', message: '' } },
    },
    {
      contract: 'v1beta1',
      status: { failureMessage: 'no host', interruptible: true },
      want: { failure: { reason: '', message: 'no host' }, interruptible: true },
    },
  ])('under $contract with spec $spec and status $status reports $want', ({ contract, spec, status, want }) => {
    expect(readInfrastructure(of(spec, status), contract)).toMatchObject(want);
  });

  test.each<Row<ClusterInfrastructureReport>>([
    {
      contract: 'v1beta2',
      spec: { controlPlaneEndpoint: { host: 'api', port: 6443 } },
      status: { initialization: { provisioned: true }, failureDomains: [{ name: 'a', controlPlane: true }, {}] },
      want: {
        provisioned: true,
        controlPlaneEndpoint: { host: 'api', port: 6443 },
        failureDomains: [{ name: 'a', controlPlane: true }],
      },
    },
    {
      contract: 'v1beta1',
      spec: { controlPlaneEndpoint: { host: '', port: 0 } },
      status: { ready: true, failureDomains: { b: { controlPlane: false } } },
      want: {
        provisioned: true,
        controlPlaneEndpoint: undefined,
        failureDomains: [{ name: 'b', controlPlane: false }],
      },
    },
    {
      contract: 'v1beta2',
      status: { ready: true },
      want: { provisioned: false, controlPlaneEndpoint: undefined, failureDomains: undefined },
    },
  ])('of a Cluster under $contract with status $status reports $want', ({ contract, spec, status, want }) => {
    expect(readClusterInfrastructure(of(spec, status), contract)).toMatchObject(want);
  });
});

describe('a bootstrap object', () => {
  test.each<Row<BootstrapReport>>([
    {
      contract: 'v1beta2',
      status: { initialization: { dataSecretCreated: true }, dataSecretName: 's' },
      want: { created: true, dataSecretName: 's' },
    },
    {
      contract: 'v1beta2',
      status: { ready: true, dataSecretName: 's' },
      want: { created: false, dataSecretName: 's' },
    },
    { contract: 'v1beta1', status: { ready: true }, want: { created: true, dataSecretName: undefined } },
    { contract: 'v1beta1', status: { initialization: { dataSecretCreated: true } }, want: { created: false } },
    { contract: 'v1beta2', status: { dataSecretName: 'x'.repeat(254) }, want: { dataSecretName: undefined } },
    { contract: 'v1beta2', want: { created: false, dataSecretName: undefined, ready: undefined, failure: undefined } },
  ])('under $contract with status $status reports $want', ({ contract, spec, status, want }) => {
    expect(readBootstrap(of(spec, status), contract)).toMatchObject(want);
  });
});

// promise: cluster-api/clusters/control-plane-contract
test.each<{ contract: ContractVersion; spec?: object; status?: object; want: object }>([
  {
    contract: 'v1beta2',
    status: { initialization: { controlPlaneInitialized: true }, externalManagedControlPlane: true },
    want: { initialized: true, isExternal: true },
  },
  { contract: 'v1beta2', status: { initialized: true }, want: { initialized: false, isExternal: false } },
  {
    contract: 'v1beta2',
    status: {
      conditions: [{ type: 'Ready', status: 'False', reason: 'Newer' }],
      deprecated: { v1beta1: { conditions: [{ type: 'Ready', status: 'True' }] } },
    },
    want: { ready: { status: 'True' } },
  },
  {
    contract: 'v1beta1',
    status: { conditions: [{ type: 'Ready', status: 'False', reason: 'R' }] },
    want: { ready: { status: 'False', reason: 'R' }, available: undefined },
  },
  { contract: 'v1beta1', status: { initialized: true }, want: { initialized: true } },
  {
    contract: 'v1beta1',
    status: { initialization: { controlPlaneInitialized: true } },
    want: { initialized: false },
  },
  {
    contract: 'v1beta2',
    spec: { controlPlaneEndpoint: { host: 'h', port: 6443 } },
    want: { initialized: false, controlPlaneEndpoint: { host: 'h', port: 6443 } },
  },
  {
    contract: 'v1beta2',
    spec: { controlPlaneEndpoint: { host: '', port: 0 } },
    want: { controlPlaneEndpoint: undefined },
  },
])('a control plane under $contract with status $status reports $want', ({ contract, spec, status, want }) => {
  expect(readControlPlane(of(spec, status), contract)).toMatchObject(want);
});

// promise: cluster-api/contracts-providers/those-make-sense
test.each([
  { conditions: undefined, want: undefined },
  { conditions: [{ type: 'Other', status: 'True' }], want: undefined },
  {
    conditions: [{ type: 'Ready', status: 'False', reason: 'Foo', message: 'why', severity: 'Error' }],
    want: { type: 'Ready', status: 'False', reason: 'Foo', message: 'why' },
  },
  {
    conditions: [null, { type: 'Ready', status: 'True' }],
    want: { type: 'Ready', status: 'True', reason: 'NoReasonReported', message: '' },
  },
  {
    conditions: [{ type: 'Ready', status: 'False', reason: 'no host', message: 'why' }],
    want: { type: 'Ready', status: 'False', reason: 'InvalidConditionReported', message: 'why (reason "no host")' },
  },
  {
    conditions: [{ type: 'Ready', status: true }],
    want: {
      type: 'Ready',
      status: 'Unknown',
      reason: 'InvalidConditionReported',
      message: 'condition Ready has status true; must be True, False or Unknown',
    },
  },
])('of conditions $conditions Ready is $want', ({ conditions, want }) => {
  expect(reportedCondition(conditions, 'Ready')).toEqual(want);
});

describe('the Secret of bootstrap data', () => {
  const place = { name: 'm-1-userdata', namespace: 'ns', clusterName: 'c' };

  test('is read as it was made', () => {
    const made = bootstrapSecret(place, { value: Buffer.from([0, 255, 10]), format: 'ignition' });

    expect(bootstrapDataIn(made)).toEqual({ value: Buffer.from([0, 255, 10]), format: 'ignition' });
    expect(made.type).toBe('cluster.x-k8s.io/secret');
    expect(made.metadata).toEqual({
      name: 'm-1-userdata',
      namespace: 'ns',
      labels: { 'cluster.x-k8s.io/cluster-name': 'c' },
    });
  });

  test.each([
    { data: { value: 'aGk=' }, want: { value: Buffer.from('hi'), format: 'cloud-config' } },
    { data: { value: '' }, want: undefined },
    { data: { userData: 'aGk=' }, want: undefined },
    { data: undefined, want: undefined },
  ])('with $data holds $want', ({ data, want }) => {
    expect(bootstrapDataIn({ ...(data !== undefined && { data }) })).toEqual(want);
  });
});
