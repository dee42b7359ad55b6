import { describe, expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { MINUTE } from '../../../../test/durations.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import type { LastOperation } from '../../../apis/machine/v1alpha1/machine.ts';
import { explain } from '../explain/explain.ts';

const KEY = 'default/m-1';

/** A machine whose Node, which joined with it, shows this ID, in a target cluster that is shared or not. */
function start(providerID: string, isShared = true): FakeWorld {
  const world = new FakeWorld();
  Object.assign(world.machines, { reachesAcross: isShared });
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [MACHINE_FINALIZER];
      m.status.currentStatus.phase = 'Pending';
      m.status.lastOperation = {
        type: 'Create',
        state: 'Processing',
        description: 'Creating machine on cloud provider',
      };
    }),
  );
  show(world, providerID);
  return world;
}

function show(world: FakeWorld, providerID: string): void {
  world.nodes.cache.put(
    node((n) => {
      n.metadata.resourceVersion = String(Number(n.metadata.resourceVersion ?? 1) + world.nodes.cache.list().length);
      n.metadata.labels = {};
      n.spec = providerID === '' ? {} : { providerID };
    }),
  );
}

const operationOf = (world: FakeWorld): LastOperation | undefined => world.machines.get(KEY)?.status?.lastOperation;
const phaseOf = (world: FakeWorld): string | undefined => world.machines.get(KEY)?.status?.currentStatus?.phase;

describe('a Node that shows neither the VM nor the name of its machine, in a target cluster of several namespaces,', () => {
  test.each([
    { providerID: '', shows: 'no provider ID' },
    { providerID: 'k3s://m-1-2', shows: 'provider ID k3s://m-1-2' },
  ])('is told of after two minutes, once, with what is to be done: $shows', async ({ providerID, shows }) => {
    const world = start(providerID);

    const { result } = await world.reconcile();
    expect(operationOf(world)?.state).toBe('Processing');
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 2 * MINUTE });
    world.clock.advance(2 * MINUTE);
    await world.reconcile();
    await world.reconcile();

    const text = `Node m-1 shows ${shows}, so it is not known to be that of VM sim:///m-1. Have the kubelet or a cloud controller manager set spec.providerID of Nodes: all namespaces share the target cluster.`;
    expect(operationOf(world)).toMatchObject({ state: 'Failed', errorCode: 'NodeUnidentified', description: text });
    expect(world.events.map(({ reason, message }) => [reason, message])).toEqual([['NodeUnidentified', text]]);
    expect(phaseOf(world)).toBe('Pending');
    const { reason, message } = explain(world.machines.get(KEY)!, world.clock.now());
    expect([reason, message]).toEqual(['NodeUnidentified', text]);
  });

  test('is told of as that of an earlier VM if it shows the ID of another one of the provider', async () => {
    const world = start('sim:///m-0');
    world.clock.advance(2 * MINUTE);

    await world.reconcile();

    const text =
      'Node m-1 shows provider ID sim:///m-0, so it is that of another VM, such as an earlier one of this name, and not that of VM sim:///m-1. If that VM no longer exists, delete the Node and restart the kubelet of the new one.';
    expect(operationOf(world)).toMatchObject({ errorCode: 'NodeUnidentified', description: text });
    expect(world.events.map(({ message }) => message)).toEqual([text]);
  });

  test('is the cause that the creation timeout tells', async () => {
    const world = start('');
    world.clock.advance(21 * MINUTE);

    await world.reconcile();

    expect(phaseOf(world)).toBe('Failed');
    expect(operationOf(world)?.description).toMatch(/^Node m-1 shows no provider ID/);
    expect(world.events.find(({ reason }) => reason === 'CreationTimeout')?.message).toMatch(
      /failed to join the cluster in 20m0s. Node m-1 shows no provider ID/,
    );
  });

  test('is its own as soon as it shows the VM', async () => {
    const world = start('');
    world.clock.advance(3 * MINUTE);
    await world.reconcile();

    show(world, 'sim:///m-1');
    await world.reconcile();

    expect(phaseOf(world)).toBe('Running');
    expect(operationOf(world)?.state).toBe('Successful');
  });

  test('is not told of any more when it is gone', async () => {
    const world = start('');
    world.clock.advance(3 * MINUTE);
    await world.reconcile();

    world.nodes.cache.remove('m-1');
    await world.reconcile();

    expect(operationOf(world)).toMatchObject({
      state: 'Processing',
      description: 'Creating machine on cloud provider',
    });
    expect(operationOf(world)?.errorCode).toBeUndefined();
  });
});

test('a Node without a provider ID is that of the machine that names it, where a target cluster is that of one namespace', async () => {
  const world = start('', false);
  world.clock.advance(3 * MINUTE);

  await world.reconcile();

  expect(phaseOf(world)).toBe('Running');
});
