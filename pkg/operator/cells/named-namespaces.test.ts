import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { ApiError } from '../../kube/client/errors.ts';
import type { Reader } from '../../kube/client/client.ts';
import { NamedNamespaces } from './named-namespaces.ts';

const { signal } = new AbortController();
const GONE = new ApiError(404, 'NotFound', 'not found');
const FORBIDDEN = new ApiError(403, 'Forbidden', 'forbidden');
const UNANSWERED = new ApiError(0, 'Unreachable', 'no answer');

/** What the API server answers from now on; `may`: whether everything is permitted that the role permits. */
function start() {
  const clock = new FakeClock();
  const server: { refuses?: ApiError; may: boolean; reviews?: ApiError } = { may: true };
  const get = async () => {
    if (server.refuses !== undefined) throw server.refuses;
    return await Promise.resolve({ metadata: { name: 'a', uid: 'u', resourceVersion: '1' } });
  };
  const named = new NamedNamespaces({
    names: ['a'],
    reader: { get } as unknown as Reader,
    reviewer: {
      rulesIn: () => Promise.resolve([]),
      mayI: async () => {
        if (server.reviews !== undefined) throw server.reviews;
        return await Promise.resolve(server.may);
      },
    },
    permissionsIn: (namespace) => [
      {
        cluster: 'control',
        attributes: {
          verb: 'list',
          group: '',
          resource: 'secrets',
          subresource: undefined,
          namespace,
          name: undefined,
        },
        file: 'deploy/rbac/cell.yaml',
        lost: undefined,
      },
    ],
    clock,
    log: silentLogger,
  });
  return { named, server, clock };
}

test('a namespace that is there, and in which all is permitted, is one', async () => {
  const { named } = start();

  await named.look('a', signal);

  expect(named.get('a')?.metadata.uid).toBe('u');
  expect(named.troubleOf('a')).toBeUndefined();
});

test.each([
  { what: 'is not there', server: { refuses: GONE }, says: /^Namespace a does not exist; apply .*for a$/ },
  {
    what: 'may not be read',
    server: { refuses: FORBIDDEN },
    says: /^Namespace a does not exist, or its RoleBinding is missing; apply/,
  },
  {
    what: 'lacks permissions',
    server: { may: false },
    says: /list secrets.core in namespace a: apply deploy\/rbac\/cell.yaml and deploy\/cell-namespace.yaml$/,
  },
])('one that $what says what to apply', async ({ server: so, says }) => {
  const { named, server } = start();
  Object.assign(server, so);

  await named.look('a', signal);

  expect(named.troubleOf('a')).toMatch(says);
});

test.each([{ refuses: FORBIDDEN }, { may: false }])(
  'what was permitted before is believed only after a while not to be: %j',
  async (so) => {
    const { named, server, clock } = start();
    await named.look('a', signal);
    Object.assign(server, so);

    await named.look('a', signal);
    expect(named.troubleOf('a')).toBeUndefined();
    expect(named.againMs('a')).toBe(2_000);
    clock.advance(10_000);
    await named.look('a', signal);
    expect(named.troubleOf('a')).toBeDefined();
    expect(named.againMs('a')).toBe(10_000);

    Object.assign(server, { refuses: undefined, may: true });
    await named.look('a', signal);
    expect(named.troubleOf('a')).toBeUndefined();
  },
);

test('a server that does not answer changes nothing', async () => {
  const { named, server } = start();
  await named.look('a', signal);
  server.refuses = UNANSWERED;

  await expect(named.look('a', signal)).rejects.toThrow(UNANSWERED);

  expect(named.get('a')).toBeDefined();
});

test('a server that lets nobody ask for permissions refuses what it does not permit when that is used', async () => {
  const { named, server } = start();
  server.reviews = FORBIDDEN;

  await named.look('a', signal);

  expect(named.troubleOf('a')).toBeUndefined();
});
