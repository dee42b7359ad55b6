import { expect, test } from '@jest/globals';

import { SimulatedAPIServer } from '../api-server/api-server.ts';
import { BUILT_IN } from '../api-server/kinds.ts';
import { collectGarbage } from './garbage-collector.ts';
import { seededRandom } from './seeded-random.ts';
import { VirtualTime } from './virtual-clock.ts';

const CONFIG_MAPS = '/api/v1/namespaces/n/configmaps';

test.each([
  { owner: 'that is not there', apiVersion: 'v1', kind: 'Secret', code: 404 },
  { owner: 'of a kind that is not served', apiVersion: 'v1', kind: 'Creator', code: 200 },
  { owner: 'of a version that is not served', apiVersion: 'policy/v1beta7', kind: 'PodDisruptionBudget', code: 200 },
])('of an object with an owner $owner the answer is $code later', async ({ apiVersion, kind, code }) => {
  const time = new VirtualTime(seededRandom(1, 'order'));
  let made = 0;
  const suffix = (): string => String(++made);
  const server = new SimulatedAPIServer({ kinds: BUILT_IN, nowMs: () => time.epochMs, uid: suffix, suffix });
  collectGarbage(server, time);
  server.handle({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: 'n' } } });
  const metadata = { name: 'owned', ownerReferences: [{ apiVersion, kind, name: 'creator', uid: 'uid-of-creator' }] };
  server.handle({ method: 'POST', path: CONFIG_MAPS, body: { metadata } });

  await time.advance(60_000);

  expect(server.handle({ method: 'GET', path: `${CONFIG_MAPS}/owned` }).code).toBe(code);
});
