import { describe, expect, test } from '@jest/globals';

import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { machine, machineClass, node } from '../../../../test/builders.ts';
import { worldInDeletion } from '../../../../test/fakes/deletion-world.ts';
import { type FakeWorld, type PassSeen } from '../../../../test/fakes/machine-world.ts';
import type { LastOperation, Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { DriverError, type DriverCode } from '../../../driver/error.ts';
import { explain } from '../explain/explain.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { VolumeAttachment } from '../../../apis/wire.ts';

const KEY = 'default/m-1';

type Change = (m: ReturnType<typeof machine>) => void;

/** A Machine whose deletion was asked for a moment ago, its VM and its Node. */
function start(change: Change = () => undefined): FakeWorld {
  const world = worldInDeletion(change);
  world.nodes.cache.put(node());
  return world;
}

/** One that nobody has deleted, and that has no VM yet. */
function startNew(): FakeWorld {
  const world = start((m) => {
    m.metadata.labels = {};
    delete (m.metadata as { deletionTimestamp?: string }).deletionTimestamp;
    m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
    m.status = {} as (typeof m)['status'];
  });
  world.nodes.cache.remove('m-1');
  world.driver.vms.clear();
  return world;
}

const STAGE_OF_VM = 'Drain successful. Initiate VM deletion';

function edit(world: FakeWorld, change: Change): void {
  world.machines.put(
    machine((m) => {
      Object.assign(m, structuredCopy(world.machines.get(KEY) as Machine));
      m.metadata.resourceVersion = `${m.metadata.resourceVersion}0`;
      change(m);
    }),
  );
}

const structuredCopy = (m: Machine): Machine => JSON.parse(JSON.stringify(m)) as Machine;
const operationOf = (world: FakeWorld): LastOperation | undefined => world.machines.get(KEY)?.status?.lastOperation;
const description = (world: FakeWorld): string | undefined => operationOf(world)?.description;
const reasonShown = (world: FakeWorld): string => explain(world.machines.get(KEY) as Machine, world.clock.now()).reason;
const stageNow = (world: FakeWorld): string => description(world) ?? '(gone)';

function makeNotReady(world: FakeWorld): void {
  world.nodes.cache.put(
    node((n) => {
      n.metadata.resourceVersion = '2';
      n.status.conditions = [{ type: 'Ready', status: 'Unknown' }];
    }),
  );
}

/** Passes until nothing moves without an event from outside. */
async function run(world: FakeWorld): Promise<PassSeen> {
  let seen = await world.reconcile();
  for (let quiet = 0; quiet < 3 && world.machines.get(KEY) !== undefined; quiet++) {
    await world.settle();
    const before = world.machines.get(KEY);
    const calls = world.driver.calls.length + world.drains.requests.length;
    seen = await world.reconcile();
    await world.settle();
    const hasMoved = world.driver.calls.length + world.drains.requests.length !== calls;
    if (hasMoved || world.machines.get(KEY) !== before) quiet = -1;
  }
  return seen;
}

describe('a deletion', () => {
  test('departure: events advance it, patches write it: drains, deletes VM and Node and ends with three writes and two events', async () => {
    const world = start();

    await run(world);
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
    await run(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.nodes.done).toEqual(['remove m-1']);
    expect(world.writes).toBe(3);
    expect(world.events.map(({ reason }) => reason)).toEqual(['Drained', 'VMDeleted']);
    expect(world.measured).toEqual(['drained 20000', 'deleted 20000']);
  });

  test('goes on although the bootstrap token cannot be deleted, and ends when it is', async () => {
    const world = start();
    world.tokenFailures.push(new ApiError(500, 'InternalError', 'etcd is slow'));
    await run(world);
    world.drains.end({ kind: 'drained' });

    await run(world);

    expect(world.driver.calls).toEqual(['delete']);
    expect(stageNow(world)).toContain('Initiate machine object finalizer removal');
    expect(world.tokenCalls).toEqual(['remove']);
    world.clock.advance(5 * SECOND);
    await run(world);
    expect(world.tokenCalls).toEqual(['remove', 'remove']);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('waits two minutes at most for a bootstrap token that cannot be deleted', async () => {
    const world = start();
    world.tokenFailures.push(...Array.from({ length: 9 }, () => new ApiError(500, 'InternalError', 'etcd is slow')));
    await run(world);
    world.drains.end({ kind: 'drained' });
    await run(world);

    world.clock.advance(2 * MINUTE);
    await run(world);
    const before = world.machines.get(KEY);
    world.clock.advance(1);
    await run(world);

    expect(before).toBeDefined();
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('records the last marker before it asks the driver', async () => {
    const world = start();
    await run(world);
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
    const world = start((m) => {
      m.status.currentStatus = { phase: 'Terminating' };
      m.status.lastOperation = { type: 'Delete', state: 'Processing', description: marker };
    });
    await run(world);
    world.drains.end({ kind: 'drained' });
    if (world.machines.get(KEY) !== undefined) await run(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.drains.requests).toHaveLength(drains);
    expect(world.driver.calls).toHaveLength(deletes);
    expect(world.nodes.done).toHaveLength(nodes);
  });

  test('survives a repeated pass, a lost write and a restart at every point', async () => {
    for (let at = 0; at < 14; at++) {
      for (const fault of ['restart', 'lost write'] as const) {
        const world = start();
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
    const world = start((m) => {
      m.metadata.finalizers = ['foreign'];
    });

    const { writes, result } = await world.reconcile();

    expect(writes).toEqual([]);
    expect(result).toMatchObject({ waitingFor: 'other finalizers' });
  });

  test('ends a preservation', async () => {
    const world = start((m) => {
      m.status.currentStatus.preserveExpiryTime = '2026-02-01T00:00:00Z';
    });
    await world.reconcile();

    expect(world.machines.get(KEY)?.status?.currentStatus).toEqual({
      phase: 'Terminating',
      lastUpdateTime: '2026-01-01T00:00:00Z',
    });
  });

  test('without target cluster goes straight to the VM', async () => {
    const world = start();
    world.hasTarget = false;
    await run(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.drains.requests).toEqual([]);
    expect(world.writes).toBe(2);
  });
});

describe('the Node of a deleted machine', () => {
  const anonymous: Change = (m) => {
    m.metadata.labels = {};
  };

  test.each([
    { what: 'its machine-name label', label: 'm-1', providerID: '' },
    { what: 'the provider id', label: '', providerID: 'sim:///m-1' },
  ])('is found by $what', async ({ label, providerID }) => {
    const world = start(anonymous);
    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '2';
        n.metadata.labels = label === '' ? {} : { 'node.gardener.cloud/machine-name': label };
        n.spec.providerID = providerID;
      }),
    );
    await run(world);

    expect(world.drains.requests[0]?.nodeName).toBe('m-1');
    expect(world.driver.calls).toEqual([]);
  });

  test('is asked for at the provider when nobody shows it', async () => {
    const world = start(anonymous);
    world.nodes.cache.remove('m-1');
    world.nodes.cache.put(node((n) => (Object.assign(n.metadata, { name: 'n-7' }).uid = 'n-7')));
    world.nodes.cache.put(
      node((n) => {
        Object.assign(n.metadata, { name: 'n-7', uid: 'n-7', resourceVersion: '2' });
        n.spec = {};
      }),
    );
    world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'n-7', addresses: [] });
    await run(world);

    expect(world.driver.calls).toEqual(['status']);
    expect(world.machines.get(KEY)?.metadata.labels).toEqual({ node: 'n-7' });
    expect(world.drains.requests[0]?.nodeName).toBe('n-7');
  });

  test.each(['NotFound', 'Unimplemented', 'Uninitialized', 'OutOfRange'].map((code) => ({ code: code as DriverCode })))(
    'is not needed: after $code the VM is deleted all the same',
    async ({ code }) => {
      const world = start(anonymous);
      world.nodes.cache.remove('m-1');
      world.driver.failures['status'] = [new DriverError(code, 'x')];
      await run(world);

      expect(world.driver.calls).toEqual(['status', 'delete']);
      expect(world.machines.get(KEY)).toBeUndefined();
    },
  );

  test('is not waited for when the deletion is forced', async () => {
    const world = start((m) => {
      anonymous(m);
      m.metadata.labels = { 'force-deletion': 'True' };
    });
    world.nodes.cache.remove('m-1');
    world.driver.failures['status'] = [new DriverError('PermissionDenied', 'no')];
    await run(world);

    expect(world.driver.calls).toEqual(['status', 'delete']);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test.each<{ code: DriverCode; how: string; drains: readonly boolean[] }>([
    { code: 'OutOfRange', how: '', drains: [false] },
    { code: 'Uninitialized', how: '', drains: [false] },
    { code: 'NotFound', how: '', drains: [] },
    { code: 'OutOfRange', how: ' and the deletion is forced', drains: [true] },
    { code: 'Unavailable', how: ' and the deletion is forced', drains: [true] },
    { code: 'NotFound', how: ' and the deletion is forced', drains: [] },
  ])(
    'that is older than its Machine, as after a restore, is drained unless the provider has no VM: $code$how',
    async ({ code, how, drains }) => {
      const world = start((m) => {
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

      await run(world);

      expect(world.drains.requests.map(({ force }) => force)).toEqual(drains);
      expect(world.driver.calls).toEqual(drains.length === 0 ? ['status', 'delete'] : ['status']);
    },
  );

  test('is asked for again when the provider does not know', async () => {
    const world = start(anonymous);
    world.nodes.cache.remove('m-1');
    world.driver.failures['status'] = [new DriverError('Unavailable', 'no route')];
    const { result } = await run(world);

    expect(result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
    expect(world.machines.get(KEY)?.status?.lastOperation).toMatchObject({
      state: 'Failed',
      description: expect.stringContaining('no route'),
    });
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMDeletionFailed']);
    world.clock.advance(5 * SECOND);
    await run(world);
    expect(world.driver.calls).toEqual(['status', 'status', 'delete']);
  });

  test('that has its name but another VM is neither drained nor deleted', async () => {
    const world = start();
    world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = '2';
        n.spec.providerID = 'sim:///another';
      }),
    );
    await run(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done).toEqual([]);
  });

  test('that joined late goes too', async () => {
    const world = start();
    world.nodes.cache.remove('m-1');
    world.nodes.live.set('m-1', undefined);
    const remove = world.driver.delete.bind(world.driver);
    world.driver.delete = async (request) => {
      world.nodes.live.set('m-1', node());
      return await remove(request);
    };
    await run(world);

    expect(world.drains.requests).toEqual([]);
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.nodes.done.at(-1)).toBe('remove m-1');
  });

  test('that the cache does not know is drained before its VM goes', async () => {
    const world = start();
    world.nodes.cache.remove('m-1');
    world.nodes.live.set('m-1', node());
    await run(world);

    expect(world.drains.requests.map(({ nodeName }) => nodeName)).toEqual(['m-1']);
    expect(world.driver.calls).toEqual([]);
  });

  test("that the cache does not know, and that is another machine's, is left alone", async () => {
    const world = start();
    world.nodes.cache.remove('m-1');
    world.nodes.live.set(
      'm-1',
      node((n) => {
        n.spec.providerID = 'sim:///another';
      }),
    );
    await run(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done.filter((what) => !what.startsWith('read'))).toEqual([]);
  });

  test('that cannot be deleted is told of, and tried again without another call to the driver', async () => {
    const world = start();
    await run(world);
    world.drains.end({ kind: 'drained' });
    world.nodes.failure = new Error('forbidden');
    const { error } = await run(world);

    expect(error).toBe(world.nodes.failure);
    expect(stageNow(world)).toBe('Could not delete the Node: forbidden. Initiate node object deletion');
    world.nodes.failure = undefined;
    await run(world);
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.machines.get(KEY)).toBeUndefined();
  });
});

describe('departure: a deletion need not wait until the machine was made; one that is deleted while its VM is made', () => {
  async function whileCreating(idempotentCreate = true): Promise<{ world: FakeWorld; release: () => void }> {
    const world = startNew();
    world.driver.idempotentCreate = idempotentCreate;
    let release = (): void => undefined;
    world.driver.hold = new Promise((resolve) => {
      release = resolve;
    });
    await world.reconcile();
    await world.settle();
    expect(world.driver.calls).toEqual(['status']);
    edit(world, (m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    });
    return { world, release };
  }

  test('waits for the creation, makes no VM that was not asked for yet, and deletes what there is', async () => {
    const { world, release } = await whileCreating();
    const { result } = await run(world);
    expect(result).toMatchObject({ waitingFor: 'the CreateMachine call to end' });

    release();
    await world.settle();
    await run(world);

    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(0);
    expect(world.driver.vms.size).toBe(0);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('takes over the VM of a creation that had been sent, and deletes it', async () => {
    const world = startNew();
    await world.reconcile();
    await world.settle();
    expect(world.driver.calls).toEqual(['status', 'create']);
    edit(world, (m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    });

    await run(world);

    expect(world.driver.calls).toEqual(['status', 'create', 'delete']);
    expect(world.driver.vms.size).toBe(0);
    expect(world.tokenCalls).toContain('remove');
  });

  test.each(['unsafe', 'forced'])(
    'tells the driver its VM with policy %s, which does not wait for the drain',
    async (policy) => {
      const world = startNew();
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
      edit(world, (m) => {
        m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
        m.metadata.annotations = { 'machine.sapcloud.io/deletion-policy': policy };
      });
      await run(world);
      expect(stageNow(world)).toContain('Initiate VM deletion');
      const remove = world.driver.delete.bind(world.driver);
      const told: unknown[] = [];
      world.driver.delete = async (request) => {
        told.push(request.machine.spec?.providerID);
        return await remove(request);
      };

      release();
      await world.settle();
      await run(world);

      expect(told).toEqual(['sim:///m-1']);
      expect(world.events.map(({ message }) => message)).toContain('VM sim:///m-1 was deleted.');
    },
  );

  test('does not take over a VM that another Machine has', async () => {
    const world = startNew();
    await world.pass(world.upkeep);
    await world.settle();
    const [made = ''] = world.driver.vms.keys();
    const other = machine((m) => {
      Object.assign(m.metadata, { name: 'other', uid: 'uid-of-other' });
      m.spec.providerID = made;
    });
    world.machines.put(other);
    edit(world, (m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    });

    const { machine: seen } = await world.pass(world.deletion.filter(({ name }) => name === 'settle-creation'));

    expect(seen.spec.providerID ?? '').toBe('');
    expect(seen.metadata.labels).toEqual({});
  });

  test('keeps the Node and the VM that it knows already, whatever its creation answers', async () => {
    const world = startNew();
    await world.reconcile();
    await world.settle();
    edit(world, (m) => {
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
      const world = start((m) => {
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
    await run(world);
    world.clock.advance(30 * SECOND);
    await world.reconcile();

    expect(world.events.map(({ reason }) => reason)).toContain('CreationAborted');
  });

  describe('and whose creation was not answered', () => {
    const LOST = new DriverError('Unavailable', 'gone', { unanswered: true });

    async function unanswered(idempotentCreate: boolean, providerID = '', failure = LOST): Promise<FakeWorld> {
      const { world, release } = await whileCreating(idempotentCreate);
      edit(world, (m) => {
        delete (m.metadata as { deletionTimestamp?: string }).deletionTimestamp;
      });
      world.driver.failures['create'] = [failure];
      world.driver.failures['delete'] = Array.from({ length: 20 }, () => new DriverError('NotFound', 'no VM'));
      release();
      await world.settle();
      edit(world, (m) => {
        m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
        m.spec.providerID = providerID;
      });
      await run(world);
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
        await run(world);
        expect(world.driver.vms.size).toBe(0);

        world.clock.advance(2 * MINUTE);
        await run(world);
        expect(world.machines.get(KEY)).toBeUndefined();
        expect(world.driver.calls.filter((call) => call === 'delete')).toHaveLength(3);
      },
    );

    test('goes as soon as its VM shows by its name, if the API server refuses to record it', async () => {
      const world = startNew();
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
      edit(world, (m) => {
        m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      });
      world.driver.failures['status'] = [new DriverError('NotFound', 'no VM')];
      world.driver.failures['delete'] = [new DriverError('NotFound', 'no VM')];

      await run(world);
      expect(world.driver.vms.size).toBe(1);
      for (let i = 0; i < 9 && world.machines.get(KEY) !== undefined; i++) {
        world.clock.advance(15 * SECOND);
        await run(world);
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

describe('departure: a missing MachineClass is told of and blocks only what needs it; a deletion without it', () => {
  test('drains, then waits for the class and says so', async () => {
    const world = start();
    world.classes.remove('default/class-1');
    await run(world);
    world.drains.end({ kind: 'drained' });
    const { result } = await run(world);

    expect(result).toMatchObject({ waitingFor: 'the MachineClass or its Secret to be corrected' });
    expect(stageNow(world)).toBe(
      'MachineClass default/class-1 not found: create it. Without it, the VM cannot be deleted. Initiate VM deletion',
    );
    expect(world.events.map(({ reason }) => reason)).toEqual(['Drained', 'InvalidClass']);

    world.classes.put(machineClass());
    await run(world);
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test.each([
    { what: 'to find its VM', named: {}, stage: 'Set machine status to termination. Now, getting VM Status' },
    { what: 'to delete its VM', named: { node: 'm-1' }, stage: 'Initiate VM deletion' },
  ])('whose Secret the API server refuses says so, once, and goes on when that is over ($what)', async (row) => {
    const world = start((m) => {
      m.metadata.labels = row.named;
      m.status.currentStatus.phase = 'Terminating';
      m.status.lastOperation = { type: 'Delete', state: 'Processing', description: row.stage };
    });
    world.nodes.cache.remove('m-1');
    const text = 'Could not read the Secrets of MachineClass class-1: secrets is forbidden.';
    world.secretFailure = new ApiError(403, 'Forbidden', 'secrets is forbidden');
    for (let i = 0; i < 3; i++) await expect(run(world)).resolves.toHaveProperty('error', world.secretFailure);

    expect(operationOf(world)).toMatchObject({
      state: 'Failed',
      errorCode: 'PreparationFailed',
      description: `${text} ${row.stage}`,
    });
    expect(world.events.map(({ message }) => message)).toEqual([text]);

    world.secretFailure = undefined;
    await run(world);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('forgets that its Secret could not be read once it can: Aborted after that is no failure', async () => {
    const world = start((m) => {
      m.status.currentStatus.phase = 'Terminating';
      m.status.lastOperation = { type: 'Delete', state: 'Processing', description: 'Initiate VM deletion' };
    });
    world.nodes.cache.remove('m-1');
    world.secretFailure = new ApiError(403, 'Forbidden', 'secrets is forbidden');
    await run(world);
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
      await run(world);
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
    const world = start((m) => {
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
    const world = start((m) => {
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
    await run(world);

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
    const world = start((m) => {
      m.status.currentStatus = { phase: 'Terminating' };
      m.status.lastOperation = { type: 'Delete', state: 'Processing', description: marker };
    });
    world.nodes.volumes.push({ metadata: { name: 'va-1' }, spec: { nodeName: 'm-1' } } as VolumeAttachment);
    world.liveMachines.set(KEY, machine(successor));

    const { result } = await run(world);

    expect(result).toMatchObject({ waitingFor: 'the latest version of the Machine' });
    expect(world.driver.calls).toEqual([]);
    expect(world.driver.vms.size).toBe(1);
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done).toEqual([]);
  });
});

describe('departure: a failed deletion of a VM is tried again from 5 s on; a provider that cannot delete', () => {
  test.each([
    { code: 'Unavailable' as const, waits: [5, 5, 5] },
    { code: 'Internal' as const, waits: [5, 10, 20] },
  ])('with $code is asked again after $waits seconds', async ({ code, waits }) => {
    const world = start();
    world.driver.failures['delete'] = waits.map(() => new DriverError(code, 'x'));
    await run(world);
    world.drains.end({ kind: 'drained' });
    const seen: number[] = [];
    for (const _ of waits) {
      const { result } = await run(world);
      if (result.kind === 'requeue') seen.push(result.afterMs / SECOND);
      world.clock.advance(result.kind === 'requeue' ? result.afterMs : 0);
    }

    expect(seen).toEqual(waits);
    expect(world.machines.get(KEY)?.status?.lastOperation).toMatchObject({
      state: 'Failed',
      description: `Cloud provider message - machine codes error: code = [${code}] message = [x]. Initiate VM deletion`,
    });
    expect(world.events.filter(({ reason }) => reason === 'VMDeletionFailed')).toHaveLength(1);
    await run(world);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  const GONE_SOON = new DriverError('Aborted', 'server s-1 is still being deleted');
  const goesOn = 'The VM is still being deleted: server s-1 is still being deleted. Initiate VM deletion';

  /** Passes up to the first call for the VM, and then for so long, whenever the next is due. */
  async function deleteFor(world: FakeWorld, ms: number): Promise<void> {
    const endMs = world.clock.now() + ms;
    for (;;) {
      const { result } = await run(world);
      const afterMs = result.kind === 'requeue' ? result.afterMs : 0;
      if (afterMs === 0 || world.clock.now() + afterMs > endMs) return world.clock.advance(endMs - world.clock.now());
      world.clock.advance(afterMs);
    }
  }

  test('and says Aborted because it takes its time is Processing for a minute, without an Event, and one write', async () => {
    const world = start();
    world.driver.failures['delete'] = Array.from({ length: 30 }, () => GONE_SOON);
    await run(world);
    world.drains.end({ kind: 'drained' });
    await run(world);
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
    const world = start();
    const words = ['Machine m of Cluster API is being deleted', 'DevMachine m-x is going, and what it has with it'];
    world.driver.failures['delete'] = Array.from(
      { length: 30 },
      (_, n) => new DriverError('Aborted', words[Math.floor(n / 4) % 2] ?? ''),
    );
    await run(world);
    world.drains.end({ kind: 'drained' });
    await run(world);
    await deleteFor(world, 30 * SECOND);
    const { state, lastUpdateTime } = world.machines.get(KEY)?.status?.lastOperation ?? {};
    await deleteFor(world, 30 * SECOND);
    await run(world);

    expect({ state, lastUpdateTime }).toEqual({ state: 'Processing', lastUpdateTime: '2026-01-01T00:00:20Z' });
    expect(world.machines.get(KEY)?.status?.lastOperation?.state).toBe('Failed');
    expect(world.events.map(({ reason }) => reason)).toEqual(['Drained', 'VMDeletionFailed']);
  });

  test.each(['Internal', 'Unavailable'] as const)(
    'and was told as failed (%s) stays so when it says Aborted then, also in the next process',
    async (code) => {
      const world = start((m) => {
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
      expect(description(world)).toContain('server s-1 is still being deleted');
      expect(world.events.map(({ reason }) => reason)).toEqual(['VMDeletionFailed']);
    },
  );

  test('keeps what the driver remembers of it', async () => {
    const world = start();
    world.driver.failures['delete'] = [new DriverError('Internal', 'no', { lastKnownState: 'half' })];
    await run(world);
    world.drains.end({ kind: 'drained' });
    await run(world);

    expect(world.machines.get(KEY)?.status?.lastKnownState).toBe('half');
  });

  test('because there is nothing left is done', async () => {
    const world = start();
    world.driver.failures['delete'] = [new DriverError('NotFound', 'x')];
    makeNotReady(world);
    await run(world);
    world.drains.end({ kind: 'drained' });
    await run(world);

    expect(world.machines.get(KEY)).toBeUndefined();
  });
});

describe('a drain', () => {
  const progress = { remainingPods: 2, blocked: [{ pod: 'a/b', reason: 'disruption-budget', detail: 'c' }] } as const;
  const text = 'Waiting for 2 pods: a/b (PodDisruptionBudget c currently allows no eviction); and 1 more.';
  const end = 'Remaining pods are deleted at 2026-01-01T02:00:00Z.';

  test('tells what holds it up as soon as that stands, then at most every 30 seconds, and once as an Event', async () => {
    const world = start();
    await run(world);
    const writes = world.writes;
    world.drains.report(progress);
    const { result } = await run(world);
    expect(world.writes).toBe(writes);
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 2 * SECOND });

    world.clock.advance(2 * SECOND);
    await run(world);
    expect(stageNow(world)).toBe(`${text} ${end} Initiate node drain`);
    expect(operationOf(world)).toMatchObject({ state: 'Processing', errorCode: 'DrainBlocked' });
    world.drains.report({ ...progress, remainingPods: 1 });
    world.clock.advance(29 * SECOND);
    const waiting = await run(world);
    expect(world.writes).toBe(writes + 1);
    expect(waiting.result).toMatchObject({ kind: 'requeue', afterMs: SECOND });
    world.clock.advance(SECOND);
    await run(world);
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
    const world = start((m) => void (m.metadata.labels['force-deletion'] = 'True'));
    await run(world);
    world.drains.report(progress);
    const forced = world.steps.drains.blocked();
    world.drains.end({ kind: 'drained' });
    await run(world);

    expect(forced).toEqual([{ reason: 'disruption-budget', forceAtMs: undefined }]);
    expect(world.steps.drains.blocked()).toEqual([]);
  });

  test('tells another reason soon, as another Event', async () => {
    const world = start();
    await run(world);
    world.drains.report(progress);
    world.clock.advance(2 * SECOND);
    await run(world);
    const writes = world.writes;

    const blocked = [{ pod: 'a/b', reason: 'terminating', detail: 'held by finalizer x' }] as const;
    world.drains.report({ remainingPods: 2, blocked });
    world.clock.advance(2 * SECOND);
    await run(world);
    const early = world.writes;
    world.clock.advance(3 * SECOND);
    await run(world);

    expect(early).toBe(writes);
    expect(world.writes).toBe(writes + 1);
    expect(stageNow(world)).toContain('a/b (not terminating: held by finalizer x); and 1 more.');
    expect(world.events.map(({ reason }) => reason)).toEqual(['DrainBlocked', 'DrainBlocked']);
  });

  test('that nothing blocks any longer has no code any longer, and is explained as a drain', async () => {
    const world = start();
    await run(world);
    world.drains.report(progress);
    world.clock.advance(2 * SECOND);
    await run(world);
    const blocked = reasonShown(world);
    world.drains.report({
      remainingPods: 1,
      blocked: [{ pod: 'a/b', reason: 'ending', detail: '2026-01-01T00:10:00Z' }],
    });
    world.clock.advance(30 * SECOND);
    await run(world);

    expect(blocked).toBe('DrainBlocked');
    expect(operationOf(world)?.errorCode).toBeUndefined();
    expect(reasonShown(world)).toBe('Draining');
  });

  // Gardener finds it among the failed machines of the MachineDeployment, by these words.
  test('that a misconfigured budget holds up has failed until the budget is corrected', async () => {
    const world = start();
    await run(world);
    const misconfigured = { pod: 'a/z', reason: 'misconfigured-disruption-budget', detail: 'a/zero' } as const;
    world.drains.report({ remainingPods: 2, blocked: [...progress.blocked, misconfigured] });
    world.clock.advance(2 * SECOND);
    await run(world);
    const held = operationOf(world);
    world.drains.report(progress);
    world.clock.advance(30 * SECOND);
    await run(world);

    expect(held).toMatchObject({ type: 'Delete', state: 'Failed', errorCode: 'DrainBlocked' });
    expect(held?.description).toContain(
      'pod disruption budget a/zero is misconfigured and requires zero voluntary evictions',
    );
    expect(operationOf(world)).toMatchObject({ type: 'Delete', state: 'Processing', errorCode: 'DrainBlocked' });
  });

  test('that is blocked does not forget that no provider was ever asked for a VM', async () => {
    const world = start((m) => {
      delete m.spec.providerID;
      m.status.lastOperation = {
        type: 'Delete',
        state: 'Processing',
        errorCode: 'NeverAsked',
        description: 'Initiate node drain',
      };
      m.status.currentStatus = { ...m.status.currentStatus, phase: 'Terminating' };
    });
    await run(world);
    world.drains.report(progress);
    world.clock.advance(2 * SECOND);
    await run(world);

    expect(stageNow(world)).toBe(`${text} ${end} Initiate node drain`);
    expect(operationOf(world)).toMatchObject({ type: 'Delete', errorCode: 'NeverAsked' });
  });

  test('that is quick, or whose pods only take their time, tells nothing before 30 seconds, and no Event', async () => {
    const world = start();
    await run(world);
    const writes = world.writes;
    const blocked = [{ pod: 'a/b', reason: 'ending', detail: '2026-01-01T00:10:00Z' }] as const;
    world.drains.report({ remainingPods: 1, blocked });
    world.clock.advance(29 * SECOND);
    await run(world);
    const early = world.writes;
    world.clock.advance(SECOND);
    await run(world);

    expect(early).toBe(writes);
    expect(stageNow(world)).toBe(
      `Waiting for 1 pod: a/b (terminating until 2026-01-01T00:10:00Z). ${end} Initiate node drain`,
    );
    expect(world.events).toEqual([]);
  });

  test('that cannot go on is tried again, and forced when its time is over', async () => {
    const world = start();
    await run(world);
    world.drains.end({ kind: 'incomplete', progress });
    const { result } = await run(world);
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 5 * SECOND });
    expect(stageNow(world)).toBe(`Drain failed. ${text} Initiate node drain`);
    expect(world.drains.requests).toHaveLength(1);

    world.clock.advance(120 * MINUTE);
    await run(world);
    expect(world.drains.requests[1]).toMatchObject({
      force: true,
      maxEvictRetries: 1,
      deadlineMs: world.clock.now() + MINUTE,
    });
    world.drains.end({ kind: 'drained' });
    await run(world);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('gives way to a forced one when the label is set', async () => {
    const world = start();
    await run(world);
    edit(world, (m) => {
      m.metadata.labels['force-deletion'] = 'True';
    });
    await run(world);

    expect(world.drains.requests.map(({ force }) => force)).toEqual([false, true]);
    expect(world.events.map(({ reason }) => reason)).toEqual(['DrainForced']);
    world.drains.end({ kind: 'drained' });
    world.drains.end({ kind: 'drained' });
    await run(world);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test('that was forced does not stop the deletion, whatever it left', async () => {
    const world = start((m) => {
      m.metadata.labels['force-deletion'] = 'true';
    });
    await run(world);
    world.drains.fail(new Error('server is on fire'));
    await run(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.events.map(({ reason }) => reason)).toEqual(['DrainForced', 'DrainFailed', 'VMDeleted']);
  });

  describe('that was forced', () => {
    const attachment = { metadata: { name: 'va-1' }, spec: { nodeName: 'm-1' } } as VolumeAttachment;

    async function forced(change: (world: FakeWorld) => void = () => undefined): Promise<FakeWorld> {
      const world = start((m) => {
        m.metadata.labels['force-deletion'] = 'true';
      });
      world.nodes.volumes.push(attachment);
      change(world);
      await run(world);
      world.drains.end({ kind: 'drained' });
      if (world.machines.get(KEY) !== undefined) await run(world);
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
      await run(world);

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
      await run(world);

      expect(stageNow(world)).toContain('Delete Volume Attachments');
      expect(world.driver.calls).toEqual([]);
    });

    test('waits with them for a target cluster that gives no sign of life', async () => {
      const world = await forced(({ nodes }) => {
        nodes.detachFailure = new GateClosedError('unproven', 'target', 'no sign of life');
      });
      world.clock.advance(10 * MINUTE);
      const { error } = await run(world);

      expect(error).toBe(world.nodes.detachFailure);
      expect(world.driver.calls).toEqual([]);
    });
  });

  test('ends with its Node', async () => {
    const world = start();
    await run(world);
    world.nodes.cache.remove('m-1');
    world.drains.end({ kind: 'node-gone' });
    await run(world);

    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test.each(['drained', 'node-gone'] as const)(
    'that ended (%s) before an outage is made again: the cluster may have been set back, and its pods be back',
    async (kind) => {
      const world = start();
      await run(world);
      world.drains.end({ kind });
      await world.clock.advanceAsync(10 * SECOND);
      world.trustedForMs = () => 9 * SECOND;
      await run(world);
      await run(world);

      expect(world.drains.requests.length).toBe(2);
      expect(world.driver.calls).toEqual([]);

      world.drains.end({ kind: 'drained' });
      await run(world);

      expect(world.driver.calls).toEqual(['delete']);
    },
  );

  test.each([10 * SECOND, 0])(
    'that ended 10 s ago holds when an outage ended %s ms ago, or lasts',
    async (trustedMs) => {
      const world = start();
      await run(world);
      world.drains.end({ kind: 'drained' });
      await world.clock.advanceAsync(10 * SECOND);
      world.trustedForMs = () => trustedMs;
      await run(world);

      expect(world.drains.requests.length).toBe(1);
      expect(world.driver.calls).toEqual(['delete']);
    },
  );

  test('that meets a closed gate waits, without a word in the status', async () => {
    const world = start();
    await run(world);
    world.drains.fail(new GateClosedError('outage', 'target', 'x'));
    const { result } = await run(world);

    expect(stageNow(world)).toBe('Initiate node drain');
    expect(result.kind).toBe('requeue');
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
    const world = start();
    world.nodes.cache.put(broken(3));
    const { result } = await run(world);
    expect(world.drains.requests.map(({ force }) => force)).toEqual([false]);
    expect(result.kind).toBe('requeue');

    world.clock.advance(2 * MINUTE);
    await run(world);
    expect(world.drains.requests.map(({ force }) => force)).toEqual([false, true]);
  });

  test('does not when a live look shows it well', async () => {
    const world = start();
    world.nodes.cache.put(broken(10));
    world.nodes.live.set('m-1', node());
    await run(world);

    expect(world.drains.requests.map(({ force }) => force)).toEqual([false]);
  });

  test('does not in the grace after an outage', async () => {
    const world = start();
    world.graceLeftMs = MINUTE;
    world.nodes.cache.put(broken(10));
    await run(world);

    expect(world.drains.requests.map(({ force }) => force)).toEqual([false]);
  });
});

describe('departure: a forced deletion goes on without its target cluster; one whose target cannot be reached', () => {
  test('deletes the VM and leaves the Node behind', async () => {
    const world = start((m) => {
      m.metadata.labels['force-deletion'] = 'true';
    });
    world.trustedForMs = (clusters) => (clusters.includes('target') ? 0 : MINUTE);
    await run(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.done).toEqual([]);
    expect(world.events.map(({ reason }) => reason)).toEqual(['VMDeleted', 'NodeLeftBehind']);
  });

  test('waits without the label and says so once, until the target answers', async () => {
    const world = start();
    await run(world);
    world.outages = [{ cluster: 'target', sinceMs: Date.parse('2026-01-01T00:00:00Z'), why: 'no answer' }];
    const held = await run(world);
    const { writes } = world;
    const again = await run(world);

    expect(held.machine.status?.lastOperation).toMatchObject({
      type: 'Delete',
      state: 'Processing',
      description: expect.stringMatching(
        /^API server of cluster "target" unreachable since 2026-01-01T00:00:00Z \(no answer\): .* Initiate node drain$/,
      ),
    });
    expect([again.writes, world.writes]).toEqual([[], writes]);

    world.outages = [];
    expect((await run(world)).machine.status?.lastOperation?.description).toBe('Initiate node drain');
    world.drains.end({ kind: 'drained', volumes: 0 } as never);
    await run(world);
    expect(world.driver.calls).toContain('delete');
  });

  test('waits without the label', async () => {
    const world = start();
    world.trustedForMs = (clusters) => (clusters.includes('target') ? 0 : MINUTE);
    await run(world);

    expect(world.drains.requests).toHaveLength(1);
    expect(world.driver.calls).toEqual([]);
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
      const world = start((m) => {
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

      await run(world);

      const [event] = world.events.filter(({ reason }) => reason === 'VMDeleted');
      expect(event?.message).toBe(told);
    },
  );
});
