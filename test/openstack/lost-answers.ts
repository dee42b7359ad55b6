import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';

import { eventually } from '../expect/eventually.ts';
import type { Bed } from './bed.ts';
import { callOf, newDriver, removeMachine, requestFor } from './driver.ts';
import { belongingsOf, clear, SELDOM } from './leftovers.ts';
import { type Loss, LossyProxy } from './lossy-proxy.ts';
import { LOSSY_REGION } from './seed.ts';

/** So long a request for a server may go unanswered here and still make one. */
const ANSWER_MS = 4_000;
const isForServer = (method: string, path: string): boolean => method === 'POST' && path.endsWith('/servers');

/** Creation and deletion, broken off at each request that changes something: by a lost answer, and by a driver that is another one after. */
export function describeLostAnswers(bed: Bed): void {
  const change = { region: LOSSY_REGION, floatingIP: { networkID: bed.seeds.externalNetworkID } };
  const request = (name: string) => requestFor(bed, name, change);
  let proxy: Awaited<ReturnType<typeof LossyProxy.start>>;

  beforeAll(async () => {
    proxy = await LossyProxy.start(bed);
  });

  afterEach(async () => {
    proxy.rule = () => undefined;
    await clear(bed);
  });

  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
  });

  /** Loses the request that changes something with this number, from 0; says how many there were. */
  const losing = async (number: number, work: () => Promise<unknown>): Promise<number> => {
    let changes = 0;
    proxy.rule = () => (changes++ === number ? 'answer' : undefined);
    await work().catch(() => undefined);
    proxy.rule = () => undefined;
    return changes;
  };
  const create = async (name: string): Promise<void> => {
    await using driver = newDriver({ answerMs: ANSWER_MS });
    await driver.createMachine(request(name), callOf());
  };
  const remove = async (name: string): Promise<void> => {
    await using driver = newDriver({ answerMs: ANSWER_MS });
    await removeMachine(driver, request(name), callOf());
  };
  const createdAtLast = async (name: string): Promise<void> => {
    await eventually(async () => await create(name), {
      timeoutMs: 120_000,
      intervalMs: 500,
      describe: `${name} to be made`,
    });
  };

  describe('whose answers are lost', () => {
    test('a machine gets one server, one port and one floating IP wherever its creation, and leaves none wherever its deletion breaks off', async () => {
      const changes = await losing(Infinity, async () => await create('m-0'));
      expect(changes).toBeGreaterThan(4);
      const names = Array.from({ length: changes + 1 }, (_, number) => `m-${number}`);
      for (const [number, name] of names.entries()) {
        if (number > 0) await losing(number - 1, async () => await create(name));
        await createdAtLast(name);
      }
      const { servers, ports, floatingIPs } = await belongingsOf(bed);
      expect(servers.map(({ name }) => name).toSorted()).toEqual(names);
      expect(servers.map(({ addresses }) => Object.values(addresses).flat().length > 0)).not.toContain(false);
      expect(ports.map(({ device_id: device }) => device).toSorted()).toEqual(servers.map(({ id }) => id).toSorted());
      expect(floatingIPs.map(({ port_id: port }) => port ?? '').toSorted()).toEqual(
        ports.map(({ id }) => id).toSorted(),
      );

      let deletions = 0;
      for (const [number, name] of names.entries()) {
        deletions = Math.max(deletions, await losing(number, async () => await remove(name)));
        await eventually(async () => await remove(name), { ...SELDOM, describe: `${name} to be gone` });
      }
      expect(deletions).toBeGreaterThan(2);
      expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
    }, 600_000);

    test.each<{ what: string; loss: Loss }>([
      { what: 'never arrives', loss: 'request' },
      // The driver has given up long before, and another one has looked: there was no server then.
      { what: 'arrives when nobody waits any more', loss: { lateMs: 2_000 } },
    ])('a machine gets one server when the request for it $what', async ({ loss }) => {
      let asked = 0;
      proxy.rule = (method, path) => (isForServer(method, path) && asked++ === 0 ? loss : undefined);
      const first = newDriver({ answerMs: 10_000 });
      const giveUp = AbortSignal.timeout(60_000);
      const given = new AbortController();
      const lost = first.createMachine(request('m-1'), callOf({ signal: AbortSignal.any([giveUp, given.signal]) }));
      await Promise.all([
        expect(lost).rejects.toThrow(/given up|did not answer/),
        eventually(() => asked > 0, { timeoutMs: 60_000 }).then(() => given.abort(new Error('given up'))),
      ]);
      await first.close();

      await using second = newDriver({ answerMs: 10_000 });
      await expect(second.createMachine(request('m-1'), callOf())).rejects.toMatchObject({ code: 'Unavailable' });
      await expect(second.deleteMachine(request('m-1'), callOf())).rejects.toMatchObject({ code: 'Aborted' });
      await eventually(async () => await second.createMachine(request('m-1'), callOf()), {
        timeoutMs: 60_000,
        intervalMs: 500,
      });

      const { servers, ports } = await belongingsOf(bed);
      expect(servers).toHaveLength(1);
      expect(ports.map(({ device_id: device }) => device)).toEqual([servers[0]?.id]);
    });

    test('a machine gets one server when several processes make it at the same time', async () => {
      const drivers = [newDriver(), newDriver(), newDriver()];
      const made = drivers.map(async (driver) => {
        const again = async (): Promise<string> => (await driver.createMachine(request('m-1'), callOf())).providerID;
        return await eventually(again, { timeoutMs: 120_000, intervalMs: 700 });
      });

      expect(new Set(await Promise.all(made)).size).toBe(1);
      const { servers, ports, floatingIPs } = await belongingsOf(bed);
      expect(servers).toHaveLength(1);
      expect(ports.map(({ device_id: device }) => device)).toEqual([servers[0]?.id]);
      expect(floatingIPs).toHaveLength(1);
      for (const driver of drivers) await driver.close();
    }, 240_000);
  });
}
