import { describe, expect, test } from '@jest/globals';

import type { MachineIdentity } from '../machine-identity.ts';
import { intentText, leftMsOf, ownerText, parseIntent } from './intent.ts';
import {
  clusterTagOf,
  isServerMadeFor,
  isMarked,
  isServerOf,
  metadataOf,
  serverOwnerOf,
  parseProviderID,
  openStackProviderID,
} from './ownership.ts';
import { parseProviderSpec } from './provider-spec.ts';
import { addressesOf, capacityOf, type Server, serverBody, serverStateOf, survivorOf } from './server.ts';
import { cinderVolumeIDOf } from './volume-ids.ts';

const MACHINE: MachineIdentity = { cluster: 'c-1', namespace: 'shoot', name: 'm-1', uid: 'u-1', providerID: undefined };
const TAGS = { 'kubernetes.io-cluster-a': '1', 'kubernetes.io-role-node': '1' };
const CREATED = '2026-01-01T00:00:00Z';
const CREATED_MS = Date.parse(CREATED);
const BUILD_MS = 1_200_000;

function server(change: Partial<Server> = {}): Server {
  const metadata = metadataOf(MACHINE, 'class-1', TAGS);
  return { id: 's-1', name: 'm-1', status: 'ACTIVE', created: CREATED, metadata, addresses: {}, ...change };
}

const launched = { 'OS-SRV-USG:launched_at': '2026-01-01T00:00:01.000000' };

describe('a server', () => {
  test.each<{ change: Partial<Server>; ageMs?: number; state: string }>([
    { change: launched, state: 'there' },
    { change: { ...launched, status: 'SHUTOFF' }, state: 'there' },
    { change: { ...launched, status: 'ERROR' }, state: 'there' },
    { change: { status: 'BUILD' }, state: 'building' },
    { change: { status: 'BUILD' }, ageMs: BUILD_MS, state: 'failed' },
    { change: { status: 'BUILD', created: 'nonsense' }, ageMs: BUILD_MS, state: 'building' },
    { change: { status: 'ERROR', 'OS-SRV-USG:launched_at': null }, state: 'failed' },
    { change: { status: 'ERROR' }, state: 'there' },
    { change: { ...launched, 'OS-EXT-STS:task_state': 'deleting' }, state: 'failed' },
    { change: { status: 'UNKNOWN' }, state: 'there' },
    { change: { status: 'DELETED' }, state: 'gone' },
    { change: { ...launched, status: 'SOFT_DELETED' }, state: 'gone' },
  ])('$change after $ageMs ms is $state', ({ change, ageMs = 0, state }) => {
    expect(serverStateOf(server(change), CREATED_MS + ageMs, BUILD_MS)).toBe(state);
  });

  test('shows the addresses of all its networks, floating ones last', () => {
    const addresses = {
      a: [
        { addr: '192.0.2.1', 'OS-EXT-IPS:type': 'floating' },
        { addr: '10.0.0.1', 'OS-EXT-IPS:type': 'fixed' },
      ],
      b: [{ addr: '10.1.0.1' }],
    };

    expect(addressesOf({ addresses })).toEqual([
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'InternalIP', address: '10.1.0.1' },
      { type: 'ExternalIP', address: '192.0.2.1' },
    ]);
  });

  test.each<{ flavor: Server['flavor']; capacity: object | undefined }>([
    { flavor: { vcpus: 4, ram: 8_192 }, capacity: { cpu: '4', memory: '8192Mi' } },
    { flavor: { vcpus: 4 }, capacity: undefined },
    { flavor: { vcpus: '4', ram: 0 }, capacity: undefined },
    { flavor: undefined, capacity: undefined },
  ])('of flavor $flavor has $capacity', ({ flavor, capacity }) => {
    expect(capacityOf(flavor === undefined ? {} : { flavor })).toEqual(capacity);
  });

  test.each([
    { devices: ['s-2'], stays: 's-2' },
    { devices: [''], stays: 's-1' },
    { devices: [], stays: 's-1' },
  ])('stays of several when a port is bound to it, else because it is the oldest: $stays', ({ devices, stays }) => {
    const servers = [server({ id: 's-2', created: '2026-01-01T00:00:05Z' }), server(), server({ id: 's-3' })];

    expect(survivorOf(servers, new Set(devices))?.id).toBe(stays);
  });

  test('carries whose it is', () => {
    expect(server().metadata).toEqual({
      ...TAGS,
      'machinist-cluster': 'c-1',
      'machinist-namespace': 'shoot',
      'machinist-class': 'class-1',
      'machinist-uid': 'u-1',
    });
    expect(serverOwnerOf(server(), 'eu-1')).toEqual({ ...MACHINE, providerID: 'openstack:///eu-1/s-1' });
    expect(serverOwnerOf(server({ metadata: TAGS }), 'eu-1')).toBeUndefined();
  });

  test.each<{ what: string; change: Partial<Server>; machine: Partial<MachineIdentity>; is: boolean; made: boolean }>([
    { what: 'its own', change: {}, machine: {}, is: true, made: true },
    { what: 'that of another UID', change: {}, machine: { uid: 'u-2' }, is: false, made: false },
    { what: 'that of another cluster', change: {}, machine: { cluster: 'c-2' }, is: false, made: false },
    { what: "an earlier provider's", change: { metadata: TAGS }, machine: {}, is: true, made: false },
    { what: 'that of another name', change: { name: 'm-2' }, machine: {}, is: false, made: true },
    {
      what: 'that of its provider id',
      change: { name: 'm-2' },
      machine: { providerID: 'openstack:///eu-1/s-1' },
      is: true,
      made: true,
    },
  ])('is $what: $is', ({ change, machine, is, made }) => {
    expect(isServerOf(server(change), { ...MACHINE, ...machine }, 'eu-1')).toBe(is);
    expect(isServerMadeFor(server(change), { ...MACHINE, ...machine })).toBe(made);
  });

  test('that has lost a tag of its class is not marked', () => {
    expect(isMarked(server(), Object.keys(TAGS))).toBe(true);
    expect(isMarked(server({ metadata: { 'kubernetes.io-role-node': '1' } }), Object.keys(TAGS))).toBe(false);
  });
});

test.each([
  { providerID: 'openstack:///eu-1/s-1', want: { region: 'eu-1', id: 's-1' } },
  { providerID: 'openstack:////s-1', want: { region: '', id: 's-1' } },
  { providerID: 'openstack://eu-1/s-1', want: undefined },
  { providerID: 'cloud://elsewhere/s-1', want: undefined },
  { providerID: undefined, want: undefined },
])('the provider ID $providerID names $want', ({ providerID, want }) => {
  expect(parseProviderID(providerID)).toEqual(want);
});

test('provider IDs are those of the cloud controller manager', () => {
  expect(openStackProviderID('eu-1', 's-1')).toBe('openstack:///eu-1/s-1');
});

test.each([
  { cluster: 'c-1', tag: 'machinist-c-1' },
  { cluster: 'a/b', tag: undefined },
  { cluster: 'x'.repeat(60), tag: undefined },
])('the cluster $cluster has tag $tag', ({ cluster, tag }) => {
  expect(clusterTagOf(cluster)).toBe(tag);
});

describe('the intent on a port', () => {
  const owner = ownerText(MACHINE);

  test.each([
    { owner, sent: undefined },
    { owner, sent: { atMs: 1_767_225_600_000, by: 'a-b-c' } },
  ])('is read as it was written: $sent', (intent) => {
    expect(parseIntent(intentText(intent))).toEqual(intent);
  });

  test('is told from other descriptions, and fits in', () => {
    expect(parseIntent('')).toBeUndefined();
    expect(parseIntent('by hand')).toBeUndefined();
    const uid = '0'.repeat(36);
    const longest = ownerText({ ...MACHINE, cluster: uid, namespace: 'n'.repeat(63), uid });
    expect(intentText({ owner: longest, sent: { atMs: CREATED_MS, by: uid } }).length).toBeLessThan(256);
  });

  test('keeps names apart that hold its own separators', () => {
    const odd = ownerText({ ...MACHINE, cluster: 'c sent=1 by=x' });
    expect(parseIntent(odd)).toEqual({ owner: odd, sent: undefined });
  });

  test.each([
    { sentAgoMs: undefined, left: 0 },
    { sentAgoMs: 0, left: 120_000 },
    { sentAgoMs: 119_000, left: 1_000 },
    { sentAgoMs: 120_000, left: 0 },
    { sentAgoMs: -3_600_000, left: 120_000 },
  ])('sent $sentAgoMs ms ago holds for $left ms more', ({ sentAgoMs, left }) => {
    const sent = sentAgoMs === undefined ? undefined : { atMs: CREATED_MS - sentAgoMs, by: 'x' };

    expect(leftMsOf({ owner, sent }, CREATED_MS, 120_000)).toBe(left);
  });
});

describe('the request for a server', () => {
  const spec = (change: object = {}) =>
    parseProviderSpec({
      spec: {
        imageID: 'i-1',
        region: 'eu-1',
        availabilityZone: 'eu-1a',
        flavorName: 'm1',
        keyName: 'key',
        tags: TAGS,
        networkID: 'n-1',
        podNetworkCidr: '100.96.0.0/11',
        ...change,
      },
    });
  const parts = {
    name: 'm-1',
    flavorID: 'f-1',
    imageID: 'i-1',
    portIDs: ['p-1', 'p-2'],
    serverGroupID: undefined,
    disks: { root: undefined, data: [] },
    metadata: TAGS,
    tags: ['machinist-c-1'],
    userData: 'IyEvYmluL3No',
  };

  test('names all by ID', () => {
    expect(serverBody(spec(), parts)).toEqual({
      server: {
        name: 'm-1',
        flavorRef: 'f-1',
        imageRef: 'i-1',
        networks: [{ port: 'p-1' }, { port: 'p-2' }],
        metadata: TAGS,
        user_data: 'IyEvYmluL3No',
        availability_zone: 'eu-1a',
        key_name: 'key',
        tags: ['machinist-c-1'],
      },
    });
  });

  // promise: openstack/cloud/boot-volume-volume-size
  test('takes a volume that was made before, which goes with the server whoever deletes it', () => {
    const body = serverBody(spec({ rootDiskSize: 50, rootDiskType: 'ssd' }), {
      ...parts,
      disks: { root: 'v-1', data: [] },
    });

    expect(body).toMatchObject({
      server: {
        block_device_mapping_v2: [
          {
            boot_index: 0,
            uuid: 'v-1',
            volume_size: 50,
            source_type: 'volume',
            destination_type: 'volume',
            delete_on_termination: true,
          },
        ],
      },
    });
  });

  test.each([
    {
      what: 'behind the volume that is its root disk',
      change: { rootDiskSize: 50 },
      disks: { root: 'v-1', data: ['v-2', 'v-3'] },
      first: { boot_index: 0, uuid: 'v-1', source_type: 'volume', destination_type: 'volume' },
      imageRef: undefined,
    },
    {
      what: 'behind the disk of its flavor, on which the image then is to be',
      change: {},
      disks: { root: undefined, data: ['v-2', 'v-3'] },
      first: { boot_index: 0, uuid: 'i-1', source_type: 'image', destination_type: 'local' },
      imageRef: 'i-1',
    },
  ])('takes data volumes in their order $what', ({ change, disks, first, imageRef }) => {
    const { server: body } = serverBody(spec(change), { ...parts, disks }) as { server: Record<string, unknown> };

    const volume = { boot_index: -1, source_type: 'volume', destination_type: 'volume', delete_on_termination: true };
    expect(body['block_device_mapping_v2']).toEqual([
      expect.objectContaining({ ...first, delete_on_termination: true }),
      { ...volume, uuid: 'v-2' },
      { ...volume, uuid: 'v-3' },
    ]);
    expect(body['imageRef']).toBe(imageRef);
  });

  test('leaves zone and key to Nova when its class says none', () => {
    const body = serverBody(spec({ availabilityZone: undefined, keyName: undefined }), parts) as { server: object };

    expect(Object.keys(body.server)).toEqual([
      'name',
      'flavorRef',
      'imageRef',
      'networks',
      'metadata',
      'user_data',
      'tags',
    ]);
  });

  test('carries config drive and server group', () => {
    expect(serverBody(spec({ useConfigDrive: true }), { ...parts, serverGroupID: 'g-1', tags: [] })).toMatchObject({
      server: { config_drive: true },
      'os:scheduler_hints': { group: 'g-1' },
    });
  });
});

test.each([
  { spec: { cinder: { volumeID: 'v-1' } }, id: 'v-1' },
  { spec: { csi: { driver: 'cinder.csi.openstack.org', volumeHandle: 'v-1' } }, id: 'v-1' },
  { spec: { csi: { driver: 'ebs.csi.aws.com', volumeHandle: 'v-1' } }, id: undefined },
  { spec: undefined, id: undefined },
])('the volume of $spec is $id', ({ spec, id }) => {
  expect(cinderVolumeIDOf(spec)).toBe(id);
});
