import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, machineDeployment, machineSet, node, secret } from '../../../../test/builders.ts';
import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { FakeWorld, type PassSeen } from '../../../../test/fakes/machine-world.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
const POLICY = 'machine.sapcloud.io/deletion-policy';
const IN_FORCE = 'machine.sapcloud.io/deletion-policy-in-force';
const SINCE = 'machine.sapcloud.io/forced-deletion-since';
const KEY = 'default/m-1';
const BLOCKED = {
  remainingPods: 1,
  blocked: [{ pod: 'ns/db', reason: 'disruption-budget', detail: 'db' }],
} as const;
const DOWN = new DriverError('Unavailable', 'the provider is down');

/** A Machine whose deletion was asked for a moment ago with this policy, its VM and its Node. */
function start(policy: string | undefined, change: (m: Machine) => void = () => undefined): FakeWorld {
  const world = new FakeWorld();
  world.driver.methods = new Set(['ListMachines']);
  world.driver.notFound = () => new DriverError('NotFound', 'no VM');
  world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
  world.classes.put(machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER] })));
  world.secrets.put(secret());
  world.nodes.cache.put(node());
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [FINALIZER];
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      m.status.conditions = [{ type: 'Ready', status: 'True' }];
      if (policy !== undefined) m.metadata.annotations = { [POLICY]: policy };
      change(m);
    }),
  );
  return world;
}

const current = (world: FakeWorld): Machine | undefined => world.machines.get(KEY);
const description = (world: FakeWorld): string => current(world)?.status?.lastOperation?.description ?? '(gone)';
const inForce = (world: FakeWorld): string | undefined => current(world)?.metadata.annotations?.[IN_FORCE];
const reasons = (world: FakeWorld): string[] => world.events.map(({ reason }) => reason);

/** Passes until nothing moves without an event from outside. */
async function run(world: FakeWorld): Promise<PassSeen | undefined> {
  let seen: PassSeen | undefined;
  for (let quiet = 0; quiet < 4 && current(world) !== undefined; quiet++) {
    const before = current(world);
    const calls = world.driver.calls.length + world.drains.requests.length;
    seen = await world.reconcile();
    await world.settle();
    if (current(world) !== before || world.driver.calls.length + world.drains.requests.length !== calls) quiet = -1;
  }
  return seen;
}

test('what is recorded of a deletion in a former life, as in a backup that was restored, does not hold for this one', async () => {
  const former = '2025-06-01T00:00:00Z';
  const world = start(undefined, (m) => {
    m.metadata.annotations = { [IN_FORCE]: 'forced', [SINCE]: former, 'machine.sapcloud.io/drain-since': former };
  });
  world.driver.failures = { delete: Array.from({ length: 5 }, () => DOWN) };

  await run(world);

  expect(current(world)?.metadata.annotations).toEqual({});
  expect(world.drains.requests).toMatchObject([{ force: false }]);
  expect(world.notedRemovals).toEqual([]);
});

describe('policy graceful', () => {
  test('drains without ever deleting a pod: no retries, no timeout, no broken Node', async () => {
    const world = start('graceful');
    world.nodes.cache.put(
      node((n) => {
        const since = '2025-12-31T23:00:00Z';
        n.metadata.resourceVersion = '2';
        n.status.conditions = [{ type: 'Ready', status: 'False', lastTransitionTime: since }];
      }),
    );

    await run(world);

    expect(inForce(world)).toBe('graceful');
    expect(world.drains.requests).toMatchObject([{ force: false, maxEvictRetries: Infinity }]);
  });

  test('has failed when the drain timeout has passed, says so once, and goes on until the pods leave', async () => {
    const world = start('graceful');
    await run(world);
    world.drains.report(BLOCKED);
    world.clock.advance(10 * SECOND);
    await run(world);
    expect(current(world)?.status?.lastOperation?.state).toBe('Processing');
    expect(description(world)).not.toContain('pods are deleted at');

    world.drains.end({ kind: 'incomplete', progress: BLOCKED });
    world.clock.advance(2 * 60 * MINUTE);
    await run(world);
    world.drains.report(BLOCKED);
    world.clock.advance(MINUTE);
    await run(world);

    expect(world.drains.requests.map(({ force }) => force)).toEqual([false, false]);
    expect(world.drains.requests[1]?.deadlineMs).toBeGreaterThan(world.clock.now());
    expect(current(world)?.status?.lastOperation).toMatchObject({ state: 'Failed', type: 'Delete' });
    expect(description(world)).toContain('does not allow deleting pods');
    expect(description(world)).toContain('ns/db (PodDisruptionBudget db currently allows no eviction)');
    expect(reasons(world).filter((reason) => reason === 'DrainForced')).toEqual([]);
    expect(world.driver.calls).toEqual([]);

    world.drains.end({ kind: 'drained' });
    await run(world);
    expect(current(world)).toBeUndefined();
    expect(world.driver.calls).toEqual(['delete']);
  });

  test('is forced all the same by label force-deletion, which keeps its meaning', async () => {
    const world = start('graceful', (m) => Object.assign(m.metadata.labels ?? {}, { 'force-deletion': 'true' }));

    await run(world);

    expect(world.drains.requests).toMatchObject([{ force: true }]);
  });

  test('that comes while a drain runs ends it, and another one begins that nothing forces', async () => {
    const world = start(undefined);
    await run(world);
    expect(world.drains.requests).toMatchObject([{ maxEvictRetries: 360 }]);

    world.annotate(current(world) as Machine, { [POLICY]: 'graceful' });
    await run(world);

    expect(world.drains.requests).toMatchObject([
      { maxEvictRetries: 360 },
      { maxEvictRetries: Infinity, force: false },
    ]);
  });
});

describe.each(['unsafe', 'forced'])('policy %s', (policy) => {
  test('deletes the VM at once: no drain, no VolumeAttachments, no question to the provider', async () => {
    const world = start(policy, (m) => delete m.metadata.labels?.['node']);

    await run(world);

    expect(world.drains.requests).toEqual([]);
    expect(world.driver.calls).toEqual(['delete']);
    expect(world.nodes.done).toEqual(['remove m-1']);
    expect(current(world)).toBeUndefined();
    expect(reasons(world)).toEqual(['NodeLabelCorrected', 'VMDeleted']);
  });

  test('that comes while a drain is blocked ends it in one pass', async () => {
    const world = start('graceful');
    await run(world);
    expect(description(world)).toContain('Initiate node drain');

    world.annotate(current(world) as Machine, { [POLICY]: policy });
    await world.reconcile();

    expect(inForce(world)).toBe(policy);
    expect(description(world)).toBe(`Not draining the Node: the deletion policy is ${policy}. Initiate VM deletion`);
    await run(world);
    expect(current(world)).toBeUndefined();
  });

  // promise: deletion-policies/policy-weakens
  // promise: openstack/deletion/policy-weakens
  test('holds when nobody asks for it any more, and cannot be taken back', async () => {
    const world = start(policy);
    world.driver.failures = { delete: Array.from({ length: 5 }, () => DOWN) };
    await run(world);

    world.annotate(current(world) as Machine, { [POLICY]: 'graceful' });
    await run(world);
    await run(world);

    expect(inForce(world)).toBe(policy);
    expect(world.drains.requests).toEqual([]);
    expect(reasons(world).filter((reason) => reason === 'DeletionPolicyKept')).toHaveLength(1);
  });
});

describe('policy unsafe', () => {
  test('waits for the provider for as long as it takes', async () => {
    const world = start('unsafe');
    world.driver.failures = { delete: Array.from({ length: 50 }, () => DOWN) };

    for (let i = 0; i < 20; i++) {
      await run(world);
      world.clock.advance(MINUTE);
    }

    expect(current(world)?.metadata.finalizers).toEqual([FINALIZER]);
    expect(world.notedRemovals).toEqual([]);
  });
});

describe('policy forced', () => {
  const failing = (change?: (m: Machine) => void): FakeWorld => {
    const world = start('forced', change);
    world.driver.failures = { delete: Array.from({ length: 50 }, () => DOWN) };
    return world;
  };
  const fail = async (world: FakeWorld, forMs: number): Promise<void> => {
    for (let ms = 0; ms < forMs; ms += 30 * SECOND) {
      await run(world);
      world.clock.advance(30 * SECOND);
    }
    await run(world);
  };

  test('lets the Machine go when the VM could not be deleted for the timeout, and the class notes it first', async () => {
    const world = failing();

    await fail(world, 4 * MINUTE);
    expect(current(world)?.metadata.annotations?.[SINCE]).toBe('2026-01-01T00:00:00Z');
    expect(world.notedRemovals).toEqual([]);
    await fail(world, MINUTE);

    expect(current(world)).toBeUndefined();
    expect(world.notedRemovals).toEqual(['class-1']);
    const [event] = world.events.filter(({ reason }) => reason === 'ForcedRemoval');
    expect(event).toMatchObject({ type: 'Warning', message: expect.stringContaining('VM sim:///m-1 was not') });
    // Its Node goes with its VM.
    expect(world.nodes.done).toEqual([]);
  });

  // promise: deletion-policies/forced-machine-goes-itself
  // promise: openstack/deletion/between-timeout-30-later
  test('lets the Machine go by itself between the timeout and 30 s later', async () => {
    const world = failing();
    world.driver.failures = { delete: Array.from({ length: 1_000 }, () => DOWN) };
    const startMs = world.clock.now();

    for (let wakes = 0; wakes < 100 && current(world) !== undefined; wakes++) {
      const seen = await run(world);
      // Nobody else wakes it.
      if (seen?.result.kind === 'requeue' && current(world) !== undefined) world.clock.advance(seen.result.afterMs);
    }

    expect(world.notedRemovals).toEqual(['class-1']);
    const tookMs = world.clock.now() - startMs;
    expect(tookMs).toBeGreaterThanOrEqual(5 * MINUTE);
    expect(tookMs).toBeLessThanOrEqual(5 * MINUTE + 30 * SECOND);
  });

  // promise: deletion-policies/nothing-deletes-vm-event
  test.each([
    {
      leftVMs: 'deleted',
      says:
        'It and Node m-1 are deleted after the provider responds again, ' +
        'together with all other resources of the machine.',
    },
    {
      leftVMs: 'reported',
      says: 'because --machine-safety-orphan-vms-dry-run is set: delete it and Node m-1 manually.',
    },
    {
      leftVMs: 'not-looked-for',
      says: 'safety.orphan-vms is not running in this process: delete it and Node m-1 manually.',
    },
  ] as const)('says what becomes of a VM that is $leftVMs', async ({ leftVMs, says }) => {
    const world = failing();
    world.leftVMs = leftVMs;
    world.restart();

    await fail(world, 6 * MINUTE);

    expect(current(world)).toBeUndefined();
    expect(world.events.find(({ reason }) => reason === 'ForcedRemoval')?.message).toContain(says);
  });

  test('keeps counting over a restart, after which the VM is tried once more before the Machine goes', async () => {
    const world = failing();
    await fail(world, 4 * MINUTE);
    world.restart();
    world.clock.advance(10 * MINUTE);
    const tries = world.driver.calls.length;

    await world.reconcile();
    expect(current(world)).toBeDefined();
    await run(world);

    expect(world.driver.calls.length).toBe(tries + 1);
    expect(current(world)).toBeUndefined();
  });

  test('counts from now when a time to come is recorded, such as by a clock that was wrong', async () => {
    const world = failing();
    await fail(world, MINUTE);
    world.annotate(current(world) as Machine, { [SINCE]: toTimestamp(world.clock.now() + 60 * MINUTE) });

    await fail(world, 4 * MINUTE);
    expect(current(world)).toBeDefined();
    await fail(world, 2 * MINUTE);

    expect(current(world)).toBeUndefined();
  });

  test('that comes late counts from then on', async () => {
    const world = start('unsafe');
    world.driver.failures = { delete: Array.from({ length: 50 }, () => DOWN) };
    await fail(world, 20 * MINUTE);

    world.annotate(current(world) as Machine, { [POLICY]: 'forced' });
    await fail(world, 4 * MINUTE);
    expect(current(world)).toBeDefined();
    await fail(world, 2 * MINUTE);

    expect(current(world)).toBeUndefined();
  });

  test.each([
    {
      what: 'the class cannot note it',
      change: (world: FakeWorld) => void (world.noteFailure = new ApiError(403, 'Forbidden', 'no patch')),
      says: 'could not be annotated: no patch',
    },
    {
      what: 'the class is being deleted',
      change: (world: FakeWorld) => world.classes.put(machineClass((c) => void (c.metadata.resourceVersion = '2'))),
      says: 'MachineClass class-1 is being deleted',
    },
    {
      what: 'the driver cannot list VMs',
      change: (world: FakeWorld) => void (world.driver.methods = new Set()),
      says: 'cannot list VMs',
    },
  ])('keeps the Machine when $what', async ({ change, says }) => {
    const world = failing();
    change(world);

    await fail(world, 6 * MINUTE);

    expect(current(world)?.metadata.finalizers).toEqual([FINALIZER]);
    const held = world.events.filter(({ reason }) => reason === 'ForcedRemovalHeld');
    expect(held.map(({ message }) => message)).toEqual([expect.stringContaining(says)]);
    expect(description(world)).toContain('the provider is down');
    expect(reasons(world).filter((reason) => reason === 'VMDeletionFailed')).toHaveLength(1);
  });

  test('keeps a Machine whose class is gone: nobody could find its VM again', async () => {
    const world = failing();
    world.classes.remove('default/class-1');

    await fail(world, 6 * MINUTE);

    expect(current(world)?.metadata.finalizers).toEqual([FINALIZER]);
  });
});

describe('whose policy it is', () => {
  const owned = (policy: string, own?: string): FakeWorld => {
    const world = start(own, (m) => {
      const owner = { kind: 'MachineSet', name: 'set-1', uid: 'uid-of-set', controller: true };
      m.metadata.ownerReferences = [{ apiVersion: 'machine.sapcloud.io/v1alpha1', ...owner }];
    });
    world.owners.sets.put(
      machineSet((s) => {
        Object.assign(s.metadata, { name: 'set-1', uid: 'uid-of-set' });
        const owner = { kind: 'MachineDeployment', name: 'pool', uid: 'uid-of-pool', controller: true };
        s.metadata.ownerReferences = [{ apiVersion: 'machine.sapcloud.io/v1alpha1', ...owner }];
      }),
    );
    world.owners.deployments.put(
      machineDeployment((d) => {
        Object.assign(d.metadata, { name: 'pool', uid: 'uid-of-pool', annotations: { [POLICY]: policy } });
      }),
    );
    return world;
  };

  test('the MachineDeployment’s, where the Machine has none', async () => {
    const world = owned('unsafe');

    await run(world);

    expect(world.drains.requests).toEqual([]);
    expect(current(world)).toBeUndefined();
  });

  test('the MachineDeployment’s, also when that is gone before the machine', async () => {
    const world = owned('graceful');
    await run(world);
    world.owners.deployments.remove('default/pool');
    world.restart();
    world.clock.advance(3 * 60 * MINUTE);

    await run(world);

    expect(world.drains.requests.at(-1)).toMatchObject({ force: false, maxEvictRetries: Infinity });
  });

  test('the Machine’s own first', async () => {
    const world = owned('unsafe', 'graceful');

    await run(world);

    expect(inForce(world)).toBe('graceful');
  });

  test('one that nobody understands counts as graceful', async () => {
    const world = owned('quick');

    await run(world);

    expect(inForce(world)).toBe('graceful');
  });
});

test('without a policy nothing is recorded', async () => {
  const world = start(undefined);

  await run(world);

  expect(current(world)?.metadata.annotations?.[IN_FORCE]).toBeUndefined();
});
