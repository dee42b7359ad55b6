import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { SimulatedAPIServer } from '../../test/simulation/api-server/api-server.ts';
import { kindsWith } from '../../test/simulation/api-server/kinds.ts';
import { seededRandom } from '../../test/simulation/world/seeded-random.ts';
import { VirtualTime } from '../../test/simulation/world/virtual-clock.ts';
import { startHousekeeping } from './housekeeping.ts';

const HOUR_MS = 3_600_000;

test('Events go after an hour, and what objects were before is forgotten, so that nothing grows', async () => {
  const time = new VirtualTime(seededRandom(1, 'order'));
  let made = 0;
  const server = new SimulatedAPIServer({
    kinds: kindsWith(join(import.meta.dirname, '../../crds')),
    nowMs: () => time.epochMs,
    uid: () => `uid-${++made}`,
    suffix: () => 'abcde',
  });
  const post = (path: string, body: object): void => void server.handle({ method: 'POST', path, body });
  const namesOf = (): unknown => {
    const answer = server.handle({ method: 'GET', path: '/api/v1/namespaces/n/events' });
    return 'watch' in answer ? undefined : (answer.body as { items: { metadata: { name: string } }[] }).items;
  };
  post('/api/v1/namespaces', { metadata: { name: 'n' } });
  const involvedObject = { kind: 'Machine', name: 'm', namespace: 'n' };
  post('/api/v1/namespaces/n/events', { metadata: { name: 'early' }, involvedObject });
  const before = server.objects.revisions.current;
  startHousekeeping(server, time);

  await time.advance(HOUR_MS / 2);
  post('/api/v1/namespaces/n/events', { metadata: { name: 'late' }, involvedObject });
  await time.advance(HOUR_MS * 0.7);

  expect(namesOf()).toEqual([expect.objectContaining({ metadata: expect.objectContaining({ name: 'late' }) })]);
  expect(
    server.handle({ method: 'GET', path: `/api/v1/events?resourceVersion=${before}&resourceVersionMatch=Exact` }),
  ).toMatchObject({ code: 410 });
});
