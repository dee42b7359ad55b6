import { expect, test } from '@jest/globals';

import { ApiError } from '../kube/errors.ts';
import { type Permission, permissionsOf } from './permissions.ts';
import { refusedOf, review } from './refused.ts';

const permissions = permissionsOf({
  leases: new Set(['machine-controller']),
  isElected: true,
  hasTarget: true,
  callsDrivers: true,
  isAutoscaled: false,
  namespace: 'x',
});
const down = new ApiError(0, 'Unreachable', 'connection reset');

test('a question that is not answered does not cost the answers of the others', async () => {
  let asked = 0;
  const mayI = (): Promise<boolean> => (++asked % 15 === 0 ? Promise.reject(down) : Promise.resolve(asked % 2 === 0));

  const { refused, unanswered, error } = await review({ mayI }, permissions);

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

  await expect(refusedOf({ mayI }, permissions)).rejects.toBe(down);
  expect(asked.length).toBeLessThanOrEqual(8);
});
