import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { node } from '../../../../test/builders.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { VolumeAttachment } from '../../../apis/wire.ts';
import {
  KEY,
  startDeletion,
  editMachine,
  operationOf,
  reasonShown,
  stageNow,
  runUntilQuiet,
} from '../../../../test/fakes/deletion-world.ts';

describe('a drain', () => {
  const progress = { remainingPods: 2, blocked: [{ pod: 'a/b', reason: 'disruption-budget', detail: 'c' }] } as const;
  const text = 'Waiting for 2 pods: a/b (PodDisruptionBudget c currently allows no eviction); and 1 more.';
  const end = 'Remaining pods are deleted at 2026-01-01T02:00:00Z.';

  test('tells what holds it up as soon as that stands, then at most every 30 seconds, and once as an Event', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    const writes = world.writes;
    world.drains.report(progress);
    const { result } = await runUntilQuiet(world);
    expect(world.writes).toBe(writes);
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 2 * SECOND });

    world.clock.advance(2 * SECOND);
    await runUntilQuiet(world);
    expect(stageNow(world)).toBe(`${text} ${end} Initiate node drain`);
    expect(operationOf(world)).toMatchObject({ state: 'Processing', errorCode: 'DrainBlocked' });
    world.drains.report({ ...progress, remainingPods: 1 });
    world.clock.advance(29 * SECOND);
    const waiting = await runUntilQuiet(world);
    expect(world.writes).toBe(writes + 1);
    expect(waiting.result).toMatchObject({ kind: 'requeue', afterMs: SECOND });
    world.clock.advance(SECOND);
    await runUntilQuiet(world);
    expect(world.writes).toBe(writes + 2);
    expect(world.events.map(({ reason }) => reason)).toEqual(['DrainBlocked']);
    expect(world.events[0]?.message).toBe(`${text} ${end}`);
    expect(world.warnings).toEqual([
      { message: 'drain blocked', fields: { node: 'm-1', purpose: 'deletion', why: `${text} ${end}` } },
    ]);
    expect(world.steps.drains.blocked()).toEqual([
      { reason: 'disruption-budget', forceAtMs: Date.parse('2026-01-01T02:00:00Z') },
    ]);
  });

  test('that is forced is to be forced no more; one that has ended is not blocked', async () => {
    const world = startDeletion((m) => void (m.metadata.labels['force-deletion'] = 'True'));
    await runUntilQuiet(world);
    world.drains.report(progress);
    const forced = world.steps.drains.blocked();
    world.drains.end({ kind: 'drained' });
    await runUntilQuiet(world);

    expect(forced).toEqual([{ reason: 'disruption-budget', forceAtMs: undefined }]);
    expect(world.steps.drains.blocked()).toEqual([]);
  });

  test('tells another reason soon, as another Event', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    world.drains.report(progress);
    world.clock.advance(2 * SECOND);
    await runUntilQuiet(world);
    const writes = world.writes;

    const blocked = [{ pod: 'a/b', reason: 'terminating', detail: 'held by finalizer x' }] as const;
    world.drains.report({ remainingPods: 2, blocked });
    world.clock.advance(2 * SECOND);
    await runUntilQuiet(world);
    const early = world.writes;
    world.clock.advance(3 * SECOND);
    await runUntilQuiet(world);

    expect(early).toBe(writes);
    expect(world.writes).toBe(writes + 1);
    expect(stageNow(world)).toContain('a/b (not terminating: held by finalizer x); and 1 more.');
    expect(world.events.map(({ reason }) => reason)).toEqual(['DrainBlocked', 'DrainBlocked']);
  });

  test('that nothing blocks any longer has no code any longer, and is explained as a drain', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    world.drains.report(progress);
    world.clock.advance(2 * SECOND);
    await runUntilQuiet(world);
    const blocked = reasonShown(world);
    world.drains.report({
      remainingPods: 1,
      blocked: [{ pod: 'a/b', reason: 'ending', detail: '2026-01-01T00:10:00Z' }],
    });
    world.clock.advance(30 * SECOND);
    await runUntilQuiet(world);

    expect(blocked).toBe('DrainBlocked');
    expect(operationOf(world)?.errorCode).toBeUndefined();
    expect(reasonShown(world)).toBe('Draining');
  });

  // Gardener finds it among the failed machines of the MachineDeployment, by these words.
  test('that a misconfigured budget holds up has failed until the budget is corrected', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    const misconfigured = { pod: 'a/z', reason: 'misconfigured-disruption-budget', detail: 'a/zero' } as const;
    world.drains.report({ remainingPods: 2, blocked: [...progress.blocked, misconfigured] });
    world.clock.advance(2 * SECOND);
    await runUntilQuiet(world);
    const held = operationOf(world);
    world.drains.report(progress);
    world.clock.advance(30 * SECOND);
    await runUntilQuiet(world);

    expect(held).toMatchObject({ type: 'Delete', state: 'Failed', errorCode: 'DrainBlocked' });
    expect(held?.description).toContain(
      'pod disruption budget a/zero is misconfigured and requires zero voluntary evictions',
    );
    expect(operationOf(world)).toMatchObject({ type: 'Delete', state: 'Processing', errorCode: 'DrainBlocked' });
  });

  test('that is blocked does not forget that no provider was ever asked for a VM', async () => {
    const world = startDeletion((m) => {
      delete m.spec.providerID;
      m.status.lastOperation = {
        type: 'Delete',
        state: 'Processing',
        errorCode: 'NeverAsked',
        description: 'Initiate node drain',
      };
      m.status.currentStatus = { ...m.status.currentStatus, phase: 'Terminating' };
    });
    await runUntilQuiet(world);
    world.drains.report(progress);
    world.clock.advance(2 * SECOND);
    await runUntilQuiet(world);

    expect(stageNow(world)).toBe(`${text} ${end} Initiate node drain`);
    expect(operationOf(world)).toMatchObject({ type: 'Delete', errorCode: 'NeverAsked' });
  });

  test('that is quick, or whose pods only take their time, tells nothing before 30 seconds, and no Event', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    const writes = world.writes;
    const blocked = [{ pod: 'a/b', reason: 'ending', detail: '2026-01-01T00:10:00Z' }] as const;
    world.drains.report({ remainingPods: 1, blocked });
    world.clock.advance(29 * SECOND);
    await runUntilQuiet(world);
    const early = world.writes;
    world.clock.advance(SECOND);
    await runUntilQuiet(world);

    expect(early).toBe(writes);
    expect(stageNow(world)).toBe(
      `Waiting for 1 pod: a/b (terminating until 2026-01-01T00:10:00Z). ${end} Initiate node drain`,
    );
    expect(world.events).toEqual([]);
  });

  test('that cannot go on is tried again, and forced when its time is over', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    world.drains.end({ kind: 'incomplete', progress });
    const { result } = await runUntilQuiet(world);
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
    expect(stageNow(world)).toBe(`Drain failed. ${text} Initiate node drain`);
    expect(world.drains.requests).toHaveLength(1);

    world.clock.advance(120 * MINUTE);
    await runUntilQuiet(world);
    expect(world.drains.requests[1]).toMatchObject({
      force: true,
      maxEvictRetries: 1,
      deadlineMs: world.clock.now() + MINUTE,
    });
    world.drains.end({ kind: 'drained' });
    await runUntilQuiet(world);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('gives way to a forced one when the label is set', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    editMachine(world, (m) => {
      m.metadata.labels['force-deletion'] = 'True';
    });
    await runUntilQuiet(world);

    expect(world.drains.requests.map(({ force }) => force)).toEqual([false, true]);
    expect(world.events.map(({ reason }) => reason)).toEqual(['DrainForced']);
    world.drains.end({ kind: 'drained' });
    world.drains.end({ kind: 'drained' });
    await runUntilQuiet(world);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('that was forced does not stop the deletion, whatever it left', async () => {
    const world = startDeletion((m) => {
      m.metadata.labels['force-deletion'] = 'true';
    });
    await runUntilQuiet(world);
    world.drains.fail(new Error('server is on fire'));
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.events.map(({ reason }) => reason)).toEqual(['DrainForced', 'DrainFailed', 'VMDeleted']);
  });

  describe('that was forced', () => {
    const attachment = { metadata: { name: 'va-1' }, spec: { nodeName: 'm-1' } } as VolumeAttachment;

    async function forced(change: (world: FakeWorld) => void = () => undefined): Promise<FakeWorld> {
      const world = startDeletion((m) => {
        m.metadata.labels['force-deletion'] = 'true';
      });
      world.nodes.volumes.push(attachment);
      change(world);
      await runUntilQuiet(world);
      world.drains.end({ kind: 'drained' });
      if (world.machines.get(KEY) !== undefined) await runUntilQuiet(world);
      return world;
    }

    test('is followed by the deletion of VolumeAttachments, without a pause', async () => {
      const world = await forced();

      expect(world.nodes.done).toEqual(['detach va-1', 'remove m-1']);
      expect(world.machines.get(KEY)).toBeUndefined();
    });

    test('leaves those of a Node alone that has its name and is not its own', async () => {
      const world = await forced(({ nodes }) => {
        nodes.cache.put(
          node((n) => {
            n.metadata.resourceVersion = '2';
            n.spec.providerID = 'sim:///another';
          }),
        );
      });

      expect(world.nodes.done).toEqual([]);
      expect(world.machines.get(KEY)).toBeUndefined();
    });

    test('tells of one that cannot be deleted, and gives it up after the detach timeout', async () => {
      const world = await forced(({ nodes }) => {
        nodes.detachFailure = new ApiError(403, 'Forbidden', 'a webhook says no');
      });
      expect(stageNow(world)).toBe(
        'Could not delete VolumeAttachment va-1 of Node m-1: a webhook says no. Delete Volume Attachments',
      );
      expect(world.driver.calls).toEqual([]);

      world.clock.advance(2 * MINUTE);
      await runUntilQuiet(world);

      expect(world.machines.get(KEY)).toBeUndefined();
      expect(world.driver.vms.size).toBe(0);
      expect(world.events.map(({ reason }) => reason)).toEqual([
        'DrainForced',
        'Drained',
        'DetachFailed',
        'DetachFailed',
        'VMDeleted',
      ]);
    });

    test('begins to wait anew when the Machine was forgotten: what one step alone remembers goes with it', async () => {
      const world = await forced(({ nodes }) => {
        nodes.detachFailure = new ApiError(403, 'Forbidden', 'a webhook says no');
      });
      world.steps.forget('uid-of-machine-m-1');

      world.clock.advance(2 * MINUTE);
      await runUntilQuiet(world);

      expect(stageNow(world)).toContain('Delete Volume Attachments');
      expect(world.driver.calls).toEqual([]);
    });

    test('waits with them for a target cluster that gives no sign of life', async () => {
      const world = await forced(({ nodes }) => {
        nodes.detachFailure = new GateClosedError('unproven', 'target', 'no sign of life');
      });
      world.clock.advance(10 * MINUTE);
      const { error } = await runUntilQuiet(world);

      expect(error).toBe(world.nodes.detachFailure);
      expect(world.driver.calls).toEqual([]);
    });
  });

  test('ends with its Node', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    world.nodes.cache.remove('m-1');
    world.drains.end({ kind: 'node-gone' });
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test.each(['drained', 'node-gone'] as const)(
    'that ended (%s) before an outage is made again: the cluster may have been set back, and its pods be back',
    async (kind) => {
      const world = startDeletion();
      await runUntilQuiet(world);
      world.drains.end({ kind });
      await world.clock.advanceAsync(10 * SECOND);
      world.trustedForMs = () => 9 * SECOND;
      await runUntilQuiet(world);
      await runUntilQuiet(world);

      expect(world.drains.requests.length).toBe(2);
      expect(world.driver.calls).toEqual([]);

      world.drains.end({ kind: 'drained' });
      await runUntilQuiet(world);

      expect(world.driver.calls).toEqual(['delete']);
    },
  );

  test.each([10 * SECOND, 0])(
    'that ended 10 s ago holds when an outage ended %s ms ago, or lasts',
    async (trustedMs) => {
      const world = startDeletion();
      await runUntilQuiet(world);
      world.drains.end({ kind: 'drained' });
      await world.clock.advanceAsync(10 * SECOND);
      world.trustedForMs = () => trustedMs;
      await runUntilQuiet(world);

      expect(world.drains.requests.length).toBe(1);
      expect(world.driver.calls).toEqual(['delete']);
    },
  );

  test('that meets a closed gate waits, without a word in the status', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    world.drains.fail(new GateClosedError('outage', 'target', 'x'));
    const { result } = await runUntilQuiet(world);

    expect(stageNow(world)).toBe('Initiate node drain');
    expect(result.kind).toBe('requeue');
  });
});
