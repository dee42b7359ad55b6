import { describe, expect, test } from '@jest/globals';

import { machineClass } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { customResourceDefinitions, providerResource } from '../../kube/client/resource.ts';
import { announcedIn, readAnnounced, templateOf } from './announced.ts';

const infrastructureRef = { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'SimMachineTemplate', name: 'small' };
const metadata = { name: 'small', namespace: 'default', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
const capacity = { cpu: '4', memory: '16Gi' };
const template = (status: object): KubeObject => ({ metadata, status }) as KubeObject;

describe('what a provider announces of a template', () => {
  test.each([
    { status: {}, want: undefined },
    { status: { capacity: {} }, want: undefined },
    { status: { capacity: { cpu: 'many' } }, want: undefined },
    {
      status: { capacity: { ...capacity, 'example.com/gpu': 2, odd: null } },
      want: {
        nodeTemplate: { capacity: { ...capacity, 'example.com/gpu': 2 }, instanceType: '', region: '', zone: '' },
        os: undefined,
      },
    },
    {
      status: { capacity, nodeInfo: { architecture: 'arm64', operatingSystem: 'windows' } },
      want: {
        nodeTemplate: { capacity, instanceType: '', region: '', zone: '', architecture: 'arm64' },
        os: 'windows',
      },
    },
  ])('is $want', ({ status, want }) => {
    expect(announcedIn(template(status))).toEqual(want);
  });

  test.each([
    { providerSpec: { infrastructureRef }, want: infrastructureRef },
    { providerSpec: { infrastructureRef: { ...infrastructureRef, name: '' } }, want: undefined },
    { providerSpec: { size: 'x' }, want: undefined },
    { providerSpec: 'x', want: undefined },
    { providerSpec: undefined, want: undefined },
  ])('is asked for a class that names one: $want', ({ providerSpec, want }) => {
    expect(templateOf({ providerSpec })).toEqual(want);
  });

  test('is read in the version that the definition names, and only for such classes', async () => {
    const client = new MemoryClient();
    const definition = { ...metadata, name: 'simmachinetemplates.infrastructure.cluster.x-k8s.io', namespace: '' };
    client.put(customResourceDefinitions, {
      metadata: { ...definition, labels: { 'cluster.x-k8s.io/v1beta1': 'v1' } },
    });
    const where = { group: infrastructureRef.apiGroup, version: 'v1', plural: 'simmachinetemplates', kind: 'X' };
    client.put(providerResource(where), template({ capacity }));
    const { signal } = new AbortController();
    const [named, other] = [{ infrastructureRef }, {}].map((providerSpec) =>
      machineClass((c) => Object.assign(c, { providerSpec })),
    );

    expect(await readAnnounced(client, named as never, signal)).toMatchObject({ nodeTemplate: { capacity } });
    client.reads.length = 0;
    expect(await readAnnounced(client, other as never, signal)).toBeUndefined();
    expect(client.reads).toEqual([]);
  });
});
