import { expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../test/memory-client.ts';
import { ApiError } from '../kube/client/errors.ts';
import { leases } from '../kube/client/resource.ts';
import { MachineControllers } from './machine-controllers.ts';
import { Status } from 'nice-grpc';

const signal = new AbortController().signal;
const NOBODY = {
  code: Status.UNAVAILABLE,
  details: expect.stringContaining('Lease default/machine-controller has no holder'),
};

/** Their Lease of 15 seconds, after so many renewals. */
const lease = (renewals: number, holderIdentity = 'another') => ({
  metadata: {
    name: 'machine-controller',
    namespace: 'default',
    uid: 'u',
    resourceVersion: String(renewals),
    creationTimestamp: '2001-01-01T00:00:00Z',
  },
  // By the clock of its holder, which nobody compares.
  spec: { holderIdentity, leaseDurationSeconds: 15, renewTime: `2001-01-01T00:00:0${renewals}.000000Z` },
});

function scene() {
  const [reader, clock] = [new MemoryClient(), new FakeClock()];
  return { reader, clock, controllers: new MachineControllers({ reader, namespace: 'default', clock }) };
}

test('without a Lease nothing is said of the machine controllers', async () => {
  await expect(scene().controllers.check(signal)).resolves.toBeUndefined();
});

test('they live as long as their Lease is renewed, by the clock of who looks', async () => {
  const { reader, clock, controllers } = scene();
  const look = async (renewals: number, afterMs: number): Promise<void> => {
    clock.advance(afterMs);
    reader.put(leases, lease(renewals));
    await controllers.check(signal);
  };

  await look(1, 0);
  await look(1, 14_999);
  await expect(look(1, 1)).rejects.toMatchObject(NOBODY);
  await look(2, 3_600_000);
  await look(3, 3_600_000);
  await expect(look(3, 15_000)).rejects.toMatchObject(NOBODY);
});

test('a Lease that was released is held by nobody', async () => {
  const { reader, controllers } = scene();
  reader.put(leases, lease(1, ''));

  await expect(controllers.check(signal)).rejects.toMatchObject(NOBODY);
});

test('one that cannot be read says nothing good', async () => {
  const { reader, controllers } = scene();
  reader.readFailure = new ApiError(403, 'Forbidden', 'no');

  await expect(controllers.check(signal)).rejects.toBe(reader.readFailure);
});
