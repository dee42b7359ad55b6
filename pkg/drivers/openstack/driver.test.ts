import { beforeEach, describe, expect, test } from '@jest/globals';

import { callOf, classOf, requestOf, stubOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeOpenStack } from '../../../test/fakes/fake-openstack.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { OpenStackDriver } from './driver.ts';
import { ownerText } from './intent.ts';
import { metadataOf } from './ownership.ts';
import type { Server } from './server.ts';
import { DEFAULT_OPENSTACK_SETTINGS } from './settings.ts';

const TAGS = { 'kubernetes.io-cluster-x': '1', 'kubernetes.io-role-worker': '1' };
const SPEC = { imageID: 'i-1', region: 'region', flavorID: 'f', tags: TAGS, networkID: 'n-1' };
const machineClass = classOf('openstack', { spec: SPEC });
const identity = { cluster: 'c-1', namespace: 'shoot', name: 'm-1', uid: 'u-m-1', providerID: undefined };

let cloud: FakeOpenStack;
let driver: OpenStackDriver;

beforeEach(() => {
  cloud = new FakeOpenStack(new FakeClock());
  driver = newDriver();
});

function newDriver(): OpenStackDriver {
  const known = cloud.cloud();
  return new OpenStackDriver({
    settings: DEFAULT_OPENSTACK_SETTINGS,
    clock: cloud.clock,
    log: silentLogger,
    clouds: { open: () => known, close: async () => await Promise.resolve() },
  });
}

function serverOf(id: string, change: Partial<Server> = {}): Server {
  const metadata = metadataOf(identity, machineClass.metadata.name, TAGS);
  const made = { created: '2026-01-01T00:00:00Z', addresses: {}, 'OS-SRV-USG:launched_at': 'x' };
  return { id, name: 'm-1', status: 'ACTIVE', metadata, ...made, ...change };
}

describe('the servers of a class', () => {
  const metadata = (change: object) => ({ ...serverOf('').metadata, ...change });

  test.each([
    { what: 'made for it', change: {}, isListed: true },
    { what: 'of another cluster', change: { metadata: metadata({ 'machinist-cluster': 'c-2' }) }, isListed: false },
    { what: 'of another namespace', change: { metadata: metadata({ 'machinist-namespace': 'x' }) }, isListed: false },
    { what: 'of another class', change: { metadata: metadata({ 'machinist-class': 'x' }) }, isListed: false },
    { what: 'without one of its tags', change: { metadata: { 'kubernetes.io-cluster-x': '1' } }, isListed: false },
    { what: 'of an earlier provider', change: { metadata: TAGS }, isListed: true },
    { what: 'that Nova keeps after its deletion', change: { status: 'SOFT_DELETED' }, isListed: false },
    { what: 'whose build failed', change: { status: 'ERROR', 'OS-SRV-USG:launched_at': null }, isListed: true },
  ])('list one $what: $isListed', async ({ change, isListed }) => {
    // Lists of Nova leave out what it keeps; whoever asks an older one is not to rely on that.
    const server = serverOf('s-1', change);
    cloud.answer = (request) =>
      request.startsWith('GET compute /servers/detail')
        ? { status: 200, headers: {}, body: { servers: [server] } }
        : undefined;

    const { secretData } = requestOf('m-1', machineClass);
    const listed = await driver.listMachines({ machineClass, secretData }, callOf());

    expect(listed.map(({ providerID }) => providerID)).toEqual(isListed ? ['openstack:///region/s-1'] : []);
  });
});

describe('the status of a machine', () => {
  const withFloatingIP = classOf('openstack', { spec: { ...SPEC, floatingIP: { networkName: 'outside' } } });
  const external = { n: [{ addr: '172.24.4.1', 'OS-EXT-IPS:type': 'floating' }] };

  test.each([
    { what: 'has none', addresses: {}, port: undefined, code: 'Uninitialized' },
    { what: 'has one that is free', addresses: {}, port: null, code: 'Uninitialized' },
    { what: 'has one on the port of another server', addresses: {}, port: 'p-2', code: 'Uninitialized' },
    { what: 'has one on its port', addresses: {}, port: 'p-1', code: undefined },
    { what: 'has one that Nova shows', addresses: external, port: undefined, code: undefined },
  ])('whose class asks for a floating IP, and which $what, is unfinished: $code', async (row) => {
    cloud.servers = [serverOf('s-1', { addresses: row.addresses })];
    const port = { network_id: 'n-1', description: '', fixed_ips: [], name: 'x' };
    cloud.ports = [
      { ...port, id: 'p-1', device_id: 's-1' },
      { ...port, id: 'p-2', device_id: 's-2' },
    ];
    const description = ownerText(identity);
    const address = { id: 'f-1', floating_ip_address: '172.24.4.1', description };
    cloud.floatingips = row.port === undefined ? [] : [{ ...address, port_id: row.port }];

    const ended = await cloud.passing(driver.getMachineStatus(requestOf('m-1', withFloatingIP), callOf()));

    expect(ended).toMatchObject(
      row.code === undefined
        ? { status: 'fulfilled', value: { providerID: 'openstack:///region/s-1' } }
        : { status: 'rejected', reason: { code: row.code } },
    );
  });

  test.each([
    { what: 'failed to be built', change: { status: 'ERROR', 'OS-SRV-USG:launched_at': null }, code: 'NotFound' },
    {
      what: 'is another machine’s by its UID',
      change: { metadata: { ...TAGS, 'machinist-uid': 'x' } },
      code: 'NotFound',
    },
    {
      what: 'is being built',
      change: { status: 'BUILD', created: '1970-01-01T00:00:00Z', 'OS-SRV-USG:launched_at': null },
      code: 'Uninitialized',
    },
  ])('whose server $what is $code', async ({ change, code }) => {
    cloud.clock.advance(1_000 - cloud.clock.now());
    cloud.servers = [serverOf('s-1', change)];

    const ended = await cloud.passing(driver.getMachineStatus(requestOf('m-1', machineClass), callOf()));

    expect(ended).toMatchObject({ status: 'rejected', reason: { code } });
  });
});

describe('a server that Gardener’s provider has not finished', () => {
  const CIDRS = ['100.64.0.0/11', 'fd00::/48'];
  const networks = [{ id: 'n-1', podNetwork: true }, { id: 'n-2' }];
  const ofPods = classOf('openstack', { spec: { ...SPEC, networkID: undefined, networks, podNetworkCIDRs: CIDRS } });
  const request = requestOf('m-1', ofPods);
  const pairs = (...addresses: readonly string[]) => addresses.map((ip_address) => ({ ip_address }));
  const portOf = (id: string, network: string, change: object = {}) => {
    const common = { name: 'm-1', device_id: 's-1', description: '', fixed_ips: [], allowed_address_pairs: [] };
    return { id, network_id: network, ...common, ...change };
  };

  test('lets the packets of pods pass before its machine is created', async () => {
    cloud.servers = [serverOf('s-1', { metadata: TAGS })];
    cloud.ports = [portOf('p-1', 'n-1'), portOf('p-2', 'n-2')];

    const told = await cloud.passing(driver.getMachineStatus(request, callOf()));
    const made = await cloud.passing(driver.initializeMachine(request, callOf()));

    const result = { providerID: 'openstack:///region/s-1', nodeName: 'm-1' };
    expect(told).toMatchObject({ reason: { code: 'Uninitialized', result } });
    expect(made).toMatchObject({ value: result });
    const open = [{ allowed_address_pairs: pairs(...CIDRS) }, { allowed_address_pairs: [] }];
    expect(cloud.ports).toMatchObject(open);
    expect(await cloud.passing(driver.getMachineStatus(request, callOf()))).toMatchObject({ value: result });
    expect((await cloud.passing(driver.createMachine(request, callOf()))).status).toBe('fulfilled');
    expect(cloud.ports).toMatchObject(open);
  });

  test.each([
    {
      what: 'lets those of the last CIDR pass, as the provider leaves it',
      change: { allowed_address_pairs: pairs('fd00::/48') },
    },
    { what: 'has a port without port security', change: { port_security_enabled: false } },
    { what: 'has no port in a network of pods', change: { network_id: 'n-2' } },
    { what: 'is ours', metadata: undefined },
    { what: 'is of a class that has become invalid', class: { ...SPEC, podNetworkCIDRs: CIDRS, tags: TAGS, typo: 1 } },
    {
      what: 'is of a class whose network is gone',
      class: { ...SPEC, networkID: undefined, podNetworkCIDRs: CIDRS, networks: [{ name: 'gone', podNetwork: true }] },
    },
  ])('is none that $what', async ({ change = {}, class: spec, ...row }) => {
    cloud.servers = [serverOf('s-1', 'metadata' in row ? {} : { metadata: TAGS })];
    cloud.ports = [portOf('p-1', 'n-1', change)];
    cloud.answer = (asked) =>
      asked.includes('name=gone') ? { status: 200, headers: {}, body: { networks: [] } } : undefined;
    const about = spec === undefined ? request : requestOf('m-1', classOf('openstack', { spec }));

    const told = await cloud.passing(driver.getMachineStatus(about, callOf()));

    expect(told).toMatchObject({ status: 'fulfilled', value: { providerID: 'openstack:///region/s-1' } });
  });
});

describe('a server in ERROR, where Nova does not show whether it was launched,', () => {
  const { name, metadata, created, addresses } = serverOf('');
  const inError = { id: 's-1', name, metadata, created, addresses, status: 'ERROR' };
  const fault = { message: 'No valid host was found.' };

  test('is a build that has failed where this call has requested it, and is removed', async () => {
    cloud.answer = (asked) => {
      if (asked.startsWith('GET compute /servers'))
        cloud.servers = cloud.servers.map(({ id }) => ({ ...inError, id, fault }));
      return undefined;
    };

    const ended = await cloud.passing(driver.createMachine(requestOf('m-1', machineClass), callOf()));

    expect(ended).toMatchObject({
      reason: { code: 'ResourceExhausted', message: expect.stringContaining('No valid') },
    });
    expect(cloud.servers).toEqual([]);
  });

  test('is there where it was there before: it may run', async () => {
    cloud.servers = [{ ...inError, fault }];

    const ended = await cloud.passing(driver.createMachine(requestOf('m-1', machineClass), callOf()));

    expect([ended.status, cloud.servers.length]).toEqual(['fulfilled', 1]);
  });

  describe('and whose disk Cinder, which is down, cannot free,', () => {
    const ofDisk = classOf('openstack', { spec: { ...SPEC, rootDiskSize: 3 } });
    const request = requestOf('m-1', ofDisk);
    const create = async () => await cloud.passing(driver.createMachine(request, callOf()));
    const status = async () => await cloud.passing(driver.getMachineStatus(request, callOf()));
    let isFailing = true;
    let isDown = false;
    let first: PromiseSettledResult<unknown>;

    beforeEach(async () => {
      isFailing = true;
      isDown = false;
      cloud.answer = (asked) => {
        const isBuilt = isFailing && asked.startsWith('GET compute /servers') && cloud.servers.length > 0;
        // It has an address, as one that was there before.
        const net = [{ addr: '10.0.0.7' }];
        if (isBuilt) cloud.servers = cloud.servers.map(({ id }) => ({ ...inError, id, addresses: { net } }));
        isDown ||= isBuilt;
        return isDown && asked.includes(' volumev3 ') ? { status: 503, headers: {}, body: 'down' } : undefined;
      };
      first = await create();
      isFailing = false;
    });

    test('is still one at the next call, and is removed once Cinder responds', async () => {
      const [failed] = cloud.servers;
      expect(first).toMatchObject({ reason: { code: 'Unavailable' } });

      expect(await status()).toMatchObject({ reason: { code: 'NotFound' } });
      expect(await create()).toMatchObject({ reason: { code: 'Unavailable' } });
      expect(cloud.servers).toEqual([failed]);

      isDown = false;
      expect(await create()).toMatchObject({ status: 'fulfilled' });
      expect(cloud.servers).toMatchObject([{ status: 'ACTIVE' }]);
      expect(cloud.servers).not.toMatchObject([{ id: failed?.id }]);
    });

    test.each<{ which: string; happens: () => Promise<void> | void }>([
      {
        which: 'was seen to run since',
        happens: async () => {
          const before = cloud.servers;
          cloud.servers = before.map((one) => ({ ...one, status: 'ACTIVE' }));
          await status();
          cloud.servers = before;
        },
      },
      {
        which: 'was not seen for long',
        happens: () => {
          cloud.clock.advance(2 * 3_600_000);
        },
      },
      {
        which: 'only an earlier process saw fail',
        happens: () => {
          driver = newDriver();
        },
      },
    ])('is there if it $which: it may have run', async ({ happens }) => {
      const [{ id } = { id: '' }] = cloud.servers;

      await happens();
      isDown = false;

      const isThere = { status: 'fulfilled', value: { providerID: `openstack:///region/${id}` } };
      expect([await status(), await create()]).toMatchObject([isThere, isThere]);
      expect(cloud.askedFor('DELETE compute')).toEqual([]);
    });
  });
});

test('the deletion of a server without a Machine leaves another one of its name', async () => {
  cloud.servers = [serverOf('s-1'), serverOf('s-2')];

  const ended = await cloud.passing(
    driver.deleteMachine(stubOf('m-1', 'openstack:///region/s-1', machineClass), callOf()),
  );

  expect(ended.status).toBe('fulfilled');
  expect(cloud.servers.map(({ id }) => id)).toEqual(['s-2']);
});

test('two servers of a gone Machine that are deleted at the same time take the port along that Nova has unbound', async () => {
  const failed = { status: 'ERROR', 'OS-SRV-USG:launched_at': null };
  cloud.servers = [serverOf('s-1', failed), serverOf('s-2', failed)];
  const port = { id: 'p-1', name: 'm-1', network_id: 'n-1', fixed_ips: [], device_id: '' };
  cloud.ports = [{ ...port, description: ownerText(identity) }];

  const both = ['s-1', 's-2'].map((id) =>
    driver.deleteMachine(stubOf('m-1', `openstack:///region/${id}`, machineClass), callOf()),
  );
  const ended = await cloud.passing(Promise.all(both));

  expect(ended.status).toBe('fulfilled');
  expect([cloud.servers, cloud.ports]).toEqual([[], []]);
});

describe('a Machine that was created again for a server, with another UID,', () => {
  const again = { ...identity, uid: 'u-again' };

  test.each([
    { what: 'nothing', of: identity, described: identity, left: [['s-1'], ['p-1']] },
    { what: 'the metadata of the server', of: again, described: identity, left: [[], ['p-1']] },
    { what: 'metadata and descriptions', of: again, described: again, left: [[], []] },
  ])('deletes what carries its UID; where $what was changed, $left is left', async ({ of, described, left }) => {
    const metadata = metadataOf(of, machineClass.metadata.name, TAGS);
    cloud.servers = [serverOf('s-1', { metadata })];
    const port = { id: 'p-1', name: 'm-1', network_id: 'n-1', fixed_ips: [], device_id: 's-1' };
    cloud.ports = [{ ...port, description: ownerText(described) }];
    const machine = { uid: again.uid, providerID: 'openstack:///region/s-1' };

    await cloud.passing(driver.deleteMachine(requestOf('m-1', machineClass, machine), callOf()));

    expect([cloud.servers, cloud.ports].map((all) => all.map(({ id }) => id))).toEqual(left);
  });
});
