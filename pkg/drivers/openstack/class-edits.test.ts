import { describe, expect, test } from '@jest/globals';

import { callOf, classOf, requestOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeOpenStack } from '../../../test/fakes/fake-openstack.ts';
import { silentLogger } from '../../base/log/logger.ts';
import type { MachineRequest } from '../../driver/driver.ts';
import type { MachineIdentity } from '../machine-identity.ts';
import { OpenStackDriver } from './driver.ts';
import { metadataOf } from './ownership.ts';
import type { Server } from './server.ts';
import { DEFAULT_OPENSTACK_SETTINGS } from './settings.ts';

const TAGS = { 'kubernetes.io-cluster-x': '1', 'kubernetes.io-role-worker': '1' };
const SPEC = { imageID: 'i-1', region: 'region', flavorID: 'f', tags: TAGS, networkID: 'n-1' };
const OTHER_TAG = { 'kubernetes.io-cluster-x': '1', 'kubernetes.io-role-node': '1' };
const OWNER = { cluster: 'c-1', namespace: 'shoot', name: 'm-1', uid: 'u-m-1', providerID: undefined };
const PROVIDER_ID = 'openstack:///region/s-1';

/** What a driver answers, and the servers that are left then. */
interface Answers {
  readonly status: unknown;
  readonly listed: unknown;
  readonly deleted: unknown;
  readonly left: readonly string[];
}

/** Server s-1 of machine m-1 in region `region`, without some of its metadata; region `other` is empty. */
class Scene {
  readonly here = new FakeOpenStack(new FakeClock());
  readonly #clouds = { region: this.here.cloud(), other: new FakeOpenStack(this.here.clock).cloud() };

  constructor(...lost: readonly string[]) {
    const all = metadataOf(OWNER, classOf('openstack', {}).metadata.name, TAGS);
    const metadata = Object.fromEntries(Object.entries(all).filter(([key]) => !lost.includes(key)));
    const made = { created: '2026-01-01T00:00:00Z', addresses: {}, 'OS-SRV-USG:launched_at': 'x' };
    const server: Server = { id: 's-1', name: 'm-1', status: 'ACTIVE', metadata, ...made };
    this.here.servers.push(server);
  }

  /** With this spec of the class: the status of the machine, then the list, then its deletion, or that of a server without Machine. */
  async ask(spec: object, stub?: MachineRequest['machine']): Promise<Answers> {
    const driver = new OpenStackDriver({
      settings: DEFAULT_OPENSTACK_SETTINGS,
      clock: this.here.clock,
      log: silentLogger,
      clouds: {
        open: (_secret, region) => (region === 'region' ? this.#clouds.region : this.#clouds.other),
        close: async () => await Promise.resolve(),
      },
    });
    const made = requestOf('m-1', classOf('openstack', { spec }));
    const machine = { ...made.machine, spec: { ...made.machine.spec, providerID: PROVIDER_ID } };
    const request: MachineRequest = { ...made, machine };
    const status = await this.#of(driver.getMachineStatus(request, callOf()).then(({ providerID }) => providerID));
    const listed = await this.#of(
      driver.listMachines(request, callOf()).then((all) => all.map(({ providerID }) => providerID)),
    );
    const deleted = await this.#of(
      driver.deleteMachine({ ...request, machine: stub ?? machine }, callOf()).then(() => 'OK'),
    );
    return { status, listed, deleted, left: this.here.servers.map(({ id }) => id) };
  }

  async #of(call: Promise<unknown>): Promise<unknown> {
    const ended = await this.here.passing(call);
    return ended.status === 'fulfilled' ? ended.value : (ended.reason as { code?: unknown }).code;
  }
}

/** How a server without a Machine is deleted: by its provider id alone. */
function stubOf(change: Partial<MachineIdentity> = {}): MachineRequest['machine'] {
  const { namespace, name, providerID = PROVIDER_ID } = { ...OWNER, ...change };
  return { metadata: { namespace, name }, spec: { providerID } };
}

const FOUND = { status: PROVIDER_ID, deleted: 'OK', left: [] };

describe('a server whose class was edited since', () => {
  test.each([
    { what: 'not at all', spec: SPEC, listed: [PROVIDER_ID] },
    { what: 'to another region', spec: { ...SPEC, region: 'other' }, listed: [] },
    { what: 'to another tag', spec: { ...SPEC, tags: OTHER_TAG }, listed: [PROVIDER_ID] },
    { what: 'to no tags', spec: { ...SPEC, tags: {} }, listed: [PROVIDER_ID] },
    { what: 'so that it is invalid', spec: { ...SPEC, flavourID: 'f' }, listed: [PROVIDER_ID] },
    { what: 'to no region', spec: { ...SPEC, region: '' }, listed: 'InvalidArgument' },
  ])('($what) is found and deleted, with and without its Machine', async ({ spec, listed }) => {
    expect(await new Scene().ask(spec)).toEqual({ ...FOUND, listed });
    expect(await new Scene().ask(spec, stubOf())).toEqual({ ...FOUND, listed });
  });

  test.each([
    { what: 'of another namespace', change: { namespace: 'other' }, lost: [] },
    { what: 'under another ID', change: { providerID: 'openstack:///region/s-2' }, lost: [] },
    { what: 'that an earlier provider has made', change: {}, lost: ['machinist-uid'] },
    { what: 'that has lost one of the two tags', change: {}, lost: ['kubernetes.io-role-worker'] },
  ])('is left alone as a server without Machine ($what)', async ({ change, lost }) => {
    const scene = new Scene(...lost);

    expect(await scene.ask({ ...SPEC, tags: OTHER_TAG }, stubOf(change))).toMatchObject({
      deleted: 'NotFound',
      left: ['s-1'],
    });
  });

  test('and that has lost one of the two tags is left alone, whatever the class says', async () => {
    for (const spec of [SPEC, { ...SPEC, tags: OTHER_TAG }])
      expect(await new Scene('kubernetes.io-role-worker').ask(spec)).toEqual({
        status: 'NotFound',
        listed: [],
        deleted: 'NotFound',
        left: ['s-1'],
      });
  });

  test('and that an earlier provider has made is known by the tags of the class alone, and listed by none that has lost them', async () => {
    const ours = ['machinist-uid', 'machinist-class', 'machinist-namespace', 'machinist-cluster'];

    expect(await new Scene(...ours).ask(SPEC)).toEqual({ ...FOUND, listed: [PROVIDER_ID] });
    expect(await new Scene(...ours).ask({ ...SPEC, tags: OTHER_TAG })).toMatchObject({ listed: [], left: ['s-1'] });
    expect(await new Scene(...ours).ask({ ...SPEC, tags: {} })).toMatchObject({ listed: [] });
  });
});
