import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { callOf } from '../../../test/drivers/requests.ts';
import { DriverError } from '../../driver/error.ts';
import { silentLogger } from '../../base/log/logger.ts';
import type { MachineIdentity } from '../machine-identity.ts';
import { type Answer, NoAnswerError } from './answer.ts';
import { type Cloud, Clouds } from './cloud.ts';
import { Creation } from './creation.ts';
import { deleteServers } from './deletion.ts';
import { FailedBuilds } from './failed-builds.ts';
import { ownerText } from './intent.ts';
import type { Port } from './network.ts';
import { metadataOf } from './ownership.ts';
import { type OpenStackSpec, parseProviderSpec } from './provider-spec.ts';
import type { Server } from './server.ts';
import { unavailable } from './service-client.ts';
import { DEFAULT_OPENSTACK_SETTINGS } from './settings.ts';
import { UnansweredRequests } from './unanswered.ts';
import type { DiskOwner, Volume, DesiredVolume } from './volume.ts';

const machine: MachineIdentity = { cluster: 'c-1', namespace: 'shoot', name: 'm-1', uid: 'u-1', providerID: undefined };
const owner = ownerText(machine);
const TAGS = { 'kubernetes.io-cluster-x': '1', 'kubernetes.io-role-worker': '1' };
const spec = parseProviderSpec({
  apiVersion: 'openstack.machine.gardener.cloud/v1alpha1',
  kind: 'MachineProviderConfig',
  spec: {
    imageID: 'i-1',
    region: 'r',
    availabilityZone: 'z',
    flavorName: 'f',
    keyName: 'k',
    tags: TAGS,
    networkID: 'n-1',
    podNetworkCIDRs: ['10.0.0.0/8'],
    rootDiskSize: 3,
    rootDiskType: 'ssd',
  },
});

function volume(id: string): Volume {
  return { id, name: 'm-1', status: 'available', description: owner, size: 3 };
}

/** The driver's view of a cloud that takes its time, and loses answers. */
class Scene {
  readonly clock = new FakeClock();
  readonly asked: string[] = [];
  ports: Port[] = [];
  volumes: Volume[] = [];
  floatingIPs: { readonly id: string; readonly port_id: null }[] = [];
  servers: Server[] = [];
  hasCinder = true;
  zonesOfCinder: string[] = [];
  /** What the last volume was asked for with. */
  wanted: DesiredVolume | undefined;
  #unanswered = new UnansweredRequests(this.clock);
  /** What happens before a request is dealt with. */
  before: (request: string) => void = () => undefined;
  /** Whether the answer of a request is lost. */
  isLost: (request: string) => boolean = () => false;

  async create(change: Partial<OpenStackSpec> = {}): Promise<string> {
    const known = { className: 'c', userData: 'x', failedBuilds: new FailedBuilds(this.clock) };
    const creation = new Creation({ ...this.#parts(), ...known, spec: { ...spec, ...change } });
    return (await creation.run(callOf({ timeoutMs: 240_000 }))).id;
  }

  /** The process dies, and another one goes on: it knows what the cloud knows. */
  restart(): void {
    this.#unanswered = new UnansweredRequests(this.clock);
  }

  async delete(
    hasDisk = true,
    call = callOf(),
    { hasFloatingIP = false, othersMs = 0, providerID = undefined as string | undefined } = {},
  ): Promise<void> {
    const parts = { ...this.#parts(), machine: { ...machine, providerID }, servers: [...this.servers] };
    await deleteServers({ ...parts, marks: Object.keys(TAGS), hasDisk, hasFloatingIP, othersMs }, call);
  }

  #parts() {
    const { clock } = this;
    return { cloud: this.#cloud(), machine, settings: DEFAULT_OPENSTACK_SETTINGS, clock, log: silentLogger };
  }

  /** Deals with a request, whose answer may be lost. */
  async #answer<T>(request: string, result: () => T): Promise<T> {
    this.asked.push(request);
    this.before(request);
    if (this.isLost(request)) throw new NoAnswerError(`no answer to ${request}`, true);
    return await Promise.resolve(result());
  }

  #makeServer(): Answer {
    const made = { id: `s-${this.servers.length + 1}`, name: 'm-1', status: 'ACTIVE', created: '', addresses: {} };
    const server = { ...made, metadata: metadataOf(machine, 'c', TAGS) };
    this.servers.push(server);
    return { status: 202, headers: {}, body: { server } };
  }

  #makeVolume(): Answer {
    this.volumes.push(volume('v-1'));
    return { status: 202, headers: {}, body: { volume: this.volumes[0] } };
  }

  #describePort(id: string, description: string): Answer {
    this.ports = this.ports.map((port) => (port.id === id ? { ...port, description } : port));
    return { status: 200, headers: {}, body: {} };
  }

  #makePort(): Port {
    const port = { id: 'p-1', network_id: 'n-1', device_id: '', description: owner, fixed_ips: [] };
    this.ports.push(port);
    return port;
  }

  #removeVolume(id: string): void {
    this.volumes = this.volumes.filter((one) => one.id !== id);
  }

  /** As much of it as these calls use. */
  #cloud(): Cloud {
    const servers = () => this.#answer('GET servers', () => [...this.servers]);
    const volumes = (_of: DiskOwner, isOurs: (one: Volume) => boolean) =>
      this.#answer('GET volumes', () => this.volumes.filter((one) => one.description === owner || isOurs(one)));
    const unanswered = this.#unanswered;
    const find = async (): Promise<Server | undefined> => (await servers())[0];
    const cloud = {
      region: 'r',
      names: {
        get: async (key: string, signal: AbortSignal, ask: (shared: AbortSignal) => Promise<unknown>) =>
          key.startsWith('zones ') ? await ask(signal) : 'f-1',
      },
      pollOf: () => ({ until: (id: string) => Promise.resolve(this.servers.find((one) => one.id === id)) }),
      compute: {
        serversNamed: servers,
        server: find,
        hasTags: () => this.#answer('GET version', () => false),
        create: () => this.#answer('POST server', () => this.#makeServer()),
        delete: () => this.#answer('DELETE server', () => (this.servers = [])),
      },
      network: {
        portsNamed: () => this.#answer('GET ports', () => [...this.ports]),
        unanswered,
        createPort: async (_wanted: object, signal: AbortSignal) => {
          const made = () => this.#answer('POST port', () => ({ status: 201, headers: {}, body: this.#makePort() }));
          const answer = await unanswered.during(owner, signal, made).catch((err: unknown) => {
            throw err instanceof NoAnswerError ? unavailable('creating the port', err) : err;
          });
          return answer.body;
        },
        tagPort: () => this.#answer('PUT tags', () => undefined),
        describePort: ({ id }: Port, text: string) => this.#answer('PUT port', () => this.#describePort(id, text)),
        deletePort: () => this.#answer('DELETE port', () => (this.ports = [])),
        floatingIPs: () => this.#answer('GET floatingips', () => [...this.floatingIPs]),
        releaseFloatingIP: () => this.#answer('DELETE floatingip', () => (this.floatingIPs = [])),
      },
      volumes: {
        isOffered: () => Promise.resolve(this.hasCinder),
        list: volumes,
        free: (of: DiskOwner) => volumes(of, () => false),
        zones: () => Promise.resolve(this.zonesOfCinder),
        create: (wanted: DesiredVolume) => {
          this.wanted = wanted;
          return this.#answer('POST volume', () => this.#makeVolume());
        },
        untilUsable: ({ id }: Volume) => this.#answer('GET volume', () => id),
        removeOthers: (_of: DiskOwner, used: ReadonlySet<string>) =>
          this.#answer('DELETE other volumes', () => (this.volumes = this.volumes.filter(({ id }) => used.has(id)))),
        remove: async () => {
          const all = await volumes(machine as unknown as DiskOwner, () => false);
          for (const { id } of all) await this.#answer('DELETE volume', () => this.#removeVolume(id));
          return all.length > 0;
        },
      },
    };
    return cloud as unknown as Cloud;
  }
}

describe('a server of OpenStack', () => {
  test('is asked for before other disks are removed, which takes time that is the request for the server’s', async () => {
    const scene = new Scene();
    scene.volumes = [volume('v-1'), volume('v-2')];
    scene.before = (request) => {
      if (request === 'DELETE other volumes') scene.clock.advance(90_000);
    };
    scene.isLost = (request) => request === 'DELETE other volumes';

    await scene.create();

    const changes = scene.asked.filter(
      (request) => /^POST server|volumes$/.test(request) && !request.startsWith('GET'),
    );
    expect(changes).toEqual(['POST server', 'DELETE other volumes']);
  });

  test.each([
    { what: 'the version of Nova', slow: 'GET version' },
    { what: 'the list of servers', slow: 'GET servers' },
    { what: 'the list of ports', slow: 'GET ports' },
  ])('is not asked for when $what has taken most of the time of the mark', async ({ slow }) => {
    const scene = new Scene();
    scene.volumes = [volume('v-1')];
    scene.before = (request) => {
      const isMarked = scene.ports.some(({ description }) => description.includes(' sent='));
      if (request === slow && isMarked) scene.clock.advance(30_000);
    };

    await expect(scene.create()).rejects.toMatchObject({
      code: 'Unavailable',
      detail: expect.stringMatching(
        slow === 'GET ports' ? /Neutron 30 s, .* 30 s in total, .* 20 s/ : /Neutron 0 s, .* 30 s in total, .* 20 s/,
      ),
    });
    expect(scene.asked).not.toContain('POST server');
    expect(scene.ports).toMatchObject([{ description: owner }]);

    scene.before = () => undefined;
    expect(await scene.create()).toBe('s-1');
  });

  test('that took too long to ask for leaves the mark that somebody else has written meanwhile', async () => {
    const scene = new Scene();
    const theirs = `${owner} sent=${scene.clock.now() + 121_000} by=other`;
    scene.volumes = [volume('v-1')];
    scene.before = (request) => {
      if (request !== 'GET version') return;
      scene.clock.advance(121_000);
      scene.ports = scene.ports.map((port) => ({ ...port, description: theirs }));
    };

    await expect(scene.create()).rejects.toMatchObject({ code: 'Unavailable' });

    expect(scene.ports).toMatchObject([{ description: theirs }]);
  });

  test('is not asked for when another process has made one since it was looked for', async () => {
    const scene = new Scene();
    scene.volumes = [volume('v-1')];
    const made = { id: 's-other', name: 'm-1', status: 'ACTIVE', created: '', addresses: {} };
    scene.before = (request) => {
      if (request === 'POST port') scene.servers = [{ ...made, metadata: metadataOf(machine, 'c', TAGS) }];
    };

    await expect(scene.create()).rejects.toMatchObject({ code: 'Aborted' });

    expect(scene.asked).not.toContain('POST server');
  });
});

describe('a port of OpenStack', () => {
  test('whose request was not answered holds the deletion until it can appear no more, and goes with the machine', async () => {
    const scene = new Scene();
    scene.isLost = (request) => request === 'POST port';
    await expect(scene.create()).rejects.toMatchObject({ code: 'Unavailable' });

    await expect(scene.delete(false)).rejects.toMatchObject({
      code: 'Aborted',
      detail: expect.stringContaining('a request for a port or floating IP was not answered'),
    });
    scene.ports = [{ id: 'p-late', network_id: 'n-1', device_id: '', description: owner, fixed_ips: [] }];
    scene.clock.advance(DEFAULT_OPENSTACK_SETTINGS.answerMs - 1);
    await expect(scene.delete(false)).rejects.toMatchObject({ code: 'Aborted' });
    scene.ports = [{ id: 'p-later', network_id: 'n-1', device_id: '', description: owner, fixed_ips: [] }];
    scene.clock.advance(1);
    await scene.delete(false);

    expect(scene.ports).toEqual([]);
    await expect(scene.delete(false)).rejects.toMatchObject({ code: 'NotFound' });
  });

  test('that a driver had asked for when it died holds the deletion by the next one, and goes with the machine', async () => {
    const scene = new Scene();
    const late = { id: 'p-late', network_id: 'n-1', device_id: '', description: owner, fixed_ips: [] };
    scene.isLost = (request) => request === 'POST port';
    await expect(scene.create()).rejects.toThrow('no answer');
    scene.restart();

    await expect(scene.delete(false, callOf(), { othersMs: 3_000 })).rejects.toMatchObject({
      code: 'Aborted',
      detail: expect.stringContaining('one may appear in the next 3 s'),
    });
    scene.ports = [late];
    await scene.delete(false, callOf(), { othersMs: 0 });
    expect(scene.ports).toEqual([]);
  });

  test.each([
    { what: 'had a server', providerID: 'openstack:///r/s', hasFloatingIP: false, ips: [], holds: false },
    { what: 'has its floating IP', providerID: 'openstack:///r/s', hasFloatingIP: true, ips: ['f'], holds: false },
    { what: 'has no floating IP yet', providerID: 'openstack:///r/s', hasFloatingIP: true, ips: [], holds: true },
    { what: 'had no server', providerID: undefined, hasFloatingIP: true, ips: ['f'], holds: true },
  ])('a machine that $what waits for what others have asked for: $holds', async ({ ips, holds, ...more }) => {
    const scene = new Scene();
    scene.floatingIPs = ips.map((id) => ({ id, port_id: null }));
    scene.volumes = [volume('v-1')];

    const [ended] = await Promise.allSettled([scene.delete(true, callOf(), { ...more, othersMs: 1_000 })]);

    expect(ended.status).toBe(holds ? 'rejected' : 'fulfilled');
  });

  test.each([
    { what: 'is given up', err: new Error('given up'), isAborted: true, isLate: true },
    { what: 'never arrived', err: new NoAnswerError('refused', false), isAborted: false, isLate: false },
    { what: 'has no answer', err: new NoAnswerError('reset', true), isAborted: false, isLate: true },
    { what: 'is answered by what stands in front of Neutron', status: 504, isAborted: false, isLate: true },
    { what: 'is refused', status: 409, isAborted: false, isLate: false },
    { what: 'fails in Neutron', status: 500, isAborted: false, isLate: false },
    { what: 'is answered', status: 201, isAborted: false, isLate: false },
  ])('may appear when its request $what: $isLate', async ({ err, status = 0, isAborted, isLate }) => {
    const clock = new FakeClock();
    const unanswered = new UnansweredRequests(clock);
    const signal = isAborted ? AbortSignal.abort() : new AbortController().signal;
    const request = async (): Promise<Answer> =>
      err === undefined ? await Promise.resolve({ status, headers: {}, body: {} }) : await Promise.reject(err);

    await unanswered.during(owner, signal, request).catch(() => undefined);

    expect(unanswered.leftMs(owner, 1_000)).toBe(isLate ? 1_000 : 0);
    expect(unanswered.leftMs('another', 1_000)).toBe(0);
  });
});

describe('a root disk of OpenStack', () => {
  test('whose request was not answered holds the deletion until it can appear no more, and goes with the machine', async () => {
    const scene = new Scene();
    scene.isLost = (request) => request === 'POST volume';
    await expect(scene.create()).rejects.toMatchObject({ code: 'Unavailable' });

    await expect(scene.delete()).rejects.toMatchObject({ code: 'Aborted' });
    scene.clock.advance(DEFAULT_OPENSTACK_SETTINGS.answerMs - 1_000);
    await expect(scene.delete()).rejects.toMatchObject({ code: 'Aborted' });
    scene.volumes = [volume('v-late')];
    scene.clock.advance(1_000);
    await scene.delete();

    expect([scene.volumes, scene.ports]).toEqual([[], []]);
    await expect(scene.delete()).rejects.toMatchObject({ code: 'NotFound' });
  });

  test.each([
    { type: 'ssd', zones: [], zone: 'z' },
    { type: undefined, zones: ['y', 'z'], zone: 'z' },
    { type: undefined, zones: ['y'], zone: undefined },
  ])('of type $type is asked for in zone $zone where Cinder has $zones', async ({ type, zones, zone }) => {
    const scene = new Scene();
    scene.zonesOfCinder = zones;

    await scene.create({ rootDiskType: type });

    expect(scene.wanted).toMatchObject({ name: 'm-1', description: owner, type, availabilityZone: zone });
    expect(scene.asked.indexOf('POST volume')).toBeLessThan(scene.asked.indexOf('POST server'));
  });

  test('whose request was answered holds no deletion', async () => {
    const scene = new Scene();
    scene.before = (request) => {
      if (request === 'GET volume') throw new DriverError('Uninitialized', 'the root disk is not ready');
    };
    await expect(scene.create()).rejects.toThrow('not ready');
    expect(scene.volumes).toHaveLength(1);

    await scene.delete();

    expect([scene.volumes, scene.ports]).toEqual([[], []]);
  });

  test('goes with a machine whose class has lost its type', async () => {
    const scene = new Scene();
    scene.volumes = [volume('v-1')];

    await scene.delete(false);

    expect(scene.volumes).toEqual([]);
  });

  test('is not looked for in a cloud without Cinder when the class has none', async () => {
    const scene = new Scene();
    scene.hasCinder = false;

    await expect(scene.delete(false)).rejects.toMatchObject({ code: 'NotFound' });

    expect(scene.asked).not.toContain('GET volumes');
  });

  test('is looked for again when the call has ended before Cinder answered', async () => {
    const scene = new Scene();
    const given = new AbortController();
    const reason = new DriverError('DeadlineExceeded', 'the call has ended');
    scene.before = (request) => {
      if (request !== 'GET volumes') return;
      given.abort(reason);
      throw reason;
    };

    await expect(scene.delete(false, callOf({ signal: given.signal }))).rejects.toBe(reason);
  });

  test('holds no deletion when Cinder does not answer and the class has none', async () => {
    const scene = new Scene();
    scene.before = (request) => {
      if (request === 'GET volumes') throw new DriverError('Unavailable', 'listing root disks');
    };

    await expect(scene.delete(false)).rejects.toMatchObject({ code: 'NotFound' });
    await expect(scene.delete(true)).rejects.toMatchObject({ code: 'Unavailable' });
  });
});

test('a request that was not answered holds a machine also after its Secret has changed', async () => {
  const clouds = new Clouds(new FakeClock(), DEFAULT_OPENSTACK_SETTINGS);
  const open = (password: string): Cloud => {
    const keys = { authURL: 'http://keystone', username: 'u', tenantID: 't', domainID: 'd', password };
    return clouds.open(Object.fromEntries(Object.entries(keys).map(([key, text]) => [key, Buffer.from(text)])), 'r');
  };
  const lost = async (): Promise<Answer> => await Promise.reject(new NoAnswerError('lost', true));
  await expect(open('old').network.unanswered.during(owner, callOf().signal, lost)).rejects.toThrow('lost');

  expect(open('new').network.unanswered.leftMs(owner, 120_000)).toBe(120_000);
  await clouds.close();
});
