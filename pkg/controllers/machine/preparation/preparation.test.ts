import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, node, secret } from '../../../../test/builders.ts';
import { HOUR, MINUTE, SECOND } from '../../../../test/durations.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import type { Machine, MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { explain } from '../explain/explain.ts';

const KEY = 'default/m-1';
const PREPARE = 'machine.sapcloud.io/prepare-deletion';
const SINCE = 'machine.sapcloud.io/deletion-preparation-since';
const POLICY = 'machine.sapcloud.io/deletion-policy';
const HOOK = 'pre-drain.hook.machine.sapcloud.io/backup';
const MARK = 'node.machine.sapcloud.io/cordoned-by-maintenance';
const BLOCKED = { remainingPods: 1, blocked: [{ pod: 'ns/db', reason: 'disruption-budget', detail: 'db' }] } as const;

/** A Running machine whose deletion is to be prepared. */
function start(annotations: Record<string, string> = {}, change: (m: Machine) => void = () => undefined): FakeWorld {
  const world = new FakeWorld();
  world.nodes.keepsPatches = true;
  world.classes.put(machineClass());
  world.secrets.put(secret());
  world.nodes.cache.put(node((n) => void (n.metadata.labels = { 'node.gardener.cloud/machine-name': 'm-1' })));
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
      m.metadata.annotations = { [PREPARE]: 'true', ...annotations };
      m.status.conditions = [{ type: 'Ready', status: 'True' }];
      change(m);
    }),
  );
  return world;
}

const current = (world: FakeWorld): Machine => world.machines.get(KEY) as Machine;
const told = (world: FakeWorld): MachineCondition | undefined =>
  current(world).status?.machineConditions?.find(({ type }) => type === 'DeletionPrepared');
const reasons = (world: FakeWorld): string[] => world.events.map(({ reason }) => reason);

/** Passes of this step alone until nothing moves; resolves with what was told in between. */
async function run(world: FakeWorld): Promise<(string | undefined)[]> {
  const phases: (string | undefined)[] = [];
  await world.settle();
  for (let i = 0; i < 6 && world.deletedMachines.length === 0; i++) {
    await world.pass(world.only('preparation'));
    await world.settle();
    if (phases.at(-1) !== told(world)?.reason) phases.push(told(world)?.reason);
  }
  return phases;
}

/** As the drain does. */
function cordon(world: FakeWorld, isOurs = true): void {
  world.nodes.cache.put(
    node((n) => {
      n.metadata.resourceVersion = '50';
      n.metadata.labels = { 'node.gardener.cloud/machine-name': 'm-1' };
      n.spec.unschedulable = true;
      if (isOurs) n.metadata.annotations = { [MARK]: 'true' };
    }),
  );
}

const takeBack = (world: FakeWorld): void => world.annotate(current(world), { [PREPARE]: 'false' });

describe('a deletion that is prepared', () => {
  test('drains the Node while the machine goes on, says that it is done, and only then deletes the Machine', async () => {
    const world = start();

    expect(await run(world)).toEqual(['started']);
    expect(current(world).metadata.annotations?.[SINCE]).toBe('2026-01-01T00:00:00Z');
    expect(world.drains.requests).toMatchObject([
      { force: false, barrier: 'marked-cordon', maxEvictRetries: 360, deadlineMs: Date.parse('2026-01-01T02:00:00Z') },
    ]);
    expect(current(world).status?.currentStatus?.phase).toBe('Running');
    world.drains.end({ kind: 'drained' });

    expect(await run(world)).toEqual(['completed']);
    expect(told(world)).toMatchObject({ status: 'True' });
    expect(world.deletedMachines).toEqual(['uid-of-machine-m-1']);
    expect(reasons(world)).toEqual(['DeletionPreparing', 'Drained']);
  });

  test('has recorded that it has begun before anything happens to the Node', async () => {
    const world = start();
    world.losesWrites = true;

    await run(world);

    expect(world.drains.requests).toEqual([]);
  });

  test('is deleted at once without a Node', async () => {
    const world = start();
    world.nodes.cache.remove('m-1');

    expect(await run(world)).toEqual(['started', 'completed']);

    expect(world.deletedMachines).toEqual(['uid-of-machine-m-1']);
  });

  test('is not deleted undrained because the Nodes of all Machines are missing in the target cluster, which may be another one', async () => {
    const world = start();
    const there = world.nodes.cache.get('m-1')!;
    world.nodes.cache.remove('m-1');
    world.machines.put({
      ...current(world),
      metadata: { ...current(world).metadata, name: 'm-2', uid: 'uid-of-machine-m-2', labels: { node: 'm-2' } },
    });

    await run(world);
    expect([world.deletedMachines, told(world)]).toMatchObject([
      [],
      { reason: 'failed', message: expect.stringContaining('none of the Nodes') },
    ]);
    expect(reasons(world)).toContain('DeletionNotPrepared');

    world.nodes.cache.put(there);
    world.clock.advance(5 * 60_000);
    await run(world);

    expect([world.deletedMachines, world.drains.requests.length]).toEqual([[], 1]);
  });

  test.each(['unsafe', 'forced'])('is deleted at once with policy %s, also when that comes later', async (policy) => {
    const world = start({ [POLICY]: policy });
    const late = start();
    await run(late);
    late.annotate(current(late), { [POLICY]: policy });

    await run(world);
    await run(late);

    expect(world.drains.requests).toEqual([]);
    expect(world.deletedMachines).toEqual(['uid-of-machine-m-1']);
    expect(late.deletedMachines).toEqual(['uid-of-machine-m-1']);
  });

  test('with policy graceful has failed after the drain timeout, says how to end it, and goes on', async () => {
    const world = start({ [POLICY]: 'graceful' });
    await run(world);
    expect(world.drains.requests).toMatchObject([{ maxEvictRetries: Infinity }]);
    world.drains.report(BLOCKED);
    world.clock.advance(10 * SECOND);
    expect(await run(world)).toEqual(['blocked']);
    expect(told(world)?.message).toContain('ns/db (PodDisruptionBudget db currently allows no eviction)');

    world.clock.advance(2 * HOUR);
    expect(await run(world)).toEqual(['failed']);
    world.drains.end({ kind: 'incomplete', progress: BLOCKED });
    expect(await run(world)).toEqual(['failed']);
    world.clock.advance(MINUTE);
    expect(await run(world)).toEqual(['failed']);

    expect(explain(current(world), world.clock.now())).toMatchObject({
      reason: 'DeletionNotPrepared',
      message: expect.stringContaining('ns/db'),
      nextStep: expect.stringMatching(
        /remove annotation .*prepare-deletion.*set annotation .*deletion-policy to unsafe/,
      ),
    });
    expect(reasons(world).filter((reason) => reason === 'DrainForced')).toEqual([]);
    expect(world.deletedMachines).toEqual([]);
    world.drains.end({ kind: 'drained' });
    expect(await run(world)).toEqual(['completed']);
    expect(world.deletedMachines).toEqual(['uid-of-machine-m-1']);
  });

  test('without a policy deletes pods after the drain timeout, counted from its beginning over restarts', async () => {
    const world = start();
    await run(world);
    world.restart();
    world.clock.advance(2 * HOUR);

    await run(world);

    expect(world.drains.requests.map(({ force }) => force)).toEqual([false, true]);
  });

  test('waits for hooks, and says for which', async () => {
    const world = start({ [HOOK]: '' });

    expect(await run(world)).toEqual(['started']);
    expect(told(world)?.message).toBe(`Waiting for hooks: ${HOOK}.`);
    expect(world.drains.requests).toEqual([]);
    expect(world.deletedMachines).toEqual([]);
  });

  test('has the whole drain timeout from when the last hook went', async () => {
    const world = start({ [HOOK]: '' });
    await run(world);
    expect(current(world).metadata.annotations?.[SINCE]).toBe('');
    world.clock.advance(3 * HOUR);
    world.restart();
    const { annotations: { [HOOK]: _hook, ...left } = {}, resourceVersion } = current(world).metadata;
    world.machines.put({
      ...current(world),
      metadata: { ...current(world).metadata, annotations: left, resourceVersion: `${resourceVersion}0` },
    });

    await run(world);

    expect(world.drains.requests).toMatchObject([{ force: false, deadlineMs: world.clock.now() + 2 * HOUR }]);
    expect(reasons(world)).toEqual(['DeletionPreparing', 'WaitingForHooks']);
  });

  test('of a machine in creation does not keep its VM from being recorded while a hook holds it up', async () => {
    const world = start({ [HOOK]: '' }, (m) => {
      m.status = { currentStatus: { phase: 'CrashLoopBackOff' } };
    });

    await run(world);
    const { result } = await world.pass(world.only('preparation'));

    expect(result).toEqual({ kind: 'stop' });
    expect(world.deletedMachines).toEqual([]);
  });

  test('does not begin to drain for anyone who has taken it back, though the cache does not show that', async () => {
    const world = start();
    world.liveMachines.set(
      KEY,
      machine((m) => void (m.metadata.annotations = {})),
    );

    await run(world);

    expect(world.drains.requests).toEqual([]);
  });

  test('does nothing while the gate is closed', async () => {
    const world = start();
    world.nodes.cache.remove('m-1');
    world.deleteFailures.push(new GateClosedError('outage', 'control', 'no answer'));

    await world.pass(world.only('preparation'));
    await world.pass(world.only('preparation'));
    const { error } = await world.pass(world.only('preparation'));

    expect(error).toBeInstanceOf(GateClosedError);
    expect(told(world)?.reason).toBe('completed');
  });

  test.each([403, 422, 500])('whose DELETE is refused (%d) has failed, says why, and tries again', async (code) => {
    const world = start();
    world.nodes.cache.remove('m-1');
    world.deleteFailures.push(new ApiError(code, 'Forbidden', 'not on Fridays'));

    expect(await run(world)).toEqual(['started', 'completed', 'failed']);
    expect(world.deletedMachines).toEqual([]);
    world.clock.advance(10 * SECOND);
    await run(world);

    expect(world.events.find(({ reason }) => reason === 'DeletionNotPrepared')?.message).toContain('not on Fridays');
    expect(world.deletedMachines).toEqual(['uid-of-machine-m-1']);
  });

  test.each([undefined, 'unsafe'])(
    'whose DELETE is refused (policy %s) is held back, whoever looks',
    async (policy) => {
      const world = start(policy === undefined ? {} : { [POLICY]: policy });
      world.nodes.cache.remove('m-1');
      const refusal = new ApiError(403, 'Forbidden', 'not on Fridays');
      world.deleteFailures.push(refusal, refusal, refusal);
      await run(world);

      const refused = current(world).metadata.resourceVersion;
      await run(world);
      expect(current(world).metadata.resourceVersion).toBe(refused);
      expect(world.deleteFailures).toHaveLength(2);

      world.clock.advance(10 * SECOND);
      await run(world);
      expect(current(world).metadata.resourceVersion).toBe(refused);
      expect(world.deleteFailures).toHaveLength(1);
      expect(reasons(world).filter((reason) => reason === 'DeletionNotPrepared')).toHaveLength(1);
    },
  );

  test('begins the drain anew after a restart', async () => {
    const world = start();
    await run(world);
    world.drains.end({ kind: 'drained' });
    await world.pass(world.only('preparation'));
    world.restart();

    await run(world);

    expect(world.drains.requests).toHaveLength(2);
    expect(world.deletedMachines).toEqual([]);
  });
});

describe('a machine that has other plans', () => {
  const SELECTED = {
    'node.machine.sapcloud.io/candidate-for-update': 'true',
    'node.machine.sapcloud.io/selected-for-update': 'true',
  };

  test.each([
    { what: 'is asked for maintenance', annotations: { 'machine.sapcloud.io/maintenance': 'true' } },
    {
      what: 'has failed and is preserved',
      annotations: { 'node.machine.sapcloud.io/preserve': 'now' },
      change: (m: Machine) => {
        m.status = { ...m.status, currentStatus: { phase: 'Failed', preserveExpiryTime: '2026-01-05T00:00:00Z' } };
      },
    },
    { what: 'is selected for an update in place', annotations: {}, labels: SELECTED },
  ])('and $what is drained for its deletion alone, and deleted', async ({ annotations, change, labels = {} }) => {
    const world = start(annotations, change);
    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '2';
        n.metadata.labels = { 'node.gardener.cloud/machine-name': 'm-1', ...labels };
      }),
    );
    const passes = async (): Promise<void> => {
      for (let i = 0; i < 8 && world.deletedMachines.length === 0; i++) {
        await world.reconcile();
        await world.settle();
      }
    };

    await passes();
    expect(world.drains.requests).toMatchObject([{ barrier: 'marked-cordon' }]);
    expect(world.deletedMachines).toEqual([]);
    world.drains.end({ kind: 'drained' });
    await world.settle();
    await passes();

    expect(world.drains.requests).toHaveLength(1);
    expect(world.deletedMachines).toEqual(['uid-of-machine-m-1']);
  });
});

describe('an abort', () => {
  test('while the Node is drained ends that, uncordons what we have cordoned, and leaves nothing behind', async () => {
    const world = start();
    await run(world);
    cordon(world);

    takeBack(world);
    const phases = await run(world);

    expect(phases).toEqual(['aborting', undefined]);
    expect(world.activities.get('uid-of-machine-m-1', 'drain')).toBeUndefined();
    const left = world.nodes.cache.get('m-1');
    expect([left?.spec?.unschedulable, left?.metadata.annotations?.[MARK]]).toEqual([null, undefined]);
    expect(current(world).metadata.annotations).toEqual({ [PREPARE]: 'false' });
    expect(world.deletedMachines).toEqual([]);
    expect(reasons(world)).toEqual(['DeletionPreparing', 'DeletionAborted']);
  });

  test('that also takes the record of the beginning away ends the drain, which counts for no later preparation', async () => {
    const world = start();
    await run(world);
    expect(world.activities.get('uid-of-machine-m-1', 'drain')?.state).toBe('running');

    const { [PREPARE]: _asked, [SINCE]: _since, ...annotations } = current(world).metadata.annotations ?? {};
    const { metadata } = current(world);
    world.machines.put({ ...current(world), metadata: { ...metadata, annotations, resourceVersion: '900' } });
    await run(world);
    expect(world.activities.get('uid-of-machine-m-1', 'drain')).toBeUndefined();

    world.annotate(current(world), { [PREPARE]: 'true' });
    await run(world);
    expect(world.drains.requests).toHaveLength(2);
    expect(world.deletedMachines).toEqual([]);
  });

  test('leaves a Node cordoned that somebody else had cordoned', async () => {
    const world = start();
    await run(world);
    cordon(world, false);

    takeBack(world);
    await run(world);

    expect(world.nodes.cache.get('m-1')?.spec?.unschedulable).toBe(true);
  });

  test('leaves the cordon of a maintenance to that', async () => {
    const world = start({ 'machine.sapcloud.io/maintenance': 'true' });
    await run(world);
    cordon(world);

    takeBack(world);
    expect(await run(world)).toEqual(['aborting', undefined]);

    expect(world.nodes.cache.get('m-1')?.spec?.unschedulable).toBe(true);
  });

  test.each([
    { what: 'its other Node', on: 'm-2', lifted: ['m-1'] },
    { what: 'the Node that it names', on: 'm-1', lifted: ['m-2'] },
    { what: 'the Machine, which means the Node that it names', on: 'machine', lifted: ['m-2'] },
    { what: 'none of them', on: 'nothing', lifted: ['m-1', 'm-2'] },
  ])('of a machine with two Nodes, with maintenance asked for on $what, uncordons $lifted', async ({ on, lifted }) => {
    const world = start();
    await run(world);
    const MAINTAINED = { 'machine.sapcloud.io/maintenance': 'true' };
    for (const name of ['m-1', 'm-2']) {
      world.nodes.cache.put(
        node((n) => {
          Object.assign(n.metadata, { name, uid: `uid-of-${name}`, resourceVersion: '50' });
          n.metadata.labels = { 'node.gardener.cloud/machine-name': 'm-1' };
          n.metadata.annotations = { [MARK]: 'true', ...(on === name ? MAINTAINED : {}) };
          n.spec.unschedulable = true;
        }),
      );
    }
    if (on === 'machine') world.annotate(current(world), MAINTAINED);

    takeBack(world);
    expect((await run(world)).at(-1)).toBeUndefined();

    const isLifted = (name: string): boolean => world.nodes.cache.get(name)?.spec?.unschedulable !== true;
    expect(['m-1', 'm-2'].filter(isLifted)).toEqual(lifted);
  });

  test('lifts a cordon that was sent before and comes after it', async () => {
    const world = start();
    await run(world);
    takeBack(world);
    await run(world);
    expect(world.nodes.patches).toEqual([]);

    cordon(world);
    await run(world);

    expect(world.nodes.cache.get('m-1')?.spec?.unschedulable).toBeNull();
  });

  test('does not fail for a late cordon that the API server keeps', async () => {
    const world = start({ [PREPARE]: 'false' });
    cordon(world);
    world.nodes.failure = new ApiError(403, 'Forbidden', 'nodes are sacred');

    const { error, result } = await world.pass(world.only('preparation'));

    expect(error).toBeUndefined();
    expect(result).toMatchObject({ kind: 'requeue' });
    expect(world.warnings).toHaveLength(1);
  });

  test('sees a cordon that the cache does not show yet', async () => {
    const world = start();
    await run(world);
    const cached = world.nodes.cache.get('m-1');
    cordon(world);
    world.nodes.live.set('m-1', world.nodes.cache.get('m-1'));
    if (cached !== undefined)
      world.nodes.cache.put({ ...cached, metadata: { ...cached.metadata, resourceVersion: '51' } });

    takeBack(world);
    await run(world);

    expect(world.nodes.patches).toMatchObject([{ spec: { unschedulable: null } }]);
  });

  test('after the drain wins against the DELETE, which holds only for the Machine that asks for it', async () => {
    const world = start();
    await run(world);
    world.drains.end({ kind: 'drained' });
    await world.settle();
    await world.pass(world.only('preparation'));
    expect(told(world)?.reason).toBe('completed');

    world.deleteFailures.push(new ApiError(409, 'Conflict', 'the Machine has changed'));
    await world.pass(world.only('preparation'));
    takeBack(world);

    expect(await run(world)).toEqual(['aborting', undefined]);
    expect(world.deletedMachines).toEqual([]);
  });

  test('goes on after a restart', async () => {
    const world = start();
    await run(world);
    cordon(world);
    world.restart();
    takeBack(world);

    await run(world);

    expect(world.nodes.cache.get('m-1')?.spec?.unschedulable).toBeNull();
    expect(current(world).metadata.annotations).toEqual({ [PREPARE]: 'false' });
  });

  test('that the API server refuses has failed, says why, and is tried again', async () => {
    const world = start();
    await run(world);
    cordon(world);
    world.nodes.failure = new ApiError(403, 'Forbidden', 'nodes are sacred');
    takeBack(world);

    expect(await run(world)).toEqual(['aborting', 'failed']);
    expect(told(world)?.message).toContain('nodes are sacred');
    expect(current(world).metadata.annotations?.[SINCE]).toBeDefined();
    world.nodes.failure = undefined;

    expect(await run(world)).toEqual([undefined]);
    expect(world.nodes.cache.get('m-1')?.spec?.unschedulable).toBeNull();
  });

  test('after the DELETE is too late, which is told once', async () => {
    const world = start({ [PREPARE]: 'false', [SINCE]: '2026-01-01T00:00:00Z' }, (m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    });

    await world.reconcile();
    await world.reconcile();

    expect(reasons(world).filter((reason) => reason === 'AbortTooLate')).toHaveLength(1);
  });
});

describe('an annotation that says nothing', () => {
  test('asks for nothing', async () => {
    const world = start({ [PREPARE]: 'yes' });

    await run(world);

    expect(told(world)).toBeUndefined();
    expect(world.deletedMachines).toEqual([]);
  });

  test('takes a request back', async () => {
    const world = start();
    await run(world);

    world.annotate(current(world), { [PREPARE]: 'no' });

    expect(await run(world)).toEqual(['aborting', undefined]);
  });
});

test('a machine for which nothing is asked is left alone', async () => {
  const world = start({ [PREPARE]: 'false' });

  expect(await run(world)).toEqual([undefined]);

  expect(world.writes).toBe(0);
});
