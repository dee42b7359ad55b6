import { beforeEach, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FailedBuilds } from './failed-builds.ts';
import type { Server } from './server.ts';

const serverIn = (status: string, change: Partial<Server> = {}): Server => ({
  id: 's-1',
  name: 'm-1',
  status,
  created: '2026-01-01T00:00:00Z',
  metadata: {},
  addresses: {},
  ...change,
});

let failed: FailedBuilds;
beforeEach(() => {
  failed = new FailedBuilds(new FakeClock());
});

test.each([
  { how: 'in ERROR', server: serverIn('ERROR'), has: true },
  { how: 'in BUILD for too long: it may run after all', server: serverIn('BUILD'), has: false },
  {
    how: 'in BUILD and being deleted',
    server: serverIn('BUILD', { 'OS-EXT-STS:task_state': 'deleting' }),
    has: false,
  },
])(
  'a build that was given up $how is one that has failed when the server is in ERROR later: $has',
  ({ server, has }) => {
    failed.note(server);

    expect(failed.has(serverIn('ERROR'))).toBe(has);
  },
);

test.each([
  { seen: serverIn('BUILD'), what: 'a look that was sent before it had failed', has: true },
  { seen: serverIn('ACTIVE'), what: 'one that shows it running', has: false },
  { seen: serverIn('ERROR', { 'OS-SRV-USG:launched_at': 'x' }), what: 'one that shows it launched', has: false },
])('a build that has failed is still one after $what: $has', ({ seen, has }) => {
  failed.note(serverIn('ERROR'));

  expect([failed.has(seen), failed.has(serverIn('ERROR'))]).toEqual([false, has]);
});
