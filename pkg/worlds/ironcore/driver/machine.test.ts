import { describe, expect, test } from '@jest/globals';

import type { IronCoreMachine } from '../api/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { ignitionSecretFor, ironCoreMachineFor, ironCoreProgressOf } from './machine.ts';
import { parseProviderSpec } from './provider-spec.ts';

const SPEC = parseProviderSpec({
  image: 'registry/os:1',
  networkName: 'net',
  prefixName: 'prefix',
  labels: { 'shoot-name': 's' },
});
const MACHINE = { cluster: 'c', namespace: 'shoot', name: 'm', uid: 'u', providerID: undefined };
const METADATA = { name: 'm', namespace: 'ic', uid: 'x', resourceVersion: '1', creationTimestamp: '' };

function made(nodeTemplate: object | undefined, { spec = SPEC, isZoneAPool = false } = {}) {
  const metadata = { ...METADATA, name: 'class' };
  // What the API server stores has each member of a node template, or none.
  const machineClass = {
    metadata,
    provider: 'ironcore',
    providerSpec: {},
    ...(nodeTemplate && { nodeTemplate }),
  } as MachineClass;
  return ironCoreMachineFor({ machine: MACHINE, machineClass, spec, namespace: 'ic', isZoneAPool });
}

const TAGS = {
  labels: { 'ironcore.machine.sapcloud.io/namespace': 'shoot', 'ironcore.machine.sapcloud.io/machine-uid': 'u' },
  annotations: { 'ironcore.machine.sapcloud.io/cluster': 'c', 'ironcore.machine.sapcloud.io/class': 'class' },
};

// promise: ironcore/driver/original-providers-class-makes
test('a Machine has the fields that the earlier provider gave it, and our tags', () => {
  expect(made({ instanceType: 'large', zone: 'a', region: 'r' })).toEqual({
    metadata: {
      namespace: 'ic',
      name: 'm',
      labels: { 'shoot-name': 's', ...TAGS.labels },
      annotations: TAGS.annotations,
    },
    spec: {
      machineClassRef: { name: 'large' },
      machinePoolSelector: { 'topology.ironcore.dev/zone': 'a', 'topology.ironcore.dev/region': 'r' },
      power: 'On',
      networkInterfaces: [
        {
          name: 'nic',
          ephemeral: {
            networkInterfaceTemplate: {
              metadata: { labels: { 'shoot-name': 's' } },
              spec: {
                networkRef: { name: 'net' },
                ipFamilies: ['IPv4'],
                ips: [{ ephemeral: { prefixTemplate: { spec: { prefixLength: 32, parentRef: { name: 'prefix' } } } } }],
              },
            },
          },
        },
      ],
      ignitionRef: { name: 'm', key: 'ignition.yaml' },
      volumes: [{ name: 'root', localDisk: { image: 'registry/os:1' } }],
    },
  });
});

test.each([
  ['a zone that is a pool', { zone: 'a', region: 'r' }, true, { machinePoolRef: { name: 'a' } }],
  ['a region alone', { region: 'r' }, false, { machinePoolSelector: { 'topology.ironcore.dev/region': 'r' } }],
  ['an empty zone', { zone: '', region: '' }, false, {}],
])('the place of a class with %s', (_what, place, isZoneAPool, expected) => {
  const { machinePoolRef, machinePoolSelector } = made({ instanceType: 'large', ...place }, { isZoneAPool }).spec;

  expect({ ...(machinePoolRef && { machinePoolRef }), ...(machinePoolSelector && { machinePoolSelector }) }).toEqual(
    expected,
  );
});

test('a root disk is a volume of its own, of that class and in that pool', () => {
  const spec = { ...SPEC, rootDisk: { size: '50Gi', volumeClassName: 'fast', volumePoolName: 'pool' } };

  expect(made({ instanceType: 'large' }, { spec }).spec.volumes).toEqual([
    {
      name: 'root',
      ephemeral: {
        volumeTemplate: {
          spec: {
            volumeClassRef: { name: 'fast' },
            volumePoolRef: { name: 'pool' },
            resources: { storage: '50Gi' },
            dataSource: { osImage: { image: 'registry/os:1' } },
          },
        },
      },
    },
  ]);
});

test.each([undefined, { instanceType: '' }])('a class with node template %j is refused', (nodeTemplate) => {
  expect(() => made(nodeTemplate)).toThrow('nodeTemplate.instanceType: must be set');
});

test('the Secret is owned by its Machine, and has its name', () => {
  const owner: IronCoreMachine = { metadata: METADATA, spec: { machineClassRef: { name: 'large' } } };

  expect(ignitionSecretFor(owner, MACHINE, 'class', { ...SPEC, ignitionSecretKey: 'key' }, '{}')).toEqual({
    metadata: {
      name: 'm',
      namespace: 'ic',
      ...TAGS,
      ownerReferences: [{ apiVersion: 'compute.ironcore.dev/v1alpha1', kind: 'Machine', name: 'm', uid: 'x' }],
    },
    data: { key: 'e30=' },
  });
});

describe('how far a Machine has come', () => {
  const pool = { machinePoolRef: { name: 'p' } };
  const waiting = { type: 'Scheduled', status: 'False', reason: 'OutOfCapacity', message: '3 not ready' } as const;

  test.each([
    ['that no pool has', {}, undefined, 'unplaced', 'state none yet'],
    [
      'that waits for a pool',
      {},
      { conditions: [waiting] },
      'unplaced',
      /Scheduled is False: OutOfCapacity: 3 not ready/,
    ],
    ['that a pool has', pool, { state: 'Pending' }, 'starting', 'state Pending'],
    ['in a state that nobody knows', pool, { state: 'Odd' }, 'starting', 'state Odd'],
    ['that runs', pool, { state: 'Running' }, 'running', 'state Running'],
    ['that is switched off', pool, { state: 'Shutdown' }, 'running', 'state Shutdown'],
    ['that ends', pool, { state: 'Terminating' }, 'going', 'state Terminating'],
  ])('%s', (_what, place, status, kind, why) => {
    const spec = { machineClassRef: { name: 'large' }, ...place };

    expect(ironCoreProgressOf({ metadata: METADATA, spec, ...(status && { status }) })).toEqual({
      kind,
      why: expect.stringMatching(why),
    });
  });

  test('one that is being deleted goes, whatever its state', () => {
    const metadata = { ...METADATA, deletionTimestamp: '2026-01-01T00:00:00Z' };

    expect(
      ironCoreProgressOf({ metadata, spec: { machineClassRef: { name: 'l' } }, status: { state: 'Running' } }),
    ).toMatchObject({ kind: 'going' });
  });
});
