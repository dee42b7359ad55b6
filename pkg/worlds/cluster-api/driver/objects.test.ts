import { describe, expect, test } from '@jest/globals';

import { DELETION_HOOK } from '../api/keys.ts';
import { cloned, clonedFrom, clusterAPIMachineOf, userDataSecret, type Plan } from './objects.ts';
import { parseProviderSpec } from './provider-spec.ts';

const infrastructureRef = { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'SimMachineTemplate', name: 'small' };
const configRef = { apiGroup: 'bootstrap.cluster.x-k8s.io', kind: 'SimConfigTemplate', name: 'w' };

function plan(change: object = {}): Plan {
  const spec = parseProviderSpec({
    clusterName: 'c',
    infrastructureRef,
    machineMetadata: { labels: { pool: 'blue' }, annotations: { note: 'x' } },
    ...change,
  });
  return {
    namespace: 'shoot',
    spec,
    marks: { cluster: 'c-1', className: 'small', machineName: 'm-1', machineUID: 'u-1' },
  };
}

const labels = {
  'cluster-api.machine.sapcloud.io/machine-uid': 'u-1',
  'cluster-api.machine.sapcloud.io/class': 'small',
  'cluster.x-k8s.io/cluster-name': 'c',
};
const annotations = {
  'cluster-api.machine.sapcloud.io/cluster': 'c-1',
  'cluster-api.machine.sapcloud.io/class-name': 'small',
  'cluster-api.machine.sapcloud.io/machine': 'm-1',
};

describe('what is made for a machine', () => {
  // promise: cluster-api/machinedeployments/class-names-template-bootstrap
  test('is a Machine that names the rest, and whose Node the manager drains', () => {
    expect(clusterAPIMachineOf(plan({ version: 'v1.33.0', failureDomain: 'az1' }))).toEqual({
      metadata: {
        name: 'm-1',
        namespace: 'shoot',
        labels: { ...labels, pool: 'blue' },
        annotations: {
          ...annotations,
          note: 'x',
          [DELETION_HOOK]: '',
          'machine.cluster.x-k8s.io/exclude-node-draining': '',
          'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach': '',
        },
      },
      spec: {
        clusterName: 'c',
        bootstrap: { dataSecretName: 'm-1-userdata' },
        infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'SimMachine', name: 'm-1' },
        version: 'v1.33.0',
        failureDomain: 'az1',
      },
    });
  });

  test.each([
    { bootstrap: { dataSecretName: 'given' }, names: { dataSecretName: 'given' } },
    { bootstrap: { configRef }, names: { configRef: { ...configRef, kind: 'SimConfig', name: 'm-1' } } },
    { bootstrap: {}, names: { dataSecretName: 'm-1-userdata' } },
  ])('starts with $names', ({ bootstrap, names }) => {
    expect(clusterAPIMachineOf(plan({ bootstrap })).spec?.bootstrap).toEqual(names);
  });

  test.each([
    { userData: '#cloud-config\n', format: 'cloud-config' },
    { userData: ' {"ignition":{"version":"3.4.0"}}', format: 'ignition' },
    { userData: '{"kind":"Config"}', format: 'cloud-config' },
    { userData: '{ template', format: 'cloud-config' },
  ])('is a Secret with its user data, $format', ({ userData, format }) => {
    const { metadata, type, data } = userDataSecret(plan(), userData);

    expect(metadata).toEqual({ name: 'm-1-userdata', namespace: 'shoot', labels, annotations });
    expect(type).toBe('cluster.x-k8s.io/secret');
    const texts = Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]);
    expect(Object.fromEntries(texts)).toEqual({ value: userData, format });
  });

  test('is a clone of each template, by its name', () => {
    const metadata = { name: 'small', namespace: 'shoot', uid: 'o', resourceVersion: '1', creationTimestamp: '' };
    const template = {
      apiVersion: 'infrastructure.cluster.x-k8s.io/v1alpha7',
      kind: 'SimMachineTemplate',
      metadata,
      spec: { template: { metadata: { labels: { pool: 'red', own: 'yes' } }, spec: { size: 4 } } },
    };

    expect(clonedFrom(infrastructureRef, 'm-1')).toEqual({ ...infrastructureRef, kind: 'SimMachine', name: 'm-1' });
    expect(cloned(plan(), template)).toEqual({
      apiVersion: 'infrastructure.cluster.x-k8s.io/v1alpha7',
      kind: 'SimMachine',
      metadata: {
        name: 'm-1',
        namespace: 'shoot',
        labels: { ...labels, pool: 'blue', own: 'yes' },
        annotations: {
          ...annotations,
          note: 'x',
          'cluster.x-k8s.io/cloned-from-name': 'small',
          'cluster.x-k8s.io/cloned-from-groupkind': 'SimMachineTemplate.infrastructure.cluster.x-k8s.io',
        },
      },
      spec: { size: 4 },
    });
  });
});
