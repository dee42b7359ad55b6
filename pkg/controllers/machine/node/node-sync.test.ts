import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, node, secret } from '../../../../test/builders.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { FINALIZER, NODE_FINALIZER, joinedMachine, currentMachine } from '../../../../test/fakes/joined-machine.ts';

describe('the Node of a machine', () => {
  test('gets finalizer, name and template in one patch, before the machine is Running', async () => {
    const world = joinedMachine({ phase: 'Pending', noNode: true });
    world.nodes.cache.put(node());

    await world.reconcile();

    expect(world.nodes.done).toEqual(['patch m-1']);
    expect(world.nodes.patches).toEqual([
      { metadata: { finalizers: [NODE_FINALIZER], labels: { 'node.gardener.cloud/machine-name': 'm-1' } } },
    ]);
    expect(currentMachine(world).status?.currentStatus?.phase).toBe('Running');
  });

  test('gets taints from a live read, with its resourceVersion', async () => {
    const world = joinedMachine({ phase: 'Running' });
    world.machines.put(
      machine((m) => {
        Object.assign(m, currentMachine(world));
        m.metadata = { ...m.metadata, resourceVersion: '2' };
        m.spec = { ...m.spec, nodeTemplate: { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } } };
      }),
    );
    world.nodes.live.set(
      'm-1',
      node((n) => {
        n.metadata.resourceVersion = '77';
        n.metadata.finalizers = [NODE_FINALIZER];
        n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
        n.spec.taints = [{ key: 'somebody', effect: 'NoExecute' }];
      }),
    );

    await world.reconcile();

    expect(world.nodes.patches[0]).toMatchObject({
      metadata: { resourceVersion: '77' },
      spec: {
        taints: [
          { key: 'somebody', effect: 'NoExecute' },
          { key: 'a', effect: 'NoSchedule' },
        ],
      },
    });
  });

  test('that another, older machine has is left alone', async () => {
    const world = joinedMachine({ phase: 'Running', noNode: true });
    world.machines.put(
      machine((m) => {
        m.metadata.resourceVersion = '2';
        m.metadata.labels['node'] = 'n-1';
      }),
    );
    world.nodes.cache.put(node((n) => void (n.metadata.name = 'n-1')));
    world.machines.put(
      machine((m) => {
        m.metadata.name = 'm-0';
        m.metadata.labels['node'] = 'n-1';
        m.metadata.creationTimestamp = '2025-12-31T00:00:00Z';
      }),
    );

    await world.reconcile();

    expect(world.nodes.patches).toEqual([]);
  });

  test('that cannot be patched does not keep a machine without phase from getting one', async () => {
    const world = joinedMachine({ phase: 'Pending', noNode: true });
    world.machines.put(
      machine((m) => {
        m.metadata.resourceVersion = '2';
        m.metadata.finalizers = [FINALIZER];
        m.status = {} as (typeof m)['status'];
      }),
    );
    world.classes.put(machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER] })));
    world.secrets.put(secret((s) => void (s.data['userData'] = '')));
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
    world.nodes.cache.put(node());
    world.nodes.failure = new ApiError(422, 'Invalid', 'no');

    for (let i = 0; i < 4; i++) {
      await world.reconcile();
      await world.settle();
    }

    expect(world.machines.get('default/m-1')?.status?.currentStatus?.phase).toBe('Running');
    expect(world.events.map(({ reason }) => reason)).toEqual(['NodeSyncRefused', 'VMAdopted', 'NodeJoined']);
  });

  test('that a webhook refuses to let change is asked for again after a pause, and not because of events', async () => {
    const world = joinedMachine({ phase: 'Running', noNode: true });
    world.nodes.cache.put(node());
    let asked = 0;
    world.nodes.patch = () => {
      asked += 1;
      return Promise.reject(new ApiError(500, 'InternalError', 'failed calling webhook "a": timeout'));
    };
    for (let i = 0; i < 6; i++) await world.reconcile();
    const told = world.machines.get('default/m-1')?.metadata.annotations?.['machine.sapcloud.io/node-sync-refused'];

    // Once more, because a server that fails once works the next time.
    expect(asked).toBe(2);
    expect(told).toContain('failed calling webhook');
    world.clock.advance(10_000);
    await world.reconcile();
    await world.reconcile();
    expect(asked).toBe(3);
    world.clock.advance(10_000);
    await world.reconcile();
    expect(asked).toBe(3);
  });

  test('that cannot be patched does not keep its machine from being written', async () => {
    const world = joinedMachine({ phase: 'Pending', noNode: true });
    world.nodes.cache.put(node());
    world.nodes.failure = new Error('conflict');

    const { error, writes } = await world.reconcile();

    expect(error).toBe(world.nodes.failure);
    expect(writes).toEqual(['status']);
  });
});
