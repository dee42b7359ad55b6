import { describe, expect, test } from '@jest/globals';

import { clusterMachine, clusterSettings } from '../../../../test/cluster-machine.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { frontEndField } from '../../../controllers/machine-facts/front-end-field.ts';
import { parseProviderSpec } from '../../../drivers/openstack/provider-spec.ts';
import { MIRANTIS_POOL_LABEL } from '../api/machine.ts';
import { clusterMachines, machinePools } from '../api/resources.ts';
import { readClusterSettings } from './cluster-settings.ts';
import { readProviderValue, type ProviderValue } from './provider-value.ts';
import { changeFor, classFor, fixedFieldsChanged, desiredMachine } from './desired-machine.ts';

const AT = 'spec.providerSpec.value';

function valueOf(change: object = {}): ProviderValue {
  const { value, problems } = readProviderValue(clusterMachine(change));
  if (value === undefined) throw new Error(problems.join());
  return value;
}

function madeClass(
  change: object = {},
  settings: Readonly<Record<string, string | undefined>> = {},
  metadata: object = {},
) {
  const read = readClusterSettings(clusterSettings(settings));
  if (read.value === undefined) throw new Error(read.problems.join());
  return classFor(clusterMachine(change, metadata), valueOf(change).server, read.value);
}

describe('what a Machine asks for', () => {
  test('without more is a server, deleted as the documentation says', () => {
    expect(valueOf({ apiVersion: 'openstackproviderconfig.k8s.io/v1alpha', unknown: [1] })).toEqual({
      server: {
        availabilityZone: 'nova',
        flavor: 'kaas.small',
        image: 'bionic',
        securityGroups: ['ctrl', 'glob'],
        rootDiskSize: undefined,
      },
      nodeLabels: {},
      maintenance: false,
      upgradeIndex: undefined,
      deletionPolicy: undefined,
      delete: false,
    });
  });

  test.each([
    { change: { apiVersion: 'v1' }, says: `${AT}.apiVersion: must be openstackproviderconfig.k8s.io/v1alpha1` },
    { change: { kind: 'Other' }, says: `${AT}.kind` },
    { change: { flavor: '' }, says: `${AT}.flavor: must be the name of a flavor` },
    { change: { image: 7 }, says: `${AT}.image` },
    { change: { availabilityZone: undefined }, says: `${AT}.availabilityZone` },
    { change: { securityGroups: 'one' }, says: `${AT}.securityGroups: must be a list` },
    { change: { securityGroups: ['a', ''] }, says: `${AT}.securityGroups[1]` },
    { change: { nodeLabels: [{ key: 'no key', value: 'x' }] }, says: `${AT}.nodeLabels[0].key: must be` },
    { change: { nodeLabels: [{ key: 'a', value: 'no value' }] }, says: `${AT}.nodeLabels[0].value: must be` },
    { change: { nodeLabels: ['a'] }, says: `${AT}.nodeLabels[0]: must be an object` },
    {
      change: {
        nodeLabels: [
          { key: 'a', value: '1' },
          { key: 'a', value: '2' },
        ],
      },
      says: `${AT}.nodeLabels[1].key: a is listed twice`,
    },
    { change: { maintenance: 'yes' }, says: `${AT}.maintenance: must be true or false` },
    { change: { upgradeIndex: 0 }, says: `${AT}.upgradeIndex: must be a whole number from 1` },
    { change: { upgradeIndex: 1.5 }, says: `${AT}.upgradeIndex` },
    { change: { bootFromVolume: true }, says: `${AT}.bootFromVolume: must be an object` },
    { change: { bootFromVolume: { enabled: true } }, says: `${AT}.bootFromVolume.volumeSize: must be set` },
    { change: { bootFromVolume: { volumeSize: 1 } }, says: `${AT}.bootFromVolume.enabled: must be set` },
    { change: { deletionPolicy: 'careful' }, says: `${AT}.deletionPolicy: must be graceful, unsafe, forced` },
    { change: { delete: 1 }, says: `${AT}.delete` },
  ])('is wrong: $says', ({ change, says }) => {
    const { problems = [] } = readProviderValue(clusterMachine(change));

    expect(problems.filter((problem) => problem.startsWith(says))).not.toEqual([]);
  });
});

describe('the settings of a Cluster', () => {
  test('without key pair and pod networks leave both out of the class', () => {
    const { value: whole } = readClusterSettings(clusterSettings());
    const { value: bare } = readClusterSettings(clusterSettings({ keyName: undefined, podNetworkCIDRs: '' }));
    const membersOf = (settings: NonNullable<typeof whole>): readonly string[] => {
      const { value } = readProviderValue(clusterMachine());
      const { providerSpec } = classFor(clusterMachine(), (value as NonNullable<typeof value>).server, settings);
      return Object.keys((providerSpec as { spec: object }).spec);
    };

    const optional = new Set(['keyName', 'podNetworkCIDRs']);
    const all = membersOf(whole as NonNullable<typeof whole>);
    expect(all).toEqual(expect.arrayContaining([...optional]));
    expect(membersOf(bare as NonNullable<typeof bare>)).toEqual(all.filter((name) => !optional.has(name)));
  });

  test.each([
    { change: { region: undefined }, says: 'data.region: must be set' },
    { change: { networkID: undefined }, says: 'data.networkID: must be set, or networkName' },
    { change: { networkName: 'n' }, says: 'data.networkID: networkName is also set' },
    {
      change: { floatingNetworkID: 'a', floatingNetworkName: 'b' },
      says: 'data.floatingNetworkID: floatingNetworkName',
    },
    {
      change: { networkID: undefined, networkName: 'n', subnetIDs: 's' },
      says: 'data.subnetIDs: is only valid with networkID',
    },
    { change: { keyname: 'key' }, says: 'data.keyname: unknown' },
  ])('are wrong: $says', ({ change, says }) => {
    const { problems = [] } = readClusterSettings(clusterSettings(change));

    expect(problems.join()).toContain(`ConfigMap cluster-1, ${says}`);
  });
});

describe('the class of a Machine', () => {
  test.each([
    { what: 'as little as possible', settings: {}, change: {} },
    { what: 'a volume', settings: {}, change: { bootFromVolume: { enabled: true, volumeSize: 120 } } },
    { what: 'a network by name', settings: { networkID: undefined, networkName: 'net' }, change: {} },
    {
      what: 'subnets and a floating IP',
      settings: { subnetIDs: 's-1, s-2', floatingNetworkName: 'public' },
      change: {},
    },
  ])('is what the driver takes: $what', ({ settings, change }) => {
    const spec = parseProviderSpec(madeClass(change, settings).providerSpec);

    expect(spec).toMatchObject({
      flavor: { by: 'name', value: 'kaas.small' },
      image: { by: 'name', value: 'bionic' },
      securityGroups: ['ctrl', 'glob'],
    });
    expect(Object.keys(spec.tags)).toEqual(['kubernetes.io-cluster-default.cluster-1', 'kubernetes.io-role-node']);
    expect(spec.rootDiskSize).toBe('bootFromVolume' in change ? 120 : undefined);
  });

  test('is shared by equal Machines, and by no others', () => {
    const { metadata } = madeClass();

    expect(madeClass({ maintenance: true, nodeLabels: [{ key: 'a', value: 'b' }] }).metadata.name).toBe(metadata.name);
    expect(metadata.name).toMatch(/^mcc-[0-9a-f]{16}$/);
    const labels = { 'cluster.sigs.k8s.io/cluster-name': 'cluster-1', 'cluster.sigs.k8s.io/control-plane': '' };
    const others = [madeClass({ flavor: 'other' }), madeClass({}, { region: 'us' }), madeClass({}, {}, { labels })];
    expect(new Set([metadata.name, ...others.map((one) => one.metadata.name)]).size).toBe(4);
  });

  test('does not fit any more when the server is wanted otherwise', () => {
    const was = madeClass();

    expect(fixedFieldsChanged(valueOf().server, was)).toEqual([]);
    const change = { image: 'x', securityGroups: [], bootFromVolume: { enabled: true, volumeSize: 1 } };
    expect(fixedFieldsChanged(valueOf(change).server, was)).toEqual(['image', 'securityGroups', 'bootFromVolume']);
  });
});

describe('our Machine', () => {
  const made = (change: object = {}): Machine => {
    const { metadata, ...rest } = desiredMachine(clusterMachine(change), valueOf(change), 'mcc-1');
    return { ...rest, metadata: { creationTimestamp: '', uid: 'u', resourceVersion: '1', ...metadata } };
  };

  test('has the name and is owned', () => {
    const { metadata, spec } = made({ deletionPolicy: 'graceful', nodeLabels: [{ key: 'a', value: 'b' }] });

    expect(metadata).toMatchObject({
      name: 'm-1',
      labels: { 'cluster.sigs.k8s.io/cluster-name': 'cluster-1' },
      annotations: { 'machine.sapcloud.io/deletion-policy': 'graceful' },
      ownerReferences: [{ apiVersion: 'cluster.k8s.io/v1alpha1', kind: 'Machine', name: 'm-1', uid: 'uid-of-front' }],
    });
    expect(spec).toEqual({
      class: { kind: 'MachineClass', name: 'mcc-1' },
      nodeTemplate: { metadata: { labels: { a: 'b' } } },
    });
  });

  test('is said to be set by the object that it was made of, or by its pool', () => {
    const nameOf = ({ plural, group }: { readonly plural: string; readonly group: string }) => `${plural}.${group}`;
    const one = made();
    expect(frontEndField(one, 'maintenance')).toBe(`${AT}.maintenance of ${nameOf(clusterMachines)} m-1`);

    one.metadata.labels = { [MIRANTIS_POOL_LABEL]: 'p' };
    one.metadata.ownerReferences = [{ apiVersion: 'v1', kind: 'MachineSet', name: 's', uid: 'u', controller: true }];
    const ofPool = `spec.machineSpec.providerSpec.value.deletionPolicy of ${nameOf(machinePools)} p`;
    expect(frontEndField(one, 'deletionPolicy')).toBe(ofPool);
  });

  test.each([
    { what: 'nothing', from: {}, to: {}, want: undefined },
    {
      what: 'maintenance begins',
      from: {},
      to: { maintenance: true },
      want: { metadata: { annotations: { 'machine.sapcloud.io/maintenance': 'true' } } },
    },
    {
      what: 'maintenance ends',
      from: { maintenance: true },
      to: { maintenance: false },
      want: { metadata: { annotations: { 'machine.sapcloud.io/maintenance': null } } },
    },
    {
      what: 'deletion is asked for, and the order set',
      from: {},
      to: { delete: true, upgradeIndex: 3 },
      want: {
        metadata: {
          annotations: { 'machine.sapcloud.io/prepare-deletion': 'true', 'machine.sapcloud.io/upgrade-index': '3' },
        },
      },
    },
    {
      what: 'deletion is aborted',
      from: { delete: true },
      to: {},
      want: { metadata: { annotations: { 'machine.sapcloud.io/prepare-deletion': null } } },
    },
    {
      what: 'labels change',
      from: { nodeLabels: [{ key: 'a', value: '1' }] },
      to: { nodeLabels: [{ key: 'b', value: '2' }] },
      want: { spec: { nodeTemplate: { metadata: { labels: { a: null, b: '2' } } } } },
    },
  ])('follows: $what', ({ from, to, want }) => {
    expect(changeFor(made(from), valueOf(to), 'mcc-1')).toEqual(want);
  });

  test('takes another class, and keeps what others have noted on it', () => {
    const ours = made();
    ours.metadata.annotations = { ...ours.metadata.annotations, 'example.com/note': 'x' };

    expect(changeFor(ours, valueOf(), 'mcc-2')).toEqual({ spec: { class: { name: 'mcc-2' } } });
  });

  test('that is being deleted follows in its policy alone', () => {
    const ours = made({ deletionPolicy: 'graceful' });
    ours.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    const change = changeFor(ours, valueOf({ deletionPolicy: 'forced', maintenance: true, delete: true }), 'mcc-2');

    expect(change).toEqual({ metadata: { annotations: { 'machine.sapcloud.io/deletion-policy': 'forced' } } });
  });
});
