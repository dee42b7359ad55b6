import { describe, expect, test } from '@jest/globals';

import { parseProviderSpec, templatesIn } from './provider-spec.ts';

const infrastructureRef = {
  apiGroup: 'infrastructure.cluster.x-k8s.io',
  kind: 'DevMachineTemplate',
  name: 'small',
};
const configRef = { apiGroup: 'bootstrap.cluster.x-k8s.io', kind: 'KubeadmConfigTemplate', name: 'w' };
const least = { clusterName: 'shoot-a', infrastructureRef };

describe('the provider spec of machines of Cluster API', () => {
  test('needs a Cluster and a template; machines start with the user data of their class then', () => {
    expect(parseProviderSpec(least)).toEqual({
      clusterName: 'shoot-a',
      infrastructureRef,
      bootstrap: { from: 'userData' },
      version: undefined,
      failureDomain: undefined,
      labels: {},
      annotations: {},
    });
  });

  test('keeps what it says', () => {
    const spec = {
      apiVersion: 'cluster-api.machine.sapcloud.io/v1alpha1',
      kind: 'ClusterAPIProviderSpec',
      ...least,
      bootstrap: { configRef },
      version: 'v1.33.0',
      failureDomain: 'az1',
      machineMetadata: { labels: { 'cluster.x-k8s.io/watch-filter': 'machinist', empty: '' }, annotations: { a: 'b' } },
    };

    expect(parseProviderSpec(spec)).toEqual({
      clusterName: 'shoot-a',
      infrastructureRef,
      bootstrap: { from: 'template', template: configRef },
      version: 'v1.33.0',
      failureDomain: 'az1',
      labels: { 'cluster.x-k8s.io/watch-filter': 'machinist', empty: '' },
      annotations: { a: 'b' },
    });
  });

  test('may name a Secret that is there', () => {
    expect(parseProviderSpec({ ...least, bootstrap: { dataSecretName: 'given' } })).toMatchObject({
      bootstrap: { from: 'secret', name: 'given' },
    });
  });

  // promise: cluster-api/machinedeployments/told-member-wrong-help
  test.each([
    { change: { apiVersion: 'v1' }, says: 'providerSpec.apiVersion: must be cluster-api.machine.sapcloud.io/v1alpha1' },
    { change: { kind: 'Machine' }, says: 'providerSpec.kind: must be ClusterAPIProviderSpec' },
    { change: { clusterName: undefined }, says: 'providerSpec.clusterName: must be a non-empty string' },
    { change: { clusterName: 'A/b' }, says: 'providerSpec.clusterName: must be the name of an object' },
    { change: { clusterName: 'c'.repeat(64) }, says: 'providerSpec.clusterName: must have at most 63 characters' },
    { change: { infrastructureRef: undefined }, says: 'providerSpec.infrastructureRef: must be an object' },
    {
      change: { infrastructureRef: { ...infrastructureRef, apiVersion: 'v1' } },
      says: 'providerSpec.infrastructureRef.apiVersion: unknown field, must be one of apiGroup, kind, name',
    },
    {
      change: { infrastructureRef: { ...infrastructureRef, apiGroup: 'infrastructure.cluster.x-k8s.io/v1beta1' } },
      says: 'providerSpec.infrastructureRef.apiGroup: must be a group without version',
    },
    {
      change: { infrastructureRef: { ...infrastructureRef, kind: 'DevMachine' } },
      says: 'providerSpec.infrastructureRef.kind: must be the kind of a template',
    },
    {
      change: { infrastructureRef: { ...infrastructureRef, name: '../x' } },
      says: 'providerSpec.infrastructureRef.name: must be the name of an object',
    },
    {
      change: { bootstrap: { configRef, dataSecretName: 'given' } },
      says: 'providerSpec.bootstrap.configRef: dataSecretName is set too, remove one of them',
    },
    {
      change: { bootstrap: { configRef: { ...configRef, kind: 'KubeadmConfig' } } },
      says: 'providerSpec.bootstrap.configRef.kind: must be the kind of a template',
    },
    { change: { bootstrap: { secret: 'x' } }, says: 'providerSpec.bootstrap.secret: unknown field' },
    { change: { version: 1.33 }, says: 'providerSpec.version: must be a non-empty string' },
    { change: { failureDomain: 'z'.repeat(257) }, says: 'providerSpec.failureDomain: must have at most 256' },
    { change: { machineMetadata: { names: {} } }, says: 'providerSpec.machineMetadata.names: unknown field' },
    { change: { machineMetadata: { labels: { a: 1 } } }, says: 'providerSpec.machineMetadata.labels.a: must be' },
    {
      change: { machineMetadata: { labels: { 'cluster-api.machine.sapcloud.io/machine-uid': 'u' } } },
      says: 'providerSpec.machineMetadata.labels.cluster-api.machine.sapcloud.io/machine-uid: the prefix',
    },
    {
      change: { machineMetadata: { labels: { 'cluster.x-k8s.io/cluster-name': 'c' } } },
      says: 'providerSpec.machineMetadata.labels.cluster.x-k8s.io/cluster-name: derived from clusterName, remove it',
    },
    { change: { size: 'x' }, says: 'providerSpec.size: unknown field' },
  ])('is refused: $says', ({ change, says }) => {
    expect(() => parseProviderSpec({ ...least, ...change })).toThrow(
      expect.objectContaining({ code: 'InvalidArgument', terminal: true, detail: expect.stringContaining(says) }),
    );
  });

  test.each([
    {
      spec: { ...least, bootstrap: { configRef } },
      names: { infrastructure: infrastructureRef, bootstrap: configRef },
    },
    // Wrong elsewhere: what was made is found all the same.
    { spec: { clusterName: '', infrastructureRef, size: 1 }, names: { infrastructure: infrastructureRef } },
    { spec: { infrastructureRef: { kind: 'x' } }, names: {} },
    { spec: 'x', names: {} },
    { spec: undefined, names: {} },
  ])('names templates, whatever else is wrong: $spec', ({ spec, names }) => {
    expect(templatesIn(spec)).toEqual({ infrastructure: undefined, bootstrap: undefined, ...names });
  });
});
