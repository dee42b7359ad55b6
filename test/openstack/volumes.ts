import { setTimeout as sleep } from 'node:timers/promises';

import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';

import type { MachineRequest } from '../../pkg/driver/driver.ts';
import type { DriverCode } from '../../pkg/driver/error.ts';
import { machineOf } from '../../pkg/drivers/machine-identity.ts';
import { ownerText } from '../../pkg/drivers/openstack/intent.ts';
import { stubOf } from '../drivers/requests.ts';
import { eventually } from '../expect/eventually.ts';
import { sampled, sampledTest } from '../expect/sampled.ts';
import type { Bed } from './bed.ts';
import { callOf, create, heeding, newDriver, remove, requestFor } from './driver.ts';
import { belongingsOf, clear, SELDOM, type SeenVolume, volumesOf } from './leftovers.ts';
import { openStackClass, secretOf, TAGS } from './requests.ts';
import { LOSSY_REGION } from './seed.ts';

/** The driver's unit tests show each on a simulated cloud. */
const testInTurn = sampledTest(2);

interface Row {
  readonly what: string;
  readonly change: Readonly<Record<string, unknown>>;
  readonly code: DriverCode;
  readonly says: RegExp;
}

/** Types beside Cinder's default (machinist_bed/disks.py). */
const TYPES = ['ssd', 'slow', 'broken', 'stuck'];
/** So long a request for a volume may go unanswered here and still make one. */
const ANSWER_MS = 20_000;
/** Names of devices are the hypervisor's. */
const FIRST_DEVICE = expect.stringMatching(/a$/);
const NOTHING = { servers: [], ports: [], floatingIPs: [], volumes: [] };
/** More than the project's quota of volumes, and less than the backend has room for. */
const QUOTA_GB = 500;

/** Machines with data volumes: what else their class has, and by whom the server is deleted. */
const DATA_VOLUMES = sampled({
  name: 'openstack: machines with data volumes',
  rows: [
    { change: {}, booted: [] },
    { change: { rootDiskSize: 3 }, booted: [3] },
  ].flatMap((of) => (['driver', 'hand'] as const).map((deletedBy) => ({ ...of, deletedBy }))),
  nameOf: ({ booted: [size], deletedBy }) =>
    `deleted by ${deletedBy}, ${size === undefined ? 'no root disk' : 'root disk'}`,
  kindsOf: ({ booted, deletedBy }) => [deletedBy, booted.length === 0 ? 'no root disk' : 'root disk'],
});

/** When a machine is deleted, from the moment on in which its server shows: Nova reserves and attaches volumes one after the other. */
const MOMENTS_MS = sampled({
  name: 'openstack: moments of a build',
  rows: [0, 200, 400, 600],
  nameOf: String,
  kindsOf: () => ['moment'],
  least: 2,
});

/** What a class asks for and Cinder does not make. */
const ROWS: readonly Row[] = [
  {
    what: 'an unknown type',
    change: { rootDiskSize: 3, rootDiskType: 'none' },
    code: 'InvalidArgument',
    says: /spec.rootDiskType: creating the root disk: 404/,
  },
  {
    what: 'a zone that Cinder does not have',
    change: { rootDiskSize: 3, rootDiskType: 'ssd', availabilityZone: 'small' },
    code: 'InvalidArgument',
    says: /spec.availabilityZone: creating the root disk: 400/,
  },
  {
    what: 'more than the quota',
    change: { rootDiskSize: QUOTA_GB + 1, rootDiskType: 'ssd' },
    code: 'ResourceExhausted',
    says: /spec.rootDiskSize: creating the root disk: 413/,
  },
  {
    what: 'more than the quota, without a type',
    change: { rootDiskSize: QUOTA_GB + 1 },
    code: 'ResourceExhausted',
    says: /spec.rootDiskSize: creating the root disk: 413/,
  },
  {
    what: 'an unknown type of a data volume',
    change: { rootDiskSize: 3, dataVolumes: [{ name: 'logs', size: 1, type: 'none' }] },
    code: 'InvalidArgument',
    says: /spec.dataVolumes\[0\].type: creating data volume logs: 404/,
  },
  {
    what: 'more than the quota for a data volume',
    change: {
      dataVolumes: [
        { name: 'small', size: 1 },
        { name: 'logs', size: QUOTA_GB },
      ],
    },
    code: 'ResourceExhausted',
    says: /spec.dataVolumes\[1\].size: creating data volume logs: 413/,
  },
  {
    what: 'a volume that cannot be made',
    change: { rootDiskSize: 3, rootDiskType: 'broken' },
    code: 'ResourceExhausted',
    says: /spec.rootDiskSize, rootDiskType: volume .* weighted backend/,
  },
];

/** Servers that boot from volumes of a real Cinder. */
export function describeVolumes(bed: Bed): void {
  const cinder = (path: string): string => `/v3/${bed.user.projectID}${path}`;
  const everything = async () => ({ ...(await belongingsOf(bed)), volumes: await volumesOf(bed) });
  const setQuota = async (gigabytes: number): Promise<void> => {
    const path = `/v3/${bed.admin.projectID}/os-quota-sets/${bed.user.projectID}`;
    await bed.admin.call('cinder', 'PUT', path, { quota_set: { gigabytes } });
  };

  describe('a machine that boots from a volume', () => {
    beforeAll(async () => {
      for (const name of TYPES)
        await bed.admin.call('cinder', 'POST', `/v3/${bed.admin.projectID}/types`, { volume_type: { name } });
      await setQuota(QUOTA_GB);
    });
    afterEach(async () => {
      await clear(bed);
      for (const { id } of await volumesOf(bed)) {
        const path = `/v3/${bed.admin.projectID}/volumes/${id}/action`;
        await bed.admin.call('cinder', 'POST', path, { 'os-force_delete': {} }).catch(() => undefined);
      }
    });

    // promise: openstack/root-disk-volume-none
    // promise: openstack/cloud/boot-volume-volume-size
    test('has exactly one, with its name and its tags, and none when it is deleted', async () => {
      await using driver = newDriver();
      const plain = requestFor(bed, 'm-1', { bootFromVolume: { enabled: true, volumeSize: 3 } });
      const ofType = requestFor(bed, 'm-2', { rootDiskSize: 4, rootDiskType: 'ssd' });

      const made = await Promise.all([create(driver, plain), create(driver, ofType)]);

      const ids = made.map(({ providerID }) => providerID.split('/').at(-1));
      // They boot from it: a server that boots from an image shows that.
      expect((await belongingsOf(bed)).servers).toMatchObject([{ image: '' }, { image: '' }]);
      const volumes = await volumesOf(bed);
      expect(volumes.toSorted((a, b) => a.size - b.size)).toMatchObject([
        // Nova forgets those that it makes itself when it is killed meanwhile, and nobody could tell whose they are.
        {
          size: 3,
          status: 'in-use',
          bootable: 'true',
          name: 'm-1',
          attachments: [{ server_id: ids[0], device: FIRST_DEVICE }],
          metadata: { ...TAGS, 'machinist-class': openStackClass(bed).metadata.name },
        },
        {
          size: 4,
          status: 'in-use',
          bootable: 'true',
          volume_type: 'ssd',
          name: 'm-2',
          attachments: [{ server_id: ids[1], device: FIRST_DEVICE }],
          metadata: { ...TAGS, 'machinist-class': openStackClass(bed).metadata.name },
        },
      ]);
      await remove(driver, plain);
      expect(await volumesOf(bed)).toHaveLength(1);
      // As the collection of orphans deletes: nobody asks again once the server is gone.
      await remove(driver, stubOf('m-2', made[1]?.providerID ?? '', ofType.machineClass, secretOf(bed)));
      expect(await everything()).toEqual(NOTHING);
    });

    // promise: openstack/data-volumes-each-none
    testInTurn(
      'has its data volumes, each once and in their order, behind whatever disk it boots from, and none when it is deleted',
      async () => {
        await using driver = newDriver();
        const dataVolumes = [
          { name: 'logs', size: 2 },
          { name: 'data', size: 1, type: 'ssd' },
        ];
        // The names of devices are the hypervisor's; the first is that of the root disk.
        const [second, third] = [/b$/, /c$/].map((name) => ({ device: expect.stringMatching(name) }));
        for (const { change, booted, deletedBy } of DATA_VOLUMES) {
          const request = requestFor(bed, 'm-1', { ...change, dataVolumes });

          const { providerID } = await create(driver, request);

          const id = providerID.split('/').at(-1);
          const volumes = await volumesOf(bed);
          const owner = ownerText(machineOf(request, callOf()));
          const common = { status: 'in-use', name: 'm-1', bootable: 'false', metadata: TAGS };
          const data = volumes.filter(({ bootable }) => bootable === 'false').toSorted((a, b) => b.size - a.size);
          expect(data).toMatchObject([
            {
              ...common,
              size: 2,
              description: `${owner} disk=logs`,
              attachments: [{ server_id: id, ...second }],
            },
            {
              ...common,
              size: 1,
              volume_type: 'ssd',
              description: `${owner} disk=data`,
              attachments: [{ server_id: id, ...third }],
            },
          ]);
          expect(volumes.filter((one) => !data.includes(one)).map(({ size }) => size)).toEqual(booted);
          // Somebody deletes the server by hand: its volumes go with it.
          if (deletedBy === 'hand') {
            await bed.user.call('nova', 'DELETE', `/v2.1/servers/${id ?? ''}`);
            await eventually(async () => (await volumesOf(bed)).length === 0, SELDOM);
          }
          await remove(driver, requestFor(bed, 'm-1', { ...change, dataVolumes }, { providerID }));
          expect(await everything()).toEqual(NOTHING);
        }
      },
    );

    // promise: openstack/data-volume-answer-lost
    testInTurn(
      'has one data volume when the answer of Cinder is lost, and none when a late one appears while it is deleted',
      async () => {
        const { proxy } = bed;
        const change = { region: LOSSY_REGION, dataVolumes: ['logs', 'data'].map((name) => ({ name, size: 1 })) };
        const request = (name: string) => requestFor(bed, name, change, { secret: proxy.secret });
        const arrival = Promise.withResolvers<void>();
        let asked = 0;
        proxy.begin((method, path) => {
          if (method !== 'POST' || !path.endsWith('/volumes')) return undefined;
          asked++;
          // The second volume of each machine.
          if (asked === 2) return 'answer';
          return asked === 4 ? { at: arrival.promise } : undefined;
        });
        const first = newDriver();
        await expect(first.createMachine(request('m-1'), callOf())).rejects.toMatchObject({ code: 'Unavailable' });
        const given = new AbortController();
        const making = first.createMachine(request('m-2'), callOf({ signal: given.signal }));
        await Promise.all([
          expect(making).rejects.toThrow('given up'),
          eventually(() => asked === 4, SELDOM).then(() => given.abort(new Error('given up'))),
        ]);
        await first.close();

        await using second = newDriver({ answerMs: ANSWER_MS });
        await create(second, request('m-1'));
        await using patient = newDriver();
        await expect(patient.deleteMachine(request('m-2'), callOf())).rejects.toMatchObject({ code: 'Aborted' });
        arrival.resolve();
        const ofSecond = async () => (await volumesOf(bed)).filter(({ name }) => name === 'm-2');
        await eventually(async () => expect(await ofSecond()).toHaveLength(2), SELDOM);
        await remove(second, request('m-2'));

        expect((await volumesOf(bed)).map(({ name, status }) => [name, status])).toEqual([
          ['m-1', 'in-use'],
          ['m-1', 'in-use'],
        ]);
        await remove(second, request('m-1'));
        expect(await everything()).toEqual(NOTHING);
      },
    );

    test.each([{ isAlone: false }, { isAlone: true }])(
      'of an earlier provider takes its disk with it, also when its server is gone: $isAlone',
      async ({ isAlone }) => {
        await using driver = newDriver();
        const change = { rootDiskSize: 3, rootDiskType: 'ssd' };
        const { imageID, networkID } = bed.seeds;
        const { volume } = await bed.user.call<{ volume: SeenVolume }>('cinder', 'POST', cinder('/volumes'), {
          volume: { name: 'm-1', size: 3, volume_type: 'ssd', imageRef: imageID, metadata: TAGS },
        });
        await eventually(async () => expect(await volumesOf(bed)).toMatchObject([{ status: 'available' }]), SELDOM);
        const disk = { boot_index: 0, uuid: volume.id, source_type: 'volume', destination_type: 'volume' };
        await bed.user.call('nova', 'POST', '/v2.1/servers', {
          server: {
            name: 'm-1',
            flavorRef: '1',
            block_device_mapping_v2: [{ ...disk, delete_on_termination: false }],
            networks: [{ uuid: networkID }],
            metadata: TAGS,
          },
        });
        await create(driver, requestFor(bed, 'm-1', change));
        if (isAlone) {
          const { servers } = await belongingsOf(bed);
          await bed.user.call('nova', 'DELETE', `/v2.1/servers/${servers[0]?.id ?? ''}`);
          await eventually(async () => (await volumesOf(bed))[0]?.status === 'available', SELDOM);
        }

        await remove(driver, requestFor(bed, 'm-1', change));

        expect(await everything()).toEqual(NOTHING);
      },
    );

    // promise: openstack/answer-cinder-lost-driver
    testInTurn(
      'has one when the answer of Cinder is lost, and none when it is given up while Cinder makes it',
      async () => {
        const { proxy } = bed;
        const request = (name: string, rootDiskType: string) =>
          requestFor(bed, name, { region: LOSSY_REGION, rootDiskSize: 3, rootDiskType }, { secret: proxy.secret });
        let lost = 0;
        proxy.begin((method, path) =>
          method === 'POST' && path.endsWith('/volumes') && lost++ === 0 ? 'answer' : undefined,
        );
        const first = newDriver();
        await expect(first.createMachine(request('m-1', 'ssd'), callOf())).rejects.toMatchObject({
          code: 'Unavailable',
        });
        const given = new AbortController();
        const making = first.createMachine(request('m-2', 'slow'), callOf({ signal: given.signal }));
        await Promise.all([
          expect(making).rejects.toThrow('given up'),
          eventually(async () => expect(await volumesOf(bed)).toHaveLength(2), SELDOM).then(() =>
            given.abort(new Error('given up')),
          ),
        ]);
        await first.close();

        await using second = newDriver({ answerMs: ANSWER_MS });
        await create(second, request('m-1', 'ssd'));
        // Cinder refuses to delete what it is making.
        await remove(second, request('m-2', 'slow'));

        expect((await volumesOf(bed)).map(({ name, status }) => [name, status])).toEqual([['m-1', 'in-use']]);
        const { servers, ports } = await belongingsOf(bed);
        expect([servers.length, ports.length]).toEqual([1, 1]);
        await remove(second, request('m-1', 'ssd'));
        expect(await everything()).toEqual(NOTHING);
      },
    );

    /** A creation whose request for a volume is under way when it is given up; it arrives when there is another one, or is told to. */
    const begunLate = async () => {
      const { proxy } = bed;
      const change = { region: LOSSY_REGION, rootDiskSize: 3, rootDiskType: 'ssd' };
      const request = requestFor(bed, 'm-1', change, { secret: proxy.secret });
      const arrival = Promise.withResolvers<void>();
      let asked = 0;
      proxy.begin((method, path) => {
        if (method !== 'POST' || !path.endsWith('/volumes')) return undefined;
        asked++;
        // The late one is first: it is there when the other one is.
        if (asked > 1) arrival.resolve();
        return asked === 1 ? { at: arrival.promise } : undefined;
      });
      const first = newDriver();
      const given = new AbortController();
      const making = first.createMachine(request, callOf({ signal: given.signal }));
      await Promise.all([
        expect(making).rejects.toThrow('given up'),
        eventually(() => asked === 1, SELDOM).then(() => given.abort(new Error('given up'))),
      ]);
      await first.close();
      return { request, arrival, asked: () => asked };
    };

    testInTurn('has one when a request for another one arrives late', async () => {
      const { request, asked } = await begunLate();

      await using second = newDriver({ answerMs: ANSWER_MS });
      await create(second, request);

      expect(asked()).toBe(2);
      await eventually(async () => expect(await volumesOf(bed)).toMatchObject([{ status: 'in-use' }]), SELDOM);
    });

    // promise: openstack/root-disk-asked-shows
    testInTurn('has none when its request arrives while it is deleted', async () => {
      const { request, arrival } = await begunLate();

      await using second = newDriver();
      await expect(second.deleteMachine(request, callOf())).rejects.toMatchObject({ code: 'Aborted' });
      arrival.resolve();
      await eventually(async () => expect(await volumesOf(bed)).toHaveLength(1), SELDOM);
      await using third = newDriver({ answerMs: ANSWER_MS });
      await remove(third, request);

      expect(await everything()).toEqual(NOTHING);
    });

    /** A disk of a machine that has no server. */
    const diskAlone = async (request: MachineRequest): Promise<SeenVolume> => {
      const { volume } = await bed.user.call<{ volume: SeenVolume }>('cinder', 'POST', cinder('/volumes'), {
        volume: {
          name: request.machine.metadata.name,
          size: 3,
          imageRef: bed.seeds.imageID,
          description: ownerText(machineOf(request, callOf())),
        },
      });
      await eventually(async () => expect(await volumesOf(bed)).toMatchObject([{ status: 'available' }]), SELDOM);
      return volume;
    };

    // promise: openstack/disk-reserved-server-gone
    testInTurn('goes although Nova has left its volume reserved for a server that is no more', async () => {
      await using driver = newDriver();
      const request = requestFor(bed, 'm-1', { rootDiskSize: 3 });
      const reserve = async ({ id: volume_uuid }: SeenVolume): Promise<void> => {
        const attachment = { instance_uuid: '00000000-0000-4000-8000-000000000000', volume_uuid };
        await bed.user.call('cinder', 'POST', cinder('/attachments'), { attachment });
        await eventually(async () => expect(await volumesOf(bed)).toMatchObject([{ status: 'reserved' }]), SELDOM);
      };
      await reserve(await diskAlone(request));

      await remove(driver, request);
      expect(await everything()).toEqual(NOTHING);

      const disk = await diskAlone(request);
      await reserve(disk);
      await create(driver, request);
      expect(await volumesOf(bed)).toMatchObject([{ id: disk.id, status: 'in-use' }]);
    });

    // promise: openstack/disk-reserved-server-gone
    testInTurn(
      'leaves nothing at whatever moment of its build it is deleted',
      async () => {
        await using driver = newDriver();
        const change = { rootDiskSize: 3, dataVolumes: [{ name: 'logs', size: 1 }] };
        const created = async (name: string) => (await belongingsOf(bed)).servers.some((one) => one.name === name);
        for (const moment of MOMENTS_MS) {
          const request = requestFor(bed, `m-${moment}`, change);
          const given = new AbortController();
          const making = driver.createMachine(request, callOf({ signal: given.signal })).catch(() => undefined);
          await eventually(async () => await created(request.machine.metadata.name), { ...SELDOM, intervalMs: 20 });
          await sleep(moment);

          given.abort(new Error('the machine is being deleted'));
          await making;
          await remove(driver, request);

          expect({ moment, ...(await everything()) }).toEqual({ moment, ...NOTHING });
        }
      },
      900_000,
    );

    testInTurn('says why Cinder refuses to delete its volume, and goes when it does not any more', async () => {
      await using driver = newDriver();
      const request = requestFor(bed, 'm-1', { rootDiskSize: 3 });
      const { id } = await diskAlone(request);
      const { snapshot } = await bed.user.call<{ snapshot: { id: string } }>('cinder', 'POST', cinder('/snapshots'), {
        snapshot: { volume_id: id, name: 'kept' },
      });

      await expect(driver.deleteMachine(request, callOf())).rejects.toMatchObject({
        code: 'FailedPrecondition',
        detail: expect.stringMatching(new RegExp(`Cinder refuses to delete volume ${id}: 400 .*snapshots`)),
      });
      await bed.user.call('cinder', 'DELETE', cinder(`/snapshots/${snapshot.id}`));
      await eventually(async () => await remove(driver, request), SELDOM);

      expect(await everything()).toEqual(NOTHING);
    });

    // promise: openstack/tags-class-left-alone
    testInTurn(
      'keeps its volume, and what it runs on, when its server was taken out of the hands of the driver',
      async () => {
        await using driver = newDriver();
        const change = { rootDiskSize: 3, floatingIP: { networkName: 'outside' } };
        const { providerID } = await create(driver, requestFor(bed, 'm-1', change));
        const id = providerID.split('/').at(-1) ?? '';
        await bed.user.call('nova', 'DELETE', `/v2.1/servers/${id}/metadata/kubernetes.io-role-node`);

        const known = requestFor(bed, 'm-1', change, { providerID });
        await expect(driver.deleteMachine(known, callOf())).rejects.toMatchObject({ code: 'NotFound' });

        const { servers, ports, floatingIPs, volumes } = await everything();
        expect(servers).toMatchObject([{ id, status: 'ACTIVE' }]);
        expect(ports).toMatchObject([{ device_id: id }]);
        expect(floatingIPs).toMatchObject([{ port_id: ports[0]?.id }]);
        expect(volumes).toMatchObject([{ status: 'in-use', attachments: [{ server_id: id }] }]);
      },
    );

    testInTurn('goes for good, with its volume, where Nova keeps for a while what is deleted', async () => {
      await bed.keepDeleted(3_600);
      try {
        const change = { rootDiskSize: 3 };
        await using driver = newDriver();
        const request = requestFor(bed, 'm-1', change);
        const { providerID } = await create(driver, request);
        await remove(driver, requestFor(bed, 'm-1', change, { providerID }));
        const id = providerID.split('/').at(-1) ?? '';
        await expect(bed.user.call('nova', 'GET', `/v2.1/servers/${id}`)).rejects.toThrow(': 404');
        expect(await everything()).toEqual(NOTHING);

        const other = await create(driver, request);
        const otherID = other.providerID.split('/').at(-1) ?? '';
        await bed.user.call('nova', 'DELETE', `/v2.1/servers/${otherID}`);
        const softly = async () =>
          expect(await bed.user.call('nova', 'GET', `/v2.1/servers/${otherID}`)).toMatchObject({
            server: { status: 'SOFT_DELETED' },
          });
        await eventually(softly, SELDOM);
        await remove(driver, request);
        await eventually(
          async () => await expect(bed.user.call('nova', 'GET', `/v2.1/servers/${otherID}`)).rejects.toThrow(': 404'),
          SELDOM,
        );
        expect(await everything()).toEqual(NOTHING);
      } finally {
        await bed.keepDeleted(0);
      }
    });

    // promise: openstack/cinder-refuses-named-member
    testInTurn('says why Cinder makes none, with the member of the class, and leaves nothing', async () => {
      await using driver = newDriver();

      const attempts = ROWS.map(async ({ what, change, code, says }, i) => {
        const made = async () => await driver.createMachine(requestFor(bed, `m-${i}`, change), callOf());
        const err = await heeding('create', made).catch((reason: unknown) => reason);
        expect({ what, err }).toMatchObject({ what, err: { code, detail: expect.stringMatching(says) } });
        return { name: `m-${i}`, made };
      });
      const refused = await Promise.all(attempts);
      await eventually(async () => {
        const left = await everything();
        // What was still being created could not be deleted yet: the next call does.
        const isAvailable = (name: string): boolean =>
          left.volumes.some((one) => one.name === name && one.status === 'available');
        for (const { name, made } of refused) if (isAvailable(name)) await made().catch(() => undefined);
        expect(left).toEqual(NOTHING);
      }, SELDOM);
    });

    // promise: openstack/volume-slow-delete-waited
    testInTurn('is not gone while its volume is slow to delete or stuck, and says so', async () => {
      await using driver = newDriver();
      // Refused by Nova, when there is a volume.
      const request = (rootDiskType: string) =>
        requestFor(bed, 'm-1', { rootDiskSize: 3, rootDiskType, keyName: 'none' });
      const made = async () => await driver.createMachine(request('slow'), callOf());
      await expect(heeding('create', made)).rejects.toMatchObject({ detail: expect.stringContaining('key_name') });

      await expect(driver.deleteMachine(request('slow'), callOf({ timeoutMs: 3_000 }))).rejects.toMatchObject({
        code: 'Aborted',
        detail: expect.stringMatching(/^the root disk is not deleted yet: volume \S+ is in status deleting/),
      });
      await remove(driver, request('slow'));
      expect(await volumesOf(bed)).toEqual([]);

      await expect(driver.createMachine(request('stuck'), callOf())).rejects.toThrow('key_name');
      const isStuck = async () => expect(await volumesOf(bed)).toMatchObject([{ status: 'error_deleting' }]);
      await eventually(isStuck, SELDOM);
      const [volume] = await volumesOf(bed);
      await expect(remove(driver, request('stuck'))).rejects.toMatchObject({
        code: 'Internal',
        detail: expect.stringContaining(`Cinder failed to delete volume ${volume?.id}; the operator of the cloud`),
      });
      const path = `/v3/${bed.admin.projectID}/volumes/${volume?.id}/action`;
      await bed.admin.call('cinder', 'POST', path, { 'os-reset_status': { status: 'error' } });
      await remove(driver, request('stuck'));
      expect(await everything()).toEqual(NOTHING);
    });
  });
}
