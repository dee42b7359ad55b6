import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { machine, machineClass } from '../../../../test/builders.ts';
import { DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { VolumeAttachment } from '../../../apis/wire.ts';
import { KEY, startDeletion, operationOf, stageNow, runUntilQuiet } from '../../../../test/fakes/deletion-world.ts';

describe('a deletion', () => {
  test('departure: events advance it, patches write it: drains, deletes VM and Node and ends with three writes and two events', async () => {
    const world = startDeletion();

    await runUntilQuiet(world);
    expect(stageNow(world)).toBe('Initiate node drain');
    expect(world.machines.get(KEY)?.status?.currentStatus?.phase).toBe('Terminating');
    expect(world.drains.requests[0]).toMatchObject({
      nodeName: 'm-1',
      nodeUID: 'uid-of-node-m-1',
      force: false,
      barrier: 'deletion-cordon',
      nodeCondition: { type: 'Terminating', status: 'True', reason: 'ScaleDown' },
      deadlineMs: Date.parse('2026-01-01T02:00:00Z'),
      maxEvictRetries: 360,
    });
    expect(world.driver.calls).toEqual([]);

    world.clock.advance(20 * SECOND);
    world.drains.end({ kind: 'drained' });
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.nodes.done).toEqual(['remove m-1']);
    expect(world.writes).toBe(3);
    expect(world.events.map(({ reason }) => reason)).toEqual(['Drained', 'VMDeleted']);
    expect(world.measured).toEqual(['drained 20000', 'deleted 20000']);
  });

  test('goes on although the bootstrap token cannot be deleted, and ends when it is', async () => {
    const world = startDeletion();
    world.tokenFailures.push(new ApiError(500, 'InternalError', 'etcd is slow'));
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });

    await runUntilQuiet(world);

    expect(world.driver.calls).toEqual(['delete']);
    expect(stageNow(world)).toContain('Initiate machine object finalizer removal');
    expect(world.tokenCalls).toEqual(['remove']);
    world.clock.advance(5 * SECOND);
    await runUntilQuiet(world);
    expect(world.tokenCalls).toEqual(['remove', 'remove']);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('waits two minutes at most for a bootstrap token that cannot be deleted', async () => {
    const world = startDeletion();
    world.tokenFailures.push(...Array.from({ length: 9 }, () => new ApiError(500, 'InternalError', 'etcd is slow')));
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    await runUntilQuiet(world);

    world.clock.advance(2 * MINUTE);
    await runUntilQuiet(world);
    const before = world.machines.get(KEY);
    world.clock.advance(1);
    await runUntilQuiet(world);

    expect(before).toBeDefined();
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('records the last marker before it asks the driver', async () => {
    const world = startDeletion();
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    await world.settle();
    await world.reconcile();
    await world.settle();

    expect(stageNow(world)).toBe('Drain successful. Initiate VM deletion');
    expect(world.driver.calls).toEqual([]);
  });

  test.each([
    { marker: 'Set machine status to termination. Now, getting VM Status', drains: 1 },
    { marker: 'Deleting machine from cloud provider', drains: 1 },
    { marker: 'Drain failed due to - x. Will retry in next sync. Initiate node drain', drains: 1 },
    { marker: 'Force Drain successful. Delete Volume Attachments', drains: 0 },
    { marker: 'Drain successful. Initiate VM deletion', drains: 0 },
    { marker: 'VM deletion was successful. Initiate node object deletion', drains: 0, deletes: 0 },
    { marker: 'Initiate machine object finalizer removal', drains: 0, deletes: 0, nodes: 0 },
  ])('goes on where the original stopped: "$marker"', async ({ marker, drains, deletes = 1, nodes = 1 }) => {
    const world = startDeletion((m) => {
      m.status.currentStatus = { phase: 'Terminating' };
      m.status.lastOperation = { type: 'Delete', state: 'Processing', description: marker };
    });
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    if (world.machines.get(KEY) !== undefined) await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.drains.requests).toHaveLength(drains);
    expect(world.driver.calls).toHaveLength(deletes);
    expect(world.nodes.done).toHaveLength(nodes);
  });

  test('survives a repeated pass, a lost write and a restart at every point', async () => {
    for (let at = 0; at < 14; at++) {
      for (const fault of ['restart', 'lost write'] as const) {
        const world = startDeletion();
        for (let i = 0; i < 14 && world.machines.get(KEY) !== undefined; i++) {
          if (i === at && fault === 'restart') world.restart();
          world.losesWrites = i === at && fault === 'lost write';
          await world.reconcile();
          if (world.machines.get(KEY) !== undefined) await world.reconcile();
          await world.settle();
          world.drains.end({ kind: 'drained' });
          await world.settle();
        }
        expect(world.machines.get(KEY)).toBeUndefined();
        expect(world.driver.vms.size).toBe(0);
        expect(world.nodes.cache.size).toBe(0);
      }
    }
  });

  test('leaves a Machine without our finalizer to others', async () => {
    const world = startDeletion((m) => {
      m.metadata.finalizers = ['foreign'];
    });

    const { writes, result } = await world.reconcile();

    expect(writes).toEqual([]);
    expect(result).toMatchObject({ waitingFor: 'other finalizers' });
  });

  test('ends a preservation', async () => {
    const world = startDeletion((m) => {
      m.status.currentStatus.preserveExpiryTime = '2026-02-01T00:00:00Z';
    });
    await world.reconcile();

    expect(world.machines.get(KEY)?.status?.currentStatus).toEqual({
      phase: 'Terminating',
      lastUpdateTime: '2026-01-01T00:00:00Z',
    });
  });

  test('without target cluster goes straight to the VM', async () => {
    const world = startDeletion();
    world.hasTarget = false;
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.drains.requests).toEqual([]);
    expect(world.writes).toBe(2);
  });
});

describe('departure: a missing MachineClass is told of and blocks only what needs it; a deletion without it', () => {
  test('drains, then waits for the class and says so', async () => {
    const world = startDeletion();
    world.classes.remove('default/class-1');
    await runUntilQuiet(world);
    world.drains.end({ kind: 'drained' });
    const { result } = await runUntilQuiet(world);

    expect(result).toMatchObject({ waitingFor: 'the MachineClass or its Secret to be corrected' });
    expect(stageNow(world)).toBe(
      'MachineClass default/class-1 not found: create it. Without it, the VM cannot be deleted. Initiate VM deletion',
    );
    expect(world.events.map(({ reason }) => reason)).toEqual(['Drained', 'InvalidClass']);

    world.classes.put(machineClass());
    await runUntilQuiet(world);
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test.each([
    { what: 'to find its VM', named: {}, stage: 'Set machine status to termination. Now, getting VM Status' },
    { what: 'to delete its VM', named: { node: 'm-1' }, stage: 'Initiate VM deletion' },
  ])('whose Secret the API server refuses says so, once, and goes on when that is over ($what)', async (row) => {
    const world = startDeletion((m) => {
      m.metadata.labels = row.named;
      m.status.currentStatus.phase = 'Terminating';
      m.status.lastOperation = { type: 'Delete', state: 'Processing', description: row.stage };
    });
    world.nodes.cache.remove('m-1');
    const text = 'Could not read the Secrets of MachineClass class-1: secrets is forbidden.';
    world.secretFailure = new ApiError(403, 'Forbidden', 'secrets is forbidden');
    for (let i = 0; i < 3; i++)
      await expect(runUntilQuiet(world)).resolves.toHaveProperty('error', world.secretFailure);

    expect(operationOf(world)).toMatchObject({
      state: 'Failed',
      errorCode: 'PreparationFailed',
      description: `${text} ${row.stage}`,
    });
    expect(world.events.map(({ message }) => message)).toEqual([text]);

    world.secretFailure = undefined;
    await runUntilQuiet(world);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('forgets that its Secret could not be read once it can: Aborted after that is no failure', async () => {
    const world = startDeletion((m) => {
      m.status.currentStatus.phase = 'Terminating';
      m.status.lastOperation = { type: 'Delete', state: 'Processing', description: 'Initiate VM deletion' };
    });
    world.nodes.cache.remove('m-1');
    world.secretFailure = new ApiError(403, 'Forbidden', 'secrets is forbidden');
    await runUntilQuiet(world);
    expect(operationOf(world)?.state).toBe('Failed');
    world.secretFailure = undefined;
    world.driver.failures['delete'] = [
      new DriverError('Aborted', 'it goes on'),
      new DriverError('Aborted', 'it goes on'),
    ];
    const states: (string | undefined)[] = [];
    for (let i = 0; i < 3; i++) {
      await world.reconcile();
      states.push(operationOf(world)?.state);
      await runUntilQuiet(world);
      states.push(operationOf(world)?.state);
      world.clock.advance(10 * SECOND);
    }

    expect(states).toEqual(['Processing', 'Processing', 'Processing', 'Processing', 'Processing', undefined]);
    expect(world.events.map(({ reason }) => reason)).toEqual(['InvalidClass', 'VMDeleted']);
  });

  test.each([
    { code: 0, what: 'does not answer', times: 3, told: [] },
    { code: 503, what: 'asks for patience', times: 3, told: [] },
    { code: 500, what: 'cannot read it, once', times: 1, told: [] },
    { code: 500, what: 'cannot read it', times: 2, told: ['InvalidClass'] },
  ])('says of a Secret only what lasts: the API server $what', async ({ code, times, told }) => {
    const world = startDeletion((m) => {
      m.metadata.labels = {};
      m.status.currentStatus.phase = 'Terminating';
      m.status.lastOperation = {
        type: 'Delete',
        state: 'Processing',
        description: 'Set machine status to termination. Now, getting VM Status',
      };
    });
    world.nodes.cache.remove('m-1');
    for (let outage = 0; outage < 2; outage++) {
      world.secretFailure = new ApiError(code, 'Failed', 'etcdserver: leader changed');
      for (let i = 0; i < times; i++) await world.reconcile();
      expect(operationOf(world)?.state).toBe(told.length === 0 ? 'Processing' : 'Failed');
      expect(world.events.map(({ reason }) => reason).slice(outage)).toEqual(told);
      world.secretFailure = undefined;
      await world.reconcile();
    }
  });

  test('ends at once when the machine has waited for its class from the beginning', async () => {
    const world = startDeletion((m) => {
      m.metadata.labels = {};
      m.spec = { class: { kind: 'MachineClass', name: 'typo' } };
      m.status = {
        lastOperation: {
          type: 'Create',
          state: 'Failed',
          description: 'MachineClass default/typo not found: create it.',
        },
      } as (typeof m)['status'];
    });
    world.nodes.cache.remove('m-1');
    await runUntilQuiet(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).toEqual([]);
  });
});

describe('departure: every destructive step checks UID and deletionTimestamp; a Machine re-created under the same name', () => {
  const successor = (m: ReturnType<typeof machine>): void => {
    m.metadata.uid = 'uid-of-another';
    delete (m.metadata as { deletionTimestamp?: string }).deletionTimestamp;
  };

  test.each([
    { what: 'its pods', marker: 'Initiate node drain' },
    { what: 'its VM', marker: 'Drain successful. Initiate VM deletion' },
    { what: 'its volumes', marker: 'Force Drain successful. Delete Volume Attachments' },
    { what: 'its Node', marker: 'Initiate node object deletion' },
  ])('keeps $what', async ({ marker }) => {
    const world = startDeletion((m) => {
      m.status.currentStatus = { phase: 'Terminating' };
      m.status.lastOperation = { type: 'Delete', state: 'Processing', description: marker };
    });
    world.nodes.volumes.push({ metadata: { name: 'va-1' }, spec: { nodeName: 'm-1' } } as VolumeAttachment);
    world.liveMachines.set(KEY, machine(successor));

    const { result } = await runUntilQuiet(world);

    expect(result).toMatchObject({ waitingFor: 'the latest version of the Machine' });
    expect(world.driver.calls).toEqual([]);
    expect(world.driver.vms.size).toBe(1);
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done).toEqual([]);
  });
});
