import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachineSet } from '../../../test/builders.ts';
import { MemorySetParts } from '../../../test/machine-set-parts.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { toTimestamp } from '../../clock/clock.ts';
import { GateClosedError } from '../../gate/gate.ts';
import { ApiError } from '../../kube/errors.ts';
import { nodes } from '../../kube/resource.ts';
import { controllerReference } from '../../reconcile/ownership.ts';
import { MachineSetController } from './controller.ts';

const KEY = 'default/set-1';
const signal = new AbortController().signal;

function set(change?: (s: BuiltMachineSet) => void): BuiltMachineSet {
  return machineSet((s) => {
    s.metadata.finalizers = [MACHINE_FINALIZER];
    change?.(s);
  });
}

function owned(change?: (m: ReturnType<typeof machine>) => void): Machine {
  return machine((m) => {
    m.metadata.ownerReferences = [controllerReference(set(), 'machine.sapcloud.io/v1alpha1', 'MachineSet')];
    change?.(m);
  });
}

async function pass(parts: MemorySetParts): Promise<{ result: unknown; writes: readonly string[] }> {
  const [outcome] = await Promise.allSettled([new MachineSetController(parts).reconcile(KEY, signal)]);
  const writes = parts.client.writes.map(({ verb, what }) => `${verb} ${what}`);
  return { result: outcome.status === 'fulfilled' ? outcome.value : outcome.reason, writes };
}

test('the finalizer comes first, and holds only for the set that was looked at', async () => {
  const parts = new MemorySetParts([machineSet()], [owned()]);

  await pass(parts);

  const { uid, resourceVersion } = machineSet().metadata;
  expect(parts.client.writes[0]).toMatchObject({
    uid,
    resourceVersion,
    body: { metadata: { finalizers: [MACHINE_FINALIZER] } },
  });
});

describe('a set looks again by itself', () => {
  test('soon after a Failed machine was spared because its Node works', async () => {
    const failed = owned((m) => void (m.status.currentStatus.phase = 'Failed'));
    const parts = new MemorySetParts([set()], [failed]);
    parts.targetClient.put(nodes, node());

    const { result, writes } = await pass(parts);

    expect(writes).not.toContain('delete machines/m-1');
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 15_000 });
  });

  test('soon when there is no room for what is missing', async () => {
    const deployment = machineDeployment();
    const reference = controllerReference(deployment, 'machine.sapcloud.io/v1alpha1', 'MachineDeployment');
    const large = set((s) => {
      s.spec.replicas = 3;
      s.metadata.ownerReferences = [reference];
    });
    const two = [owned(), owned((m) => void (m.metadata.name = 'm-2'))];
    const parts = new MemorySetParts([large], two);
    parts.machineDeployments.put(deployment);

    const { result, writes } = await pass(parts);

    expect(writes.filter((text) => text.startsWith('create'))).toEqual([]);
    expect(result).toMatchObject({ kind: 'requeue', afterMs: 10_000 });
  });

  test('when the preservation of a Failed machine ends', async () => {
    const parts = new MemorySetParts([set()], []);
    const expiry = toTimestamp(parts.clock.now() + 60_000);
    const kept = owned((m) => Object.assign(m.status.currentStatus, { phase: 'Failed', preserveExpiryTime: expiry }));
    parts.machines.put(kept);

    const { result } = await pass(parts);

    expect(result).toMatchObject({ kind: 'requeue', afterMs: 60_000 });
  });

  test('when it was too early for another status', async () => {
    const parts = new MemorySetParts([set()], [owned()]);
    const controller = new MachineSetController(parts);
    parts.machines.put(
      owned((m) => Object.assign(m.status.currentStatus, { phase: 'Pending' }) && (m.metadata.resourceVersion = '2')),
    );
    await controller.reconcile(KEY, signal);
    parts.machines.put(owned((m) => void (m.metadata.resourceVersion = '3')));
    parts.machineSets.put(
      set((s) => Object.assign(s.metadata, { resourceVersion: '9' }) && (s.status.readyReplicas = 0)),
    );

    expect(await controller.reconcile(KEY, signal)).toMatchObject({ afterMs: 250 });
  });
});

describe('a Machine that could not be created', () => {
  test('is told in the status, and tried again', async () => {
    const parts = new MemorySetParts([set()], []);
    const refused = new ApiError(403, 'Forbidden', 'exceeded quota');
    parts.client.failures.push(refused);

    const { result } = await pass(parts);

    expect(result).toBe(refused);
    expect(parts.client.writes.at(-1)).toMatchObject({
      what: 'machinesets/set-1/status',
      body: { status: { machineSetCondition: [{ type: 'ReplicaFailure', message: 'exceeded quota' }] } },
    });
  });

  test('because of a closed gate is no failure of the set', async () => {
    const parts = new MemorySetParts([set()], []);
    const closed = new GateClosedError('frozen', 'control', 'closed');
    parts.client.failures.push(closed);

    const { result } = await pass(parts);

    expect(result).toBe(closed);
    expect(JSON.stringify(parts.client.writes.at(-1)?.body)).not.toContain('ReplicaFailure');
  });
});

test('a frozen set creates nothing', async () => {
  const parts = new MemorySetParts([set((s) => void (s.metadata.labels['freeze'] = 'True'))], []);

  const { writes } = await pass(parts);

  expect(writes.filter((text) => text.startsWith('create'))).toEqual([]);
});

test('a set that is deleted in the middle of a burst stops creating', async () => {
  const large = set((s) => void (s.spec.replicas = 20));
  const parts = new MemorySetParts([large], []);
  const create = parts.client.create.bind(parts.client);
  parts.client.create = (...args) => {
    parts.machineSets.put(set((s) => Object.assign(s.metadata, { deletionTimestamp: 'now', resourceVersion: '2' })));
    return create(...args);
  };

  const { writes } = await pass(parts);

  expect(writes.filter((text) => text.startsWith('create'))).toHaveLength(1);
});

test('a spec that cannot be obeyed changes nothing but the status', async () => {
  const invalid = set((s) => void (s.spec.replicas = -1));
  const parts = new MemorySetParts([invalid], [owned()]);

  const { result, writes } = await pass(parts);

  expect(result).toMatchObject({ kind: 'stop' });
  expect(writes).toEqual(['patch machinesets/set-1/status']);
  expect(parts.events).toEqual(['InvalidSpec']);
});

test('a set that others hold back deletes nothing any more', async () => {
  const held = set((s) => {
    s.metadata.finalizers = ['example.com/other'];
    s.metadata.deletionTimestamp = 'now';
  });
  const parts = new MemorySetParts([held], [owned()]);

  expect((await pass(parts)).writes).toEqual([]);
});
