import { beforeEach, describe, expect, test } from '@jest/globals';

import { callOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeOpenStack } from '../../../test/fakes/fake-openstack.ts';
import { silentLogger } from '../../base/log/logger.ts';
import type { MachineIdentity } from '../machine-identity.ts';
import type { Answer } from './answer.ts';
import { buildFailure, Creation } from './creation.ts';
import { deleteServers, type DeletionDeps } from './deletion.ts';
import { FailedBuilds } from './failed-builds.ts';
import { intentText, ownerText } from './intent.ts';
import { metadataOf } from './ownership.ts';
import { type OpenStackSpec, parseProviderSpec } from './provider-spec.ts';
import type { Server } from './server.ts';
import { DEFAULT_OPENSTACK_SETTINGS } from './settings.ts';

const machine: MachineIdentity = { cluster: 'c-1', namespace: 'shoot', name: 'm-1', uid: 'u-1', providerID: undefined };
const owner = ownerText(machine);
const TAGS = { 'kubernetes.io-cluster-x': '1', 'kubernetes.io-role-worker': '1' };
const CLASS = {
  imageID: 'i-1',
  region: 'region',
  availabilityZone: 'z',
  flavorName: 'f',
  keyName: 'k',
  tags: TAGS,
  networkID: 'n-1',
  podNetworkCIDRs: ['10.0.0.0/8'],
  rootDiskSize: 3,
  floatingIP: { networkName: 'outside' },
};
const spec = parseProviderSpec({ spec: CLASS });

let cloud: FakeOpenStack;

beforeEach(() => {
  cloud = new FakeOpenStack(new FakeClock());
});

function serverOf(id: string, change: Partial<Server> = {}): Server {
  const metadata = metadataOf(machine, 'class', TAGS);
  const made = { created: '2026-01-01T00:00:00Z', addresses: {}, 'OS-SRV-USG:launched_at': 'x' };
  return { id, name: machine.name, status: 'ACTIVE', metadata, ...made, ...change };
}

/** The port, floating IP and disk of a machine, in use by that server. */
function belongings(server: string): void {
  const made = { network_id: 'n-1', description: owner, fixed_ips: [], name: machine.name };
  cloud.ports = [{ ...made, id: 'p-1', device_id: server }];
  cloud.floatingips = [{ id: 'f-1', floating_ip_address: '172.24.4.1', port_id: 'p-1', description: owner }];
  const disk = { name: machine.name, description: owner, size: 3 };
  cloud.volumes = [{ ...disk, id: 'v-1', status: 'in-use', attachments: [{ server_id: server }] }];
  cloud.attachments = [{ id: 'a-1', instance: server, volume_id: 'v-1', connection_info: { data: {} } }];
}

function idsOf(all: readonly { readonly id: string }[]): readonly string[] {
  return all.map(({ id }) => id);
}

/** What is there. */
function present(): object {
  const { servers, ports, floatingips, volumes } = cloud;
  return { servers, ports, floatingips, volumes };
}

async function remove(change: Partial<DeletionDeps> = {}): Promise<PromiseSettledResult<void>> {
  const { clock } = cloud;
  const known = { marks: Object.keys(TAGS), hasDisk: true, hasFloatingIP: true, othersMs: 0, servers: [] };
  const deps = {
    cloud: cloud.cloud(),
    machine,
    settings: DEFAULT_OPENSTACK_SETTINGS,
    clock,
    log: silentLogger,
    ...known,
  };
  return await cloud.passing(deleteServers({ ...deps, ...change }, callOf()));
}

async function create(
  answerMs = DEFAULT_OPENSTACK_SETTINGS.answerMs,
  wanted: OpenStackSpec = spec,
): Promise<PromiseSettledResult<Server>> {
  const { clock } = cloud;
  const settings = { ...DEFAULT_OPENSTACK_SETTINGS, answerMs };
  const deps = { machine, spec: wanted, className: 'class', userData: 'x', settings, log: silentLogger };
  const failedBuilds = new FailedBuilds(clock);
  return await cloud.passing(new Creation({ ...deps, clock, cloud: cloud.cloud(), failedBuilds }).run(callOf()));
}

const { 'kubernetes.io-role-worker': _lost, ...left } = metadataOf(machine, 'class', TAGS);
const VOLUMES = 'os-extended-volumes:volumes_attached';
const LOST_ITS_TAG = { metadata: left };

describe('a machine that is deleted', () => {
  test('leaves port, address and disk to a server that was taken out of its hands', async () => {
    cloud.servers = [serverOf('s-1', LOST_ITS_TAG)];
    belongings('s-1');
    const before = present();

    const ended = await remove();

    expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'NotFound' } });
    expect(present()).toEqual(before);
  });

  test('does not have a server deleted for good that Nova keeps, and that was taken out of its hands', async () => {
    cloud.servers = [serverOf('s-1', { ...LOST_ITS_TAG, status: 'SOFT_DELETED' })];
    belongings('s-1');
    const before = present();

    await remove();

    expect(present()).toEqual(before);
    expect(cloud.asked.filter((request) => !request.startsWith('GET'))).toEqual([]);
  });

  test('takes with it what a server used that is no more, and asks for each server once', async () => {
    belongings('s-1');
    cloud.volumes = cloud.volumes.map((one) => ({ ...one, status: 'available' }));

    const ended = await remove();

    expect(ended.status).toBe('fulfilled');
    expect(present()).toEqual({ servers: [], ports: [], floatingips: [], volumes: [] });
    expect(cloud.askedFor('GET compute /servers/s-1')).toHaveLength(1);
  });

  test('has no server deleted for good that runs, which another process may just have made for it', async () => {
    cloud.servers = [serverOf('s-1')];
    belongings('s-1');
    const before = present();

    await remove();

    expect(present()).toEqual(before);
    expect(cloud.asked.filter((request) => !request.startsWith('GET'))).toEqual([]);
  });

  test('takes with it what its own server uses', async () => {
    cloud.servers = [serverOf('s-1')];
    belongings('s-1');

    const ended = await remove({ servers: cloud.servers });

    expect(ended.status).toBe('fulfilled');
    expect(present()).toEqual({ servers: [], ports: [], floatingips: [], volumes: [] });
  });

  test.each([
    { what: 'that port is free and another machine’s', port: { device_id: '', description: 'other' }, isLeft: true },
    { what: 'that port is free and its own', port: { device_id: '', description: owner }, isLeft: false },
    { what: 'another server has that port', port: { device_id: 's-2', description: '' }, isLeft: true },
    { what: 'its own server has that port', port: { device_id: 's-1', description: '' }, isLeft: false },
  ])('leaves an address on another port when $what: $isLeft', async ({ port, isLeft }) => {
    cloud.servers = [serverOf('s-1'), serverOf('s-2', { name: 'other', metadata: {} })];
    belongings('s-1');
    cloud.ports = [...cloud.ports, { ...port, id: 'p-2', network_id: 'n-1', fixed_ips: [], name: 'by-hand' }];
    cloud.floatingips = cloud.floatingips.map((one) => ({ ...one, port_id: 'p-2' }));

    await remove({ servers: cloud.servers.slice(0, 1) });

    expect(idsOf(cloud.floatingips)).toEqual(isLeft ? ['f-1'] : []);
  });

  test('without a Machine takes its port along, and leaves one that somebody has added to its server', async () => {
    cloud.servers = [serverOf('s-1')];
    belongings('s-1');
    cloud.volumes = [];
    const byHand = { device_id: 's-1', description: 'by hand', network_id: 'n-1', fixed_ips: [], name: 'by-hand' };
    cloud.ports = [...cloud.ports, { ...byHand, id: 'p-2' }];
    const orphan = { ...machine, uid: undefined, providerID: 'openstack:///region/s-1' };

    const ended = await remove({ machine: orphan, servers: cloud.servers });

    expect(ended.status).toBe('fulfilled');
    expect(cloud.servers).toEqual([]);
    expect(idsOf(cloud.ports)).toEqual(['p-2']);
    expect(cloud.floatingips).toEqual([]);
  });

  describe.each([
    { which: 'without a Machine', of: { ...machine, uid: undefined, providerID: 'openstack:///region/s-1' } },
    { which: 'with its Machine', of: machine },
  ])('$which, while Cinder is down,', ({ of }) => {
    let isDown = true;

    beforeEach(() => {
      isDown = true;
      cloud.answer = (request) =>
        isDown && request.startsWith('GET volumev3') ? { status: 503, headers: {}, body: 'down' } : undefined;
    });

    test('keeps its server, with its port: Nova would leave its disk', async () => {
      cloud.servers = [serverOf('s-1', { [VOLUMES]: [{ id: 'v-1' }] })];
      belongings('s-1');
      const before = present();

      expect(await remove({ machine: of, servers: cloud.servers })).toMatchObject({
        reason: { code: 'Unavailable' },
      });
      expect(present()).toEqual(before);

      isDown = false;
      await remove({ machine: of, servers: cloud.servers });
      expect(present()).toEqual({ servers: [], ports: [], floatingips: [], volumes: [] });
    });

    test.each<{ which: string; server: Partial<Server>; hasDisk: boolean; isKept: boolean }>([
      { which: 'of a class without disks', server: {}, hasDisk: false, isKept: false },
      { which: 'that has none', server: { [VOLUMES]: [] }, hasDisk: true, isKept: false },
      { which: 'of which Nova does not say', server: {}, hasDisk: true, isKept: true },
      {
        which: 'that is being built',
        server: { [VOLUMES]: [], 'OS-SRV-USG:launched_at': null },
        hasDisk: true,
        isKept: true,
      },
    ])('keeps a server $which: $isKept', async ({ server, hasDisk, isKept }) => {
      cloud.servers = [serverOf('s-1', server)];

      await remove({ machine: of, servers: cloud.servers, hasDisk });

      expect(idsOf(cloud.servers)).toEqual(isKept ? ['s-1'] : []);
    });
  });

  test('keeps a server while Cinder is down that Nova has kept: its disk would stay when it is deleted for good', async () => {
    cloud.servers = [serverOf('s-1', { status: 'SOFT_DELETED' })];
    belongings('s-1');
    cloud.answer = (request) =>
      request.startsWith('GET volumev3') ? { status: 503, headers: {}, body: 'down' } : undefined;
    const before = present();

    expect(await remove()).toMatchObject({ reason: { code: 'Unavailable' } });

    expect(present()).toEqual(before);
  });

  test('of several servers keeps the locked one alone, and says why', async () => {
    cloud.servers = [serverOf('s-1'), serverOf('s-2')];
    cloud.answer = (request) =>
      request === 'DELETE compute /servers/s-1'
        ? { status: 409, headers: {}, body: { conflictingRequest: { message: 'Instance s-1 is locked' } } }
        : undefined;

    const ended = await remove({ servers: cloud.servers });

    const detail = expect.stringContaining('Instance s-1 is locked');
    expect(ended).toMatchObject({ reason: { code: 'FailedPrecondition', detail } });
    expect(idsOf(cloud.servers)).toEqual(['s-1']);
  });

  const sentAt = { atMs: new FakeClock().now(), by: 'creation' };
  test.each([
    { which: 'Nova has unbound since the build failed', change: {}, isLeft: false },
    {
      which: 'is of another machine of its name',
      change: { description: ownerText({ ...machine, uid: 'u-2' }) },
      isLeft: true,
    },
    {
      which: 'says that a server may appear',
      change: { description: intentText({ owner, sent: sentAt }) },
      isLeft: true,
    },
    { which: 'is beside one that its server has', change: {}, bound: 'p-1', isLeft: false },
    {
      which: 'is beside one that says that a server may appear',
      change: {},
      bound: 'p-1',
      of: { description: intentText({ owner, sent: sentAt }), device_id: '' },
      isLeft: true,
    },
    {
      which: 'another server of its machine may be about to use',
      change: {},
      twin: { status: 'BUILD' },
      isLeft: true,
    },
    {
      which: 'no server of its machine will use, as the other one is being deleted',
      change: {},
      twin: { 'OS-EXT-STS:task_state': 'deleting' },
      isLeft: false,
    },
  ])('without a Machine leaves a port that $which: $isLeft', async ({ change, bound, of, twin, isLeft }) => {
    const orphanServer = serverOf('s-1', { status: 'ERROR', 'OS-SRV-USG:launched_at': null });
    cloud.servers = [orphanServer];
    belongings('s-1');
    const [port] = cloud.ports;
    if (port === undefined) throw new Error('there is no port');
    const beside = bound === undefined ? [] : [{ ...port, ...of }];
    cloud.ports = [...beside, { ...port, id: 'p-2', device_id: '', ...change }];
    if (twin !== undefined) cloud.servers = [orphanServer, serverOf('s-2', twin)];
    const orphan = { ...machine, uid: undefined, providerID: 'openstack:///region/s-1' };

    const ended = await remove({ machine: orphan, servers: [orphanServer] });

    expect(ended.status).toBe('fulfilled');
    expect(idsOf(cloud.ports).includes('p-2')).toBe(isLeft);
  });

  test('frees a disk that is reserved for a server which is no more', async () => {
    belongings('s-1');
    cloud.volumes = cloud.volumes.map((one) => ({ ...one, status: 'reserved', attachments: [] }));
    cloud.attachments = [
      { id: 'a-1', instance: 's-1', volume_id: 'v-1', connection_info: {} },
      { id: 'a-2', instance: 's-9', volume_id: 'v-9', connection_info: {} },
    ];

    const ended = await remove();

    expect(ended.status).toBe('fulfilled');
    expect(cloud.volumes).toEqual([]);
    expect(idsOf(cloud.attachments)).toEqual(['a-2']);
  });

  test('does not cut a disk off that a host may still reach', async () => {
    belongings('s-1');

    const ended = await remove();

    expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'Aborted' } });
    expect(idsOf(cloud.attachments)).toEqual(['a-1']);
    expect(cloud.asked.filter((request) => request.startsWith('DELETE volumev3'))).toEqual([]);
  });

  test.each([{ providerID: 'known' }, { providerID: undefined }])(
    'has a server deleted for good that Nova keeps, whose ID is $providerID',
    async ({ providerID }) => {
      cloud.deletedStatus = 'SOFT_DELETED';
      cloud.servers = [serverOf('s-1', providerID === undefined ? { status: 'SOFT_DELETED' } : {})];
      belongings('s-1');

      const ended = await remove({ servers: providerID === undefined ? [] : cloud.servers });

      expect(ended.status).toBe('fulfilled');
      expect(present()).toEqual({ servers: [], ports: [], floatingips: [], volumes: [] });
    },
  );

  test('is gone without its disk where the driver may not delete for good what Nova keeps', async () => {
    cloud.deletedStatus = 'SOFT_DELETED';
    cloud.servers = [serverOf('s-1')];
    belongings('s-1');
    cloud.answer = (request) => (request.endsWith('/action') ? { status: 403, headers: {}, body: '' } : undefined);

    const ended = await remove({ servers: cloud.servers });

    expect(ended).toMatchObject({ reason: { code: 'Aborted', detail: expect.stringContaining('in status in-use') } });
    cloud.volumes = [];
    expect((await remove({ servers: cloud.servers })).status).toBe('fulfilled');
  });

  test.each([
    { status: 404, ended: 'fulfilled' },
    { status: 409, ended: 'rejected' },
  ])(
    'whose server Nova keeps, and does not find any more or refuses ($status), is $ended',
    async ({ status, ended }) => {
      cloud.deletedStatus = 'SOFT_DELETED';
      cloud.servers = [serverOf('s-1')];
      cloud.answer = (request) => {
        if (!request.endsWith('/action')) return undefined;
        cloud.servers = [];
        return { status, headers: {}, body: '' };
      };

      expect((await remove({ servers: cloud.servers })).status).toBe(ended);
    },
  );

  test('leaves a server alone that Nova keeps and that is not its own', async () => {
    cloud.servers = [serverOf('s-1', { status: 'SOFT_DELETED', metadata: {}, name: 'other' })];
    belongings('s-1');
    const before = present();

    await remove();

    expect(present()).toEqual(before);
  });

  test('says why Cinder refuses to delete its disk, and asks once', async () => {
    belongings('');
    cloud.volumes = cloud.volumes.map((one) => ({ ...one, status: 'available' }));
    const message = 'Volume status must be available and must not have snapshots.';
    cloud.answer = (request) =>
      request.startsWith('DELETE volumev3')
        ? { status: 400, headers: {}, body: { badRequest: { message } } }
        : undefined;

    const ended = await remove();

    const says = `the root disk is not deleted yet: Cinder refuses to delete volume v-1: 400 ${message}`;
    expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'FailedPrecondition', detail: says } });
    expect(cloud.askedFor('DELETE volumev3')).toHaveLength(1);
  });

  test.each([{ status: 'deleting' }, { status: 'in-use' }, { status: undefined }])(
    'waits when its disk is $status by the time Cinder refuses to delete it',
    async ({ status }) => {
      belongings('');
      cloud.volumes = cloud.volumes.map((one) => ({ ...one, status: 'available' }));
      let refusals = 0;
      cloud.answer = (request) => {
        if (!request.startsWith('DELETE volumev3') || ++refusals > 1) return undefined;
        cloud.volumes = cloud.volumes.flatMap((one) => (status === undefined ? [] : { ...one, status }));
        cloud.clock.schedule(2_000, () => {
          cloud.volumes = cloud.volumes.map((one) => ({ ...one, status: 'available' }));
        });
        return { status: 400, headers: {}, body: { badRequest: { message: 'not now' } } };
      };

      const ended = await remove();

      expect(ended.status).toBe('fulfilled');
      expect(cloud.volumes).toEqual([]);
    },
  );
});

describe('a machine that is made', () => {
  test('beside a server that was taken out of its hands gets port, address and disk of its own', async () => {
    cloud.servers = [serverOf('s-1', { metadata: {} })];
    belongings('s-1');
    const before = present() as { floatingips: object[]; ports: object[]; volumes: object[] };

    const ended = await create();

    expect(ended).toMatchObject({ status: 'fulfilled' });
    expect(cloud.servers).toHaveLength(2);
    expect([cloud.ports.length, cloud.floatingips.length, cloud.volumes.length]).toEqual([2, 2, 2]);
    expect(cloud.ports[0]).toEqual(before.ports[0]);
    expect(cloud.floatingips[0]).toEqual(before.floatingips[0]);
    expect(cloud.volumes[0]).toEqual(before.volumes[0]);
  });

  test('is not made beside a server of its own that lost a tag, and says so', async () => {
    cloud.servers = [serverOf('s-1', LOST_ITS_TAG)];
    belongings('s-1');
    const before = present();

    const ended = await create();

    expect(ended).toMatchObject({
      status: 'rejected',
      reason: { code: 'FailedPrecondition', detail: expect.stringMatching(/^server s-1 .* lacks a tag of its class/) },
    });
    expect(present()).toEqual(before);
    expect(cloud.asked.filter((request) => !request.startsWith('GET'))).toEqual([]);
    cloud.servers = [serverOf('s-1', { ...LOST_ITS_TAG, status: 'DELETED' })];
    cloud.volumes = [];
    expect((await create()).status).toBe('fulfilled');
  });

  test('takes a disk again that is reserved for a server which is no more', async () => {
    belongings('');
    cloud.volumes = cloud.volumes.map((one) => ({ ...one, status: 'reserved' }));
    cloud.attachments = [{ id: 'a-1', instance: 's-1', volume_id: 'v-1', connection_info: {} }];

    const ended = await create();

    expect(ended).toMatchObject({ status: 'fulfilled' });
    expect(idsOf(cloud.volumes)).toEqual(['v-1']);
  });
});

describe('a machine with a floating IP', () => {
  test('has it before there is a server, and one only', async () => {
    const ended = await create();

    expect(ended.status).toBe('fulfilled');
    const made = cloud.bodies.map(({ path }) => path);
    expect(made).toEqual(['/ports', '/floatingips', '/volumes', '/servers']);
    expect(cloud.floatingips).toMatchObject([{ port_id: cloud.ports[0]?.id, description: owner }]);
  });

  test.each([
    { status: 409, type: 'OverQuota', code: 'ResourceExhausted' },
    { status: 404, type: 'ExternalGatewayForFloatingIPNotFound', code: 'InvalidArgument' },
  ])('that Neutron refuses with $status is not made at all, and leaves nothing', async ({ status, type, code }) => {
    cloud.answer = (request) =>
      request.startsWith('POST network /floatingips')
        ? { status, headers: {}, body: { NeutronError: { type, message: 'no' } } }
        : undefined;

    const ended = await create();

    expect(ended).toMatchObject({ status: 'rejected', reason: { code } });
    expect(present()).toEqual({ servers: [], ports: [], floatingips: [], volumes: [] });
  });

  test('gives it back when the server is refused', async () => {
    cloud.answer = (request) =>
      request.startsWith('POST compute')
        ? { status: 400, headers: {}, body: { badRequest: { message: 'Invalid key_name provided.' } } }
        : undefined;

    const ended = await create();

    expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'InvalidArgument' } });
    expect(present()).toEqual({ servers: [], ports: [], floatingips: [], volumes: [] });
  });

  test.each([
    { port: 'p-9', code: 'FailedPrecondition' },
    { port: null, code: undefined },
  ])('that its class gives is not taken from port $port', async ({ port, code }) => {
    cloud.floatingips = [{ id: 'f-1', floating_ip_address: '172.24.4.9', port_id: port, description: '' }];
    const { floatingIP: _allocated, ...rest } = CLASS;
    const given = parseProviderSpec({
      spec: { ...rest, floatingIP: { networkName: 'outside', address: '172.24.4.9' } },
    });

    const ended = await create(DEFAULT_OPENSTACK_SETTINGS.answerMs, given);

    expect(ended).toMatchObject(code === undefined ? { status: 'fulfilled' } : { reason: { code } });
    expect(cloud.floatingips).toMatchObject([{ port_id: port ?? cloud.ports[0]?.id }]);
    expect(cloud.servers).toHaveLength(code === undefined ? 1 : 0);
  });

  test('takes one that was allocated before, and releases what was allocated twice', async () => {
    const made = { port_id: null, description: owner };
    cloud.floatingips = ['f-1', 'f-2'].map((id) => ({ ...made, id, floating_ip_address: id }));

    await create();

    expect(cloud.floatingips).toMatchObject([{ id: 'f-1', port_id: cloud.ports[0]?.id }]);
  });
});

describe('a machine whose server fails to be built', () => {
  const failed = { status: 'ERROR', 'OS-SRV-USG:launched_at': null } as const;
  const FAULT = 'No valid host was found.';

  test.each([
    { answers: true, code: 'ResourceExhausted' },
    { answers: false, code: 'Unavailable' },
  ])('for want of a host, while what is asked for hosts answers: $answers, fails as $code', async (row) => {
    const made = { ...serverOf('s-1'), ...failed, fault: { message: FAULT } };
    cloud.servers = [made];
    const { cloud: known } = { cloud: cloud.cloud() };
    known.session.doesSchedulingAnswer = async () => await Promise.resolve(row.answers);

    const error = await buildFailure(known, spec, made, new AbortController().signal);

    expect(error.code).toBe(row.code);
    expect(error.detail).toContain(FAULT);
  });

  test.each<{ which: string; servers: readonly Server[]; change: object; isKept: boolean }>([
    { which: 'of a class with a root disk', servers: [serverOf('s-1', failed)], change: {}, isKept: true },
    {
      which: 'of a class with data volumes',
      servers: [serverOf('s-1', failed)],
      change: { rootDiskSize: undefined, dataVolumes: [{ name: 'data', size: 5 }] },
      isKept: true,
    },
    {
      which: 'of a class without disks',
      servers: [serverOf('s-1', failed)],
      change: { rootDiskSize: undefined, rootDiskType: 'ssd' },
      isKept: false,
    },
    {
      which: 'that is the second one',
      servers: [serverOf('s-1'), serverOf('s-0', { created: '2026-01-02T00:00:00Z' })],
      change: {},
      isKept: true,
    },
    {
      which: 'that is the second one, and has no disk',
      servers: [serverOf('s-1'), serverOf('s-0', { created: '2026-01-02T00:00:00Z', [VOLUMES]: [] })],
      change: {},
      isKept: false,
    },
  ])('keeps a server $which while Cinder is down: $isKept', async ({ servers, change, isKept }) => {
    cloud.servers = [...servers];
    belongings('s-1');
    let isDown = true;
    cloud.answer = (request) =>
      isDown && request.includes(' volumev3 ') ? { status: 503, headers: {}, body: 'down' } : undefined;
    const wanted = parseProviderSpec({ spec: { ...CLASS, ...change } });

    const ended = await create(DEFAULT_OPENSTACK_SETTINGS.answerMs, wanted);

    expect(cloud.askedFor('DELETE compute').length).toBe(isKept ? 0 : 1);
    const why = { code: 'Unavailable', detail: 'listing disks: 503 down' };
    expect(ended).toMatchObject(isKept ? { status: 'rejected', reason: why } : { status: 'fulfilled' });

    isDown = false;
    expect(await create(DEFAULT_OPENSTACK_SETTINGS.answerMs, wanted)).toMatchObject({ status: 'fulfilled' });
    expect(cloud.servers).toHaveLength(1);
  });

  test('keeps a server whose build has just failed while Cinder is down, and removes it when Cinder answers', async () => {
    let isDown = false;
    cloud.answer = (request) => {
      if (request.startsWith('GET compute /servers/') && cloud.servers.some(({ id }) => id === 'server-4')) {
        isDown = true;
        cloud.servers = cloud.servers.map((one) => (one.id === 'server-4' ? { ...one, ...failed } : one));
      }
      return isDown && request.includes(' volumev3 ') ? { status: 503, headers: {}, body: 'down' } : undefined;
    };

    expect(await create()).toMatchObject({ reason: { code: 'Unavailable' } });
    expect(cloud.askedFor('DELETE compute')).toEqual([]);

    cloud.answer = () => undefined;
    expect(await create()).toMatchObject({ status: 'fulfilled' });
    expect(cloud.servers).toHaveLength(1);
  });

  test('but has come to life since it was listed is taken', async () => {
    cloud.answer = (request) => {
      if (!request.startsWith('GET compute /servers/detail') || cloud.servers.length === 0) return undefined;
      return { status: 200, headers: {}, body: { servers: cloud.servers.map((one) => ({ ...one, ...failed })) } };
    };

    const ended = await create();

    expect(ended).toMatchObject({ status: 'fulfilled', value: { id: 'server-4' } });
    expect(cloud.servers).toHaveLength(1);
  });
});

describe('a machine in a cloud with a slow Neutron', () => {
  const tooSlow = {
    code: 'Unavailable',
    detail:
      'creating the root disk: not requested: recording it at the port took Neutron 24 s, and the preparation 24 s in total, of at most 20 s; increase --answer-timeout of the driver for slow services',
  };

  test.each([
    { seconds: 7, answerMs: 120_000, want: { status: 'fulfilled' } },
    { seconds: 12, answerMs: 120_000, want: { status: 'rejected', reason: tooSlow } },
    { seconds: 12, answerMs: 300_000, want: { status: 'fulfilled' } },
  ])('that takes $seconds s, with --answer-timeout of $answerMs ms, is $want.status', async (row) => {
    const { seconds, answerMs, want } = row;
    cloud.answer = (request) => {
      if (request.includes(' network ')) cloud.clock.advance(seconds * 1_000);
      return undefined;
    };

    expect(await create(answerMs)).toMatchObject(want);
  });

  test('and whose port somebody else writes to meanwhile is made all the same', async () => {
    let conflicts = 0;
    const conditions: unknown[] = [];
    cloud.answer = (request, body, headers = {}) => {
      // What is noted for others to see must not be written over what they have noted meanwhile.
      if (JSON.stringify(body ?? '').includes(' sent=')) conditions.push(headers['if-match']);
      return conflictOnce(request);
    };
    const conflictOnce = (request: string): Answer | undefined =>
      /^PUT network \/ports\/[^/]+$/.test(request) && conflicts++ === 0
        ? {
            status: 412,
            headers: {},
            body: { NeutronError: { type: 'RevisionNumberConstraintFailed', message: 'no' } },
          }
        : undefined;

    expect((await create()).status).toBe('fulfilled');
    expect(conflicts).toBeGreaterThan(1);
    expect(conditions).toEqual(Array(3).fill('revision_number=7'));
  });

  test('and without tags for ports is made all the same', async () => {
    cloud.answer = (request) => (request.endsWith('/tags') ? { status: 404, headers: {}, body: '' } : undefined);

    expect((await create()).status).toBe('fulfilled');
    expect(cloud.asked.filter((request) => request.endsWith('/tags'))).toHaveLength(1);
  });
});

describe('the ports of a machine', () => {
  const portsOf = async (networks: readonly object[], change: object = {}): Promise<readonly object[]> => {
    const { networkID: _networkID, rootDiskSize: _disk, floatingIP: _ip, ...rest } = CLASS;
    const wanted = parseProviderSpec({ spec: { ...rest, networks, ...change } });
    cloud.answer = (request) => {
      const isGroups = request.startsWith('GET network /security-groups');
      const security_groups = ['a', 'b'].map((name) => ({ id: `id-of-${name}`, name, project_id: 'project' }));
      return isGroups ? { status: 200, headers: {}, body: { security_groups } } : undefined;
    };
    const ended = await create(DEFAULT_OPENSTACK_SETTINGS.answerMs, wanted);
    expect(ended).toMatchObject({ status: 'fulfilled' });
    const made = cloud.bodies.filter(({ path }) => path === '/ports').map(({ body }) => body['port'] as object);
    return made.map((port) =>
      Object.fromEntries(
        Object.entries(port).filter(([name]) => !['name', 'description'].includes(name)) as [string, unknown][],
      ),
    );
  };

  test('have the groups of the class, and pass packets of pods in their networks', async () => {
    const ports = await portsOf([{ id: 'n-1', podNetwork: true }, { name: 'second' }], { securityGroups: ['a'] });

    expect(ports).toEqual([
      {
        network_id: 'n-1',
        security_groups: ['id-of-a'],
        allowed_address_pairs: [{ ip_address: '10.0.0.0/8' }],
      },
      { network_id: 'id-of-second', security_groups: ['id-of-a'] },
    ]);
  });

  test('are as their networks say', async () => {
    const profile = { physical_network: 'physnet2' };
    const ports = await portsOf(
      [
        { id: 'n-1', podNetwork: true, portSecurity: false },
        { id: 'n-2', securityGroups: ['b'], portSecurity: true },
        { id: 'n-3', securityGroups: [], vnicType: 'direct', profile, fixedIP: '10.0.0.9' },
      ],
      { securityGroups: ['a'] },
    );

    expect(ports).toEqual([
      { network_id: 'n-1', port_security_enabled: false },
      { network_id: 'n-2', security_groups: ['id-of-b'], port_security_enabled: true },
      {
        network_id: 'n-3',
        fixed_ips: [{ ip_address: '10.0.0.9' }],
        'binding:vnic_type': 'direct',
        'binding:profile': profile,
      },
    ]);
  });

  test('name the network whose group there is not', async () => {
    const { networkID: _networkID, ...rest } = CLASS;
    const networks = [{ id: 'n-1' }, { id: 'n-2', securityGroups: ['none'] }];
    cloud.answer = (request) =>
      request.includes('/security-groups') ? { status: 200, headers: {}, body: { security_groups: [] } } : undefined;

    const ended = await create(DEFAULT_OPENSTACK_SETTINGS.answerMs, parseProviderSpec({ spec: { ...rest, networks } }));

    const detail = 'providerSpec.spec.networks[1].securityGroups[0]: there is no security group none';
    expect(ended).toMatchObject({ reason: { code: 'InvalidArgument', detail } });
  });
});

describe('a server group by name', () => {
  test.each([
    {
      groups: ['g'],
      reason: undefined,
      servers: [{ server: { flavorRef: 'f-7' }, 'os:scheduler_hints': { group: 'sg-0' } }],
    },
    { groups: ['other'], reason: /InvalidArgument.*spec.serverGroupName: there is no server group g/, servers: [] },
    { groups: ['g', 'g'], reason: /InvalidArgument.*spec.serverGroupName: several have the name g/, servers: [] },
  ])('is one of $groups', async ({ groups, reason, servers }) => {
    const all = groups.map((name, i) => ({ id: `sg-${i}`, name }));
    cloud.answer = (request) => {
      if (!request.includes('/os-server-groups')) return undefined;
      const offset = Number(/offset=(\d+)/.exec(request)?.[1]);
      return { status: 200, headers: {}, body: { server_groups: all.slice(offset, offset + 1) } };
    };
    const wanted = { ...CLASS, serverGroupName: 'g', flavorName: undefined, flavorID: 'f-7' };

    const ended = await create(DEFAULT_OPENSTACK_SETTINGS.answerMs, parseProviderSpec({ spec: wanted }));

    expect(ended.status === 'rejected' ? String(ended.reason) : '').toMatch(reason ?? /^$/);
    const made = cloud.bodies.filter(({ path }) => path === '/servers').map(({ body }) => body);
    expect(made).toMatchObject(servers);
    expect(made).toHaveLength(servers.length);
    expect(cloud.askedFor('GET compute /flavors')).toEqual([]);
  });
});
