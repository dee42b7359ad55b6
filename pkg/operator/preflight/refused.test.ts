import { expect, test } from '@jest/globals';

import type { ResourceRule } from '../../kube/client/access-rules.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { type Permission, permissionsOf } from './permissions.ts';
import { refusedOf, review } from './refused.ts';
import { configFrom } from '../config/config.ts';
import { WORLD_FLAGS } from '../../worlds/index.ts';

const permissions = permissionsOf(
  {
    leases: new Set(['machine-controller']),
    isElected: true,
    hasTarget: true,
    callsDrivers: true,
    isAutoscaled: false,
    hasCells: false,
    controllers: new Set([]),
    of: configFrom('machinist run', new Map(), WORLD_FLAGS).of,
    namespace: 'x',
    leaseNamespace: 'x',
  },
  [],
);
/** Nothing is listed, as with a webhook that authorizes. */
const rulesIn = (): Promise<[]> => Promise.resolve([]);
const down = new ApiError(0, 'Unreachable', 'connection reset');

test('a question that is not answered does not cost the answers of the others', async () => {
  let asked = 0;
  const mayI = (): Promise<boolean> => (++asked % 15 === 0 ? Promise.reject(down) : Promise.resolve(asked % 2 === 0));

  const { refused, unanswered, error } = await review({ mayI, rulesIn }, permissions);

  expect(asked).toBe(permissions.length);
  expect(unanswered).toHaveLength(Math.floor(permissions.length / 15));
  expect(refused.length).toBeGreaterThan(10);
  expect(error).toBe(down);
});

test('a server that cannot be asked is not asked everything', async () => {
  const asked: unknown[] = [];
  const mayI = (attributes: Permission['attributes']): Promise<boolean> => {
    asked.push(attributes);
    return Promise.reject(down);
  };

  await expect(refusedOf({ mayI, rulesIn: () => Promise.reject(down) }, permissions)).rejects.toBe(down);
  expect(asked.length).toBeLessThanOrEqual(8);
});

test('what a list grants is not asked for one by one', async () => {
  const asked: string[] = [];
  const mayI = ({ verb, resource }: Permission['attributes']): Promise<boolean> => {
    asked.push(`${verb} ${resource}`);
    return Promise.resolve(false);
  };
  const lists: string[] = [];
  const all = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
  const own = [
    { ...all, apiGroups: ['machine.sapcloud.io'] },
    { ...all, apiGroups: [''], resources: ['secrets'] },
  ];
  const lister = (namespace: string): Promise<readonly ResourceRule[]> => {
    lists.push(namespace);
    return Promise.resolve(namespace === 'x' ? own : []);
  };

  const { refused, unanswered } = await review({ mayI, rulesIn: lister }, permissions);

  expect(lists.toSorted()).toEqual(['-', 'kube-system', 'x']);
  expect(unanswered).toEqual([]);
  expect(refused.map(({ attributes: { verb, resource } }) => `${verb} ${resource}`).toSorted()).toEqual(
    asked.toSorted(),
  );
  expect(asked.filter((one) => one.endsWith('machines'))).toEqual([]);
  // Those of kube-system: what is granted in one namespace is not granted in another.
  expect(asked.filter((one) => one.endsWith('secrets')).toSorted()).toEqual([
    'create secrets',
    'delete secrets',
    'get secrets',
    'patch secrets',
  ]);
});
