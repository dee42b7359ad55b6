import { expect, jest, test } from '@jest/globals';

import { toMicroTimestamp } from '../../../pkg/base/clock/clock.ts';
import { MACHINE_LEASE } from '../../../pkg/kube/leader/names.ts';
import { isAsAsked, MachinesWorld, NAMESPACE } from './machines-world.ts';

// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(300_000);

const SECOND_MS = 1_000;
const RENEWAL_MS = 2_000;
const MINUTE_MS = 60 * SECOND_MS;

test('a process whose Leases are elsewhere does nothing while another manager leads in the namespace of its Machines, and ends when one comes back', async () => {
  const flags = { 'leader-elect-resource-namespace': 'manager' };
  await using world = await MachinesWorld.create({ seed: 1, flags });
  const { time, processes } = world;
  world.act('POST', '/api/v1/namespaces', { metadata: { name: 'manager' } });
  let renewals = 0;
  const renew = async (ms: number): Promise<void> => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
    for (const endMs = time.elapsedMs + ms; time.elapsedMs < endMs; await time.advance(RENEWAL_MS)) {
      renewals += 1;
      const spec = {
        holderIdentity: 'machine-controller-0',
        leaseDurationSeconds: 15,
        renewTime: toMicroTimestamp(renewals * SECOND_MS),
      };
      if (renewals === 1) world.act('POST', path, { metadata: { name: MACHINE_LEASE }, spec });
      else world.act('PATCH', `${path}/${MACHINE_LEASE}`, { spec });
    }
  };
  await renew(RENEWAL_MS);
  const first = await processes.start();

  await renew(10 * MINUTE_MS);
  expect([world.machines, world.cloud.size, first.exitCode]).toEqual([[], 0, undefined]);

  await time.advance(20 * MINUTE_MS, () => isAsAsked(world));
  expect(isAsAsked(world)).toBe(true);

  await renew(3 * MINUTE_MS);
  expect(first.exitCode).toBe(1);
});
