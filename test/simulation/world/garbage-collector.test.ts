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

test('an object that has lost the reference to its owner before both are looked at stays when the owner goes', async () => {
  const time = new VirtualTime(seededRandom(1, 'order'));
  let made = 0;
  const suffix = (): string => String(++made);
  const server = new SimulatedAPIServer({ kinds: BUILT_IN, nowMs: () => time.epochMs, uid: suffix, suffix });
  collectGarbage(server, time);
  server.handle({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: 'n' } } });
  let uid = '';
  server.objects.onChange((_kind, { object }) => void (uid = object.metadata.uid));
  server.handle({ method: 'POST', path: CONFIG_MAPS, body: { metadata: { name: 'owner' } } });
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }];
  server.handle({ method: 'POST', path: CONFIG_MAPS, body: { metadata: { name: 'owned', ownerReferences } } });

  const path = `${CONFIG_MAPS}/owned`;
  const body = { metadata: { ownerReferences: null } };
  server.handle({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' });
  server.handle({ method: 'DELETE', path: `${CONFIG_MAPS}/owner` });
  await time.advance(60_000);

  expect(server.handle({ method: 'GET', path }).code).toBe(200);
});
