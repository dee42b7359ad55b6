import { describe, expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { machineDeployments, machineSets } from '../../kube/client/resource.ts';
import { CREATION_LIMIT_REACHED } from './creation-brake.ts';
import { deploymentFreeze, setFreeze } from './freeze-marks.ts';

const OTHER = { type: 'ReplicaFailure', status: 'True' } as const;
const FROZEN = { type: 'Frozen', status: 'True' } as const;
const CAUSE = { reason: 'OverShootingReplicaCount', message: 'too many' } as const;
const signal = new AbortController().signal;

describe('a freeze of a set', () => {
  const set = machineSet((s) => void (s.status.machineSetCondition = [OTHER]));

  test('is shown before it takes effect, each half on top of the other, beside what others say', async () => {
    const client = new MemoryClient();
    client.put(machineSets, set);

    await setFreeze.freeze(client, set, CAUSE, 0, signal);

    expect(client.writes).toMatchObject([
      {
        what: 'machinesets/set-1/status',
        resourceVersion: '1',
        body: { status: { machineSetCondition: [OTHER, { type: 'Frozen', ...CAUSE }] } },
      },
      { what: 'machinesets/set-1', resourceVersion: '1001', body: { metadata: { labels: { freeze: 'True' } } } },
    ]);
  });

  test('that no number ends takes the place of one that a number ends', async () => {
    const client = new MemoryClient();
    const cause = { reason: CREATION_LIMIT_REACHED, message: 'too much' } as const;
    const frozen = machineSet((s) => void (s.status.machineSetCondition = [OTHER, { ...FROZEN, ...CAUSE }]));
    client.put(machineSets, frozen);

    await setFreeze.freeze(client, frozen, cause, 0, signal);

    expect(client.writes).toMatchObject([
      { what: 'machinesets/set-1/status', body: { status: { machineSetCondition: [OTHER, { ...FROZEN, ...cause }] } } },
      { what: 'machinesets/set-1' },
    ]);
  });

  test('that was written half is completed', async () => {
    const client = new MemoryClient();

    await setFreeze.freeze(
      client,
      machineSet((s) => void (s.status.machineSetCondition = [FROZEN])),
      CAUSE,
      0,
      signal,
    );

    expect(client.writes).toMatchObject([{ what: 'machinesets/set-1', resourceVersion: '1' }]);
  });

  test.each([
    { before: [OTHER, FROZEN], left: [OTHER] },
    { before: [FROZEN], left: null },
  ])('ends with $left left', async ({ before, left }) => {
    const client = new MemoryClient();
    const frozen = machineSet((s) => void (s.status.machineSetCondition = before));
    client.put(machineSets, frozen);

    await setFreeze.unfreeze(client, frozen, signal);

    expect(client.writes).toMatchObject([
      { resourceVersion: '1', body: { status: { machineSetCondition: left } } },
      { resourceVersion: '1001', body: { metadata: { labels: { freeze: null } } } },
    ]);
  });
});

test('a MachineDeployment is frozen and unfrozen in the same way', async () => {
  const client = new MemoryClient();
  const deployment = machineDeployment((d) => void (d.status.conditions = [{ ...OTHER, type: 'Available' }]));
  client.put(machineDeployments, deployment);

  await deploymentFreeze.freeze(client, deployment, CAUSE, 0, signal);
  const frozen = machineDeployment((d) => void (d.status.conditions = [{ ...OTHER, type: 'Available' }, FROZEN]));
  await deploymentFreeze.unfreeze(client, frozen, signal);

  expect(client.writes).toMatchObject([
    { resourceVersion: '1', body: { status: { conditions: [{ type: 'Available' }, { type: 'Frozen' }] } } },
    { resourceVersion: '1001', body: { metadata: { labels: { freeze: 'True' } } } },
    { resourceVersion: '1', body: { status: { conditions: [{ type: 'Available' }] } } },
    { resourceVersion: '1003', body: { metadata: { labels: { freeze: null } } } },
  ]);
});
