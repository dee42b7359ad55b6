import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../../test/durations.ts';
import { machine, machineClass, node, secret } from '../../../../test/builders.ts';
import type { FakeWorld, PassSeen } from '../../../../test/fakes/machine-world.ts';
import { newMachineWorld } from '../../../../test/fakes/new-machine-world.ts';
import { type DriverCode, DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { ReplacementPace } from '../../machine-facts/pace.ts';
import { explain } from '../explain/explain.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
const KEY = 'default/m-1';

const start = (): FakeWorld => newMachineWorld({ userData: 'token: <<BOOTSTRAP_TOKEN>>' });

let versions = 1_000;
/** Caches take no object of a version that they have. */
function newVersion(): string {
  versions += 1;
  return String(versions);
}

function provideClass(world: FakeWorld, change: (c: ReturnType<typeof machineClass>) => void = () => undefined): void {
  world.classes.put(
    machineClass((c) => {
      Object.assign(c.metadata, { finalizers: [FINALIZER], resourceVersion: newVersion() });
      change(c);
    }),
  );
}

const vm = { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] };

/** States in which a machine can be stuck before it has joined. */
const STUCK: readonly { what: string; arrange: (world: FakeWorld) => void; says: string }[] = [
  {
    what: 'its class is not named',
    arrange: (w) => {
      const current = machineOf(w);
      w.machines.put({ ...current, spec: {}, metadata: { ...current.metadata, resourceVersion: newVersion() } });
    },
    says: 'does not refer to a MachineClass',
  },
  { what: 'its class is missing', arrange: (w) => w.classes.remove('default/class-1'), says: 'not found' },
  {
    what: 'its class is invalid',
    arrange: (w) => provideClass(w, (c) => Object.assign(c.nodeTemplate, { zone: '' })),
    says: 'is invalid',
  },
  {
    what: 'its class is not protected',
    arrange: (w) => provideClass(w, (c) => Object.assign(c.metadata, { finalizers: [] })),
    says: 'is missing finalizer',
  },
  {
    what: 'there is no driver',
    arrange: (w) => provideClass(w, (c) => Object.assign(c, { provider: 'other' })),
    says: 'No driver is configured for provider "other" of MachineClass default/class-1 (configured: "sim"): start the controller',
  },
  { what: 'the Secret is missing', arrange: (w) => w.secrets.remove('default/secret-1'), says: 'does not exist' },
  {
    what: 'the Secret cannot be read',
    arrange: (w) => {
      w.secretFailure = new ApiError(403, 'Forbidden', 'secrets is forbidden');
    },
    says: 'secrets is forbidden',
  },
  {
    what: 'no bootstrap token can be made',
    arrange: (w) => {
      w.tokenFailure = new ApiError(403, 'Forbidden', 'tokens are forbidden');
    },
    says: 'tokens are forbidden',
  },
  {
    what: 'the driver hangs',
    arrange: (w) => {
      w.driver.hold = new Promise(() => undefined);
    },
    says: 'failed to join the cluster in 20m0s',
  },
  {
    what: 'the provider does not know whether there is a VM',
    arrange: (w) => fail(w, 'status', 'Unavailable'),
    says: 'Unavailable',
  },
  { what: 'the provider makes no VM', arrange: (w) => fail(w, 'create', 'ResourceExhausted'), says: 'Exhausted' },
  {
    what: 'the driver tells no Node name',
    arrange: (w) => w.driver.vms.set('m-1', { ...vm, nodeName: '' }),
    says: 'no node name',
  },
  {
    what: 'the VM cannot be initialized',
    arrange: (w) => {
      w.driver.methods.add('InitializeMachine');
      fail(w, 'initialize', 'Internal');
    },
    says: 'Initialize VM Instance',
  },
  { what: 'its VM never joins', arrange: () => undefined, says: 'failed to join the cluster in 20m0s' },
];

function machineOf(world: FakeWorld): ReturnType<typeof machine> {
  return world.machines.get(KEY) as ReturnType<typeof machine>;
}

function fail(world: FakeWorld, call: string, code: DriverCode): void {
  world.driver.failures[call] = Array.from({ length: 5_000 }, () => new DriverError(code, 'words'));
}

/** Passes for so long, each minute and whenever something ended. */
async function runFor(world: FakeWorld, minutes: number): Promise<PassSeen> {
  for (let i = 0; i < minutes; i++) {
    for (let j = 0; j < 4; j++) {
      await world.settle();
      await world.reconcile();
    }
    world.clock.advance(MINUTE);
  }
  return await world.reconcile();
}

describe('the creation timeout', () => {
  test.each(STUCK)('fails a machine although $what', async ({ arrange, says }) => {
    const world = start();
    arrange(world);

    expect((await runFor(world, 18)).machine.status?.currentStatus?.phase).not.toBe('Failed');
    // Twice at most: once until there is a VM, and again until it has joined.
    const { machine: seen } = await runFor(world, 4);

    expect(seen.status?.currentStatus?.phase).toBe('Failed');
    expect(world.failures).toEqual(['creation-timeout']);
    expect(seen.status?.lastOperation).toMatchObject({ state: 'Failed' });
    expect(seen.status?.lastOperation?.description).toContain(says);
    expect(world.events.map(({ reason }) => reason)).toContain('CreationTimeout');
  });

  test.each(STUCK)('is the last that happens to a machine although $what', async ({ arrange }) => {
    const world = start();
    arrange(world);
    await runFor(world, 25);
    const [calls, writes] = [world.driver.calls.length, world.writes];
    world.driver.failures = {};
    world.driver.hold = Promise.resolve();
    provideClass(world);

    await runFor(world, 30);

    // Nobody is asked for the VM of a machine that is given up, whatever is fixed meanwhile.
    expect(world.driver.calls.slice(calls)).toEqual([]);
    expect(world.writes).toBe(writes);
  });

  test('does not count time in which nothing could be seen', async () => {
    const world = start();
    fail(world, 'create', 'Unavailable');
    world.blindMs = 30 * MINUTE;

    expect((await runFor(world, 48)).machine.status?.currentStatus?.phase).not.toBe('Failed');
    expect((await runFor(world, 3)).machine.status?.currentStatus?.phase).toBe('Failed');
  });

  test('gives a VM that came in the last moment the whole time to be initialized', async () => {
    const world = start();
    world.driver.methods.add('InitializeMachine');
    const { promise, resolve } = Promise.withResolvers<void>();
    world.driver.hold = promise;
    await runFor(world, 19);
    resolve();
    fail(world, 'initialize', 'Internal');

    expect((await runFor(world, 19)).machine.status?.currentStatus?.phase).toBe('CrashLoopBackOff');
    expect((await runFor(world, 2)).machine.status?.currentStatus?.phase).toBe('Failed');
  });

  test.each([
    { restarts: 0, codes: ['Internal'] as const },
    { restarts: 3, codes: ['Internal'] as const },
    { restarts: 3, codes: ['Uninitialized'] as const },
    { restarts: 3, codes: ['Uninitialized', 'Internal'] as const },
  ])(
    'gives a VM that is not initialized ($codes) its time once, over $restarts restarts',
    async ({ restarts, codes }) => {
      const world = start();
      world.driver.methods.add('InitializeMachine');
      fail(world, 'create', 'Unavailable');
      world.driver.failures['create'] = world.driver.failures['create']?.slice(0, 10) ?? [];
      world.driver.failures['initialize'] = Array.from({ length: 1_000 }, (_, i) => {
        const code = codes[Math.min(Math.floor(i / 10), codes.length - 1)] ?? 'Internal';
        return new DriverError(code, 'words');
      });
      let minutes = 0;
      while (machineOf(world).spec.providerID === undefined && minutes < 19) {
        await runFor(world, 1);
        minutes += 1;
      }
      expect(machineOf(world).spec.providerID).toBe(vm.providerID);

      for (let i = 0; i < restarts; i++) {
        await runFor(world, 5);
        world.restart();
        world.driver.failures['status'] = [new DriverError('Uninitialized', 'x', { result: vm })];
      }
      await runFor(world, 18 - 5 * restarts);
      expect(machineOf(world).status.currentStatus.phase).toBe('CrashLoopBackOff');
      await runFor(world, 3);
      expect(machineOf(world).status.currentStatus.phase).toBe('Failed');
    },
  );
});

describe('a machine whose Node is healthy, and whose VM is not initialized', () => {
  const joined = (): FakeWorld => {
    const world = start();
    world.driver.methods.add('InitializeMachine');
    world.nodes.cache.put(
      node((n) => {
        n.metadata.finalizers = ['node.machine.sapcloud.io/machine-controller'];
        n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
        n.status.conditions = [{ type: 'Ready', status: 'True' }];
      }),
    );
    return world;
  };

  test('is Running once it is initialized, and not before', async () => {
    const world = joined();
    fail(world, 'initialize', 'Internal');
    await runFor(world, 10);
    expect(machineOf(world).status.currentStatus.phase).toBe('CrashLoopBackOff');

    world.driver.failures = {};
    await runFor(world, 9);

    expect(machineOf(world).status.currentStatus.phase).toBe('Running');
    expect(world.events.map(({ reason }) => reason)).toContain('VMInitialized');
  });

  /** What is in the way after InitializeMachine has failed. */
  const AFTERWARDS: readonly { what: string; arrange: (world: FakeWorld) => void }[] = [
    { what: 'the driver is not up after a restart', arrange: (w) => fail(w, 'status', 'Unavailable') },
    { what: 'several VMs match', arrange: (w) => fail(w, 'status', 'OutOfRange') },
    { what: 'the Secret is missing', arrange: (w) => w.secrets.remove('default/secret-1') },
    {
      what: 'the Secret cannot be read',
      arrange: (w) => {
        w.secretFailure = new ApiError(403, 'Forbidden', 'secrets is forbidden');
      },
    },
    {
      what: 'the class is invalid',
      arrange: (w) => provideClass(w, (c) => Object.assign(c.nodeTemplate, { zone: '' })),
    },
  ];

  test.each(AFTERWARDS.flatMap((row) => (['Internal', 'Uninitialized'] as const).map((code) => ({ ...row, code }))))(
    'waits for that when it has failed ($code), and then $what',
    async ({ arrange, code }) => {
      const world = joined();
      fail(world, 'initialize', code);
      await runFor(world, 2);
      const { description } = machineOf(world).status.lastOperation;

      world.restart();
      arrange(world);
      await runFor(world, 5);

      expect(machineOf(world).status.currentStatus.phase).toBe('CrashLoopBackOff');
      expect(machineOf(world).status.lastOperation.description).not.toBe(description);

      world.driver.failures = {};
      world.secretFailure = undefined;
      world.secrets.put(secret((one) => Object.assign(one.metadata, { resourceVersion: newVersion() })));
      provideClass(world);
      world.restart();
      world.driver.failures['status'] = [new DriverError('Uninitialized', 'x', { result: vm })];
      await runFor(world, 5);

      expect(machineOf(world).status.currentStatus.phase).toBe('Running');
      expect(world.driver.calls.at(-1)).toBe('initialize');
    },
  );

  test.each(['Unimplemented', 'NotFound'] as const)(
    'is asked for again after a restart, also when GetMachineStatus answers %s',
    async (code) => {
      const world = joined();
      fail(world, 'initialize', 'Internal');
      await runFor(world, 2);
      world.restart();
      fail(world, 'status', code);
      const { length } = world.driver.calls;

      await runFor(world, 3);
      expect(machineOf(world).status.currentStatus.phase).toBe('CrashLoopBackOff');
      expect(world.driver.calls.slice(length)).toContain('initialize');

      world.driver.failures = {};
      await runFor(world, 5);
      expect(machineOf(world).status.currentStatus.phase).toBe('Running');
    },
  );

  test.each([{ restarts: false }, { restarts: true }])(
    'waits for that when CreateMachine had failed before (the manager restarts: $restarts)',
    async ({ restarts }) => {
      const world = joined();
      world.driver.failures['create'] = [new DriverError('ResourceExhausted', 'words')];
      await runFor(world, 1);
      expect(machineOf(world).status.lastOperation.description).toContain('Exhausted');
      world.driver.initialize = () => {
        world.driver.calls.push('initialize');
        return new Promise(() => undefined);
      };
      await runFor(world, 15);
      expect(world.driver.calls.at(-1)).toBe('initialize');
      if (restarts) {
        world.restart();
        fail(world, 'status', 'Unavailable');
        await runFor(world, 2);
      }

      expect(machineOf(world).status.currentStatus.phase).toBe('CrashLoopBackOff');
      expect(machineOf(world).status.lastOperation.errorCode).toBe('VMBeingInitialized');
    },
  );

  test('is initialized when the VM has no twin any more, because of which that had failed', async () => {
    const world = joined();
    fail(world, 'initialize', 'OutOfRange');
    await runFor(world, 10);
    expect(machineOf(world).status.currentStatus.phase).toBe('CrashLoopBackOff');

    world.driver.failures = {};
    await runFor(world, 2);

    expect(machineOf(world).status.currentStatus.phase).toBe('Running');
    expect(world.driver.calls.at(-1)).toBe('initialize');
  });

  test('is initialized when only one VM is left, and it has not run before', async () => {
    const world = joined();
    world.nodes.cache.put(
      node((n) => {
        Object.assign(n.metadata, world.nodes.cache.get('m-1')?.metadata, { resourceVersion: newVersion() });
        n.status.conditions = [{ type: 'Ready', status: 'False' }];
      }),
    );
    fail(world, 'initialize', 'Internal');
    await runFor(world, 2);
    world.restart();
    fail(world, 'status', 'OutOfRange');
    await runFor(world, 5);
    expect(machineOf(world).status.lastOperation.errorCode).toBe('VMBeingInitialized');

    world.restart();
    world.driver.failures = {};
    fail(world, 'status', 'Unimplemented');
    await runFor(world, 5);

    expect(machineOf(world).status.currentStatus.phase).toBe('Pending');
    expect(world.driver.calls.at(-1)).toBe('initialize');
  });

  test.each(['Internal', 'Uninitialized'] as const)('stays Failed after the creation timeout (%s)', async (code) => {
    const world = joined();
    world.driver.failures['initialize'] = Array.from({ length: 5_000 }, () => new DriverError(code, 'words'));

    await runFor(world, 30);

    expect(machineOf(world).status.currentStatus.phase).toBe('Failed');
  });
});

describe('a machine past its creation timeout, whose Node is healthy and not set up', () => {
  const owner = {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'MachineSet',
    name: 'set',
    uid: 'set-uid',
    controller: true,
  };
  interface Other {
    readonly phase: string;
    readonly since?: string;
    readonly deleted?: string;
    /** What its creation has failed with, so that it has no VM. */
    readonly lacks?: string;
  }
  const JOINING: Other = { phase: 'Pending', since: '2026-01-01T00:20:00Z' };
  const EXHAUSTED: Other = {
    phase: 'CrashLoopBackOff',
    since: '2026-01-01T00:15:00Z',
    lacks: 'ResourceExhausted',
  };
  const LEAVING: Other = { phase: 'Terminating', deleted: '2026-01-01T00:02:00Z' };
  const LONG_LEAVING: Other = { phase: 'Terminating', deleted: '2026-01-01T00:01:00Z' };
  const TAINT = { key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' };

  const place = (world: FakeWorld, name: string, { phase, since, deleted, lacks }: Other): void =>
    void world.machines.put(
      machine((m) => {
        Object.assign(m.metadata, { name, uid: `uid-of-${name}`, finalizers: [FINALIZER], ownerReferences: [owner] });
        m.metadata.resourceVersion = newVersion();
        m.metadata.creationTimestamp = since ?? '2026-01-01T00:00:00Z';
        if (deleted !== undefined) m.metadata.deletionTimestamp = deleted;
        m.metadata.labels = { node: name };
        if (lacks === undefined) m.spec.providerID = `sim:///${name}`;
        else delete m.spec.providerID;
        const operation =
          lacks === undefined
            ? { type: 'Create', state: 'Processing', description: 'Creating machine on cloud provider' }
            : { type: 'Create', state: 'Failed', errorCode: lacks, description: 'Cloud provider message - no.' };
        m.status = {
          currentStatus: { phase, lastUpdateTime: since ?? '2026-01-01T00:00:00Z' },
          lastOperation: { ...operation, lastUpdateTime: '2026-01-01T00:00:00Z' },
        } as typeof m.status;
      }),
    );

  function late({ others }: { readonly others: readonly Other[] }): FakeWorld {
    const world = start();
    place(world, 'm-1', { phase: 'Pending' });
    for (const [i, other] of others.entries()) place(world, `other-${i}`, other);
    world.nodes.cache.put(setUp([TAINT]));
    world.nodes.live.set('m-1', setUp([TAINT]));
    world.clock.advance(21 * MINUTE);
    return world;
  }
  const setUp = (taints: readonly { key: string; effect: string }[]): ReturnType<typeof node> =>
    node((n) => {
      n.metadata.finalizers = ['node.machine.sapcloud.io/machine-controller'];
      n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
      n.metadata.resourceVersion = taints.length === 0 ? '20' : '10';
      n.spec.taints = [...taints];
      n.status.conditions = [{ type: 'Ready', status: 'True' }];
    });

  function join(world: FakeWorld, name: string): void {
    const joined = setUp([TAINT]);
    Object.assign(joined.metadata, { name, uid: `node-${name}`, resourceVersion: newVersion() });
    joined.metadata.labels['node.gardener.cloud/machine-name'] = name;
    joined.spec.providerID = `sim:///${name}`;
    world.nodes.cache.put(joined);
    world.nodes.live.set(name, joined);
  }

  test.each([
    { what: 'it is the only one', others: [], phase: 'Failed' },
    { what: 'all others run', others: [{ phase: 'Running' }], phase: 'Failed' },
    { what: 'all others are overdue, too', others: [{ phase: 'Pending' }, { phase: 'Pending' }], phase: 'Failed' },
    { what: 'another one may still join', others: [{ phase: 'Running' }, JOINING], phase: 'Pending' },
    { what: 'another one is being replaced', others: [{ phase: 'Failed' }], phase: 'Pending' },
    { what: 'another one is being deleted', others: [LEAVING], phase: 'Pending' },
    {
      what: 'another one that is overdue, too, has just been deleted',
      others: [{ phase: 'Pending', deleted: '2026-01-01T00:20:59Z' }],
      phase: 'Pending',
    },
    { what: 'another one is being deleted for a creation timeout', others: [LONG_LEAVING], phase: 'Failed' },
    {
      what: 'another one is being deleted for a creation timeout, and one that came for it may still join',
      others: [LONG_LEAVING, JOINING],
      phase: 'Pending',
    },
    { what: 'others get no VM for lack of capacity', others: [EXHAUSTED, EXHAUSTED], phase: 'Failed' },
    {
      what: 'another one that got no VM for lack of capacity is given up',
      others: [{ ...EXHAUSTED, phase: 'Failed' }],
      phase: 'Failed',
    },
    {
      what: 'the creation of another one fails for another reason',
      others: [{ ...EXHAUSTED, lacks: 'Internal' }],
      phase: 'Pending',
    },
  ] satisfies { what: string; others: readonly Other[]; phase: string }[])(
    'is $phase when $what',
    async ({ others, phase }) => {
      const world = late({ others });

      await world.reconcile();

      expect(machineOf(world).status.currentStatus.phase).toBe(phase);
    },
  );

  test.each([
    {
      what: 'not healthy',
      conditions: [{ type: 'Ready', status: 'False', reason: 'KubeletNotReady' }],
      says: 'is not healthy, Ready is False (KubeletNotReady)',
    },
    { what: 'without conditions', conditions: [], says: 'reports no conditions' },
  ])('waits for its turn, too, when its Node is $what', async ({ conditions, says }) => {
    const world = late({ others: [{ phase: 'Failed' }] });
    const joined = setUp([]);
    joined.status.conditions = conditions;
    world.nodes.cache.put(joined);
    world.nodes.live.set('m-1', joined);

    await world.reconcile();

    expect(machineOf(world).status.currentStatus.phase).toBe('Pending');
    expect(machineOf(world).status.lastOperation.description).toContain(`Node m-1 ${says}. Not replaced yet: `);
  });

  test('waits for its turn, too, when it is not known whose Node it is', async () => {
    const world = late({ others: [{ phase: 'Failed' }] });
    Object.assign(world.machines, { reachesAcross: true });
    const joined = setUp([]);
    Object.assign(joined, { spec: {}, metadata: { ...joined.metadata, labels: {} } });
    world.nodes.cache.put(joined);
    world.nodes.live.set('m-1', joined);

    await runFor(world, 30);

    expect(machineOf(world).status.currentStatus.phase).toBe('Pending');
    expect(machineOf(world).status.lastOperation.errorCode).toBe('NodeUnidentified');
    expect(world.events.filter(({ reason }) => reason === 'ReplacementDelayed')).toMatchObject([
      { message: expect.stringMatching(/^Not replaced yet: .* no more replacements/) },
    ]);
    expect(explain(machineOf(world), world.clock.now()).nextStep).toContain('it is replaced only in its turn');
  });

  test('is not given up when it has all that it needs, and its driver is being asked', async () => {
    const world = late({ others: [] });
    world.nodes.cache.put(setUp([]));
    const current = machineOf(world);
    const told = { type: 'Create', state: 'Failed', description: 'Cloud provider message - no.' };
    world.machines.put({
      ...current,
      metadata: { ...current.metadata, resourceVersion: newVersion() },
      status: { currentStatus: { phase: 'CrashLoopBackOff' }, lastOperation: told },
    } as typeof current);
    world.driver.hold = new Promise(() => undefined);

    await runFor(world, 30);

    expect(machineOf(world).status.currentStatus.phase).toBe('CrashLoopBackOff');
    expect(explain(machineOf(world), world.clock.now()).nextStep).toContain('it is replaced only in its turn');
  });

  test('is given up one at a time when several are overdue', async () => {
    const world = late({ others: [{ phase: 'Pending' }, { phase: 'Pending' }, { phase: 'Pending' }] });
    const failed = (): number => world.machines.list().filter((one) => phaseOf(one) === 'Failed').length;
    for (const name of ['other-0', 'other-1', 'other-2']) join(world, name);

    for (let i = 0; i < 3; i++)
      for (const { metadata } of world.machines.list()) await world.reconcile(`default/${metadata.name}`);

    expect(failed()).toBe(1);
  });

  test.each([
    { process: 'the process that has given up the last', restarts: false },
    { process: 'another process', restarts: true },
  ])(
    'is given up one creation timeout after the last when what came in its place lacks capacity, by $process',
    async ({ restarts }) => {
      const world = late({ others: [{ phase: 'Pending' }] });
      join(world, 'other-0');
      await world.reconcile('default/other-0');
      expect(phaseOf(world.machines.get('default/other-0') as ReturnType<typeof machine>)).toBe('Failed');
      world.machines.remove('default/other-0');
      let trustedMs = 60 * MINUTE;
      if (restarts) {
        trustedMs = 0;
        Object.assign(world, { pace: new ReplacementPace({ clock: world.clock }) });
        world.restart();
      }
      world.trustedForMs = () => trustedMs;

      for (let i = 0; i < 20; i++) {
        // One that gets no VM in time is replaced, too.
        if (i % 10 === 0) place(world, 'new', { ...EXHAUSTED, since: toTimestamp(world.clock.now()) });
        await world.reconcile();
        expect(machineOf(world).status.currentStatus.phase).toBe('Pending');
        world.clock.advance(MINUTE);
        trustedMs += MINUTE;
      }

      await world.reconcile();
      expect(machineOf(world).status.currentStatus.phase).toBe('Failed');
    },
  );

  test.each([
    { what: 'its creation timeout is raised', change: (w: FakeWorld) => void (w.settings.creationTimeoutMs *= 2) },
    { what: 'it is known that nothing could be seen', change: (w: FakeWorld) => void (w.blindMs = 5 * MINUTE) },
  ])('no longer says that it waits for its turn when $what', async ({ change }) => {
    const world = late({ others: [{ phase: 'Failed' }] });
    await world.reconcile();
    expect(machineOf(world).status.lastOperation.errorCode).toBe('TooManyReplacements');
    world.graceLeftMs = MINUTE;
    const { writes } = world;
    await world.reconcile();
    expect(world.writes).toBe(writes);

    change(world);
    await world.reconcile();

    expect(machineOf(world).status.lastOperation).toMatchObject({
      type: 'Create',
      state: 'Processing',
      description: 'Creating machine on cloud provider',
    });
    expect(machineOf(world).status.lastOperation.errorCode).toBeUndefined();
  });

  test('says why it is not given up, once, and runs when it is set up', async () => {
    const world = late({ others: [{ phase: 'Failed' }] });
    await world.reconcile();

    expect(machineOf(world).status.lastOperation).toMatchObject({
      type: 'Create',
      state: 'Processing',
      errorCode: 'TooManyReplacements',
      description: expect.stringMatching(
        /^Machine m-1 has not joined the cluster in 20m0s: Node m-1 is healthy, and still has taint node.cloudprovider.kubernetes.io\/uninitialized\. Not replaced yet: /,
      ),
    });
    const told = (): number => world.events.filter(({ reason }) => reason === 'ReplacementDelayed').length;
    expect(told()).toBe(1);
    const { writes } = world;
    await runFor(world, 60);
    expect(world.writes).toBe(writes);
    expect(told()).toBe(1);

    world.nodes.cache.put(setUp([]));
    await world.reconcile();
    expect(machineOf(world).status.currentStatus.phase).toBe('Running');
  });
});

describe('a machine that was given up while its creation waited for its turn', () => {
  test.each([
    { what: 'failed', change: { status: { currentStatus: { phase: 'Failed' as const } } } },
    { what: 'deleted', change: {} },
  ])('gets no VM: $what', async ({ what, change }) => {
    const world = start();
    const { promise, resolve } = Promise.withResolvers<void>();
    world.driver.hold = promise;
    await world.reconcile();
    const current = machineOf(world);
    const metadata = { ...current.metadata, resourceVersion: newVersion() };
    if (what === 'deleted') Object.assign(metadata, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    world.machines.put({ ...current, ...change, metadata });

    resolve();
    await world.settle();

    expect(world.driver.calls).toEqual(['status']);
    expect(world.tokenCalls).toEqual([]);
  });
});

describe('the last look before a creation timeout', () => {
  const notReady = (): ReturnType<typeof node> =>
    node((n) => void (n.status.conditions = [{ type: 'Ready', status: 'False' }]));

  /** Pending for longer than it may, and the cache has no Node. */
  function late(): FakeWorld {
    const world = start();
    world.machines.put(
      machine((m) => {
        m.metadata.finalizers = [FINALIZER];
        m.metadata.resourceVersion = newVersion();
        m.status.currentStatus = { phase: 'Pending', lastUpdateTime: '2026-01-01T00:00:00Z', timeoutActive: true };
      }),
    );
    world.clock.advance(21 * MINUTE);
    return world;
  }

  test.each([
    { what: 'a Node that the cache does not know', live: node(), cached: undefined, phase: 'Pending' },
    { what: 'the Node that the cache knows', live: notReady(), cached: notReady(), phase: 'Failed' },
    { what: 'no Node', live: undefined, cached: undefined, phase: 'Failed' },
    {
      what: 'a healthy Node whose provider id has another form',
      live: node((n) => void (n.spec = { providerID: 'cloud://instances/9' })),
      cached: undefined,
      phase: 'Pending',
    },
    {
      what: 'a Node of another machine',
      live: node((n) => void (n.spec = { providerID: 'sim:///m-2' })),
      cached: undefined,
      other: 'sim:///m-2',
      phase: 'Failed',
    },
  ])('that finds $what leaves the machine $phase', async ({ live, cached, other, phase }) => {
    const world = late();
    if (other !== undefined) {
      world.machines.put(
        machine((m) => {
          m.metadata.name = 'm-2';
          m.metadata.uid = 'uid-of-m-2';
          m.spec.providerID = other;
        }),
      );
    }
    if (cached !== undefined) world.nodes.cache.put(cached);
    world.nodes.live.set('m-1', live);

    const { machine: seen } = await world.reconcile();

    expect(seen.status?.currentStatus?.phase).toBe(phase);
    expect(world.nodes.done).toContain('read m-1');
  });

  test.each([
    { what: 'is being deleted', change: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
    { what: 'has changed', change: { resourceVersion: '999999' } },
  ])('that finds that the Machine $what waits for the cache', async ({ change }) => {
    const world = late();
    const observed = machineOf(world);
    world.liveMachines.set(KEY, { ...observed, metadata: { ...observed.metadata, ...change } });

    const { machine: seen, result } = await world.reconcile();

    expect(seen.status?.currentStatus?.phase).toBe('Pending');
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 1_000 });
  });
});

describe('a new machine without our finalizer', () => {
  /** Passes of which each is refused our finalizer, as the controller keeps them; the phase after its creation timeout. */
  async function phaseAfter(change: (m: ReturnType<typeof machine>) => void): Promise<string> {
    const world = start();
    world.machines.put(
      machine((m) => {
        Object.assign(m, machineOf(world));
        m.metadata = { ...m.metadata, finalizers: [], resourceVersion: newVersion() };
        change(m);
      }),
    );
    world.clock.advance(20 * MINUTE);
    return phaseOf((await world.reconcile()).machine);
  }

  test('becomes Failed at its creation timeout', async () => {
    expect(await phaseAfter(() => undefined)).toBe('Failed');
  });

  test.each([
    {
      what: 'a creation was sent for it',
      change: (m) => void (m.metadata.annotations = { 'machine.sapcloud.io/creation-sent-at': '2026-01-01T00:00:00Z' }),
    },
    {
      what: 'a provider has failed to make its VM',
      change: (m) => {
        m.status = {
          currentStatus: { phase: 'CrashLoopBackOff' },
          lastOperation: { type: 'Create', state: 'Failed', errorCode: 'DeadlineExceeded', description: 'x' },
        };
      },
    },
    { what: 'its VM is recorded', change: (m) => void (m.spec = { ...m.spec, providerID: 'sim:///m-1' }) },
  ] satisfies { what: string; change: (m: ReturnType<typeof machine>) => void }[])(
    'does not when $what: its deletion would leave the VM behind',
    async ({ change }) => {
      expect(await phaseAfter(change)).not.toBe('Failed');
    },
  );
});
