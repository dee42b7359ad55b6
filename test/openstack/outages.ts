import { afterEach, expect, test } from '@jest/globals';

import { eventually } from '../expect/eventually.ts';
import { sampledDescribe } from '../expect/sampled.ts';
import type { Bed } from './bed.ts';
import { callOf, create, newDriver, remove, requestFor } from './driver.ts';
import { belongingsOf, clear, SELDOM } from './leftovers.ts';

/** The driver's unit tests show each on a simulated cloud. */
const describeInTurn = sampledDescribe(2);

/** Services that die while machines are made. */
export function describeOutages(bed: Bed): void {
  describeInTurn('while services are down', () => {
    afterEach(async () => {
      await clear(bed);
    });

    test('Neutron: nothing is made, and everything once it is back', async () => {
      await using driver = newDriver();
      await create(driver, requestFor(bed, 'm-1'));
      await bed.kill('neutron');

      await expect(driver.createMachine(requestFor(bed, 'm-2'), callOf())).rejects.toMatchObject({
        code: 'Unavailable',
      });
      await bed.revive('neutron');
      await create(driver, requestFor(bed, 'm-2'));

      const { servers, ports } = await belongingsOf(bed);
      expect(ports.map(({ device_id: device }) => device).toSorted()).toEqual(servers.map(({ id }) => id).toSorted());
      expect(servers).toHaveLength(2);
    });

    // promise: openstack/services-die-middle
    test('Nova, in the middle of a build: the server that it forgot is made anew', async () => {
      const slow = { availabilityZone: 'slow' };
      const first = newDriver();
      const given = new AbortController();
      const building = first.createMachine(requestFor(bed, 'm-1', slow), callOf({ signal: given.signal }));
      const outcome = building.catch((err: unknown) => err);
      await eventually(async () => (await belongingsOf(bed)).servers.length === 1, SELDOM);
      await bed.kill('nova');
      given.abort(new Error('given up'));
      await outcome;
      await first.close();
      await bed.revive('nova');
      const [forgotten] = (await belongingsOf(bed)).servers;

      await using second = newDriver({ buildMs: 20_000 });
      const request = requestFor(bed, 'm-1');
      // Given up while it is waited for, or before.
      const made = await eventually(async () => await create(second, request), SELDOM);

      expect(made.providerID).not.toContain(forgotten?.id);
      expect((await belongingsOf(bed)).servers).toHaveLength(1);
    });

    test('a compute host: its server can be deleted, with all that belongs to it', async () => {
      await using driver = newDriver();
      const request = requestFor(bed, 'm-1', { availabilityZone: 'small' });
      await create(driver, request);
      await bed.switchHost('small', 'stop');

      const deleted = remove(driver, request);
      await bed.switchHost('small', 'start');
      await deleted;

      expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
    });

    // The last ones: tokens stay short.
    test('Keystone: a scheduler that cannot ask is not taken for a cloud without room', async () => {
      await using driver = newDriver();
      await create(driver, requestFor(bed, 'm-1'));
      await bed.kill('keystone');

      // Nova says of this one that there is no valid host, whatever the reason is.
      const huge = driver.createMachine(requestFor(bed, 'm-2', { flavorName: 'huge' }), callOf());
      await expect(huge).rejects.toMatchObject({
        code: 'Unavailable',
        detail: expect.stringContaining('No valid host'),
      });
      await bed.revive('keystone', { tokenSeconds: 15 });
      await create(driver, requestFor(bed, 'm-2'));

      expect((await belongingsOf(bed)).servers.map(({ name }) => name).toSorted()).toEqual(['m-1', 'm-2']);
    });

    test('Keystone, whose tokens are short now: one that ends in the middle of a build is renewed by its user and by Nova', async () => {
      const { proxy } = bed;
      await bed.kill('keystone');
      await bed.revive('keystone', { tokenSeconds: 15 });
      proxy.begin();
      await using driver = newDriver();

      const { nodeName } = await create(
        driver,
        requestFor(bed, 'm-1', { availabilityZone: 'slow' }, { secret: proxy.secret }),
      );

      expect(nodeName).toBe('m-1');
      expect(proxy.seen(/POST .*\/auth\/tokens/).length).toBeGreaterThan(1);
      expect((await belongingsOf(bed)).servers).toMatchObject([{ status: 'ACTIVE' }]);
    });
  });
}
