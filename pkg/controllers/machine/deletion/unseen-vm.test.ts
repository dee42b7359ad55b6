import { describe, expect, test } from '@jest/globals';

import { HOUR, MINUTE, SECOND } from '../../../../test/durations.ts';
import { machine, machineClass, node } from '../../../../test/builders.ts';
import { runToEnd, worldInDeletion } from '../../../../test/fakes/deletion-world.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { DriverError } from '../../../driver/error.ts';

const KEY = 'default/m-1';
const NOT_FOUND = new DriverError('NotFound', 'no server in region other');
const TEXT =
  'the driver found no VM sim:///m-1, but Node m-1 is Ready, so the VM is assumed to be running. If it is, correct MachineClass class-1 or its Secret ' +
  'so that the driver finds it; to remove the Machine without its VM, set label force-deletion=True.';

type Change = (m: ReturnType<typeof machine>) => void;
type BuiltNode = ReturnType<typeof node>;

/** A Machine whose VM is to be deleted next, and which the driver does not find although it is there. */
function start(change: Change = () => undefined): FakeWorld {
  const world = worldInDeletion((m) => {
    m.metadata.labels['node'] = 'm-1';
    m.status.currentStatus.phase = 'Terminating';
    m.status.lastOperation = { type: 'Delete', state: 'Processing', description: 'Initiate VM deletion' };
    change(m);
  });
  world.nodes.cache.put(node());
  world.driver.failures['delete'] = Array.from({ length: 30 }, () => NOT_FOUND);
  return world;
}

function put(world: FakeWorld, change: (n: BuiltNode) => void): void {
  world.nodes.cache.put(
    node((n) => {
      n.metadata.resourceVersion = `${world.writes + 2}`;
      change(n);
    }),
  );
}

const notReady = (n: BuiltNode): void => void (n.status.conditions = [{ type: 'Ready', status: 'Unknown' }]);

const isGone = (world: FakeWorld): boolean => world.machines.get(KEY) === undefined;
const told = (world: FakeWorld) => world.machines.get(KEY)?.status?.lastOperation;
const reasons = (world: FakeWorld): readonly string[] => world.events.map(({ reason }) => reason);

/** Passes for so long, whenever the next is due. */
async function runFor(world: FakeWorld, ms: number): Promise<void> {
  const endMs = world.clock.now() + ms;
  for (;;) {
    await world.reconcile();
    await world.settle();
    if (isGone(world)) return;
    // A call has ended, perhaps.
    const { result } = await world.reconcile();
    await world.settle();
    if (isGone(world)) return;
    const afterMs = result.kind === 'requeue' ? result.afterMs : SECOND;
    if (world.clock.now() + afterMs > endMs) return world.clock.advance(endMs - world.clock.now());
    world.clock.advance(afterMs);
  }
}

function edit(world: FakeWorld, change: (m: Machine) => Machine): void {
  const current = world.machines.get(KEY) as Machine;
  const { metadata } = current;
  world.machines.put(
    change({ ...current, metadata: { ...metadata, resourceVersion: `${metadata.resourceVersion}0` } }),
  );
}

describe('departure: that there is no VM is not believed while its Node is Ready; a driver that finds no VM', () => {
  // promise: deletion-policies/unseen-vm-node-ready
  test('is not asked again for a minute, in which that is what goes on; then it is a failure, and asked again as after others', async () => {
    const world = start();
    await runFor(world, 50 * SECOND);
    expect(world.driver.calls).toEqual(['delete']);
    expect(told(world)).toMatchObject({
      state: 'Processing',
      description: `The VM is not deleted yet: ${TEXT} Initiate VM deletion`,
    });
    expect(reasons(world)).toEqual([]);
    const { writes } = world;

    await runFor(world, 9 * MINUTE);
    expect(told(world)).toMatchObject({
      state: 'Failed',
      errorCode: 'VMUnseen',
      description: `The VM cannot be deleted: ${TEXT} Initiate VM deletion`,
    });
    expect(reasons(world)).toEqual(['VMDeletionFailed']);
    expect(world.writes).toBe(writes + 1);
    expect(world.driver.calls.length).toBeGreaterThan(8);
    expect(world.driver.calls.length).toBeLessThan(20);
    expect(world.steps.retries.held()).toMatchObject([{ call: 'delete' }]);
    expect(world.nodes.done).toEqual([]);

    put(world, notReady);
    await runFor(world, MINUTE);
    expect(isGone(world)).toBe(true);
  });

  test('is believed in the pass in which the Node is no longer Ready, without another call', async () => {
    const world = start();
    await runFor(world, 20 * SECOND);
    expect(isGone(world)).toBe(false);

    put(world, notReady);
    await world.reconcile();
    await runToEnd(world);

    expect(isGone(world)).toBe(true);
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.nodes.done).toEqual(['read m-1', 'remove m-1']);
    expect(reasons(world)).toEqual(['VMDeleted']);
  });

  test('is not believed when a live look shows the Node Ready again, nor when the Machine has come back under its name', async () => {
    const world = start();
    await runFor(world, 20 * SECOND);
    put(world, notReady);
    world.nodes.live.set('m-1', node());
    await runFor(world, 10 * SECOND);
    const whileLive = isGone(world);
    world.nodes.live.clear();
    world.liveMachines.set(
      KEY,
      machine((m) => void (m.metadata.uid = 'uid-of-another')),
    );
    await world.reconcile();

    expect(whileLive).toBe(false);
    expect(told(world)?.description).toContain('Initiate VM deletion');
    expect(world.nodes.done).not.toContain('remove m-1');
  });

  test.each([
    { what: 'changes', change: { generation: 2 } },
    { what: 'is another one of its name', change: { uid: 'another' } },
  ])('is asked again at once when the class $what, and deletes the VM that it finds then', async ({ change }) => {
    const world = start();
    await runFor(world, 20 * SECOND);
    world.driver.failures['delete'] = [];
    world.classes.put(
      machineClass((c) => {
        Object.assign(c.metadata, {
          ...change,
          resourceVersion: '2',
          finalizers: ['machine.sapcloud.io/machine-controller-manager'],
        });
        c.providerSpec = { region: 'the right one' };
      }),
    );
    await runToEnd(world);

    expect(isGone(world)).toBe(true);
    expect(world.driver.calls).toEqual(['delete', 'delete']);
    expect(world.driver.vms.size).toBe(0);
    expect(world.events.map(({ message }) => message)).toEqual(['VM sim:///m-1 was deleted.']);
  });

  test('is not believed by the next process either', async () => {
    const world = start();
    await runFor(world, 20 * SECOND);
    world.restart();
    await runFor(world, 20 * SECOND);

    expect(isGone(world)).toBe(false);
    expect(world.driver.calls).toEqual(['delete', 'delete']);
  });

  test('once it is a failure, stays one for the next process, however that words it', async () => {
    const world = start();
    await runFor(world, 2 * MINUTE);
    const { status = {} } = world.machines.get(KEY) as Machine;
    edit(world, (m) => ({
      ...m,
      status: { ...status, lastOperation: { ...status.lastOperation, description: 'No VM. Initiate VM deletion' } },
    }));
    world.restart();
    await runFor(world, 20 * SECOND);

    expect(told(world)).toMatchObject({ state: 'Failed', errorCode: 'VMUnseen' });
  });

  test('is believed at once when label force-deletion is set meanwhile', async () => {
    const world = start();
    await runFor(world, 20 * SECOND);
    edit(world, (m) => ({
      ...m,
      metadata: { ...m.metadata, labels: { ...m.metadata.labels, 'force-deletion': 'true' } },
    }));
    await runToEnd(world);

    expect(isGone(world)).toBe(true);
    expect(world.driver.calls).toEqual(['delete']);
  });

  test('does not keep a Machine with policy forced for longer than its timeout, and the class notes it', async () => {
    const world = start((m) => {
      m.metadata.annotations = { 'machine.sapcloud.io/deletion-policy': 'forced' };
    });
    world.driver.methods = new Set(['ListMachines']);
    await runFor(world, world.settings.forcedDeletionTimeoutMs - SECOND);
    const before = isGone(world);
    await runFor(world, 31 * SECOND);

    expect([before, isGone(world)]).toEqual([false, true]);
    expect(world.notedRemovals).toEqual(['class-1']);
    expect(reasons(world)).toEqual(['VMDeletionFailed', 'ForcedRemoval']);
  });

  test('leaves one behind if its Machine vanishes before that is believed', async () => {
    const world = start();
    await runFor(world, 5 * SECOND);
    expect([...world.judgements.values()]).toEqual([false]);

    put(world, notReady);
    await runToEnd(world);
    expect(isGone(world)).toBe(true);
    expect([...world.judgements.values()]).toEqual([true]);
  });

  test.each([
    { answer: 'was lost', first: new DriverError('Aborted', 'no answer', { unanswered: true }), events: [] },
    { answer: 'did not come in time', first: new DriverError('DeadlineExceeded', 'no'), events: ['VMDeletionFailed'] },
    { answer: 'was a refusal', first: new DriverError('PermissionDenied', 'no'), events: ['VMDeletionFailed'] },
    { answer: 'was Aborted', first: new DriverError('Aborted', 'a port may appear in the next 90 s'), events: [] },
  ])(
    'and whose first answer $answer is not, and has its minute before that is a failure',
    async ({ first, events }) => {
      const world = start();
      world.driver.failures['delete'] = [first, ...Array.from({ length: 9 }, () => NOT_FOUND)];
      await runFor(world, 30 * SECOND);

      expect(isGone(world)).toBe(false);
      expect(told(world)).toMatchObject({ state: 'Processing', description: expect.stringContaining(TEXT) });
      expect(world.driver.calls).toEqual(['delete', 'delete']);
      expect(reasons(world)).toEqual(events);

      await runFor(world, MINUTE);
      expect(told(world)?.state).toBe('Failed');
      expect(reasons(world)).toEqual([...events, 'VMDeletionFailed']);
    },
  );

  test.each([
    { what: 'whose Node is not Ready', arrange: (world) => put(world, notReady) },
    { what: 'whose Node is gone', arrange: (world) => world.nodes.cache.remove('m-1') },
    {
      what: 'whose Node is that of another VM by now',
      arrange: (world) => put(world, (n) => void (n.spec.providerID = 'sim:///another')),
    },
    {
      what: "whose Node is another Machine's",
      arrange: (world) => {
        world.machines.put(machine((m) => Object.assign(m.metadata, { name: 'm-2', uid: 'uid-2' })));
        put(world, (n) => void (n.metadata.labels = { 'node.gardener.cloud/machine-name': 'm-2' }));
      },
    },
    {
      what: 'whose Node was never recorded',
      change: (m) => void (m.metadata.labels = {}),
      arrange: (world) => put(world, (n) => void (n.spec.providerID = '')),
    },
    { what: 'without a target cluster', arrange: (world) => void (world.hasTarget = false) },
    { what: 'whose deletion is forced', change: (m) => void (m.metadata.labels['force-deletion'] = 'true') },
  ] as { what: string; change?: Change; arrange?: (world: FakeWorld) => void }[])(
    'is believed at once of a Machine $what',
    async ({ change, arrange }) => {
      const world = start(change);
      arrange?.(world);
      await runToEnd(world);

      expect(isGone(world)).toBe(true);
      expect(world.driver.calls).toEqual(['delete']);
    },
  );

  test('is not believed while the Node cannot be looked at', async () => {
    const world = start();
    world.nodes.cache.remove('m-1');
    world.nodes.read = (): Promise<Node | undefined> => Promise.reject(new Error('no answer'));
    await world.reconcile();
    await world.settle();
    const { error } = await world.reconcile();

    expect(error).toEqual(new Error('no answer'));
    expect(isGone(world)).toBe(false);
    expect(told(world)).toMatchObject({
      state: 'Failed',
      description:
        'The driver found no VM, but could not read whether the Node is Ready: no answer. Initiate VM deletion',
    });
    expect([...world.judgements.values()]).toEqual([false]);
  });

  test('is asked again after an outage of the target, of which the Machine tells meanwhile', async () => {
    const world = start();
    await runFor(world, 20 * SECOND);
    world.outages = [{ cluster: 'target', sinceMs: world.clock.now(), why: 'no answer' }];
    await runFor(world, 10 * MINUTE);
    expect(told(world)).toMatchObject({ state: 'Processing', errorCode: 'ClusterOutage' });

    world.outages = [];
    await runFor(world, 30 * SECOND);
    expect(told(world)).toMatchObject({ state: 'Processing', description: expect.stringContaining(TEXT) });
    expect(world.driver.calls).toEqual(['delete', 'delete']);
    expect(reasons(world)).toEqual([]);
  });
});

describe('departure: a Machine that is younger than its Node, which is Ready, and whose VM the driver does not find', () => {
  const OLDER =
    'The VM cannot be deleted: the driver found no VM sim:///m-1, but Node m-1 is Ready, so the VM is assumed to be running. If it is, correct the tags of ' +
    'the VM (UID, namespace and cluster may be those of an earlier Machine; the UID of this one is uid-new), MachineClass class-1 or its Secret so that ' +
    'the driver finds it; to remove the Machine without its VM, set label force-deletion=True. ' +
    'Set machine status to termination. Now, getting VM Status';
  const older = (n: BuiltNode): void => void (n.metadata.creationTimestamp = '2025-12-01T00:00:00Z');
  const notReadyEither = (n: BuiltNode): void => (older(n), notReady(n));

  /** One that was created again after a restore: its VM is marked with the UID that it had. */
  function startRestored(change: Change = () => undefined): FakeWorld {
    const world = worldInDeletion((m) => {
      m.metadata.uid = 'uid-new';
      change(m);
    });
    world.nodes.cache.put(node(older));
    for (const call of ['status', 'delete']) world.driver.failures[call] = Array.from({ length: 30 }, () => NOT_FOUND);
    return world;
  }

  test('keeps both, undrained, and says why, until the driver finds the VM', async () => {
    const world = startRestored();
    await runFor(world, 5 * MINUTE);

    expect(told(world)).toMatchObject({ state: 'Failed', description: OLDER });
    expect(reasons(world)).toEqual(['VMDeletionFailed']);
    expect(world.drains.requests).toEqual([]);
    expect(new Set(world.driver.calls)).toEqual(new Set(['status']));
    expect(world.driver.calls.length).toBeLessThan(12);

    world.driver.failures['status'] = [];
    world.driver.failures['delete'] = [];
    await runFor(world, 10 * MINUTE);
    expect(world.drains.requests.map(({ nodeName, force }) => ({ nodeName, force }))).toEqual([
      { nodeName: 'm-1', force: false },
    ]);
    expect(world.driver.calls).not.toContain('delete');
    world.drains.end({ kind: 'drained' } as never);
    await runToEnd(world);
    expect(isGone(world)).toBe(true);
    expect(world.driver.vms.size).toBe(0);
    expect(world.nodes.done.at(-1)).toBe('remove m-1');
  });

  test.each<{ what: string; change: Change }>([
    { what: 'its Node', change: (m) => void (m.metadata.labels['node'] = 'm-1') },
    {
      what: 'no Node',
      change: (m) => {
        m.metadata.labels = {};
        m.status = {} as typeof m.status;
      },
    },
  ])(
    'naming $what, waits for its class, without which nobody can be asked whose VM it is, and is drained then',
    async ({ change }) => {
      const world = startRestored(change);
      const [of] = world.classes.list();
      world.classes.remove('default/class-1');
      for (const call of ['status', 'delete']) world.driver.failures[call] = [];
      await runFor(world, MINUTE);

      expect(told(world)?.description).toContain('Without it, the VM cannot be deleted.');
      expect(reasons(world)).toEqual(['InvalidClass']);

      world.classes.put(of!);
      await runFor(world, MINUTE);
      expect(world.drains.requests.map(({ nodeName }) => nodeName)).toEqual(['m-1']);
      expect(world.driver.calls).not.toContain('delete');
    },
  );

  test('is kept, undrained, although it names no Node: the Node of the VM that it records is Ready, or restarts', async () => {
    const world = startRestored((m) => {
      m.metadata.labels = {};
      m.status = {} as typeof m.status;
    });
    await runFor(world, 5 * MINUTE);
    expect(told(world)).toMatchObject({ state: 'Failed', description: OLDER });
    expect([world.drains.requests, new Set(world.driver.calls)]).toEqual([[], new Set(['status'])]);

    put(world, notReadySince(world.clock.now()));
    await runFor(world, 3 * MINUTE);
    expect(told(world)?.description).toContain('but Node m-1 was Ready a few minutes ago, so the VM is assumed');
    for (const call of ['status', 'delete']) world.driver.failures[call] = [];
    await runFor(world, MINUTE);
    expect(world.drains.requests.map(({ nodeName }) => nodeName)).toEqual(['m-1']);
  });

  const notReadySince = (ms: number, change: (n: BuiltNode) => void = () => undefined): ((n: BuiltNode) => void) => {
    const lastTransitionTime = new Date(ms).toISOString();
    return (n) => {
      older(n);
      n.status.conditions = [{ type: 'Ready', status: 'Unknown', lastTransitionTime }];
      change(n);
    };
  };

  test.each([
    { clock: 'the same', aheadMs: 0, isSeen: false },
    { clock: 'the same, and saw it', aheadMs: 0, isSeen: true },
    { clock: 'an hour behind, and saw it', aheadMs: -HOUR, isSeen: true },
    { clock: 'an hour ahead, and saw it', aheadMs: HOUR, isSeen: true },
    { clock: 'four minutes ahead', aheadMs: 4 * MINUTE, isSeen: false },
  ])(
    'is not given up while its Node restarts, but when it has not been Ready for a while; clock: $clock',
    async ({ aheadMs, isSeen }) => {
      const world = startRestored();
      await runFor(world, MINUTE);
      const before = world.nodes.cache.get('m-1')!;
      put(world, notReadySince(world.clock.now() + aheadMs));
      if (isSeen)
        world.steps.brokenNodes.noteDelivered(before, world.nodes.cache.get('m-1')!, () => world.machines.list());
      await runFor(world, 4 * MINUTE);
      expect(world.machines.get(KEY)?.metadata.labels?.['node']).toBe('m-1');

      await runFor(world, 7 * MINUTE);
      expect(isGone(world)).toBe(true);
      expect(world.driver.vms.size).toBe(1);
    },
  );

  test('is kept, with the reason, while the Node cannot be read', async () => {
    const world = startRestored();
    put(world, notReadyEither);
    world.nodes.readFailure = new Error('no answer');
    await world.reconcile();
    await world.settle();
    await world.reconcile();
    await world.settle();
    const { error } = await world.reconcile();

    expect(error).toEqual(new Error('no answer'));
    expect(told(world)?.description).toBe(
      'The driver found no VM, but could not read whether the Node is Ready: no answer. Set machine status to termination. Now, getting VM Status',
    );
  });

  test.each<{ what: string; change?: Change; arrange?: (world: FakeWorld) => void }>([
    { what: 'is removed by force', change: (m) => void (m.metadata.labels['force-deletion'] = 'True') },
    { what: 'has a Node that is not Ready', arrange: (world) => put(world, notReadyEither) },
    {
      what: 'has a Node that has just become not Ready, and is being deleted',
      arrange: (world) =>
        put(
          world,
          notReadySince(
            world.clock.now(),
            (n) => void (n.metadata.deletionTimestamp = new Date(world.clock.now()).toISOString()),
          ),
        ),
    },
    {
      what: 'has a Node that is not Ready since a time which is far ahead',
      arrange: (world) => put(world, notReadySince(world.clock.now() + HOUR)),
    },
    {
      what: 'has recorded no VM',
      change: (m) => void (m.spec.providerID = ''),
    },
    {
      what: 'has the provider ID of another Machine',
      arrange: (world) => world.machines.put(machine((m) => Object.assign(m.metadata, { name: 'm-2', uid: 'uid-2' }))),
    },
    {
      what: "names another Machine's Node",
      arrange: (world) => {
        world.machines.put(
          machine((m) => {
            Object.assign(m.metadata, { name: 'm-2', uid: 'uid-2' });
            m.spec.providerID = '';
          }),
        );
        put(world, (n) => {
          older(n);
          n.metadata.labels = { 'node.gardener.cloud/machine-name': 'm-2' };
        });
      },
    },
  ])('leaves Node and VM alone, and goes, if it $what', async ({ change, arrange }) => {
    const world = startRestored(change);
    arrange?.(world);
    await runToEnd(world);

    expect(isGone(world)).toBe(true);
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done.filter((what) => !what.startsWith('read'))).toEqual([]);
    expect(world.driver.vms.size).toBe(1);
  });

  test('keeps both if only a live look shows the Node Ready', async () => {
    const world = startRestored();
    put(world, notReadyEither);
    world.nodes.live.set('m-1', node(older));
    await runToEnd(world);

    expect(told(world)?.description).toBe(OLDER);
  });
});
