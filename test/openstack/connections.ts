import { afterEach, describe, expect, test } from '@jest/globals';

import type { Bed } from './bed.ts';
import { callOf, create, newDriver, remove, requestFor } from './driver.ts';
import { belongingsOf, clear } from './leftovers.ts';
import { LossyProxy, type LossRule } from './lossy-proxy.ts';
import { OutwardProxy } from './outward-proxy.ts';
import { LOSSY_REGION } from './seed.ts';

const NOTHING = { servers: [], ports: [], floatingIPs: [] };
const LOGIN = /POST .*\/auth\/tokens/;
const isLogin = (path: string): boolean => path.endsWith('/auth/tokens');

/** A cloud that is reached by TLS, takes no token for long, and wants to be asked less often. */
export function describeConnections(bed: Bed): void {
  const { proxy } = bed;
  const change = { region: LOSSY_REGION, floatingIP: { networkID: bed.seeds.externalNetworkID } };
  const request = (name: string, secret = {}) =>
    requestFor(bed, name, change, { secret: { ...proxy.secret, ...secret } });

  describe('of a cloud behind a proxy', () => {
    afterEach(async () => {
      proxy.begin();
      await clear(bed);
    });

    test('certificates that are not to be trusted are named, and the right authority is used without a restart', async () => {
      await using driver = newDriver();
      await using stranger = await LossyProxy.start(bed.settings.ports);
      const authURL = (proxy.secret['authURL'] ?? '').replace('127.0.0.1', 'localhost');
      const host = new URL(authURL).host.replace('localhost', '127.0.0.1');

      for (const [secret, says] of [
        [{ caCert: '' }, `secret: caCert: the certificate of ${host} is not trusted`],
        [{ caCert: stranger.caCert }, `secret: caCert: the certificate of ${host} is not trusted`],
        [{ caCert: 'nonsense' }, 'secret: caCert cannot be read as PEM'],
        [{ authURL }, 'secret: authURL: the certificate of localhost'],
      ] as const) {
        await expect(driver.createMachine(request('m-1', secret), callOf())).rejects.toMatchObject({
          code: 'InvalidArgument',
          detail: expect.stringContaining(says),
        });
      }
      expect(await belongingsOf(bed)).toEqual(NOTHING);
      expect(proxy.seen(LOGIN)).toEqual([]);
      await expect(create(driver, request('m-1'))).resolves.toMatchObject({ nodeName: 'm-1' });
    });

    test('and of a proxy for everything that leaves is reached through that, but for what NO_PROXY names', async () => {
      await using outward = await OutwardProxy.start();
      const proxies = { http: '', https: outward.url, not: '' };
      await using driver = newDriver({ proxies });

      const { providerID } = await create(driver, request('m-1'));
      const asked = new Set(outward.asked);
      expect(asked.has(new URL(proxy.secret['authURL'] ?? '').host)).toBe(true);
      expect(asked.size).toBeGreaterThan(2);

      outward.refuses = true;
      await using refused = newDriver({ proxies });
      await expect(refused.getMachineStatus(request('m-1'), callOf())).rejects.toMatchObject({
        code: 'Unavailable',
        detail: expect.stringContaining('Proxy response (403)'),
      });
      await using direct = newDriver({ proxies: { ...proxies, not: '127.0.0.1' } });
      await expect(direct.getMachineStatus(request('m-1'), callOf())).resolves.toMatchObject({ providerID });
    });

    test('a token that is refused at each request costs a login, and nothing is doubled', async () => {
      await using driver = newDriver();
      const refused = (): LossRule => {
        let isRefused = false;
        return (method, path) => {
          if (method === 'GET' || isLogin(path)) return undefined;
          isRefused = !isRefused;
          return isRefused ? 'token' : undefined;
        };
      };

      proxy.begin(refused());
      const { providerID } = await create(driver, request('m-1'));
      const changes = proxy.seen(/^(POST|PUT|DELETE)/).length - proxy.seen(LOGIN).length;
      expect(changes).toBeGreaterThan(8);
      expect(proxy.seen(LOGIN)).toHaveLength(1 + changes / 2);
      const { servers, ports, floatingIPs } = await belongingsOf(bed);
      expect(servers.map(({ id }) => `openstack:///${LOSSY_REGION}/${id}`)).toEqual([providerID]);
      expect([ports.length, floatingIPs.length]).toEqual([1, 1]);

      // All at once, with one token.
      let left = 4;
      proxy.begin((_, path) => (!isLogin(path) && left-- > 0 ? 'token' : undefined));
      await Promise.all([1, 2, 3, 4].map(async () => await driver.listMachines(request('m-1'), callOf())));
      expect(proxy.seen(LOGIN)).toHaveLength(1);

      proxy.begin(refused());
      await remove(driver, request('m-1'));
      expect(await belongingsOf(bed)).toEqual(NOTHING);
    });

    test('the driver comes back when it is asked to: by itself for a read, else the manager is told', async () => {
      await using driver = newDriver();
      let reads = 0;
      proxy.begin((method, path) => {
        if (method === 'POST' && path.endsWith('/servers')) return { status: 429, retryAfter: '7' };
        return method === 'GET' && reads++ % 2 === 0 ? { status: 429, retryAfter: '0' } : undefined;
      });

      await expect(driver.createMachine(request('m-1'), callOf())).rejects.toMatchObject({
        code: 'Unavailable',
        retryAfterMs: 7_000,
      });
      expect(reads).toBeGreaterThan(4);
      proxy.begin();
      await driver.createMachine(request('m-1'), callOf());

      const { servers, ports } = await belongingsOf(bed);
      expect([servers.length, ports.length]).toEqual([1, 1]);
    });
  });
}
