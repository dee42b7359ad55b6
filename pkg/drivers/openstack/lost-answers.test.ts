import { describe, expect, test } from '@jest/globals';

import { callOf, classOf, requestOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeOpenStack } from '../../../test/fakes/fake-openstack.ts';
import { changeText, CREATION, DELETION } from '../../../test/openstack/life.ts';
import { silentLogger } from '../../base/log/logger.ts';
import type { MachineRequest } from '../../driver/driver.ts';
import { DriverError } from '../../driver/error.ts';
import { OpenStackDriver } from './driver.ts';
import { ownerText } from './intent.ts';
import { DEFAULT_OPENSTACK_SETTINGS } from './settings.ts';

const TAGS = { 'kubernetes.io-cluster-x': '1', 'kubernetes.io-role-worker': '1' };
const SPEC = { imageID: 'i-1', region: 'region', flavorID: 'f', tags: TAGS, networkID: 'n-1' };
const request = requestOf('m-1', classOf('openstack', { spec: { ...SPEC, floatingIP: { networkID: 'outside' } } }));
const owner = ownerText({ cluster: 'c-1', namespace: 'shoot', name: 'm-1', uid: 'u-m-1', providerID: undefined });
/** Longer than anything may appear that was not answered. */
const LONG_MS = 600_000;

type Loss = 'request' | 'answer' | 'late';
type Work = 'create' | 'initialize' | 'delete';

/** A cloud, of whose changes one is lost, and drivers that know only what it knows. */
class Scene {
  readonly cloud = new FakeOpenStack(new FakeClock());
  #number = 0;
  #deletedMs: number | undefined;
  readonly changes: string[] = [];

  /** Loses the change of this number, from 0, of those that come. */
  #lose(number: number, loss: Loss): void {
    this.#number = 0;
    this.cloud.loses = (text) => (text.startsWith('GET') || this.#number++ !== number ? undefined : loss);
  }

  /** The machine, which is being deleted since that was asked for first. */
  #request(work: Work): MachineRequest {
    if (work !== 'delete') return request;
    this.#deletedMs ??= this.cloud.clock.now();
    const metadata = { ...request.machine.metadata, deletionTimestamp: new Date(this.#deletedMs).toISOString() };
    return { ...request, machine: { ...request.machine, metadata } as MachineRequest['machine'] };
  }

  /** One call of a driver that has just begun. */
  async call(work: Work): Promise<PromiseSettledResult<unknown>> {
    const { cloud } = this;
    const known = cloud.cloud();
    const driver = new OpenStackDriver({
      settings: DEFAULT_OPENSTACK_SETTINGS,
      clock: cloud.clock,
      log: silentLogger,
      clouds: { open: () => known, close: async () => await Promise.resolve() },
    });
    const seen = cloud.asked.length;
    const call = callOf({ timeoutMs: 240_000 });
    const ended = await cloud.passing<unknown>(driver[`${work}Machine`](this.#request(work), call));
    const changes = cloud.asked.slice(seen).filter((text) => !text.startsWith('GET'));
    this.changes.push(...changes.map((text) => changeText(text.split(' ')[0] ?? '', text.split(' ')[2] ?? '')));
    return ended;
  }

  /** One call, of which that change is lost. */
  async callLosing(work: Work, { number, loss }: { readonly number: number; readonly loss: Loss }): Promise<void> {
    this.#lose(number, loss);
    await this.call(work);
    this.#lose(Infinity, 'request');
  }

  /** As the manager repeats it: after what passes by itself. */
  async atLast(work: Work): Promise<void> {
    for (let tries = 0; tries < 100; tries++) {
      const ended = await this.call(work);
      if (ended.status === 'fulfilled') return;
      if (work === 'delete' && DriverError.hasCode(ended.reason, 'NotFound')) return;
      if (!DriverError.hasCode(ended.reason, 'Aborted', 'Unavailable', 'Uninitialized')) throw ended.reason;
      await this.cloud.clock.advanceAsync(5_000);
    }
    throw new Error(`${work} does not end`);
  }

  async createAtLast(): Promise<void> {
    await this.atLast('create');
    await this.atLast('initialize');
  }

  /** What there is long after the machine was deleted. */
  async deleted(): Promise<object> {
    await this.atLast('delete');
    await this.cloud.clock.advanceAsync(LONG_MS);
    return this.present();
  }

  present(): object {
    const { servers, ports, floatingips } = this.cloud;
    return { servers, ports, floatingips };
  }

  /** The servers, how many were ever made, the ports that servers use, and all that there is of floating IPs. */
  made() {
    const { servers, ports, floatingips, bodies } = this.cloud;
    const requests = bodies.filter(({ path }) => path === '/servers').length;
    return { servers, requests, bound: ports.filter(({ device_id: device }) => device !== ''), floatingips };
  }

  /** What appeared late, beside the port and the floating IP of the server. */
  get spare(): number {
    return this.cloud.ports.length + this.cloud.floatingips.length - 2;
  }
}

const NOTHING = { servers: [], ports: [], floatingips: [] };
const LOSSES = [{ loss: 'request' }, { loss: 'answer' }, { loss: 'late' }] as const;
const rowsOf = (changes: typeof CREATION) =>
  changes.flatMap(({ request: what, kind }, number) =>
    LOSSES.map(({ loss }) => ({ number, what, loss, isOther: kind === 'something beside a server is made' })),
  );

describe('a machine with a floating IP', () => {
  test('is made and deleted by these changes', async () => {
    const scene = new Scene();
    await scene.createAtLast();
    expect(scene.changes).toEqual(CREATION.map(({ request: text }) => text));

    await scene.atLast('delete');
    expect(scene.changes.slice(CREATION.length)).toEqual(DELETION.map(({ request: text }) => text));
  });

  test.each(rowsOf(CREATION))('has one server when $loss $number ($what) of its creation is lost', async (row) => {
    const scene = new Scene();
    await scene.callLosing('create', row);

    await scene.createAtLast();
    await scene.cloud.clock.advanceAsync(LONG_MS);
    await scene.createAtLast();

    const { servers, requests, bound, floatingips } = scene.made();
    expect(servers).toHaveLength(1);
    // A second one is not even made for a while.
    expect(requests).toBe(1);
    expect(bound).toMatchObject([{ device_id: servers[0]?.id, description: expect.stringContaining(owner) }]);
    expect(floatingips).toContainEqual(expect.objectContaining({ port_id: bound[0]?.id, description: owner }));
    // A port or floating IP that was given up for lost goes with the machine.
    expect(scene.spare).toBe(row.loss === 'late' && row.isOther ? 1 : 0);
    await scene.atLast('delete');
    expect(scene.present()).toEqual(NOTHING);
  });

  test.each(rowsOf(CREATION))('leaves nothing when it is deleted after $loss $number ($what) was lost', async (row) => {
    const scene = new Scene();
    await scene.callLosing('create', row);

    expect(await scene.deleted()).toEqual(NOTHING);
  });

  test.each(rowsOf(DELETION))('leaves nothing when $loss $number ($what) of its deletion is lost', async (row) => {
    const scene = new Scene();
    await scene.createAtLast();
    await scene.callLosing('delete', row);

    expect(await scene.deleted()).toEqual(NOTHING);
  });
});
