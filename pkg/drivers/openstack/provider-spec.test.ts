import { readFileSync } from 'node:fs';

import { describe, expect, test } from '@jest/globals';

import { findableIn, marksIn, MEMBERS, parseProviderSpec, PLAIN_PORT, PORT_MEMBERS } from './provider-spec.ts';

const TAGS = { 'kubernetes.io-cluster-shoot--a--b': '1', 'kubernetes.io-role-node': '1' };
const SPEC = {
  imageName: 'ubuntu',
  region: 'eu-1',
  availabilityZone: 'eu-1a',
  flavorName: 'm1.large',
  keyName: 'key',
  securityGroups: ['group'],
  tags: TAGS,
  networkID: 'n-1',
  podNetworkCidr: '100.96.0.0/11',
};

/** A spec with changes; a member that is undefined is not there. */
function config(change: object = {}, more: object = {}): unknown {
  const spec = Object.fromEntries(Object.entries({ ...SPEC, ...change }).filter(([, value]) => value !== undefined));
  return { apiVersion: 'openstack.machine.gardener.cloud/v1alpha1', kind: 'MachineProviderConfig', spec, ...more };
}

describe('a provider spec', () => {
  test("of Gardener's provider is read as it is", () => {
    expect(parseProviderSpec(config())).toEqual({
      region: 'eu-1',
      availabilityZone: 'eu-1a',
      image: { by: 'name', value: 'ubuntu' },
      flavor: { by: 'name', value: 'm1.large' },
      keyName: 'key',
      securityGroups: ['group'],
      tags: TAGS,
      networks: [{ by: 'id', value: 'n-1', isPodNetwork: true, port: PLAIN_PORT }],
      subnetIDs: [],
      podNetworkCIDRs: ['100.96.0.0/11'],
      rootDiskSize: undefined,
      rootDiskType: undefined,
      dataVolumes: [],
      useConfigDrive: undefined,
      serverGroup: undefined,
      floatingIP: undefined,
    });
  });

  test.each([
    {
      what: 'an ID of the image wins over its name',
      change: { imageID: 'i-1' },
      want: { image: { by: 'id', value: 'i-1' } },
    },
    {
      what: 'old and new members for one thing are joined',
      change: { subnetID: 's-1', subnetIDs: ['s-1', 's-2'], podNetworkCIDRs: ['10.0.0.0/8', '100.96.0.0/11'] },
      want: { subnetIDs: ['s-1', 's-2'], podNetworkCIDRs: ['100.96.0.0/11', '10.0.0.0/8'] },
    },
    {
      what: 'networks by ID and by name',
      change: { networkID: undefined, networks: [{ id: 'n-1' }, { name: 'pods', podNetwork: true }] },
      want: {
        networks: [
          { by: 'id', value: 'n-1', isPodNetwork: false },
          { by: 'name', value: 'pods', isPodNetwork: true },
        ],
      },
    },
    {
      what: 'a root disk',
      change: { rootDiskSize: 120, rootDiskType: 'ssd' },
      want: { rootDiskSize: 120, rootDiskType: 'ssd' },
    },
    {
      what: 'bootFromVolume is another word for it',
      change: { bootFromVolume: { enabled: true, volumeSize: 120 } },
      want: { rootDiskSize: 120 },
    },
    {
      what: 'both words that say the same',
      change: { rootDiskSize: 120, bootFromVolume: { enabled: true, volumeSize: 120 } },
      want: { rootDiskSize: 120 },
    },
    {
      what: 'a volume that is not wanted',
      change: { bootFromVolume: { enabled: false, volumeSize: 120 } },
      want: { rootDiskSize: undefined },
    },
    {
      what: 'data volumes in their order',
      change: {
        dataVolumes: [
          { name: 'logs', size: 20 },
          { name: 'a-1', size: 1, type: 'ssd' },
        ],
      },
      want: {
        dataVolumes: [
          { name: 'logs', size: 20, type: undefined },
          { name: 'a-1', size: 1, type: 'ssd' },
        ],
      },
    },
    {
      what: 'a floating IP',
      change: { floatingIP: { networkName: 'public', address: '192.0.2.1' } },
      want: { floatingIP: { by: 'name', network: 'public', address: '192.0.2.1' } },
    },
    {
      what: 'a flavor by ID',
      change: { flavorName: undefined, flavorID: '7' },
      want: { flavor: { by: 'id', value: '7' } },
    },
    { what: 'a server group by ID', change: { serverGroupID: 'g' }, want: { serverGroup: { by: 'id', value: 'g' } } },
    {
      what: 'a server group by name',
      change: { serverGroupName: 'g' },
      want: { serverGroup: { by: 'name', value: 'g' } },
    },
    {
      what: 'no zone, no key and no pod network',
      change: { availabilityZone: undefined, keyName: undefined, podNetworkCidr: undefined },
      want: { availabilityZone: undefined, keyName: undefined, podNetworkCIDRs: [] },
    },
    {
      what: 'what the port of a network is like',
      change: {
        networkID: undefined,
        networks: [
          { id: 'n-1', portSecurity: false, securityGroups: [] },
          { id: 'n-2', securityGroups: ['g'], vnicType: 'direct', profile: { a: 1 }, fixedIP: '10.0.0.9' },
        ],
      },
      want: {
        networks: [
          { port: { ...PLAIN_PORT, hasPortSecurity: false, securityGroups: [] } },
          {
            port: { ...PLAIN_PORT, securityGroups: ['g'], vnicType: 'direct', profile: { a: 1 }, fixedIP: '10.0.0.9' },
          },
        ],
      },
    },
  ])('$what', ({ change, want }) => {
    expect(parseProviderSpec(config(change))).toMatchObject(want);
  });

  test.each([
    { change: { imageName: undefined }, says: 'spec.imageID: must be set, or providerSpec.spec.imageName' },
    { change: { flavorName: '' }, says: 'spec.flavorID: must be set, or providerSpec.spec.flavorName' },
    { change: { flavorID: 'f' }, says: 'spec.flavorID: providerSpec.spec.flavorName is also set' },
    { change: { serverGroupID: 'g', serverGroupName: 'g' }, says: 'spec.serverGroupName is also set' },
    { change: { serverGroupName: 7 }, says: 'spec.serverGroupName: must be a non-empty string' },
    {
      change: { networkID: undefined, networks: [{ id: 'a', portSecurity: false, securityGroups: ['g'] }] },
      says: 'networks[0].securityGroups: a port without port security has no security groups',
    },
    { change: { networkID: undefined, networks: [{ id: 'a', portSecurity: 'no' }] }, says: 'networks[0].portSecurity' },
    { change: { networkID: undefined, networks: [{ id: 'a', profile: 'x' }] }, says: 'networks[0].profile' },
    { change: { region: undefined }, says: 'spec.region' },
    { change: { availabilityZone: 7 }, says: 'spec.availabilityZone' },
    { change: { keyName: 7 }, says: 'spec.keyName' },
    { change: { networkID: undefined }, says: 'spec.networkID: must be set, or networks' },
    { change: { networks: [{ id: 'n-2' }] }, says: 'spec.networkID: networks is also set' },
    { change: { networkID: undefined, networks: [{ id: 'a', name: 'b' }] }, says: 'networks[0].name is also set' },
    { change: { networkID: undefined, networks: [{}] }, says: 'spec.networks[0].id: must be set' },
    {
      change: { networkID: undefined, networks: [{ id: 'a' }], subnetIDs: ['s'] },
      says: 'spec.subnetIDs: is only valid with',
    },
    { change: { podNetworkCIDRs: 'all' }, says: 'spec.podNetworkCIDRs: must be a list' },
    { change: { securityGroups: 'group' }, says: 'spec.securityGroups: must be a list' },
    { change: { tags: { 'kubernetes.io-role-node': '1' } }, says: 'spec.tags: must have a key with' },
    { change: { tags: { ...TAGS, 'a/b': '1' } }, says: '"a/b" is not a valid key of server metadata' },
    { change: { tags: { ...TAGS, 'machinist-uid': '1' } }, says: 'the prefix machinist- is reserved' },
    { change: { tags: { ...TAGS, a: 'x'.repeat(256) } }, says: 'spec.tags.a: must have at most 255' },
    { change: { dataVolumes: {} }, says: 'spec.dataVolumes: must be a list' },
    { change: { dataVolumes: [{ size: 1 }] }, says: 'spec.dataVolumes[0].name' },
    { change: { dataVolumes: [{ name: 'Logs', size: 1 }] }, says: 'spec.dataVolumes[0].name: must consist of' },
    { change: { dataVolumes: [{ name: 'a'.repeat(51), size: 1 }] }, says: 'spec.dataVolumes[0].name: must consist of' },
    { change: { dataVolumes: [{ name: 'a' }] }, says: 'spec.dataVolumes[0].size' },
    { change: { dataVolumes: [{ name: 'a', size: 0 }] }, says: 'spec.dataVolumes[0].size' },
    { change: { dataVolumes: [{ name: 'a', size: 1, image: 'i' }] }, says: 'spec.dataVolumes[0].image' },
    {
      change: { dataVolumes: ['a', 'b', 'a'].map((name) => ({ name, size: 1 })) },
      says: 'spec.dataVolumes[2].name: another entry has this name',
    },
    { change: { rootDiskSize: -1 }, says: 'spec.rootDiskSize' },
    { change: { rootDiskSize: 1.5 }, says: 'spec.rootDiskSize: must be a whole number' },
    {
      change: { rootDiskSize: 50, bootFromVolume: { enabled: true, volumeSize: 120 } },
      says: 'spec.bootFromVolume: differs from rootDiskSize',
    },
    { change: { bootFromVolume: { enabled: true } }, says: 'spec.bootFromVolume.volumeSize' },
    { change: { floatingIP: {} }, says: 'spec.floatingIP.networkID: must be set' },
    { change: { flavor: 'm1' }, says: 'spec.flavor: unknown field' },
  ])('with a mistake names the member: $says', ({ change, says }) => {
    expect(() => parseProviderSpec(config(change))).toThrow(says);
  });

  test.each([
    { more: { kind: 'Other' }, says: 'providerSpec.kind' },
    { more: { apiVersion: 'v1' }, says: 'providerSpec.apiVersion' },
    { more: { spec: [] }, says: 'providerSpec.spec: must be an object' },
  ])('of another kind is refused: $says', ({ more, says }) => {
    expect(() => parseProviderSpec(config({}, more))).toThrow(says);
  });
});

test('what finds a server is read of a spec that is wrong otherwise', () => {
  expect(findableIn(config({ flavorName: undefined, rootDiskSize: 'big' }))).toEqual({
    region: 'eu-1',
    marks: Object.keys(TAGS),
    hasFloatingIP: false,
    hasDisk: true,
  });
  expect(findableIn('nonsense')).toEqual({ region: undefined, marks: [], hasFloatingIP: false, hasDisk: false });
  expect(marksIn({ 'kubernetes.io-role-node': '' })).toEqual(['kubernetes.io-role-node']);
});

test.each([
  { floatingIP: undefined, isAllocated: false },
  { floatingIP: null, isAllocated: false },
  { floatingIP: { networkName: 'public', address: '192.0.2.1' }, isAllocated: false },
  { floatingIP: { networkName: 'public' }, isAllocated: true },
])(
  'floating IPs of a class with $floatingIP are allocated for its machines: $isAllocated',
  ({ floatingIP, isAllocated }) => {
    expect(findableIn(config({ floatingIP })).hasFloatingIP).toBe(isAllocated);
  },
);

test.each([
  { more: {}, hasDisk: false },
  { more: { rootDiskSize: 0 }, hasDisk: false },
  { more: { bootFromVolume: { enabled: false, volumeSize: 3 } }, hasDisk: false },
  { more: { bootFromVolume: { enabled: true, volumeSize: 3 } }, hasDisk: true },
  { more: { rootDiskSize: 3 }, hasDisk: true },
  { more: { rootDiskType: 'ssd' }, hasDisk: false },
])('a class with $more has disks that its deletions look for: $hasDisk', ({ more, hasDisk }) => {
  expect(findableIn(config(more)).hasDisk).toBe(hasDisk);
});

/** What `MachineProviderConfigSpec` of Gardener's provider has, at 07427c68; of an entry of its networks `id`, `name` and `podNetwork`. */
const OF_GARDENERS =
  'imageID imageName region availabilityZone flavorName keyName securityGroups tags networkID subnetID subnetIDs podNetworkCidr ' +
  'podNetworkCIDRs rootDiskSize rootDiskType useConfigDrive serverGroupID networks';

/** What it requires beside the members without which a class is none here either: validation.go; also what Secrets need. */
const REQUIRED_BY_GARDENERS = ['availabilityZone', 'flavorName', 'keyName', 'podNetworkCIDRs'];
const OF_SECRETS = ['domainName', 'domainID', 'tenantName', 'tenantID'];

/** The names in the row of a table under _Rolling back to it_ that says `end`. */
function rollbackNames(end: string): readonly string[] {
  const page = readFileSync('docs/operations/openstack.md', 'utf8');
  const rows = page.split('### Rolling back to it')[1]?.split('##')[0]?.split('\n') ?? [];
  return [...(rows.find((row) => row.includes(end))?.matchAll(/`(\w+)`/g) ?? [])].map(([, name = '']) => name);
}

test('the page names what Gardener’s provider requires of classes and Secrets, which may be missing here', () => {
  expect(rollbackNames('| a class before').toSorted()).toEqual(REQUIRED_BY_GARDENERS);
  expect(rollbackNames('| a Secret, also')).toEqual(OF_SECRETS);
  expect(rollbackNames('| a Secret with')).toEqual(['username', 'userID']);

  const missing = { availabilityZone: undefined, flavorName: undefined, keyName: undefined, podNetworkCidr: undefined };
  expect(() => parseProviderSpec(config({ ...missing, flavorID: 'f' }))).not.toThrow();
});

test('the page names the members that Gardener’s provider rejects, all of them', () => {
  const namesOf = rollbackNames;
  const isOurs = (member: string): boolean => !OF_GARDENERS.split(' ').includes(member);
  expect(namesOf('| the class').toSorted()).toEqual(MEMBERS.filter(isOurs).toSorted());
  expect(
    namesOf('| an entry of')
      .filter((name) => name !== 'networks')
      .toSorted(),
  ).toEqual(PORT_MEMBERS.toSorted());
});
