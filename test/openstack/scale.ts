import { afterEach, describe, expect, test } from '@jest/globals';

import type { Bed } from './bed.ts';
import { create, newDriver, requestFor } from './driver.ts';
import { belongingsOf, clear } from './leftovers.ts';
import { LOSSY_REGION } from './seed.ts';

/** Many machines at once. */
export function describeScale(bed: Bed, count: number): void {
  describe('in OpenStack', () => {
    afterEach(async () => {
      await clear(bed);
    });

    // promise: openstack/many-machines-once-once
    // promise: openstack/cloud/scale-few-logins-servers
    test(`${count} machines at once are made with few logins, all of them running, each once`, async () => {
      const names = Array.from({ length: count }, (_, i) => `many-${i}`);
      const { proxy } = bed;
      await using driver = newDriver();
      const startedMs = performance.now();
      proxy.begin();

      const made = names.map(async (name) => {
        return await create(driver, requestFor(bed, name, { region: LOSSY_REGION }, { secret: proxy.secret }));
      });

      expect(new Set((await Promise.all(made)).map(({ providerID }) => providerID)).size).toBe(count);
      const { servers } = await belongingsOf(bed);
      expect(servers.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
      expect(new Set(servers.map(({ status }) => status))).toEqual(new Set(['ACTIVE']));
      expect(proxy.seen(/POST .*\/auth\/tokens/).length).toBeLessThanOrEqual(3);
      // One list shows all servers to everyone who waits, at most each second (twice that with what is sent again), whatever the number of machines.
      const seconds = Math.ceil((performance.now() - startedMs) / 1_000);
      expect(proxy.seen(/GET .*\/servers\/detail\?tags=/).length).toBeLessThanOrEqual(2 * seconds);
    }, 900_000);
  });
}
