import { expect, test } from '@jest/globals';

import { MemoryClient } from '../../../../test/memory-client.ts';
import type { IronCoreMachine } from '../api/machine.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { ironCoreMachines } from '../api/resources.ts';
import { removed, type MachineScope } from './objects.ts';

const CONFLICT = new ApiError(409, 'Conflict', 'not now');

function machineWith(uid: string): IronCoreMachine {
  const metadata = { name: 'm', namespace: 'ic', uid, resourceVersion: '1', creationTimestamp: '' };
  return { metadata, spec: { machineClassRef: { name: 'small' } } };
}

test.each([
  { what: 'nothing', has: undefined, isGone: true },
  { what: 'another one of its name', has: machineWith('other'), isGone: true },
  { what: 'it', has: machineWith('uid'), isGone: false },
])('a deletion that ends with a conflict, and $what is there: gone is $isGone', async ({ has, isGone }) => {
  const client = new MemoryClient();
  if (has !== undefined) client.put(ironCoreMachines, has);
  client.failures.push(CONFLICT);
  const at = { reader: client, writer: client, namespace: 'ic' } as unknown as MachineScope['at'];
  const { signal } = new AbortController();

  const ends = await removed(at, ironCoreMachines, machineWith('uid'), signal).catch((err: unknown) => err);

  expect(ends).toBe(isGone ? undefined : CONFLICT);
});
