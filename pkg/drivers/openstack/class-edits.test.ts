import { describe, expect, test } from '@jest/globals';

import { callOf, classOf, requestOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeOpenStack } from '../../../test/fakes/fake-openstack.ts';
import { silentLogger } from '../../base/log/logger.ts';
import type { MachineRequest } from '../../driver/driver.ts';
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

  /** With this spec of the class: the status of the machine, then the list, then its deletion. */
  async ask(spec: object): Promise<Answers> {
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
    const deleted = await this.#of(driver.deleteMachine(request, callOf()).then(() => 'OK'));
    return { status, listed, deleted, left: this.here.servers.map(({ id }) => id) };
  }

  async #of(call: Promise<unknown>): Promise<unknown> {
    const ended = await this.here.passing(call);
    return ended.status === 'fulfilled' ? ended.value : (ended.reason as { code?: unknown }).code;
  }
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
  ])('($what) is found and deleted', async ({ spec, listed }) => {
    expect(await new Scene().ask(spec)).toEqual({ ...FOUND, listed });
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
