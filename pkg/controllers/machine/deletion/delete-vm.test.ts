import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { DriverError } from '../../../driver/error.ts';
import {
  KEY,
  type Change,
  startDeletion,
  descriptionOf,
  makeNotReady,
  runUntilQuiet,
} from '../../../../test/fakes/deletion-world.ts';

describe('departure: a failed deletion of a VM is tried again from 5 s on; a provider that cannot delete', () => {
  test.each([
    { code: 'Unavailable' as const, waits: [5, 5, 5] },
    { code: 'Internal' as const, waits: [5, 10, 20] },
  ])('with $code is asked again after $waits seconds', async ({ code, waits }) => {
    const world = startDeletion();
    world.driver.failures['delete'] = waits.map(() => new DriverError(code, 'x'));
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    const seen: number[] = [];
    for (const _ of waits) {
      const { result } = await runUntilQuiet(world);
      if (result.kind === 'requeue') seen.push(result.afterMs / SECOND);
      world.clock.advance(result.kind === 'requeue' ? result.afterMs : 0);
    }

    expect(seen).toEqual(waits);
    expect(world.machines.get(KEY)?.status?.lastOperation).toMatchObject({
      state: 'Failed',
      description: `Cloud provider message - machine codes error: code = [${code}] message = [x]. Initiate VM deletion`,
    });
    expect(world.events.filter(({ reason }) => reason === 'VMDeletionFailed')).toHaveLength(1);
    await runUntilQuiet(world);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  const GONE_SOON = new DriverError('Aborted', 'server s-1 is still being deleted');
  const goesOn = 'The VM is still being deleted: server s-1 is still being deleted. Initiate VM deletion';

  /** Passes up to the first call for the VM, and then for so long, whenever the next is due. */
  async function deleteFor(world: FakeWorld, ms: number): Promise<void> {
    const endMs = world.clock.now() + ms;
    for (;;) {
      const { result } = await runUntilQuiet(world);
      const afterMs = result.kind === 'requeue' ? result.afterMs : 0;
      if (afterMs === 0 || world.clock.now() + afterMs > endMs) return world.clock.advance(endMs - world.clock.now());
      world.clock.advance(afterMs);
    }
  }

  test('and says Aborted because it takes its time is Processing for a minute, without an Event, and one write', async () => {
    const world = startDeletion();
    world.driver.failures['delete'] = Array.from({ length: 30 }, () => GONE_SOON);
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    await runUntilQuiet(world);
    const { writes } = world;
    const told = world.machines.get(KEY)?.status?.lastOperation;

    await deleteFor(world, MINUTE - SECOND);
    expect(told).toMatchObject({ type: 'Delete', state: 'Processing', description: goesOn });
    expect(world.machines.get(KEY)?.status?.lastOperation).toEqual(told);
    expect(world.writes).toBe(writes);
    expect(world.driver.calls.length).toBeGreaterThanOrEqual(12);
    expect(world.events.map(({ reason }) => reason)).toEqual(['Drained']);

    await deleteFor(world, 30 * SECOND);
    expect(world.machines.get(KEY)?.status?.lastOperation).toMatchObject({
      state: 'Failed',
      description: `Cloud provider message - ${GONE_SOON.message}. Initiate VM deletion`,
      lastUpdateTime: '2026-01-01T00:01:00Z',
    });
    expect(world.events.map(({ reason }) => reason)).toEqual(['Drained', 'VMDeletionFailed']);
    expect(world.writes).toBe(writes + 1);
  });

  test('and says Aborted in other words each time is told them, and is Failed after the same minute', async () => {
    const world = startDeletion();
    const words = ['Machine m of Cluster API is being deleted', 'DevMachine m-x is going, and what it has with it'];
    world.driver.failures['delete'] = Array.from(
      { length: 30 },
      (_, n) => new DriverError('Aborted', words[Math.floor(n / 4) % 2] ?? ''),
    );
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    await runUntilQuiet(world);
    await deleteFor(world, 30 * SECOND);
    const { state, lastUpdateTime } = world.machines.get(KEY)?.status?.lastOperation ?? {};
    await deleteFor(world, 30 * SECOND);
    await runUntilQuiet(world);

    expect({ state, lastUpdateTime }).toEqual({ state: 'Processing', lastUpdateTime: '2026-01-01T00:00:20Z' });
    expect(world.machines.get(KEY)?.status?.lastOperation?.state).toBe('Failed');
    expect(world.events.map(({ reason }) => reason)).toEqual(['Drained', 'VMDeletionFailed']);
  });

  test.each(['Internal', 'Unavailable'] as const)(
    'and was told as failed (%s) stays so when it says Aborted then, also in the next process',
    async (code) => {
      const world = startDeletion((m) => {
        m.status = {
          ...m.status,
          lastOperation: {
            type: 'Delete',
            state: 'Failed',
            description: `Cloud provider message - ${new DriverError(code, 'x').message}. Initiate VM deletion`,
            lastUpdateTime: '2025-12-31T23:59:00Z',
          },
          currentStatus: { phase: 'Terminating' },
        };
      });
      world.driver.failures['delete'] = Array.from({ length: 30 }, () => GONE_SOON);
      await deleteFor(world, 20 * SECOND);

      expect(world.machines.get(KEY)?.status?.lastOperation?.state).toBe('Failed');
      expect(descriptionOf(world)).toContain('server s-1 is still being deleted');
      expect(world.events.map(({ reason }) => reason)).toEqual(['VMDeletionFailed']);
    },
  );

  test('keeps what the driver remembers of it', async () => {
    const world = startDeletion();
    world.driver.failures['delete'] = [new DriverError('Internal', 'no', { lastKnownState: 'half' })];
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)?.status?.lastKnownState).toBe('half');
  });

  test('because there is nothing left is done', async () => {
    const world = startDeletion();
    world.driver.failures['delete'] = [new DriverError('NotFound', 'x')];
    makeNotReady(world);
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
  });
});

describe('what is told of the end of a VM', () => {
  test.each([
    { what: 'its own', change: () => undefined, told: 'VM sim:///m-1 was deleted.' },
    {
      what: 'its own, which is not there any more',
      change: () => undefined,
      gone: true,
      told: 'The provider has no VM sim:///m-1.',
    },
    {
      what: 'one that no driver has told of',
      change: (m) => {
        m.metadata.labels = {};
        m.spec.providerID = 'sim:///wrong';
      },
      told: 'The provider has no VM sim:///wrong left.',
    },
    {
      what: 'one that is not recorded',
      change: (m) => {
        m.metadata.labels = {};
        m.spec.providerID = '';
      },
      told: 'The provider has no VM of name m-1 left.',
    },
    {
      what: 'one without a target cluster, whose Node nobody knows',
      change: (m) => void (m.metadata.labels = {}),
      hasTarget: false,
      told: 'VM sim:///m-1 was deleted.',
    },
    {
      what: 'one that is not recorded, of a machine with a Node',
      change: (m) => void Object.assign(m.spec, { providerID: '' }),
      told: 'The provider has no VM of name m-1 left.',
    },
    {
      what: 'none',
      change: (m) => {
        m.metadata.labels = {};
        m.spec.providerID = '';
      },
      gone: true,
      told: 'The provider has no VM of name m-1.',
    },
  ] as { what: string; change: Change; gone?: boolean; hasTarget?: boolean; told: string }[])(
    '($what) is true',
    async ({ change, gone = false, hasTarget = true, told }) => {
      const world = startDeletion((m) => {
        m.spec.providerID = 'sim:///m-1';
        change(m);
        m.status.currentStatus.phase = 'Terminating';
        m.status.lastOperation = { type: 'Delete', state: 'Processing', description: 'Initiate VM deletion' };
      });
      world.hasTarget = hasTarget;
      if (gone) {
        world.driver.failures['delete'] = [new DriverError('NotFound', 'no VM')];
        makeNotReady(world);
      }

      await runUntilQuiet(world);

      const [event] = world.events.filter(({ reason }) => reason === 'VMDeleted');
      expect(event?.message).toBe(told);
    },
  );
});
