import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../test/durations.ts';
import { machine, machineClass, node, secret, type BuiltMachine } from '../../../test/builders.ts';
import { FakeWorld } from '../../../test/fakes/machine-world.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { FORCE_DELETION_LABEL, MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { TurnAbandonedError } from '../../driver/turn-abandoned.ts';
import { DriverError } from '../../driver/error.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { hold } from '../machine-facts/replacement-hold.ts';
import type { Launched } from './context.ts';
import { wasNeverLaunched } from './deletion/delete-vm.ts';

/** What happens to a machine in the moment in which something is about to be done about it. */
const KEY = 'default/m-1';
const BEGIN = '2026-01-01T00:00:00Z';

function worldOf(change: (m: BuiltMachine) => void): FakeWorld {
  const world = new FakeWorld();
  world.driver.notFound = () => new DriverError('NotFound', 'no VM');
  world.classes.put(machineClass((c) => void (c.metadata.finalizers = [MACHINE_FINALIZER])));
  world.secrets.put(secret((s) => void (s.data['userData'] = Buffer.from('<<BOOTSTRAP_TOKEN>>').toString('base64'))));
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [MACHINE_FINALIZER];
      change(m);
    }),
  );
  return world;
}

const unhealthyIn =
  (set: string) =>
  (m: BuiltMachine): void => {
    m.metadata.ownerReferences = [
      { apiVersion: API_VERSION, kind: 'MachineSet', name: set, uid: set, controller: true },
    ];
    m.status.currentStatus = { phase: 'Unknown', lastUpdateTime: '2025-12-31T00:00:00Z' };
  };

const unborn = (m: BuiltMachine): void => {
  m.metadata.labels = {};
  m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
  m.status = {} as BuiltMachine['status'];
};

const deleting =
  (stage: string, change: (m: BuiltMachine) => void = () => undefined) =>
  (m: BuiltMachine): void => {
    m.metadata.deletionTimestamp = BEGIN;
    m.status.currentStatus.phase = 'Terminating';
    m.status.lastOperation = { type: 'Delete', state: 'Processing', description: stage };
    change(m);
  };

describe('no VM is made for a machine that, while the provider is asked for it,', () => {
  test.each<{ title: string; change: (m: BuiltMachine) => void }>([
    { title: 'is deleted', change: (m) => void (m.metadata.deletionTimestamp = 'now') },
    {
      title: 'is given up',
      change: (m) => void (m.status = { currentStatus: { phase: 'Failed' }, lastOperation: {} }),
    },
    { title: 'is replaced by another one of its name', change: (m) => void (m.metadata.uid = 'of another') },
  ])('$title', async ({ change }) => {
    const world = worldOf(unborn);
    let answer: () => void = () => undefined;
    world.driver.hold = new Promise((resolve) => {
      answer = resolve;
    });
    await world.reconcile();
    await world.settle();
    world.machines.put(
      machine((m) => {
        unborn(m);
        m.metadata.resourceVersion = '2';
        change(m);
      }),
    );

    answer();
    await world.settle();

    expect(world.driver.calls).toEqual(['status']);
  });
});

test('each call about a machine takes a turn at the provider', async () => {
  const world = worldOf(unborn);
  world.driver.methods = new Set(['InitializeMachine']);
  for (let i = 0; i < 4; i++) {
    await world.reconcile();
    await world.settle();
  }
  expect(world.driver.calls).toEqual(['status', 'create', 'initialize']);
  expect(world.driver.turns).toBe(3);
});

test.each([
  { stage: 'Set machine status to termination. Now, getting VM Status', call: 'status' },
  { stage: 'Initiate VM deletion', call: 'delete' },
])('a deletion at "$stage" takes a turn at the provider', async ({ stage, call }) => {
  const world = worldOf(deleting(stage, (m) => (m.metadata.labels = {})));
  world.nodes.cache.remove('m-1');

  await world.reconcile();
  await world.settle();

  expect(world.driver.calls).toEqual([call]);
  expect(world.driver.turns).toBe(1);
});

test('a turn that was given up says nothing about the machine, and comes again', async () => {
  const world = worldOf(unborn);
  world.driver.nextTurn = Promise.reject(new TurnAbandonedError('the process is stopping'));
  await world.reconcile();
  await world.settle();

  const { machine: seen, result } = await world.reconcile();

  expect(seen.status).toEqual({});
  expect(result).toMatchObject({ kind: 'requeue', afterMs: 5_000 });
});

test('no VM is initialized whose machine is deleted while it waits for its turn at the provider', async () => {
  const world = worldOf(unborn);
  world.driver.methods = new Set(['InitializeMachine']);
  for (let i = 0; i < 2; i++) {
    await world.reconcile();
    await world.settle();
  }
  let begin: () => void = () => undefined;
  world.driver.nextTurn = new Promise((resolve) => {
    begin = resolve;
  });
  await world.reconcile();
  await world.settle();
  const calls = [...world.driver.calls];
  const seen = world.machines.get(KEY);
  if (seen !== undefined) {
    world.machines.put({ ...seen, metadata: { ...seen.metadata, resourceVersion: '9000', deletionTimestamp: BEGIN } });
  }

  begin();
  await world.settle();

  expect(world.driver.calls).toEqual(calls);
});

test('no VM is made for a machine that is deleted while it waits for its turn at the provider', async () => {
  const world = worldOf(unborn);
  let begin: () => void = () => undefined;
  world.driver.nextTurn = new Promise((resolve) => {
    begin = resolve;
  });
  await world.reconcile();
  await world.settle();
  world.machines.put(
    machine((m) => {
      unborn(m);
      Object.assign(m.metadata, { resourceVersion: '2', deletionTimestamp: BEGIN });
    }),
  );

  begin();
  await world.settle();

  expect(world.driver.calls).toEqual(['status']);
});

test('no VM is deleted whose Machine has gone while it waits for its turn at the provider', async () => {
  const world = worldOf(deleting('Initiate VM deletion'));
  let begin: () => void = () => undefined;
  world.driver.nextTurn = new Promise((resolve) => {
    begin = resolve;
  });
  await world.reconcile();
  await world.settle();
  world.machines.remove(KEY);

  begin();
  await world.settle();

  expect(world.driver.calls).toEqual([]);
});

test('no VM is made for a machine that is deleted while its bootstrap token is made', async () => {
  const world = worldOf(unborn);
  world.whileToken = () =>
    world.machines.put(
      machine((m) => {
        unborn(m);
        Object.assign(m.metadata, { resourceVersion: '2', deletionTimestamp: BEGIN });
      }),
    );

  await world.reconcile();
  await world.settle();

  expect(world.tokenCalls).toEqual(['ensure']);
  expect(world.driver.calls).toEqual(['status']);
});

test('a VM that has come is recorded before its machine can be given up', async () => {
  const world = worldOf(unborn);
  const { uid } = machine().metadata;
  const launched: Launched = {
    providerID: 'sim:///m-1',
    nodeName: 'm-1',
    addresses: [],
    how: 'created',
    lastKnownState: undefined,
    needsInitialize: false,
  };
  world.activities.startOrGet({ uid, key: KEY, account: 'sim' }, 'create', () => Promise.resolve(launched));
  await world.settle();
  world.clock.advance(21 * MINUTE);

  const { machine: seen } = await world.pass(world.only('creation-timeout'));

  expect(seen.status?.currentStatus?.phase).toBeUndefined();
});

test('a VM is initialized only once its identity is recorded', async () => {
  const world = worldOf(unborn);
  world.driver.methods = new Set(['InitializeMachine']);
  await world.reconcile();
  await world.settle();
  world.losesWrites = true;

  await world.reconcile();
  await world.settle();
  expect(world.driver.calls).toEqual(['status', 'create']);

  world.losesWrites = false;
  await world.reconcile();
  await world.reconcile();
  await world.settle();
  expect(world.driver.calls).toEqual(['status', 'create', 'initialize']);
});

test('while a machine is looked at for the last time, no other one of its set is given up', async () => {
  const world = worldOf(unhealthyIn('set-1'));
  world.machines.put(
    machine((m) => {
      m.metadata.name = 'm-2';
      unhealthyIn('set-1')(m);
    }),
  );

  const [first, second] = await Promise.all([
    world.pass(world.only('health-timeout')),
    world.pass(world.only('health-timeout'), 'default/m-2'),
  ]);

  expect(first.machine.status?.currentStatus?.phase).toBe('Failed');
  expect(second.machine.status?.currentStatus?.phase).toBe('Unknown');
  expect(second.machine.status?.lastOperation?.description).toContain(hold('limit').text);
});

test('a provider\'s own "Canceled" is a failure of it, and told', async () => {
  const world = worldOf(unborn);
  world.driver.failures = { create: [new DriverError('Canceled', 'by an operator')] };
  await world.reconcile();
  await world.settle();

  const { machine: seen } = await world.reconcile();

  expect(seen.status?.lastOperation).toMatchObject({ state: 'Failed', errorCode: 'Canceled' });
});

test('a refused token is told of, and does not let every event ask the provider again', async () => {
  const world = worldOf(unborn);
  world.tokenFailure = new ApiError(403, 'Forbidden', 'no');
  for (let i = 0; i < 4; i++) {
    await world.reconcile();
    await world.settle();
  }

  expect(world.driver.calls).toEqual(['status']);
  expect(world.machines.get(KEY)?.status?.lastOperation).toMatchObject({ errorCode: 'PreparationFailed' });
});

test('a machine that should have joined is not failed in the grace after an outage', async () => {
  const world = worldOf(
    (m) => void (m.status.currentStatus = { phase: 'Pending', lastUpdateTime: '2025-12-31T00:00:00Z' }),
  );
  world.graceLeftMs = 60_000;

  const { machine: seen, result } = await world.pass(world.only('creation-timeout'));

  expect(seen.status?.currentStatus?.phase).toBe('Pending');
  expect(result).toMatchObject({ kind: 'requeue', afterMs: 60_000 });
  world.graceLeftMs = 0;
  expect((await world.pass(world.only('creation-timeout'))).machine.status?.currentStatus?.phase).toBe('Failed');
});

test.each<{ title: string; change: (m: BuiltMachine) => void; want: boolean }>([
  { title: 'waited for its class from the beginning', change: () => undefined, want: true },
  { title: 'has a VM', change: (m) => void (m.spec.providerID = 'sim:///m-1'), want: false },
  { title: 'has a Node', change: (m) => void (m.metadata.labels['node'] = 'm-1'), want: false },
  {
    title: 'was refused by a provider',
    change: (m) => void (m.status.lastOperation.errorCode = 'Internal'),
    want: false,
  },
  { title: 'has had a phase', change: (m) => void (m.status.currentStatus.phase = 'Pending'), want: false },
  { title: 'is being created', change: (m) => void (m.status.lastOperation.state = 'Processing'), want: false },
  { title: 'failed at its health', change: (m) => void (m.status.lastOperation.type = 'HealthCheck'), want: false },
])('a machine that $title was never launched: $want', ({ change, want }) => {
  const seen = machine((m) => {
    unborn(m);
    m.status = { currentStatus: {}, lastOperation: { type: 'Create', state: 'Failed', description: 'x' } };
    change(m);
  });

  expect(wasNeverLaunched(seen)).toBe(want);
});

describe('a deletion', () => {
  test('comes back for a creation that hangs, and breaks it off', async () => {
    const world = worldOf((m) => void (m.metadata.deletionTimestamp = BEGIN));
    const { uid } = machine().metadata;
    let isAborted = false;
    world.activities.startOrGet({ uid, key: KEY, account: 'sim' }, 'create', async (signal) => {
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      isAborted = true;
      return undefined;
    });
    await world.settle();
    world.clock.advance(10_000);
    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: 20_000 });

    world.clock.advance(20_000);
    const { events } = await world.reconcile();
    await world.settle();
    await world.reconcile();

    expect(events.map(({ reason }) => reason)).toEqual(['CreationAborted']);
    expect(isAborted).toBe(false);
    expect(world.activities.get(uid, 'create')?.state).not.toBe('running');
  });

  test('that is forced does not wait for a cluster that cannot be reached', async () => {
    const world = worldOf(
      deleting('Initiate VM deletion', (m) => void (m.metadata.labels[FORCE_DELETION_LABEL] = 'True')),
    );
    world.outages = [{ cluster: 'target', sinceMs: 0, why: 'no answer' }];

    await world.reconcile();
    await world.settle();

    expect(world.driver.calls).toEqual(['delete']);
  });

  test('whose VM is going already is seen to its end in an outage', async () => {
    const world = worldOf(deleting('Initiate VM deletion'));
    await world.reconcile();
    await world.settle();
    world.outages = [{ cluster: 'target', sinceMs: 0, why: 'no answer' }];

    const { events } = await world.reconcile();

    expect(events.map(({ reason }) => reason)).toContain('VMDeleted');
  });

  test.each([
    { title: 'at the drain timeout', timeout: '10s', since: BEGIN, want: 10_000 },
    { title: 'when its Node has been ill for 5 minutes', timeout: '2h', since: '2025-12-31T23:55:20Z', want: 20_000 },
  ])('comes back $title', async ({ timeout, since, want }) => {
    const world = worldOf(deleting('Initiate node drain', (m) => void (m.spec.drainTimeout = timeout)));
    const ill = { type: 'Ready', status: 'Unknown', lastTransitionTime: since };
    world.nodes.cache.put(node((n) => void (n.status.conditions = [ill])));

    expect((await world.reconcile()).result).toMatchObject({ kind: 'requeue', afterMs: want });
  });

  test('is not forced because of another Node of the same name, which is ill', async () => {
    const world = worldOf(deleting('Initiate node drain'));
    const ill = { type: 'Ready', status: 'Unknown', lastTransitionTime: '2025-12-31T23:00:00Z' };
    world.nodes.cache.put(node((n) => void (n.status.conditions = [ill])));
    world.nodes.live.set(
      'm-1',
      node((n) => {
        n.metadata.uid = 'of another';
        n.status.conditions = [ill];
      }),
    );

    await world.reconcile();
    await world.settle();

    expect(world.drains.requests.map(({ force }) => force)).toEqual([false]);
  });

  test('of an old machine looks for no bootstrap token any more', async () => {
    const world = worldOf(
      deleting('Initiate VM deletion', (m) => void (m.metadata.creationTimestamp = '2025-12-01T00:00:00Z')),
    );

    await world.reconcile();

    expect(world.tokenCalls).toEqual([]);
  });
});
