import { describe, expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { wasUnprotected } from './lost-nodes.ts';
import { NODE_FINALIZER, joinedMachine } from '../../../../test/fakes/joined-machine.ts';

describe('the Node of a machine', () => {
  test('that is deleted takes its machine along, and nothing else happens to it', async () => {
    const world = joinedMachine({ phase: 'Running' });
    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '2';
        n.metadata.finalizers = [NODE_FINALIZER];
        n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
        n.metadata.deletionTimestamp = '2026-01-01T00:01:00Z';
      }),
    );

    const { writes, events } = await world.reconcile();

    expect(world.deletedMachines).toEqual(['uid-of-machine-m-1']);
    expect(writes).toEqual([]);
    expect(world.nodes.done).toEqual([]);
    expect(events.map(({ reason }) => reason)).toEqual(['NodeDeleted']);
  });

  test.each([
    { what: 'is gone when looked at live', live: undefined, deletes: ['uid-of-machine-m-1'] },
    {
      what: 'has come back as another one that is not ready',
      live: node((n) => {
        n.metadata.uid = 'new';
        n.status.conditions = [{ type: 'Ready', status: 'False' }];
      }),
      deletes: ['uid-of-machine-m-1'],
    },
    {
      what: 'has come back as another one that is ready, so not then',
      live: node((n) => Object.assign(n.metadata, { uid: 'new' })),
      deletes: [],
    },
    { what: 'is there all the same', live: node((n) => Object.assign(n.metadata, { uid: 'old' })), deletes: [] },
  ])('that was deleted before it had our finalizer takes its machine along: it $what', async ({ live, deletes }) => {
    const world = joinedMachine({ phase: 'Pending', noNode: true });
    const lastSeen = node((n) => Object.assign(n.metadata, { uid: 'old' }));
    world.steps.lostNodes.noteDeleted(world.machines.list()[0] as Machine, lastSeen);
    world.nodes.live.set('m-1', live);

    await world.reconcile();

    expect(world.deletedMachines).toEqual(deletes);
  });

  test.each([
    { what: 'without our finalizer', change: () => undefined, counts: true },
    {
      what: 'without our finalizer, and not ready: by somebody who may not have seen its VM',
      change: (n: ReturnType<typeof node>) => void (n.status.conditions = [{ type: 'Ready', status: 'Unknown' }]),
      counts: false,
    },
    {
      what: 'with it: somebody took it away by force, or the cluster lost its data',
      change: (n: ReturnType<typeof node>) => void n.metadata.finalizers.push(NODE_FINALIZER),
      counts: false,
    },
    {
      what: 'with it, which came while the deletion was on its way',
      change: (n: ReturnType<typeof node>) => void n.metadata.finalizers.push(NODE_FINALIZER),
      protectedForMs: 59_999,
      counts: true,
    },
    {
      what: 'with it for longer than any deletion takes',
      change: (n: ReturnType<typeof node>) => void n.metadata.finalizers.push(NODE_FINALIZER),
      protectedForMs: 60_000,
      counts: false,
    },
    {
      what: 'with it, marked as deleted: somebody took it away by force',
      change: (n: ReturnType<typeof node>) => {
        n.metadata.finalizers.push(NODE_FINALIZER);
        n.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      },
      protectedForMs: 0,
      counts: false,
    },
    {
      what: "that is marked as nobody's",
      change: (n: ReturnType<typeof node>) => {
        n.metadata.annotations['node.machine.sapcloud.io/not-managed-by-mcm'] = '1';
      },
      counts: false,
    },
    {
      what: 'of another machine',
      change: (n: ReturnType<typeof node>) => {
        n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-2';
        n.spec = { providerID: 'sim:///m-2' };
      },
      counts: false,
    },
  ])('that is gone was deleted: $what', ({ change, protectedForMs = Infinity, counts }) => {
    expect(wasUnprotected(node(change), machine(), new FakeWorld().machines, protectedForMs)).toBe(counts);
  });

  test.each([
    { what: 'while it got our finalizer takes its machine along', afterMs: 1_000, deletes: ['uid-of-machine-m-1'] },
    { what: 'by force, long after it got our finalizer, is a matter of health', afterMs: 60_000, deletes: [] },
  ])('that was deleted $what', async ({ afterMs, deletes }) => {
    const world = joinedMachine({ phase: 'Pending', noNode: true });
    const unprotected = node((n) => void (n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1'));
    world.nodes.cache.put(unprotected);
    await world.reconcile();
    expect(JSON.stringify(world.nodes.patches)).toContain(NODE_FINALIZER);

    world.clock.advance(afterMs);
    world.nodes.cache.remove('m-1');
    world.nodes.live.set('m-1', undefined);
    const lastSeen = node((n) => void n.metadata.finalizers.push(NODE_FINALIZER));
    world.steps.lostNodes.noteDeleted(world.machines.list()[0] as Machine, lastSeen);
    await world.reconcile();

    expect(world.deletedMachines).toEqual(deletes);
  });

  test('that was deleted is forgotten with its Machine: so is what several steps remember', async () => {
    const world = joinedMachine({ phase: 'Pending', noNode: true });
    const lastSeen = node((n) => Object.assign(n.metadata, { uid: 'old' }));
    world.steps.lostNodes.noteDeleted(world.machines.list()[0] as Machine, lastSeen);
    world.nodes.live.set('m-1', undefined);
    world.steps.forget('uid-of-machine-m-1');

    await world.reconcile();

    expect(world.deletedMachines).toEqual([]);
  });
});
