import { describe, expect, test } from '@jest/globals';

import type { IronCoreMachine } from '../../api/machine.ts';
import type { IronCoreNetworkInterface } from '../../api/network-interface.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import { networkInterfaceClaims, volumeClaims } from './claims.ts';

const UID = 'uid-m';
const meta = (name: string, more: object = {}) => ({
  name,
  namespace: 'ns',
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
  ...more,
});
const MADE = {
  annotations: { 'common.ironcore.dev/ephemeral-managed-by': 'ephemeral-manager' },
  ownerReferences: [
    { apiVersion: 'compute.ironcore.dev/v1alpha1', kind: 'Machine', name: 'm', uid: UID, controller: true },
  ],
};

/** For which pool it was claimed. */
const NOTED = { annotations: { 'machine.sapcloud.io/claimed-for-pool': 'p' } };

function machineOf(spec: Partial<IronCoreMachine['spec']>): IronCoreMachine {
  return { metadata: { ...meta('m'), uid: UID }, spec: { machineClassRef: { name: 'c' }, ...spec } };
}

function volume(name: string, claimedBy?: string, more: object = {}): IronCoreVolume {
  const claimRef = claimedBy === undefined ? {} : { claimRef: { name: 'whoever', uid: claimedBy } };
  return { metadata: meta(name, more), spec: claimRef };
}

/** Names of what is done about these volumes by a Machine that names `a`, has `m-tmp` made for it, and has a disk of the pool. */
function done(volumes: readonly IronCoreVolume[], mayRelease = true): Record<string, readonly string[]> {
  const machine = machineOf({
    machinePoolRef: { name: 'p' },
    volumes: [
      { name: 'root', localDisk: {} },
      { name: 'data', volumeRef: { name: 'a' } },
      { name: 'tmp', ephemeral: { volumeTemplate: {} } },
    ],
  });
  const get = (name: string) => volumes.find(({ metadata }) => metadata.name === name);
  const own = volumes.filter(
    ({ spec, metadata }) => spec?.claimRef?.uid === UID || metadata.ownerReferences !== undefined,
  );
  const claims = volumeClaims(machine, undefined, { get, own, mayRelease });
  const names = (all: readonly { readonly metadata: { readonly name: string } }[]) =>
    all.map((one) => one.metadata.name);
  const { claim, release, create, note } = claims;
  return Object.fromEntries(
    Object.entries({ claim, note, release, create, delete: claims.delete })
      .map(([what, all]) => [what, names(all)] as const)
      .filter(([, all]) => all.length > 0),
  );
}

describe('a Volume', () => {
  const tmp = volume('m-tmp', UID, MADE);
  test.each([
    { what: 'that is named and free is claimed', volumes: [volume('a'), tmp], want: { claim: ['a'] } },
    { what: 'that is claimed already stays', volumes: [volume('a', UID, NOTED), tmp], want: {} },
    {
      what: 'that was claimed without a note of the pool gets it',
      volumes: [volume('a', UID), tmp],
      want: { note: ['a'] },
    },
    {
      what: 'that was claimed with a note of another pool gets this one',
      volumes: [volume('a', UID, { annotations: { 'machine.sapcloud.io/claimed-for-pool': 'q' } }), tmp],
      want: { note: ['a'] },
    },
    { what: 'of another Machine is not taken', volumes: [volume('a', 'other'), tmp], want: {} },
    {
      what: 'that is going is not taken',
      volumes: [volume('a', undefined, { deletionTimestamp: '2026-01-01T00:00:00Z' }), tmp],
      want: {},
    },
    { what: 'that is to be made is made', volumes: [], want: { create: ['m-tmp'] } },
    { what: 'that was made is claimed', volumes: [volume('m-tmp', undefined, MADE)], want: { claim: ['m-tmp'] } },
    { what: 'with the name of what is to be made is not taken', volumes: [volume('m-tmp')], want: {} },
    { what: 'that is no longer named is let go', volumes: [tmp, volume('old', UID)], want: { release: ['old'] } },
    {
      what: 'that was made and is no longer named goes',
      volumes: [tmp, volume('m-old', UID, MADE)],
      want: { delete: ['m-old'] },
    },
    {
      what: 'that is of the Machine, but was not made as an ephemeral one, stays',
      volumes: [tmp, volume('m-kept', undefined, { ownerReferences: MADE.ownerReferences })],
      want: {},
    },
  ])('$what', ({ volumes, want }) => {
    expect(done(volumes)).toEqual(want);
  });

  test('that is no longer named stays while the machine may still have it', () => {
    expect(done([tmp, volume('old', UID), volume('m-old', UID, MADE)], false)).toEqual({});
  });

  test('is made as the template says, near the Machine, of its architecture, and goes with it', () => {
    const machine = machineOf({
      machinePoolSelector: { 'topology.ironcore.dev/zone': 'z', other: 'x' },
      volumes: [
        {
          name: 'tmp',
          ephemeral: {
            volumeTemplate: {
              metadata: { labels: { a: 'b' } },
              spec: { volumeClassRef: { name: 'fast' }, dataSource: { osImage: { image: 'os' } } },
            },
          },
        },
      ],
    });
    const machineClass = {
      metadata: meta('c', { labels: { 'common.ironcore.dev/architecture': 'arm64' } }),
      capabilities: {},
    };

    const { create } = volumeClaims(machine, machineClass, { get: () => undefined, own: [], mayRelease: true });

    expect(create).toEqual([
      {
        metadata: {
          name: 'm-tmp',
          namespace: 'ns',
          labels: { a: 'b' },
          ...MADE,
        },
        spec: {
          volumePoolSelector: { 'topology.ironcore.dev/zone': 'z' },
          volumeClassRef: { name: 'fast' },
          dataSource: { osImage: { architecture: 'arm64', image: 'os' } },
        },
      },
    ]);
  });

  test.each([
    { what: 'names no image', template: {}, made: { dataSource: { osImage: { image: 'os', architecture: 'arm64' } } } },
    {
      what: 'names another one',
      template: { dataSource: { osImage: { image: 'own' } } },
      made: { dataSource: { osImage: { image: 'own', architecture: 'arm64' } } },
    },
    {
      what: 'names a snapshot',
      template: { dataSource: { volumeSnapshotRef: { name: 's' } } },
      made: { dataSource: { volumeSnapshotRef: { name: 's' } } },
    },
  ])('is of the image of the spec, if it is the first disk and its template $what', ({ template, made }) => {
    const volumes = ['root', 'data'].map((name) => ({ name, ephemeral: { volumeTemplate: { spec: template } } }));
    const machine = machineOf({ image: 'os', volumes });
    const machineClass = {
      metadata: meta('c', { labels: { 'common.ironcore.dev/architecture': 'arm64' } }),
      capabilities: {},
    };

    const { create } = volumeClaims(machine, machineClass, { get: () => undefined, own: [], mayRelease: true });

    expect(create[0]?.spec).toEqual(made);
    expect(create[1]?.spec?.dataSource?.osImage?.image).not.toBe('os');
  });

  test('is in the zone and region of the Machine, key by key, where its template says nothing else', () => {
    const spec = { volumePoolSelector: { disk: 'ssd', 'topology.ironcore.dev/zone': 'own' } };
    const machine = machineOf({
      machinePoolSelector: { 'topology.ironcore.dev/zone': 'z', 'topology.ironcore.dev/region': 'r', other: 'x' },
      volumes: [{ name: 'tmp', ephemeral: { volumeTemplate: { spec } } }],
    });

    const { create } = volumeClaims(machine, undefined, { get: () => undefined, own: [], mayRelease: true });

    expect(create).toMatchObject([
      {
        spec: {
          volumePoolSelector: { 'topology.ironcore.dev/region': 'r', 'topology.ironcore.dev/zone': 'own', disk: 'ssd' },
        },
      },
    ]);
    expect(create[0]?.spec?.['volumePoolSelector' as never]).not.toHaveProperty('other');
  });

  test('is where its template says, if that says so', () => {
    const spec = { volumePoolSelector: { mine: 'y' }, dataSource: { osImage: { architecture: 'amd64' } } };
    const machine = machineOf({
      machinePoolSelector: { other: 'z' },
      volumes: [{ name: 'tmp', ephemeral: { volumeTemplate: { spec } } }],
    });

    const { create } = volumeClaims(machine, undefined, { get: () => undefined, own: [], mayRelease: true });

    expect(create).toMatchObject([{ spec }]);
  });
});

test('a NetworkInterface that is made is the Machine’s from the beginning', () => {
  const networkInterfaceTemplate = { spec: { networkRef: { name: 'net' } } };
  const machine = machineOf({ networkInterfaces: [{ name: 'eth', ephemeral: { networkInterfaceTemplate } }] });
  const none = { get: (): IronCoreNetworkInterface | undefined => undefined, own: [], mayRelease: true };

  expect(networkInterfaceClaims(machine, none).create).toMatchObject([
    { metadata: { name: 'm-eth' }, spec: { networkRef: { name: 'net' }, machineRef: { name: 'm', uid: UID } } },
  ]);
});
