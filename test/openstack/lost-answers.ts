import { afterEach, describe, expect, test } from '@jest/globals';

import { eventually } from '../expect/eventually.ts';
import { sampled } from '../expect/sampled.ts';
import type { Bed } from './bed.ts';
import { callOf, create, newDriver, remove, requestFor } from './driver.ts';
import { belongingsOf, clear } from './leftovers.ts';
import type { Loss } from './lossy-proxy.ts';
import { type Change, changeText, CREATION, DELETION } from './life.ts';
import { LOSSY_REGION } from './seed.ts';

/** So long a request for a server may go unanswered here and still make one. */
const ANSWER_MS = 12_000;
const isForServer = (method: string, path: string): boolean => method === 'POST' && path.endsWith('/servers');

/** Machines, with the number of the change that their creation and their deletion loses the answer of. */
const MACHINES = machinesOf(sampleOf('creation', CREATION), sampleOf('deletion', DELETION));
const LATE = sampled({
  name: 'openstack: a request for a server',
  rows: [{ what: 'never arrives' }, { what: 'arrives when nobody waits any more' }],
  nameOf: ({ what }) => what,
  kindsOf: () => ['a request for a server'],
});

/** Which changes of a creation or deletion a run loses the answers of. */
function sampleOf(work: string, changes: readonly Change[]): readonly number[] {
  const rows = changes.map((change, number) => ({ ...change, number }));
  const nameOf = ({ request, number }: (typeof rows)[number]): string => `${number} ${request}`;
  const table = { name: `openstack: lost answers of a ${work}`, rows, nameOf };
  return sampled({ ...table, kindsOf: ({ kind }) => [kind] }).map(({ number }) => number);
}

function machinesOf(creations: readonly number[], deletions: readonly number[]) {
  return Array.from({ length: Math.max(creations.length, deletions.length) }, (_, i) => {
    const [ofCreation = Infinity, ofDeletion = Infinity] = [creations[i], deletions[i]];
    return { name: `m-${i + 1}`, ofCreation, ofDeletion };
  });
}

/** Creation and deletion, broken off at each request that changes something: by a lost answer, and by a driver that is another one after. */
export function describeLostAnswers(bed: Bed): void {
  const { proxy } = bed;
  const change = { region: LOSSY_REGION, floatingIP: { networkID: bed.seeds.externalNetworkID } };
  const request = (name: string) => requestFor(bed, name, change, { secret: { caCert: proxy.caCert } });

  afterEach(async () => {
    proxy.begin();
    await clear(bed);
  });

  /** Loses the answer to the change of this number, from 0; says which changes there were. */
  const losing = async (number: number, work: () => Promise<unknown>): Promise<readonly string[]> => {
    const changes: string[] = [];
    proxy.begin((method, path) => {
      if (method === 'GET' || path.endsWith('/auth/tokens')) return undefined;
      return changes.push(changeText(method, path)) - 1 === number ? 'answer' : undefined;
    });
    await work().catch(() => undefined);
    proxy.begin();
    return changes;
  };
  const createOnce = async (name: string, answerMs = ANSWER_MS): Promise<void> => {
    await using driver = newDriver({ answerMs });
    await driver.createMachine(request(name), callOf());
  };
  const removeOnce = async (name: string): Promise<void> => {
    await using driver = newDriver({ answerMs: ANSWER_MS });
    await driver.deleteMachine(request(name), callOf());
  };
  const createAtLast = async (name: string): Promise<void> => {
    await using driver = newDriver({ answerMs: ANSWER_MS });
    await create(driver, request(name));
  };
  const removeAtLast = async (name: string): Promise<void> => {
    await using driver = newDriver({ answerMs: ANSWER_MS });
    await remove(driver, request(name));
  };

  describe('whose answers are lost', () => {
    // promise: openstack/answer-lost-request-makes
    // promise: openstack/cloud/creation-breaks-off-anywhere
    test('a machine gets one server, one port and one floating IP wherever its creation, and leaves none wherever its deletion breaks off', async () => {
      const created = await losing(Infinity, async () => await createOnce('m-0', 600_000));
      // So that what is shown of a simulated cloud is true of this one.
      expect(created).toEqual(CREATION.map(({ request: text }) => text));
      for (const { name, ofCreation } of MACHINES) {
        await losing(ofCreation, async () => await createOnce(name));
        await createAtLast(name);
      }
      const names = ['m-0', ...MACHINES.map(({ name }) => name)];
      const { servers, ports, floatingIPs } = await belongingsOf(bed);
      expect(servers.map(({ name }) => name).toSorted()).toEqual(names);
      expect(servers.map(({ addresses }) => Object.values(addresses).flat().length > 0)).not.toContain(false);
      expect(ports.map(({ device_id: device }) => device).toSorted()).toEqual(servers.map(({ id }) => id).toSorted());
      expect(floatingIPs.map(({ port_id: port }) => port ?? '').toSorted()).toEqual(
        ports.map(({ id }) => id).toSorted(),
      );

      expect(await losing(Infinity, async () => await removeOnce('m-0'))).toEqual(
        DELETION.map(({ request: text }) => text),
      );
      for (const { name, ofDeletion } of MACHINES) {
        await losing(ofDeletion, async () => await removeOnce(name));
        await removeAtLast(name);
      }
      expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
    }, 600_000);

    for (const { what } of LATE)
      test(`a machine gets one server when the request for it ${what}`, async () => {
        let asked = 0;
        const arrival = Promise.withResolvers<void>();
        const loss: Loss = what === 'never arrives' ? 'request' : { at: arrival.promise };
        proxy.begin((method, path) => (isForServer(method, path) && asked++ === 0 ? loss : undefined));
        const first = newDriver({ answerMs: 30_000 });
        const giveUp = AbortSignal.timeout(60_000);
        const given = new AbortController();
        const lost = first.createMachine(request('m-1'), callOf({ signal: AbortSignal.any([giveUp, given.signal]) }));
        await Promise.all([
          expect(lost).rejects.toThrow(/given up|did not answer/),
          eventually(() => asked > 0, { timeoutMs: 120_000 }).then(() => given.abort(new Error('given up'))),
        ]);
        await first.close();

        await using second = newDriver({ answerMs: 30_000 });
        await expect(second.createMachine(request('m-1'), callOf())).rejects.toMatchObject({ code: 'Unavailable' });
        await expect(second.deleteMachine(request('m-1'), callOf())).rejects.toMatchObject({ code: 'Aborted' });
        arrival.resolve();
        await create(second, request('m-1'));

        const { servers, ports } = await belongingsOf(bed);
        expect(servers).toHaveLength(1);
        expect(ports.map(({ device_id: device }) => device)).toEqual([servers[0]?.id]);
      });

    // promise: openstack/creation-breaks-off-between
    test('there is no server whose floating IP was not asked for; one of an earlier version is not shown as finished until it has it', async () => {
      const isForFloatingIP = (method: string, path: string): boolean =>
        method === 'POST' && path.endsWith('/floatingips');
      proxy.begin((method, path) => (isForFloatingIP(method, path) ? 'request' : undefined));
      await using driver = newDriver({ answerMs: ANSWER_MS });
      await expect(driver.createMachine(request('m-1'), callOf())).rejects.toMatchObject({ code: 'Unavailable' });
      proxy.begin();
      expect((await belongingsOf(bed)).servers).toEqual([]);
      await create(driver, requestFor(bed, 'm-1', { region: LOSSY_REGION }, { secret: { caCert: proxy.caCert } }));
      const [server] = (await belongingsOf(bed)).servers;

      await expect(driver.getMachineStatus(request('m-1'), callOf())).rejects.toMatchObject({
        code: 'Uninitialized',
        detail: expect.stringContaining('has no floating IP yet'),
        result: { providerID: `openstack:///${LOSSY_REGION}/${server?.id}`, nodeName: 'm-1' },
      });

      await eventually(async () => await driver.initializeMachine(request('m-1'), callOf()), { timeoutMs: 120_000 });
      const { ports, floatingIPs } = await belongingsOf(bed);
      expect(floatingIPs.map(({ port_id: port }) => port)).toEqual(ports.map(({ id }) => id));
      await expect(driver.getMachineStatus(request('m-1'), callOf())).resolves.toMatchObject({ nodeName: 'm-1' });
    }, 240_000);

    // promise: openstack/port-asked-shows-machine
    test('a machine leaves nothing when the request for its port arrives while it is deleted', async () => {
      const arrival = Promise.withResolvers<void>();
      let asked = 0;
      proxy.begin((method, path) =>
        method === 'POST' && path.endsWith('/ports') && asked++ === 0 ? { at: arrival.promise } : undefined,
      );
      await using driver = newDriver({ answerMs: ANSWER_MS });
      const given = new AbortController();
      const lost = driver.createMachine(request('m-1'), callOf({ signal: given.signal }));
      await Promise.all([
        expect(lost).rejects.toThrow('given up'),
        eventually(() => asked > 0, { timeoutMs: 120_000 }).then(() => given.abort(new Error('given up'))),
      ]);

      await expect(driver.deleteMachine(request('m-1'), callOf())).rejects.toMatchObject({ code: 'Aborted' });
      arrival.resolve();
      await eventually(async () => expect((await belongingsOf(bed)).ports).toHaveLength(1), { timeoutMs: 120_000 });
      await remove(driver, request('m-1'));

      expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
    });

    test('a machine gets one server when several processes make it at the same time', async () => {
      const drivers = [newDriver(), newDriver(), newDriver()];
      const made = drivers.map(async (driver) => (await create(driver, request('m-1'))).providerID);

      expect(new Set(await Promise.all(made)).size).toBe(1);
      const { servers, ports, floatingIPs } = await belongingsOf(bed);
      expect(servers).toHaveLength(1);
      expect(ports.map(({ device_id: device }) => device)).toEqual([servers[0]?.id]);
      expect(floatingIPs).toHaveLength(1);
      for (const driver of drivers) await driver.close();
    }, 240_000);
  });
}
