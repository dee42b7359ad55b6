import { beforeEach, describe, expect, jest, test } from '@jest/globals';

import { callOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeOpenStack } from '../../../test/fakes/fake-openstack.ts';
import type { DriverError } from '../../driver/error.ts';
import { type Logger, silentLogger } from '../../base/log/logger.ts';
import type { MachineIdentity } from '../machine-identity.ts';
import { Creation } from './creation.ts';
import { type DeletionDeps, deleteServers } from './deletion.ts';
import { FailedBuilds } from './failed-builds.ts';
import { ownerText } from './intent.ts';
import { metadataOf } from './ownership.ts';
import { parseProviderSpec } from './provider-spec.ts';
import type { Server } from './server.ts';
import { DEFAULT_OPENSTACK_SETTINGS } from './settings.ts';
import { diskText, type Volume } from './volume.ts';

const machine: MachineIdentity = { cluster: 'c-1', namespace: 'shoot', name: 'm-1', uid: 'u-1', providerID: undefined };
const owner = ownerText(machine);
const TAGS = { 'kubernetes.io-cluster-x': '1', 'kubernetes.io-role-worker': '1' };
const CLASS = {
  imageID: 'i-1',
  region: 'region',
  availabilityZone: 'z',
  flavorID: 'f',
  tags: TAGS,
  networkID: 'n-1',
  rootDiskSize: 3,
  dataVolumes: [
    { name: 'logs', size: 5 },
    { name: 'data', size: 7, type: 'ssd' },
  ],
};
const OF_DISKS = [owner, `${owner} disk=logs`, `${owner} disk=data`];
const NOTHING = { servers: [], ports: [], volumes: [] };

let cloud: FakeOpenStack;

beforeEach(() => {
  cloud = new FakeOpenStack(new FakeClock());
});

/** By a process that knows what the cloud knows. */
async function create(change: object = {}): Promise<PromiseSettledResult<Server>> {
  const { clock } = cloud;
  const spec = parseProviderSpec({ spec: { ...CLASS, ...change } });
  const deps = { machine, spec, className: 'class', userData: 'x', settings: DEFAULT_OPENSTACK_SETTINGS };
  const failedBuilds = new FailedBuilds(clock);
  const creation = new Creation({ ...deps, clock, cloud: cloud.cloud(), log: silentLogger, failedBuilds });
  return await cloud.passing(creation.run(callOf({ timeoutMs: 240_000 })));
}

/** By another process, whose class may have lost its disks. */
async function remove(change: Partial<DeletionDeps> = {}): Promise<PromiseSettledResult<void>> {
  const { clock, servers } = cloud;
  const known = { marks: Object.keys(TAGS), hasDisk: true, hasFloatingIP: false, othersMs: 0, servers: [...servers] };
  const deps = { machine, settings: DEFAULT_OPENSTACK_SETTINGS, clock, log: silentLogger, ...known, ...change };
  return await cloud.passing(deleteServers({ ...deps, cloud: cloud.cloud() }, callOf()));
}

/** As the manager does it: until the machine is gone. */
async function removeWhole(): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const ended = await remove();
    if (ended.status === 'fulfilled') return;
    const { code } = ended.reason as DriverError;
    if (code === 'NotFound') return;
    if (code !== 'Aborted' && code !== 'Unavailable') throw ended.reason;
    await cloud.clock.advanceAsync(5_000);
  }
  throw new Error('the machine is not gone after 100 calls');
}

function present(): object {
  const { servers, ports, volumes } = cloud;
  return { servers, ports, volumes };
}

function volumeOf(id: string, change: Partial<Volume> = {}): Volume {
  return { id, name: machine.name, status: 'available', description: owner, size: 3, ...change };
}

/** What there is of disks, in the order of the class. */
function descriptions(): readonly (string | null)[] {
  const all = cloud.volumes.map(({ description }) => description);
  return all.toSorted((a, b) => OF_DISKS.indexOf(a ?? '') - OF_DISKS.indexOf(b ?? ''));
}

/** IDs of the disks that the only server was made with. */
function attached(): readonly string[] {
  const last = cloud.bodies.findLast(({ path }) => path === '/servers')?.body as
    | { server: { block_device_mapping_v2: { uuid: string }[] } }
    | undefined;
  return (last?.server.block_device_mapping_v2 ?? []).map(({ uuid }) => uuid);
}

describe('disks of a machine in OpenStack', () => {
  test('are made before its server, each with what the class says of it, and attached in their order', async () => {
    expect((await create()).status).toBe('fulfilled');

    const asked = cloud.bodies.filter(({ path }) => path === '/volumes').map(({ body }) => body['volume']);
    const metadata = metadataOf(machine, 'class', TAGS);
    const common = { name: 'm-1', metadata, availability_zone: 'z' };
    expect(asked).toEqual([
      { ...common, description: owner, size: 3, imageRef: 'i-1', volume_type: undefined },
      { ...common, description: diskText(owner, 'logs'), size: 5, imageRef: undefined, volume_type: undefined },
      { ...common, description: diskText(owner, 'data'), size: 7, imageRef: undefined, volume_type: 'ssd' },
    ]);
    expect(attached()).toEqual(cloud.volumes.map(({ id }) => id));
    expect(cloud.bodies.map(({ path }) => path)).toEqual(['/ports', '/volumes', '/volumes', '/volumes', '/servers']);
  });

  test('are data volumes alone, in whatever zone, where the image is on the disk of the flavor', async () => {
    await create({ rootDiskSize: undefined, availabilityZone: 'elsewhere' });

    expect(cloud.volumes).toMatchObject([{ description: OF_DISKS[1] }, { description: OF_DISKS[2] }]);
    const asked = cloud.bodies.filter(({ path }) => path === '/volumes').map(({ body }) => body['volume']);
    expect(asked).toMatchObject([{ availability_zone: undefined }, { availability_zone: undefined }]);
    expect(attached()).toEqual(['i-1', ...cloud.volumes.map(({ id }) => id)]);
    await removeWhole();
    expect(present()).toEqual(NOTHING);
  });

  test('are those that were made before, whichever there are, and no other machine’s', async () => {
    const others = [
      volumeOf('v-other-cluster', { description: diskText(ownerText({ ...machine, cluster: 'c-2' }), 'logs') }),
      volumeOf('v-other-uid', { description: diskText(ownerText({ ...machine, uid: 'u-12' }), 'logs') }),
      volumeOf('v-by-hand', { description: 'logs' }),
      volumeOf('v-unnamed', { description: null }),
    ];
    cloud.volumes = [...others, volumeOf('v-data', { description: OF_DISKS[2] ?? '', size: 7 })];

    expect((await create()).status).toBe('fulfilled');

    expect(attached()).toEqual(['volume-2', 'volume-3', 'v-data']);
    await removeWhole();
    expect(present()).toEqual({ ...NOTHING, volumes: others });
  });

  test('are one each: what a late request made beside them is removed', async () => {
    cloud.volumes = ['v-1', 'v-2'].map((id) => volumeOf(id, { description: OF_DISKS[1] ?? '', size: 5 }));

    await create();

    expect(descriptions()).toEqual(OF_DISKS);
    expect(attached()).toContain('v-1');
  });

  test('are one each: what a late request made beside them stays while a server may use it', async () => {
    cloud.volumes = ['v-1', 'v-2'].map((id) => volumeOf(id, { description: OF_DISKS[1] ?? '', size: 5 }));
    cloud.answer = (request) => {
      if (request.startsWith('POST compute'))
        cloud.volumes = cloud.volumes.map((one) => (one.id === 'v-2' ? { ...one, status: 'reserved' } : one));
      return undefined;
    };

    await create();

    expect(cloud.askedFor('DELETE volumev3 /volumes/v-2')).toEqual([]);
  });

  test('hold a creation that would use one that Cinder fails to delete, and say so at once', async () => {
    cloud.volumes = [volumeOf('v-1', { description: OF_DISKS[1] ?? '', size: 5, status: 'error_deleting' })];

    const ended = await create();

    expect(ended).toMatchObject({ reason: { code: 'Internal', detail: expect.stringContaining('volume v-1') } });
  });

  test('are made again for a class that has changed its mind about their size', async () => {
    cloud.volumes = [volumeOf('v-1', { description: OF_DISKS[1] ?? '', size: 4 })];

    const ended = await create();

    expect(ended).toMatchObject({
      reason: { code: 'Aborted', detail: expect.stringMatching(/^volume v-1 was created/) },
    });
    expect((await create()).status).toBe('fulfilled');
    expect(descriptions()).toEqual(OF_DISKS);
    expect(cloud.volumes.map(({ size }) => size).toSorted((a, b) => a - b)).toEqual([3, 5, 7]);
  });

  test.each([
    {
      status: 413,
      message: 'quota',
      code: 'ResourceExhausted',
      says: 'dataVolumes[1].size: creating data volume data',
    },
    { status: 404, message: 'Volume type', code: 'InvalidArgument', says: 'dataVolumes[1].type: creating data volume' },
  ])('leave nothing when one is refused with $status, and name its member', async ({ status, message, code, says }) => {
    cloud.answer = (_request, body) =>
      JSON.stringify(body ?? '').includes('disk=data') ? { status, headers: {}, body: { e: { message } } } : undefined;

    const ended = await create();

    expect(ended).toMatchObject({ reason: { code, detail: expect.stringContaining(`providerSpec.spec.${says}`) } });
    expect(present()).toEqual(NOTHING);
  });

  test('leave nothing when one cannot be made, and name its members', async () => {
    cloud.volumes = [volumeOf('v-1', { description: OF_DISKS[1] ?? '', size: 5, status: 'error' })];

    const ended = await create();

    const says = /^providerSpec\.spec\.dataVolumes\[0\]\.size, dataVolumes\[0\]\.type: volume \S+ could not be created/;
    expect(ended).toMatchObject({ reason: { code: 'Internal', detail: expect.stringMatching(says) } });
    expect(present()).toEqual(NOTHING);
  });

  test('leave nothing when they are data volumes alone, and the server is refused', async () => {
    cloud.answer = (request) =>
      request.startsWith('POST compute')
        ? { status: 400, headers: {}, body: { badRequest: { message: 'Invalid key_name provided.' } } }
        : undefined;

    const ended = await create({ rootDiskSize: undefined });

    expect(ended).toMatchObject({ reason: { code: 'InvalidArgument' } });
    expect(present()).toEqual(NOTHING);
  });

  test.each([
    { status: 500, holds: false },
    { status: 504, holds: true },
  ])('may still appear when what answers is in front of Cinder ($status): $holds', async ({ status, holds }) => {
    cloud.answer = (_request, body) =>
      JSON.stringify(body ?? '').includes('disk=data') ? { status, headers: {}, body: '' } : undefined;
    await create();

    const ended = await remove();

    const says = 'a request for the server or one of its disks was not answered: one may appear in the next 120 s';
    expect(ended).toMatchObject(holds ? { reason: { code: 'Aborted', detail: says } } : { status: 'fulfilled' });
  });

  test('go with a machine whose class has lost them', async () => {
    await create();
    cloud.servers = [];

    expect((await remove({ hasDisk: false })).status).toBe('fulfilled');

    expect(present()).toEqual(NOTHING);
  });

  test('include a restored backup, and each that its server did not take along is logged', async () => {
    await create({ dataVolumes: [] });
    cloud.volumes = [...cloud.volumes, volumeOf('v-restored')];
    const info = jest.fn<Logger['info']>();

    await remove({ log: { ...silentLogger, info } });

    expect(present()).toEqual(NOTHING);
    expect(info).toHaveBeenCalledWith({ machine: 'shoot/m-1', volume: 'v-restored' }, 'deleted a volume');
  });

  test('go although Cinder keeps one of them, which is asked for once', async () => {
    cloud.volumes = OF_DISKS.map((description, i) => volumeOf(`v-${i}`, { description }));
    cloud.volumes[2] = volumeOf('v-2', { description: OF_DISKS[2] ?? '', status: 'deleting' });
    cloud.answer = (request) =>
      request === 'DELETE volumev3 /volumes/v-0'
        ? { status: 400, headers: {}, body: { badRequest: { message: 'has snapshots' } } }
        : undefined;
    cloud.clock.schedule(10_000, () => (cloud.volumes = cloud.volumes.filter(({ id }) => id !== 'v-2')));

    const ended = await remove();

    const detail = expect.stringContaining('the root disk is not deleted yet: Cinder refuses to delete volume v-0');
    expect(ended).toMatchObject({ reason: { code: 'FailedPrecondition', detail } });
    expect(cloud.volumes).toMatchObject([{ id: 'v-0' }]);
    expect(cloud.askedFor('DELETE volumev3 /volumes/v-0')).toHaveLength(1);
  });

  test('hold a deletion while one is on its way, and say which', async () => {
    cloud.volumes = [volumeOf('v-1', { description: OF_DISKS[1] ?? '', status: 'creating' })];

    const ended = await remove();

    const detail = 'data volume logs is not deleted yet: volume v-1 is in status creating';
    expect(ended).toMatchObject({ reason: { code: 'Aborted', detail } });
  });
});

/** Requests that change something in a creation, each of which may be the last that a process sends. */
async function changesOf(work: () => Promise<unknown>): Promise<number> {
  const before = cloud.asked.length;
  await work();
  return cloud.asked.slice(before).filter((request) => !request.startsWith('GET')).length;
}

describe('a machine with several disks, whose driver loses an answer', () => {
  const losesNth = (n: number, what: 'request' | 'answer' | 'late'): void => {
    let seen = 0;
    cloud.loses = (request) => (request.startsWith('GET') || seen++ !== n ? undefined : what);
  };

  test.each([{ what: 'request' }, { what: 'answer' }] as const)(
    '($what) at any request of a creation has one of each, and leaves none',
    async ({ what }) => {
      const total = await changesOf(create);
      expect(total).toBeGreaterThan(10);
      for (let n = 0; n < total; n++) {
        cloud = new FakeOpenStack(new FakeClock());
        losesNth(n, what);
        await create();
        cloud.loses = () => undefined;
        for (let tries = 0; (await create()).status === 'rejected' && tries < 50; tries++)
          await cloud.clock.advanceAsync(5_000);

        const { servers, ports } = cloud;
        expect({ n, of: [servers.length, ports.length] }).toEqual({ n, of: [1, 1] });
        expect({ n, of: descriptions() }).toEqual({ n, of: OF_DISKS });
        await removeWhole();
        expect({ n, ...present() }).toEqual({ n, ...NOTHING });
      }
    },
  );

  test.each([{ what: 'request' }, { what: 'answer' }, { what: 'late' }] as const)(
    '($what) at any disk or at the server leaves none when it is deleted at once',
    async ({ what }) => {
      for (const nth of [1, 2, 3, 4]) {
        cloud = new FakeOpenStack(new FakeClock());
        let seen = 0;
        cloud.loses = (request) => (/^POST (volumev3|compute)/.test(request) && ++seen === nth ? what : undefined);
        expect(await create()).toMatchObject({ status: 'rejected', reason: { code: 'Unavailable' } });
        expect(seen).toBe(nth);

        await removeWhole();

        await cloud.clock.advanceAsync(600_000);
        expect({ nth, ...present() }).toEqual({ nth, ...NOTHING });
      }
    },
  );

  test('at any request of a deletion leaves none', async () => {
    await create();
    const total = await changesOf(async () => await remove());
    expect(total).toBeGreaterThan(4);
    for (let n = 0; n < total; n++) {
      cloud = new FakeOpenStack(new FakeClock());
      await create();
      losesNth(n, 'answer');

      await removeWhole();

      expect({ n, ...present() }).toEqual({ n, ...NOTHING });
    }
  });
});

describe('the root disk of a machine that Gardener’s provider made', () => {
  const server: Server = {
    id: 's-1',
    name: machine.name,
    status: 'ACTIVE',
    created: '2026-01-01T00:00:00Z',
    metadata: TAGS,
    addresses: {},
    'OS-SRV-USG:launched_at': 'x',
  };
  const free = volumeOf('v-1', { description: null, metadata: TAGS, attachments: [] });
  /** As Nova shows it with its server; it stays when that goes. */
  const attachedTo = (instance: string): void => {
    cloud.volumes = [{ ...free, status: 'in-use', attachments: [{ server_id: instance }] }];
    cloud.attachments = [{ id: 'a-1', instance, volume_id: 'v-1', connection_info: { driver: 'rbd' } }];
  };

  test.each<{ when: string; given: () => void }>([
    {
      when: 'its server is deleted in one call',
      given: () => {
        cloud.servers = [server];
        attachedTo('s-1');
      },
    },
    {
      when: 'the call that deletes its server is lost',
      given: () => {
        cloud.servers = [server];
        attachedTo('s-1');
        let lost = 0;
        cloud.loses = (request) => (request.startsWith('DELETE compute') && lost++ === 0 ? 'answer' : undefined);
      },
    },
    { when: 'its server is gone', given: () => (cloud.volumes = [free]) },
    {
      when: 'its server is still shown, but no longer has it',
      given: () => {
        cloud.servers = [{ ...server, 'OS-EXT-STS:task_state': 'deleting' }];
        cloud.volumes = [free];
      },
    },
    {
      when: 'it is still being made',
      given: () => {
        cloud.volumes = [{ ...free, status: 'creating' }];
        cloud.clock.schedule(10_000, () => (cloud.volumes = [free]));
      },
    },
  ])('goes with the machine when $when', async ({ given }) => {
    given();

    await removeWhole();

    expect(present()).toEqual(NOTHING);
  });

  test.each<{ what: string; change: Partial<Volume> }>([
    { what: 'is not used', change: {} },
    {
      what: 'a server uses that is not the machine’s',
      change: { status: 'in-use', attachments: [{ server_id: 's-2' }] },
    },
  ])('stays, with words, beside a restored backup that $what, until that has another name', async ({ change }) => {
    const restored = { ...free, id: 'v-2', ...change };
    cloud.servers = [server];
    attachedTo('s-1');
    cloud.volumes = [...cloud.volumes, restored];

    const detail =
      'the root disk is not deleted yet: it is one of volumes v-1, v-2; delete the others, or give them another name';
    for (let tries = 0; tries < 2; tries++)
      expect(await remove()).toMatchObject({ reason: { code: 'FailedPrecondition', detail } });
    expect(present()).toEqual({ ...NOTHING, volumes: [free, restored] });

    const renamed = { ...restored, name: 'kept' };
    cloud.volumes = [free, renamed];
    await removeWhole();
    expect(cloud.volumes).toEqual([renamed]);
  });

  test('goes with the machine when its server was refused, and another disk was made beside it', async () => {
    cloud.volumes = [free];
    await create();
    expect(cloud.volumes).toHaveLength(4);

    await removeWhole();

    expect(present()).toEqual(NOTHING);
  });

  const [cluster = '', role = ''] = Object.keys(TAGS);
  test.each<{ which: string; change: Partial<Volume> }>([
    { which: 'lacks the tag of the cluster', change: { metadata: { [role]: '1' } } },
    { which: 'lacks the tag of the role', change: { metadata: { [cluster]: '1' } } },
    { which: 'has no metadata', change: { metadata: {} } },
    { which: 'says whose it is', change: { description: 'a copy, to be kept' } },
    { which: 'has another name', change: { name: 'm' } },
  ])('is none that $which', async ({ change }) => {
    cloud.volumes = [{ ...free, ...change }];

    expect(await remove()).toMatchObject({ reason: { code: 'NotFound' } });

    expect(cloud.askedFor('DELETE')).toEqual([]);
  });

  test('is unknown to a class that has lost a tag', async () => {
    cloud.volumes = [free];

    expect(await remove({ marks: [cluster] })).toMatchObject({ reason: { code: 'NotFound' } });

    expect(cloud.volumes).toEqual([free]);
  });

  test('stays while a server uses it that is not the machine’s', async () => {
    cloud.servers = [{ ...server, id: 's-2', name: 'rescue', metadata: {} }];
    attachedTo('s-2');

    expect(await remove({ servers: [] })).toMatchObject({ reason: { code: 'NotFound' } });

    expect(cloud.askedFor('DELETE')).toEqual([]);
  });

  test('holds the deletion, with words, while Cinder shows it attached to a server that is gone', async () => {
    attachedTo('s-1');

    const detail = 'the root disk is not deleted yet: volume v-1 is in status in-use';
    expect(await remove()).toMatchObject({ reason: { code: 'Aborted', detail } });
  });

  test('is asked to be deleted when its state was reset, and Cinder says why it keeps it', async () => {
    cloud.volumes = [{ ...free, attachments: [{ server_id: 's-1' }] }];
    cloud.answer = (request) =>
      request === 'DELETE volumev3 /volumes/v-1'
        ? { status: 400, headers: {}, body: { badRequest: { message: 'is still attached' } } }
        : undefined;

    const detail = expect.stringMatching('Cinder refuses to delete volume v-1.*is still attached');
    expect(await remove()).toMatchObject({ reason: { code: 'FailedPrecondition', detail } });
  });

  test.each<{ what: string; change: Partial<Volume> }>([
    { what: 'a description', change: { description: 'a copy, to be kept' } },
    { what: 'a server', change: { attachments: [{ server_id: 's-2' }] } },
    { what: 'a host', change: { attachments: [{ server_id: null }] } },
  ])('stays when it has got $what since it was listed', async ({ change }) => {
    cloud.volumes = [free];
    cloud.answer = (request) => {
      if (request !== 'GET volumev3 /volumes/v-1') return undefined;
      cloud.volumes = [{ ...free, ...change }];
      cloud.servers = [{ ...server, id: 's-2', name: 'rescue', metadata: {} }];
      return undefined;
    };

    await remove();

    expect(cloud.askedFor('DELETE')).toEqual([]);
    expect(cloud.askedFor('GET volumev3 /volumes/v-1')).not.toEqual([]);
  });

  describe('without a Machine', () => {
    const stub = { ...machine, uid: undefined, providerID: 'openstack:///region/s-1' };

    test('goes with its server, and is told before', async () => {
      cloud.servers = [server];
      attachedTo('s-1');
      const warn = jest.fn<Logger['warn']>();

      expect(await remove({ machine: stub, log: { ...silentLogger, warn } })).toMatchObject({ status: 'fulfilled' });

      expect(present()).toEqual(NOTHING);
      const fields = expect.objectContaining({ server: 's-1', volumes: ['v-1'] });
      expect(warn).toHaveBeenCalledWith(fields, 'deleting a server without a Machine, and then its volumes');
    });

    test('is named when the call ends before its server is gone: no other call will find it', async () => {
      cloud.servers = [server];
      attachedTo('s-1');
      cloud.answer = (request) =>
        request === 'DELETE compute /servers/s-1' ? { status: 204, headers: {}, body: '' } : undefined;

      const detail = 'server s-1 is still being deleted; its volumes may stay: v-1';
      expect(await remove({ machine: stub })).toMatchObject({ reason: { code: 'Aborted', detail } });
    });

    test('is none that its server does not have: the name may be another machine’s by now', async () => {
      cloud.servers = [server];
      cloud.volumes = [free];

      await remove({ machine: stub });

      expect(present()).toEqual({ ...NOTHING, volumes: [free] });
    });
  });
});
