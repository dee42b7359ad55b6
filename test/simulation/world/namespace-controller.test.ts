import { expect, test } from '@jest/globals';

import { SimulatedAPIServer } from '../api-server/api-server.ts';
import { BUILT_IN } from '../api-server/kinds.ts';
import { emptyNamespaces } from './namespace-controller.ts';
import { seededRandom } from './seeded-random.ts';
import { VirtualTime } from './virtual-clock.ts';

const NAMESPACES = '/api/v1/namespaces';

test('a namespace that is deleted is emptied, and goes when nothing is held in it any more', async () => {
  const time = new VirtualTime(seededRandom(1, 'order'));
  let made = 0;
  const suffix = (): string => String(++made);
  const server = new SimulatedAPIServer({ kinds: BUILT_IN, nowMs: () => time.epochMs, uid: suffix, suffix });
  emptyNamespaces(server, time, seededRandom(1, 'order of kinds'));
  const send = (method: string, path: string, body?: object): number =>
    server.handle({ method, path, body, contentType: 'application/merge-patch+json' }).code;
  const secret = `${NAMESPACES}/n/secrets/held`;
  send('POST', NAMESPACES, { metadata: { name: 'n' } });
  send('POST', NAMESPACES, { metadata: { name: 'other' } });
  for (const namespace of ['n', 'other']) {
    send('POST', `${NAMESPACES}/${namespace}/configmaps`, { metadata: { name: 'free' } });
  }
  send('POST', `${NAMESPACES}/n/secrets`, { metadata: { name: 'held', finalizers: ['a.b/c'] } });

  send('DELETE', `${NAMESPACES}/n`);
  await time.advance(60_000);

  expect(send('GET', `${NAMESPACES}/n/configmaps/free`)).toBe(404);
  expect(send('GET', `${NAMESPACES}/other/configmaps/free`)).toBe(200);
  expect(send('GET', secret)).toBe(200);
  expect(send('GET', `${NAMESPACES}/n`)).toBe(200);
  expect(send('POST', `${NAMESPACES}/n/configmaps`, { metadata: { name: 'new' } })).toBe(403);

  send('PATCH', secret, { metadata: { finalizers: null } });
  await time.advance(10_000);

  expect(send('GET', `${NAMESPACES}/n`)).toBe(404);
});
