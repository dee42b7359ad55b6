import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../test/durations.ts';
import { machine, machineClass, node, secret, type BuiltMachine } from '../../../test/builders.ts';
import { FakeWorld } from '../../../test/fakes/machine-world.ts';
import {
  CREATION_SENT_ANNOTATION,
  FORCE_DELETION_LABEL,
  MACHINE_FINALIZER,
  NOT_MANAGED_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { DriverError } from '../../driver/error.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { next } from '../../work/reconcile/result.ts';
import { copyOf } from '../machine-facts/status.ts';
import { type MachineContext, type MachineStep, MachineNotes } from './context.ts';
import { DeletionCursor } from './deletion/cursor.ts';
import { MachineTokens } from './tokens/machine-tokens.ts';

/**
 * What is looked at a second time before it is acted upon, and when somebody comes back if nothing happens: what a pass says of
 * the next one, which tests of whole lives hardly see, because they pass again anyway.
 */
const KEY = 'default/m-1';
const STAGES = { drain: 'Initiate node drain', detach: 'Delete Volume Attachments', vm: 'Initiate VM deletion' };
const NOT_READY = { type: 'Ready', status: 'Unknown' };

function worldOf(change: (m: BuiltMachine) => void): FakeWorld {
  const world = new FakeWorld();
  world.driver.notFound = () => new DriverError('NotFound', 'no VM');
  world.classes.put(machineClass((c) => void (c.metadata.finalizers = [MACHINE_FINALIZER])));
  world.secrets.put(secret());
  world.nodes.cache.put(node());
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [MACHINE_FINALIZER];
      change(m);
    }),
  );
  return world;
}

/** A machine at that stage of its deletion. */
function deleting(stage: string, change: (m: BuiltMachine) => void = () => undefined): FakeWorld {
  return worldOf((m) => {
    m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    m.status.currentStatus.phase = 'Terminating';
    m.status.lastOperation = { type: 'Delete', state: 'Processing', description: stage };
    change(m);
  });
}

/** A new one whose VM was never asked for. */
function creating(change: (m: BuiltMachine) => void = () => undefined): FakeWorld {
  return worldOf((m) => {
    m.metadata.labels = {};
    m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
    m.status = {} as BuiltMachine['status'];
    change(m);
  });
}

const attachment = (name: string) => ({
  metadata: { ...node().metadata, name, uid: name },
  spec: { attacher: 'csi', nodeName: 'm-1', source: {} },
});

const requeued = { kind: 'requeue' };

describe('a Machine is still ours only', () => {
  const observed = machine((m) => void (m.metadata.deletionTimestamp = 'now'));
  test.each<{ when: string; live: Machine | undefined; want: boolean }>([
    { when: 'as long as it is being deleted', live: observed, want: true },
    { when: 'while it is there', live: undefined, want: false },
    { when: 'while it is the same', live: { ...observed, metadata: { ...observed.metadata, uid: 'x' } }, want: false },
    { when: 'while its deletion goes on', live: machine(), want: false },
  ])('$when', async ({ live, want }) => {
    const readMachine = (): Promise<Machine | undefined> => Promise.resolve(live);
    const cursor = new DeletionCursor({ ...new FakeWorld().deps, readMachine });

    expect(await cursor.isStillOurs({ observed, key: KEY }, new AbortController().signal)).toBe(want);
  });
});

describe('what was written of a deletion is as good as a live look', () => {
  const another = machine((m) => void (m.metadata.uid = 'uid-of-another'));
  test.each<{
    when: string;
    isWritten?: boolean;
    waitMs?: number;
    cached?: Machine | 'none';
    sees?: 'the stage before';
    again?: boolean;
    isTakenOver?: boolean;
    reads: number;
  }>([
    { when: 'just now', reads: 0 },
    { when: 'five seconds ago', waitMs: 5_000, reads: 0 },
    { when: 'longer ago', waitMs: 5_001, reads: 1 },
    { when: 'and said again without a write', waitMs: 5_001, again: true, reads: 1 },
    { when: 'but for the write that did not happen', isWritten: false, reads: 1 },
    { when: 'unless the pass sees something else', sees: 'the stage before', reads: 1 },
    { when: 'unless another one has its name', cached: another, reads: 1 },
    { when: 'unless the cache has it no more', cached: 'none', reads: 1 },
    { when: 'unless another process wrote it', isTakenOver: true, reads: 1 },
  ])('$when: $reads reads', async (row) => {
    const { isWritten = true, waitMs = 0, cached, sees, again = false, isTakenOver = false, reads } = row;
    const world = deleting(STAGES.drain);
    const before = world.machines.get(KEY) as Machine;
    let asked = 0;
    const readMachine = (): Promise<undefined> => {
      asked += 1;
      return Promise.resolve(undefined);
    };
    const cursor = new DeletionCursor({ ...world.deps, readMachine });
    const write = (observed: Machine, by: DeletionCursor): Machine => {
      const copy = copyOf(observed);
      const pass = new MachineNotes();
      by.advance({ observed, machine: copy, pass } as MachineContext, 'delete-vm', 'Drain successful.');
      if (isWritten) pass.complete(() => undefined);
      return copy;
    };
    const written = write(before, isTakenOver ? new DeletionCursor({ ...world.deps, readMachine }) : cursor);
    if (cached === 'none') world.machines.remove(KEY);
    else world.machines.put(cached ?? written);
    world.clock.advance(waitMs);
    if (again) write(written, cursor);

    const observed = sees === undefined ? written : before;
    const isOurs = await cursor.isStillOurs({ observed, key: KEY }, new AbortController().signal);

    expect([isOurs, asked]).toEqual([reads === 0, reads]);
  });
});

describe('a deletion comes back by itself', () => {
  test('when the provider failed to tell of the VM', async () => {
    const world = deleting(
      'Set machine status to termination. Now, getting VM Status',
      (m) => (m.metadata.labels = {}),
    );
    world.nodes.cache.remove('m-1');
    world.driver.failures = { status: [new DriverError('Unavailable', 'no answer')] };
    await world.reconcile();
    await world.settle();

    expect((await world.reconcile()).result).toMatchObject(requeued);
  });

  test('when a VolumeAttachment could not be deleted', async () => {
    const world = deleting(STAGES.detach);
    world.nodes.volumes.push(attachment('va-1'));
    world.nodes.detachFailure = new Error('no');

    expect((await world.reconcile()).result).toMatchObject(requeued);
  });

  test('when another VolumeAttachment came meanwhile', async () => {
    const world = deleting(STAGES.detach);
    world.nodes.volumes.push(attachment('va-1'));
    world.nodes.detach = () => Promise.resolve();

    expect((await world.reconcile()).result).toMatchObject(requeued);
  });

  test('when its drain met a closed gate', async () => {
    const world = deleting(STAGES.drain);
    await world.reconcile();
    await world.settle();
    world.drains.fail(new GateClosedError('outage', 'target', 'closed'));
    await world.settle();

    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: 5_000 });
    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: 5_000 });
    expect(world.drains.requests).toHaveLength(1);
  });

  test('when its drain failed, at the drain timeout at the latest', async () => {
    const world = deleting(STAGES.drain, (m) => void (m.spec.drainTimeout = '3s'));
    await world.reconcile();
    await world.settle();
    world.drains.fail(new Error('no'));
    await world.settle();

    expect((await world.reconcile()).result).toMatchObject({ ...requeued, afterMs: 3_000 });
  });

  test('when its target cluster cannot be reached', async () => {
    const world = deleting(STAGES.drain);
    world.outages = [{ cluster: 'target', sinceMs: 0, why: 'no answer' }];

    expect((await world.reconcile()).result).toMatchObject(requeued);
  });

  test('when its VM could not be deleted', async () => {
    const world = deleting(STAGES.vm);
    world.driver.failures = { delete: [new DriverError('Unavailable', 'no answer')] };
    await world.reconcile();
    await world.settle();

    expect((await world.reconcile()).result).toMatchObject(requeued);
  });

  test('when the VM of an unanswered creation may show yet', async () => {
    const world = deleting(STAGES.vm, (m) => {
      m.spec.providerID = '';
      m.metadata.annotations[CREATION_SENT_ANNOTATION] = '2026-01-01T00:00:00Z';
    });
    world.driver.idempotentCreate = false;
    await world.reconcile();
    await world.settle();

    expect((await world.reconcile()).result).toMatchObject(requeued);
  });
});

test('VolumeAttachments stay until the Machine says that they go', async () => {
  const world = deleting(STAGES.drain, (m) => void (m.metadata.labels[FORCE_DELETION_LABEL] = 'True'));
  world.nodes.volumes.push(attachment('va-1'));
  await world.reconcile();
  await world.settle();
  world.drains.end({ kind: 'drained' });
  await world.settle();
  world.losesWrites = true;

  await world.reconcile();

  expect(world.nodes.done).toEqual([]);
});

test('a process that can reach nothing abandons no Node', async () => {
  const world = deleting(STAGES.drain, (m) => void (m.metadata.labels[FORCE_DELETION_LABEL] = 'True'));
  world.trustedForMs = () => 0;

  await world.reconcile();
  await world.settle();

  expect(world.drains.requests).toHaveLength(1);
});

describe('a creation comes back by itself', () => {
  test.each([
    { when: 'it failed', failure: new DriverError('Internal', 'no') },
    { when: 'it met a closed gate', failure: new GateClosedError('outage', 'control', 'closed') },
  ])('when $when, and again in every pass until then', async ({ failure }) => {
    const world = creating();
    world.driver.failures = { create: [failure] };
    await world.reconcile();
    await world.settle();

    expect((await world.reconcile()).result).toMatchObject(requeued);
    expect((await world.reconcile()).result).toMatchObject(requeued);
    expect(world.driver.calls).toEqual(['status', 'create']);
  });

  test('when the driver told of no Node', async () => {
    const world = creating();
    const create = world.driver.create.bind(world.driver);
    world.driver.create = async (request) => ({ ...(await create(request)), nodeName: '' });
    await world.reconcile();
    await world.settle();

    expect((await world.reconcile()).result).toMatchObject(requeued);
  });

  test('when its class is not protected for long', async () => {
    const world = creating();
    world.classes.put(machineClass((c) => void (c.metadata.resourceVersion = '2')));

    expect((await world.reconcile()).result).toMatchObject({ ...requeued, afterMs: 30_000 });
  });
});

test('credentials that were corrected are tried at once', async () => {
  const world = creating();
  world.driver.failures = { create: [new DriverError('Unauthenticated', 'no')] };
  await world.reconcile();
  await world.settle();
  await world.reconcile();
  world.secrets.put(
    secret((s) => {
      s.metadata.resourceVersion = '2';
      s.data['password'] = 'bmV3';
    }),
  );

  await world.reconcile();
  await world.settle();

  expect(world.driver.calls).toEqual(['status', 'create', 'status', 'create']);
});

test.each([
  { title: 'of which nothing is known', change: () => undefined, runs: false, says: true },
  {
    title: 'whose class is of another kind',
    change: (m: BuiltMachine) => void (m.spec.class = { kind: 'AWSMachineClass', name: 'class-1' }),
    runs: false,
    says: true,
  },
  { title: 'whose creation is under way', change: () => undefined, runs: true, says: false },
  {
    title: 'that has a VM',
    change: (m: BuiltMachine) => void (m.spec.providerID = 'sim:///m-1'),
    runs: false,
    says: false,
  },
])('a machine $title says that no provider was asked: $says', async ({ change, runs, says }) => {
  const world = creating(change);
  const { uid } = machine().metadata;
  if (runs)
    world.activities.startOrGet({ uid, key: KEY, account: 'sim' }, 'create', () => new Promise(() => undefined));
  world.classes.remove('default/class-1');

  const { machine: seen } = await world.pass(world.only('resolve'));

  expect(seen.status?.lastOperation).toMatchObject({ type: 'Create', state: 'Failed' });
  expect(seen.status?.lastOperation?.errorCode === 'NeverAsked').toBe(says);
});

describe('the health of a machine', () => {
  const unhealthy = (phase: 'Unknown' | 'InPlaceUpdateFailed') => (m: BuiltMachine) => {
    m.status.currentStatus = { phase, lastUpdateTime: '2025-12-31T00:00:00Z' };
    m.status.conditions = [NOT_READY];
  };

  test('that has another name by now fails nobody', async () => {
    const world = worldOf(unhealthy('Unknown'));
    world.nodes.cache.put(
      node((n) => Object.assign(n.metadata, { resourceVersion: '2' }) && (n.status.conditions = [NOT_READY])),
    );
    world.liveMachines.set(
      KEY,
      machine((m) => void (m.metadata.uid = 'of another')),
    );

    const { machine: seen } = await world.pass(world.only('health-timeout'));

    expect(seen.status?.currentStatus?.phase).toBe('Unknown');
  });

  test('after an update that has succeeded after all, read live, fails nobody', async () => {
    const world = worldOf(unhealthy('InPlaceUpdateFailed'));
    world.nodes.live.set(
      'm-1',
      node((n) => void (n.metadata.labels['node.machine.sapcloud.io/update-result'] = 'successful')),
    );

    const { machine: seen, result } = await world.pass(world.only('health-timeout'));

    expect(seen.status?.currentStatus?.phase).toBe('InPlaceUpdateFailed');
    expect(result).toMatchObject(requeued);
  });

  test('is looked at again while another one is replaced', async () => {
    const owner = [
      { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineSet', name: 's', uid: 's', controller: true },
    ];
    const world = worldOf((m) => {
      unhealthy('Unknown')(m);
      m.metadata.ownerReferences = owner;
    });
    world.machines.put(
      machine((m) => {
        m.metadata.name = 'm-2';
        m.metadata.ownerReferences = owner;
        m.status.currentStatus.phase = 'Failed';
      }),
    );

    expect((await world.pass(world.only('health-timeout'))).result).toMatchObject(requeued);
  });

  test.each([
    { title: 'a Node that reports nothing', phase: 'Unknown', type: 'HealthCheck', conditions: [] },
    {
      title: 'a healthy Node',
      phase: 'Failed',
      type: 'InPlaceUpdate',
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  ] as const)('of phase $phase by $type is not mended by $title', async ({ phase, type, conditions }) => {
    const world = worldOf((m) => {
      m.status.currentStatus = { phase };
      m.status.lastOperation = { type, state: 'Failed' };
    });
    world.nodes.cache.put(
      node((n) => Object.assign(n.metadata, { resourceVersion: '2' }) && (n.status.conditions = [...conditions])),
    );

    const { machine: seen } = await world.reconcile();

    expect(seen.status?.currentStatus?.phase).toBe(phase);
  });
});

describe('a Node', () => {
  test('that is being deleted, and nobody manages, takes no machine with it', async () => {
    const world = worldOf(() => undefined);
    world.nodes.cache.put(
      node((n) => {
        Object.assign(n.metadata, { resourceVersion: '2', deletionTimestamp: 'now' });
        n.metadata.annotations[NOT_MANAGED_ANNOTATION] = '1';
      }),
    );

    await world.reconcile();

    expect(world.deletedMachines).toEqual([]);
  });

  test('that is being deleted is given nothing', async () => {
    const world = worldOf(() => undefined);
    world.nodes.cache.put(
      node((n) => void Object.assign(n.metadata, { resourceVersion: '2', deletionTimestamp: 'now' })),
    );

    await world.pass(world.only('node-sync'));

    expect(world.nodes.done).toEqual([]);
  });

  test('that has the name of another one by now gets no taints', async () => {
    const world = worldOf(
      (m) => void (m.spec.nodeTemplate = { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } }),
    );
    world.nodes.live.set(
      'm-1',
      node((n) => void (n.metadata.uid = 'of another')),
    );

    await world.pass(world.only('node-sync'));

    expect(world.nodes.patches).toEqual([]);
  });

  test('of a VM that was adopted is no stale one', async () => {
    const world = creating();
    world.nodes.cache.put(node((n) => void Object.assign(n.metadata, { name: 'old', uid: 'old' })));
    const launched = {
      how: 'adopted',
      providerID: 'sim:///other',
      nodeName: 'old',
      addresses: [],
      lastKnownState: undefined,
      needsInitialize: false,
    } as const;
    const adopt: MachineStep = { name: 'adopt', run: (ctx) => ((ctx.launched = launched), next) };

    const { machine: seen } = await world.pass([adopt, ...world.only('stale-node')]);

    expect(seen.status?.currentStatus?.phase).toBeUndefined();
  });
});

test.each([
  { phase: 'Pending', isShared: true },
  { phase: 'CrashLoopBackOff', isShared: true },
  { phase: 'Running', isShared: false },
] as const)('a token that another machine, $phase, may share stays: $isShared', async ({ phase, isShared }) => {
  const world = worldOf((m) => void (m.metadata.name = 'm-1'));
  world.machines.put(
    machine((m) => {
      m.metadata.name = 'pool-abcde';
      m.status.currentStatus.phase = phase;
    }),
  );
  const own = machine((m) => void (m.metadata.name = 'pool-abcdf'));
  using pass = new MachineNotes();
  const asked: boolean[] = [];
  const ctx = world.context(own, pass);
  // Three of the last five characters make an id: both machines have the same.
  const id = Buffer.from('abcde').toString('hex').slice(0, 6);
  const tokens = {
    ensure: () => Promise.reject(new Error('not asked for')),
    forgo: () => undefined,
    find: () => Promise.reject(new Error('not asked for')),
    remove: (_m: Machine, spare: (id: string) => boolean) => Promise.resolve(void asked.push(spare(id))),
  };
  const bootstrapTokens = { of: () => tokens, forget: () => undefined };

  await new MachineTokens({ ...world.deps, bootstrapTokens }).remove(ctx);

  expect(asked).toEqual([isShared]);
});

test('a drain timeout is counted from the deletion, not from the last look', async () => {
  const world = deleting(STAGES.drain, (m) => void (m.spec.drainTimeout = '10m'));
  await world.reconcile();
  world.clock.advance(11 * MINUTE);

  await world.reconcile();
  await world.settle();
  await world.reconcile();
  await world.settle();
  await world.reconcile();

  expect(world.drains.requests.map(({ force }) => force)).toEqual([false, true]);
});
