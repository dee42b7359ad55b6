import { afterEach, describe, expect, test } from '@jest/globals';

import { eventually } from '../expect/eventually.ts';
import type { Bed } from './bed.ts';
import { callOf, newDriver, requestFor } from './driver.ts';
import { belongingsOf, clear } from './leftovers.ts';
import { LossyProxy } from './lossy-proxy.ts';
import { LOSSY_REGION } from './seed.ts';

/** Many machines at once. */
export function describeScale(bed: Bed): void {
  describe('in OpenStack', () => {
    afterEach(async () => {
      await clear(bed);
    });

    test('fifty machines at once are made with few logins, all of them running, each once', async () => {
      const names = Array.from({ length: 50 }, (_, i) => `many-${i}`);
      await using proxy = await LossyProxy.start(bed);
      await using driver = newDriver();
      const secret = { authURL: proxy.authURL };

      const made = names.map(async (name) => {
        const one = requestFor(bed, name, { region: LOSSY_REGION }, { secret });
        const finished = async (): Promise<string> => {
          const call = callOf({ timeoutMs: 600_000 });
          const { providerID } = await driver.createMachine(one, call);
          await driver.initializeMachine(one, call);
          return providerID;
        };
        return await eventually(finished, { timeoutMs: 600_000, intervalMs: 5_000 });
      });

      expect(new Set(await Promise.all(made)).size).toBe(50);
      const { servers } = await belongingsOf(bed);
      expect(servers.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
      expect(new Set(servers.map(({ status }) => status))).toEqual(new Set(['ACTIVE']));
      expect(proxy.seen(/POST .*\/auth\/tokens/).length).toBeLessThanOrEqual(3);
      expect(proxy.seen(/POST .*\/servers$/)).toHaveLength(50);
    }, 900_000);
  });
}
