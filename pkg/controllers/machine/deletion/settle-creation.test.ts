import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { machine, node } from '../../../../test/builders.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import {
  KEY,
  startDeletion,
  startCreation,
  STAGE_OF_VM,
  editMachine,
  stageNow,
  runUntilQuiet,
} from '../../../../test/fakes/deletion-world.ts';

test.each([
  { when: 'it has failed because of it', hasFailed: true, restarts: false },
  { when: 'it has failed because of it, and the process was restarted', hasFailed: true, restarts: true },
  { when: 'CreateMachine has just named it', hasFailed: false, restarts: false },
  { when: 'CreateMachine has just named it, and the process was restarted', hasFailed: false, restarts: true },
])('an old Node with the name of the VM stays when the machine is deleted after $when', async (row) => {
  const { hasFailed, restarts } = row;
  const world = startCreation();
  world.nodes.cache.put(
    node((n) => {
      n.metadata.name = 'cp-1';
      n.metadata.creationTimestamp = '2025-06-01T00:00:00Z';
      n.metadata.labels = {};
      n.spec = {};
    }),
  );
  world.driver.create = ({ machine: { metadata } }) => {
    const vm = { providerID: 'sim:///m-1', nodeName: 'cp-1', addresses: [] };
    world.driver.vms.set(metadata.name, vm);
    return Promise.resolve({ ...vm, lastKnownState: undefined });
  };
  await world.reconcile();
  await world.settle();
  if (hasFailed) await runUntilQuiet(world);
  expect(world.failures).toEqual(hasFailed ? ['stale-node'] : []);
  if (restarts) world.restart();
  editMachine(world, (m) => {
    m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  });

  await runUntilQuiet(world);

  expect(world.machines.get(KEY)).toBeUndefined();
  expect(world.driver.vms.size).toBe(0);
  expect(world.drains.requests).toEqual([]);
  expect(world.nodes.cache.get('cp-1')).toBeDefined();
});

describe('departure: a deletion need not wait until the machine was made; one that is deleted while its VM is made', () => {
  async function whileCreating(idempotentCreate = true): Promise<{ world: FakeWorld; release: () => void }> {
    const world = startCreation();
    world.driver.idempotentCreate = idempotentCreate;
    let release = (): void => undefined;
    world.driver.hold = new Promise((resolve) => {
      release = resolve;
    });
    await world.reconcile();
    await world.settle();
    expect(world.driver.calls).toEqual(['status']);
    editMachine(world, (m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    });
    return { world, release };
  }

  test('waits for the creation, makes no VM that was not asked for yet, and deletes what there is', async () => {
    const { world, release } = await whileCreating();
    const { result } = await runUntilQuiet(world);
    expect(result).toMatchObject({ waitingFor: 'the CreateMachine call to end' });

    release();
    await world.settle();
    await runUntilQuiet(world);

    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(0);
    expect(world.driver.vms.size).toBe(0);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('takes over the VM of a creation that had been sent, and deletes it', async () => {
    const world = startCreation();
    await world.reconcile();
    await world.settle();
    expect(world.driver.calls).toEqual(['status', 'create']);
    editMachine(world, (m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    });

    await runUntilQuiet(world);

    expect(world.driver.calls).toEqual(['status', 'create', 'delete']);
    expect(world.driver.vms.size).toBe(0);
    expect(world.tokenCalls).toContain('remove');
  });

  test.each(['unsafe', 'forced'])(
    'tells the driver its VM with policy %s, which does not wait for the drain',
    async (policy) => {
      const world = startCreation();
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      const create = world.driver.create.bind(world.driver);
      world.driver.create = async (request) => {
        const vm = await create(request);
        await held;
        return vm;
      };
      await world.reconcile();
      await world.settle();
      editMachine(world, (m) => {
        m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
        m.metadata.annotations = { 'machine.sapcloud.io/deletion-policy': policy };
      });
      await runUntilQuiet(world);
      expect(stageNow(world)).toContain('Initiate VM deletion');
      const remove = world.driver.delete.bind(world.driver);
      const told: unknown[] = [];
      world.driver.delete = async (request) => {
        told.push(request.machine.spec?.providerID);
        return await remove(request);
      };

      release();
      await world.settle();
      await runUntilQuiet(world);

      expect(told).toEqual(['sim:///m-1']);
      expect(world.events.map(({ message }) => message)).toContain('VM sim:///m-1 was deleted.');
    },
  );

  test('does not take over a VM that another Machine has', async () => {
    const world = startCreation();
    await world.pass(world.upkeep);
    await world.settle();
    const [made = ''] = world.driver.vms.keys();
    const other = machine((m) => {
      Object.assign(m.metadata, { name: 'other', uid: 'uid-of-other' });
      m.spec.providerID = made;
    });
    world.machines.put(other);
    editMachine(world, (m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    });

    const { machine: seen } = await world.pass(world.deletion.filter(({ name }) => name === 'settle-creation'));

    expect(seen.spec.providerID ?? '').toBe('');
    expect(seen.metadata.labels).toEqual({});
  });

  test('keeps the Node and the VM that it knows already, whatever its creation answers', async () => {
    const world = startCreation();
    await world.reconcile();
    await world.settle();
    editMachine(world, (m) => {
      m.metadata.labels = { node: 'node-that-joined' };
      m.spec.providerID = 'sim:///recorded';
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    });

    const { machine: seen } = await world.pass(world.deletion.filter(({ name }) => name === 'settle-creation'));

    expect(seen).toMatchObject({
      metadata: { labels: { node: 'node-that-joined' } },
      spec: { providerID: 'sim:///recorded' },
    });
    expect(world.activities.get(seen.metadata.uid, 'create')).toBeUndefined();
  });

  test.each([
    { ageMinutes: 39, calls: ['remove'] },
    { ageMinutes: 41, calls: [] },
  ])(
    'has its token deleted as long as that may live, twice the creation timeout: $ageMinutes min, $calls',
    async (row) => {
      const world = startDeletion((m) => {
        m.status.currentStatus = { phase: 'Terminating' };
        m.status.lastOperation = { type: 'Delete', state: 'Processing', description: STAGE_OF_VM };
      });
      world.clock.advance(row.ageMinutes * 60 * SECOND);

      await world.pass(world.deletion.filter(({ name }) => name === 'revoke-token'));

      expect(world.tokenCalls).toEqual(row.calls);
    },
  );

  test('loses patience with a creation that hangs', async () => {
    const { world } = await whileCreating();
    await runUntilQuiet(world);
    world.clock.advance(30 * SECOND);
    await world.reconcile();

    expect(world.events.map(({ reason }) => reason)).toContain('CreationAborted');
  });

  describe('and whose creation was not answered', () => {
    const LOST = new DriverError('Unavailable', 'gone', { unanswered: true });

    async function unanswered(idempotentCreate: boolean, providerID = '', failure = LOST): Promise<FakeWorld> {
      const { world, release } = await whileCreating(idempotentCreate);
      editMachine(world, (m) => {
        delete (m.metadata as { deletionTimestamp?: string }).deletionTimestamp;
      });
      world.driver.failures['create'] = [failure];
      world.driver.failures['delete'] = Array.from({ length: 20 }, () => new DriverError('NotFound', 'no VM'));
      release();
      await world.settle();
      editMachine(world, (m) => {
        m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
        m.spec.providerID = providerID;
      });
      await runUntilQuiet(world);
      return world;
    }

    test('goes at once when its VM is known all the same', async () => {
      const world = await unanswered(false, 'sim:///m-1');
      expect(world.machines.get(KEY)).toBeUndefined();
    });

    test.each([
      { what: 'no answer', failure: LOST },
      { what: 'DeadlineExceeded', failure: new DriverError('DeadlineExceeded', 'the provider did not answer in time') },
      { what: 'Internal', failure: new DriverError('Internal', 'not visible in time') },
    ])(
      'is kept after $what until its VM cannot show any more, where the driver does not promise to find it',
      async ({ failure }) => {
        const world = await unanswered(false, '', failure);
        expect(stageNow(world)).toBe(
          'The CreateMachine call has not reported whether it created a VM; it may still appear. Initiate VM deletion',
        );

        world.clock.advance(20 * SECOND);
        world.driver.failures['delete'] = [];
        world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
        await runUntilQuiet(world);
        expect(world.driver.vms.size).toBe(0);

        world.clock.advance(2 * MINUTE);
        await runUntilQuiet(world);
        expect(world.machines.get(KEY)).toBeUndefined();
        expect(world.driver.calls.filter((call) => call === 'delete')).toHaveLength(3);
      },
    );

    test('goes as soon as its VM shows by its name, if the API server refuses to record it', async () => {
      const world = startCreation();
      world.driver.idempotentCreate = false;
      const patch = world.writer.patch.bind(world.writer);
      world.writer.patch = (...sent) =>
        JSON.stringify(sent).includes('"node":"m-1"')
          ? Promise.reject(new ApiError(422, 'Invalid', 'metadata.labels: must be no more than 63 characters'))
          : patch(...sent);
      for (let i = 0; i < 4; i++) {
        await world.reconcile();
        await world.settle();
      }
      editMachine(world, (m) => {
        m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      });
      world.driver.failures['status'] = [new DriverError('NotFound', 'no VM')];
      world.driver.failures['delete'] = [new DriverError('NotFound', 'no VM')];

      await runUntilQuiet(world);
      expect(world.driver.vms.size).toBe(1);
      for (let i = 0; i < 9 && world.machines.get(KEY) !== undefined; i++) {
        world.clock.advance(15 * SECOND);
        await runUntilQuiet(world);
      }

      expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(1);
      expect(world.driver.vms.size).toBe(0);
      expect(world.machines.get(KEY)).toBeUndefined();
    });

    test('goes at once, where the creation was refused', async () => {
      const world = await unanswered(false, '', new DriverError('ResourceExhausted', 'no quota'));
      expect(world.machines.get(KEY)).toBeUndefined();
    });

    test('goes at once, where the driver finds what it began', async () => {
      const world = await unanswered(true);
      expect(world.machines.get(KEY)).toBeUndefined();
    });
  });
});
