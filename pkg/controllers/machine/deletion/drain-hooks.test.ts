import { describe, expect, test } from '@jest/globals';

import { HOUR } from '../../../../test/durations.ts';
import { type machine, node } from '../../../../test/builders.ts';
import { worldInDeletion } from '../../../../test/fakes/deletion-world.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machineConditions } from '../explain/conditions.ts';

const KEY = 'default/m-1';
const HOOK = 'pre-drain.hook.machine.sapcloud.io/backup';
const OTHER = 'pre-drain.delete.hook.machine.cluster.x-k8s.io/move-leader';

type Change = (m: ReturnType<typeof machine>) => void;

/** A Machine that is being deleted, with hooks. */
function start(hooks: readonly string[], change: Change = () => undefined): FakeWorld {
  const world = worldInDeletion((m) => {
    m.metadata.annotations = Object.fromEntries(hooks.map((hook) => [hook, '']));
    change(m);
  });
  world.nodes.cache.put(node());
  return world;
}

/** Annotations are what they are now. */
function annotate(world: FakeWorld, annotations: Record<string, string>): void {
  const now = world.machines.get(KEY);
  if (now === undefined) throw new Error('the Machine is gone');
  const { resourceVersion } = now.metadata;
  world.machines.put({ ...now, metadata: { ...now.metadata, annotations, resourceVersion: `${resourceVersion}0` } });
}

async function passes(world: FakeWorld): Promise<void> {
  for (let i = 0; i < 4 && world.machines.get(KEY) !== undefined; i++) {
    await world.reconcile();
    await world.settle();
  }
}

const told = (world: FakeWorld) => world.machines.get(KEY)?.status?.lastOperation;

describe('a deletion with hooks', () => {
  // promise: maintenance/hooks-hold-up-drains
  // promise: openstack/maintenance/hooks-hold-up-drain
  test('waits, and says for which, before anything happens to its Node', async () => {
    const world = start([OTHER, HOOK]);

    await passes(world);

    expect(told(world)).toMatchObject({ state: 'Processing' });
    expect(told(world)?.description).toContain(`Waiting for hooks: ${OTHER}, ${HOOK}.`);
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done).toEqual([]);
    expect(world.driver.calls).toEqual([]);
    expect(world.events.map(({ reason }) => reason)).toEqual(['WaitingForHooks']);
    const conditions = machineConditions(world.machines.get(KEY) as never, world.clock.now());
    expect(conditions.find(({ type }) => type === 'Drained')).toMatchObject({
      status: 'False',
      reason: 'WaitingForHooks',
      message: `Waiting for hooks: ${OTHER}, ${HOOK}.`,
    });
  });

  test.each([
    {
      what: 'is forced',
      change: (m: ReturnType<typeof machine>) => void (m.metadata.labels['force-deletion'] = 'true'),
    },
    { what: 'has no Node', change: () => undefined, isLost: true },
    { what: 'has no target cluster', change: () => undefined, isWithoutTarget: true },
  ])('waits also when it $what', async ({ change, isLost, isWithoutTarget }) => {
    const world = start([HOOK], change);
    if (isLost === true) world.nodes.cache.remove('m-1');
    if (isWithoutTarget === true) world.hasTarget = false;

    await passes(world);

    expect(told(world)?.description).toContain('Waiting for hooks');
    expect(world.driver.calls).toEqual([]);
  });

  test('goes on when the last of them is gone, with the whole drain timeout, whoever goes on', async () => {
    const world = start([HOOK, OTHER]);
    await passes(world);
    annotate(world, { [OTHER]: '' });
    await passes(world);
    expect(world.drains.requests).toEqual([]);

    world.clock.advance(3 * HOUR);
    annotate(world, {});
    await passes(world);

    const deadlineMs = world.clock.now() + 2 * HOUR;
    expect(world.drains.requests).toMatchObject([{ force: false, deadlineMs }]);
    expect(world.machines.get(KEY)?.metadata.annotations).toEqual({
      'machine.sapcloud.io/drain-since': new Date(world.clock.now()).toISOString().replace('.000', ''),
    });
    world.clock.advance(HOUR);
    world.restart();
    await passes(world);
    expect(world.drains.requests.at(-1)).toMatchObject({ force: false, deadlineMs });
  });

  test('has the whole drain timeout also when the last of them goes in an outage of the target cluster', async () => {
    const world = start([HOOK]);
    await passes(world);
    world.clock.advance(3 * HOUR);
    world.outages = [{ cluster: 'target', sinceMs: world.clock.now(), why: 'it does not answer' }];
    await passes(world);
    annotate(world, {});
    await passes(world);
    expect(told(world)?.errorCode).toBe('ClusterOutage');
    expect(world.drains.requests).toEqual([]);

    const deadlineMs = world.clock.now() + 2 * HOUR;
    world.clock.advance(HOUR);
    world.outages = [];
    await passes(world);

    expect(world.drains.requests).toMatchObject([{ force: false, deadlineMs }]);
  });

  test.each([{ hooks: [HOOK] }, { hooks: [] }])(
    'begins no drain before its time is recorded: $hooks',
    async ({ hooks }) => {
      const world = start(hooks);
      await passes(world);
      annotate(world, { [HOOK]: '' });
      await passes(world);
      const { length } = world.drains.requests;
      world.clock.advance(3 * HOUR);
      annotate(world, {});

      world.writer.failures.push(new ApiError(403, 'Forbidden', 'denied'));
      await world.reconcile();
      await world.settle();
      expect(told(world)?.errorCode).toBe('WaitingForHooks');
      expect(world.events.at(-1)).toMatchObject({ reason: 'RecordRefused' });
      expect(world.drains.requests).toHaveLength(length);
      await passes(world);

      const deadlineMs = world.clock.now() + 2 * HOUR;
      expect(world.drains.requests.slice(length)).toMatchObject([{ force: false, deadlineMs }]);
    },
  );

  test('records no beginning of the drain when that is forced: nothing is to refuse it', async () => {
    const world = start([HOOK], (m) => void (m.metadata.labels['force-deletion'] = 'true'));
    await passes(world);
    annotate(world, {});

    await passes(world);

    expect(world.drains.requests).toMatchObject([{ force: true }]);
    expect(world.machines.get(KEY)?.metadata.annotations).toEqual({});
  });

  test('stops a drain that has begun', async () => {
    const world = start([]);
    await passes(world);
    expect(world.drains.requests).toHaveLength(1);

    annotate(world, { [HOOK]: '' });
    await passes(world);
    world.clock.advance(HOUR);
    await passes(world);

    expect(told(world)?.description).toContain('Waiting for hooks');
    expect(world.activities.get('uid-of-m-1', 'drain')).toBeUndefined();
    expect(world.drains.requests).toHaveLength(1);
  });

  test('takes no notice of what is no time in the record of the end of hooks', async () => {
    const world = start([], (m) => void (m.metadata.annotations = { 'machine.sapcloud.io/drain-since': 'soon' }));

    await passes(world);

    expect(world.drains.requests).toMatchObject([{ deadlineMs: Date.parse('2026-01-01T02:00:00Z') }]);
  });
});
