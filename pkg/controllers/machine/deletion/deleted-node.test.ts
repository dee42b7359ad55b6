import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { node } from '../../../../test/builders.ts';
import { DriverError, type DriverCode } from '../../../driver/error.ts';
import { KEY, type Change, startDeletion, stageNow, runUntilQuiet } from '../../../../test/fakes/deletion-world.ts';

describe('the Node of a deleted machine', () => {
  const anonymous: Change = (m) => {
    m.metadata.labels = {};
  };

  test.each([
    { what: 'its machine-name label', label: 'm-1', providerID: '' },
    { what: 'the provider id', label: '', providerID: 'sim:///m-1' },
  ])('is found by $what', async ({ label, providerID }) => {
    const world = startDeletion(anonymous);
    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '2';
        n.metadata.labels = label === '' ? {} : { 'node.gardener.cloud/machine-name': label };
        n.spec.providerID = providerID;
      }),
    );
    await runUntilQuiet(world);

    expect(world.drains.requests[0]?.nodeName).toBe('m-1');
    expect(world.driver.calls).toEqual([]);
  });

  test('is asked for at the provider when nobody shows it', async () => {
    const world = startDeletion(anonymous);
    world.nodes.cache.remove('m-1');
    world.nodes.cache.put(node((n) => (Object.assign(n.metadata, { name: 'n-7' }).uid = 'n-7')));
    world.nodes.cache.put(
      node((n) => {
        Object.assign(n.metadata, { name: 'n-7', uid: 'n-7', resourceVersion: '2' });
        n.spec = {};
      }),
    );
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-7', addresses: [] });
    await runUntilQuiet(world);

    expect(world.driver.calls).toEqual(['status']);
    expect(world.machines.get(KEY)?.metadata.labels).toEqual({ node: 'n-7' });
    expect(world.drains.requests[0]?.nodeName).toBe('n-7');
  });

  test.each(['NotFound', 'Unimplemented', 'Uninitialized', 'OutOfRange'].map((code) => ({ code: code as DriverCode })))(
    'is not needed: after $code the VM is deleted all the same',
    async ({ code }) => {
      const world = startDeletion(anonymous);
      world.nodes.cache.remove('m-1');
      world.driver.failures['status'] = [new DriverError(code, 'x')];
      await runUntilQuiet(world);

      expect(world.driver.calls).toEqual(['status', 'delete']);
      expect(world.machines.get(KEY)).toBeUndefined();
    },
  );

  test('is not waited for when the deletion is forced', async () => {
    const world = startDeletion((m) => {
      anonymous(m);
      m.metadata.labels = { 'force-deletion': 'True' };
    });
    world.nodes.cache.remove('m-1');
    world.driver.failures['status'] = [new DriverError('PermissionDenied', 'no')];
    await runUntilQuiet(world);

    expect(world.driver.calls).toEqual(['status', 'delete']);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test.each<{ code: DriverCode; how: string; drains: readonly boolean[]; calls?: readonly string[] }>([
    { code: 'OutOfRange', how: '', drains: [false] },
    { code: 'Uninitialized', how: '', drains: [false] },
    { code: 'NotFound', how: '', drains: [] },
    { code: 'OutOfRange', how: ' and the deletion is forced', drains: [true] },
    { code: 'Unavailable', how: ' and the deletion is forced', drains: [true] },
    { code: 'NotFound', how: ' and the deletion is forced', drains: [], calls: ['status', 'delete'] },
  ])(
    'that is older than its Machine, as after a restore, is drained unless the provider has no VM, and this waits while it is Ready: $code$how',
    async ({ code, how, drains, calls = ['status'] }) => {
      const world = startDeletion((m) => {
        m.spec.providerID = 'sim:///m-1';
        m.metadata.labels = { node: 'm-1', ...(how !== '' && { 'force-deletion': 'True' }) };
      });
      world.nodes.cache.put(
        node((n) => {
          Object.assign(n.metadata, { resourceVersion: '2', creationTimestamp: '2025-01-01T00:00:00Z' });
          n.spec.providerID = 'sim:///m-1';
        }),
      );
      world.driver.failures['status'] = [new DriverError(code, 'x')];

      await runUntilQuiet(world);

      expect(world.drains.requests.map(({ force }) => force)).toEqual(drains);
      expect(world.driver.calls).toEqual(calls);
    },
  );

  test('is asked for again when the provider does not know', async () => {
    const world = startDeletion(anonymous);
    world.nodes.cache.remove('m-1');
    world.driver.failures['status'] = [new DriverError('Unavailable', 'no route')];
    const { result } = await runUntilQuiet(world);

    expect(result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
    expect(world.machines.get(KEY)?.status?.lastOperation).toMatchObject({
      state: 'Failed',
      description: expect.stringContaining('no route'),
    });
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMDeletionFailed']);
    world.clock.advance(5 * SECOND);
    await runUntilQuiet(world);
    expect(world.driver.calls).toEqual(['status', 'status', 'delete']);
  });

  test('that has its name but another VM is neither drained nor deleted', async () => {
    const world = startDeletion();
    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '2';
        n.spec.providerID = 'sim:///another';
      }),
    );
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done).toEqual([]);
  });

  test('that joined late goes too', async () => {
    const world = startDeletion();
    world.nodes.cache.remove('m-1');
    world.nodes.live.set('m-1', undefined);
    const remove = world.driver.delete.bind(world.driver);
    world.driver.delete = async (request) => {
      world.nodes.live.set('m-1', node());
      return await remove(request);
    };
    await runUntilQuiet(world);

    expect(world.drains.requests).toEqual([]);
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.nodes.done.at(-1)).toBe('remove m-1');
  });

  test('that the cache does not know is drained before its VM goes', async () => {
    const world = startDeletion();
    world.nodes.cache.remove('m-1');
    world.nodes.live.set('m-1', node());
    await runUntilQuiet(world);

    expect(world.drains.requests.map(({ nodeName }) => nodeName)).toEqual(['m-1']);
    expect(world.driver.calls).toEqual([]);
  });

  test("that the cache does not know, and that is another machine's, is left alone", async () => {
    const world = startDeletion();
    world.nodes.cache.remove('m-1');
    world.nodes.live.set(
      'm-1',
      node((n) => {
        n.spec.providerID = 'sim:///another';
      }),
    );
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done.filter((what) => !what.startsWith('read'))).toEqual([]);
  });

  test('that cannot be deleted is told of, and tried again without another call to the driver', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    world.nodes.failure = new Error('forbidden');
    const { error } = await runUntilQuiet(world);

    expect(error).toBe(world.nodes.failure);
    expect(stageNow(world)).toBe('Could not delete the Node: forbidden. Initiate node object deletion');
    world.nodes.failure = undefined;
    await runUntilQuiet(world);
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.machines.get(KEY)).toBeUndefined();
  });
});

describe('departure: the last look is live before a drain is forced by a broken Node, which', () => {
  const broken = (sinceMinutes: number): ReturnType<typeof node> =>
    node((n) => {
      n.metadata.resourceVersion = '2';
      const lastTransitionTime = new Date(Date.parse('2026-01-01T00:00:00Z') - sinceMinutes * MINUTE).toISOString();
      n.status.conditions = [{ type: 'Ready', status: 'Unknown', lastTransitionTime }];
    });

  test('forces its drain after 5 minutes', async () => {
    const world = startDeletion();
    world.nodes.cache.put(broken(3));
    const { result } = await runUntilQuiet(world);
    expect(world.drains.requests.map(({ force }) => force)).toEqual([false]);
    expect(result.kind).toBe('requeue');

    world.clock.advance(2 * MINUTE);
    await runUntilQuiet(world);
    expect(world.drains.requests.map(({ force }) => force)).toEqual([false, true]);
  });

  test('does not when a live look shows it well', async () => {
    const world = startDeletion();
    world.nodes.cache.put(broken(10));
    world.nodes.live.set('m-1', node());
    await runUntilQuiet(world);

    expect(world.drains.requests.map(({ force }) => force)).toEqual([false]);
  });

  test('does not in the grace after an outage', async () => {
    const world = startDeletion();
    world.graceLeftMs = MINUTE;
    world.nodes.cache.put(broken(10));
    await runUntilQuiet(world);

    expect(world.drains.requests.map(({ force }) => force)).toEqual([false]);
  });
});

describe('departure: a forced deletion goes on without its target cluster; one whose target cannot be reached', () => {
  test('deletes the VM and leaves the Node behind', async () => {
    const world = startDeletion((m) => {
      m.metadata.labels['force-deletion'] = 'true';
    });
    world.trustedForMs = (clusters) => (clusters.includes('target') ? 0 : MINUTE);
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done).toEqual([]);
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMDeleted', 'NodeLeftBehind']);
  });

  test('waits without the label and says so once, until the target answers', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    world.outages = [{ cluster: 'target', sinceMs: Date.parse('2026-01-01T00:00:00Z'), why: 'no answer' }];
    const held = await runUntilQuiet(world);
    const { writes } = world;
    const again = await runUntilQuiet(world);

    expect(held.machine.status?.lastOperation).toMatchObject({
      type: 'Delete',
      state: 'Processing',
      description: expect.stringMatching(
        /^API server of cluster "target" unreachable since 2026-01-01T00:00:00Z \(no answer\): .* Initiate node drain$/,
      ),
    });
    expect([again.writes, world.writes]).toEqual([[], writes]);

    world.outages = [];
    expect((await runUntilQuiet(world)).machine.status?.lastOperation?.description).toBe('Initiate node drain');
    world.drains.end({ kind: 'drained', volumes: 0 } as never);
    await runUntilQuiet(world);
    expect(world.driver.calls).toContain('delete');
  });

  test('waits without the label', async () => {
    const world = startDeletion();
    world.trustedForMs = (clusters) => (clusters.includes('target') ? 0 : MINUTE);
    await runUntilQuiet(world);

    expect(world.drains.requests).toHaveLength(1);
    expect(world.driver.calls).toEqual([]);
  });
});
