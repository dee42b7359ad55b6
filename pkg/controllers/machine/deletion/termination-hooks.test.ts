import { describe, expect, test } from '@jest/globals';

import { HOUR } from '../../../../test/durations.ts';
import type { machine } from '../../../../test/builders.ts';
import { worldInDeletion } from '../../../../test/fakes/deletion-world.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { machineConditions } from '../explain/conditions.ts';
import { explain } from '../explain/explain.ts';

const KEY = 'default/m-1';
const HOOK = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/leave-cluster';
const TEXT = `Waiting for hooks: ${HOOK}.`;

type Change = (m: ReturnType<typeof machine>) => void;

/** A Machine that is being deleted, with a hook, and no Node. */
function start(change: Change = () => undefined): FakeWorld {
  const world = worldInDeletion((m) => {
    m.metadata.annotations = { [HOOK]: '' };
    m.spec.providerID = 'sim:///m-1';
    change(m);
  });
  return world;
}

async function passes(world: FakeWorld): Promise<void> {
  for (let i = 0; i < 6 && world.machines.get(KEY) !== undefined; i++) {
    await world.reconcile();
    await world.settle();
  }
}

function unhook(world: FakeWorld): void {
  const now = world.machines.get(KEY);
  if (now === undefined) throw new Error('the Machine is gone');
  const metadata = { ...now.metadata, annotations: {}, resourceVersion: `${now.metadata.resourceVersion}0` };
  world.machines.put({ ...now, metadata });
}

const told = (world: FakeWorld) => world.machines.get(KEY)?.status?.lastOperation;

describe('a VM with hooks', () => {
  // promise: maintenance/hooks-hold-up-deletion
  // promise: cluster-api/machinedeployments/hooks-hold-up-end
  test.each([
    { what: 'as usual', change: () => undefined },
    {
      what: 'that is forced',
      change: (m: ReturnType<typeof machine>) => void (m.metadata.labels['force-deletion'] = 'true'),
    },
    {
      what: 'with policy forced, for as long as it takes',
      change: (m: ReturnType<typeof machine>) =>
        void Object.assign(m.metadata.annotations ?? {}, { 'machine.sapcloud.io/deletion-policy': 'forced' }),
    },
  ])('is not deleted in a deletion $what, and it is said for which', async ({ change }) => {
    const world = start(change);

    await passes(world);
    world.clock.advance(9 * HOUR);
    await passes(world);

    expect(told(world)).toMatchObject({ state: 'Processing', description: `${TEXT} Initiate VM deletion` });
    expect(world.driver.calls.filter((call) => call === 'delete')).toEqual([]);
    expect(world.events.map(({ reason }) => reason)).toContain('WaitingForHooks');
    const current = world.machines.get(KEY) as never;
    expect(machineConditions(current, world.clock.now())).toContainEqual(
      expect.objectContaining({ type: 'Healthy', reason: 'WaitingForHooks', message: TEXT }),
    );
    expect(explain(current, world.clock.now())).toMatchObject({
      reason: 'WaitingForHooks',
      message: TEXT,
      nextStep: 'The VM is deleted.',
    });
  });

  test('is deleted in the next pass when the last of them is gone', async () => {
    const world = start();
    await passes(world);

    unhook(world);
    await world.reconcile();

    expect(told(world)?.description).toBe('Initiate VM deletion');
    await passes(world);
    expect(world.driver.calls).toContain('delete');
    expect(world.machines.get(KEY)?.metadata.finalizers ?? []).toEqual([]);
  });

  test('is remembered as one that nobody was asked for', async () => {
    const world = start((m) => {
      delete m.spec.providerID;
      m.status.conditions = [];
      m.status.currentStatus = { phase: 'Terminating' };
      const description = 'Initiate VM deletion';
      m.status.lastOperation = { type: 'Delete', state: 'Processing', errorCode: 'NeverAsked', description };
    });

    await passes(world);

    expect(told(world)).toMatchObject({ errorCode: 'NeverAsked', description: `${TEXT} Initiate VM deletion` });
  });
});
