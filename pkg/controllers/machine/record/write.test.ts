import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { MACHINE_FINALIZER, PRESERVE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machines } from '../../../kube/client/resource.ts';
import { copyOf, type MachineCopy } from '../../machine-facts/status.ts';
import { machineStatusChange } from '../../machine-facts/status-change.ts';
import { type MachineContext, MachineNotes } from '../context.ts';
import { RefusedRecords } from './refused-record.ts';
import { recordPatch, writePass } from './write.ts';

const before = machine((m) => {
  m.metadata.uid = 'u1';
  m.metadata.resourceVersion = '7';
  m.status.lastOperation.errorCode = 'Internal';
});

function change(apply: (copy: MachineCopy) => void): MachineCopy {
  const copy = copyOf(before);
  apply(copy);
  return copy;
}

describe('what a pass writes', () => {
  test('is nothing when it changed nothing', () => {
    expect(recordPatch(before, copyOf(before), false)).toBeUndefined();
    expect(machineStatusChange(before, copyOf(before))).toBeUndefined();
  });

  test('names only what we own and what changed', () => {
    const after = change((copy) => {
      copy.metadata.labels = { node: 'n-2', foreign: 'x' };
      copy.spec.providerID = 'sim:///n-2';
      copy.spec.healthTimeout = '1m';
    });

    expect(recordPatch(before, after, false)).toEqual({
      type: 'merge',
      body: { metadata: { labels: { node: 'n-2' }, uid: 'u1' }, spec: { providerID: 'sim:///n-2' } },
      base: before,
    });
  });

  test('holds only for the version it was computed from when finalizers change', () => {
    const after = change((copy) => {
      copy.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
    });

    expect(recordPatch(before, after, false)?.body).toEqual({
      metadata: { finalizers: ['machine.sapcloud.io/machine-controller-manager'], uid: 'u1', resourceVersion: '7' },
    });
  });

  test('holds only for that version when the status follows', () => {
    const after = change((copy) => {
      copy.metadata.annotations = { 'machinepriority.machine.sapcloud.io': '3' };
    });

    expect(recordPatch(before, after, true)?.body).toEqual({
      metadata: { annotations: { 'machinepriority.machine.sapcloud.io': '3' }, uid: 'u1', resourceVersion: '7' },
    });
  });

  test.each([
    { of: 'a MachineSet', kind: 'MachineSet', recorded: undefined, now: 'sim:///n-2', ends: true },
    { of: 'nobody', kind: undefined, recorded: undefined, now: 'sim:///n-2', ends: false },
    { of: 'another kind', kind: 'Pool', recorded: undefined, now: 'sim:///n-2', ends: false },
    { of: 'a MachineSet', kind: 'MachineSet', recorded: 'sim:///n-2', now: 'sim:///n-2', ends: false },
    { of: 'a MachineSet', kind: 'MachineSet', recorded: 'sim:///n-2', now: undefined, ends: false },
  ])(
    'ends the record of who set which field: $ends, for a Machine of $of whose provider id was $recorded and becomes $now',
    ({ kind, recorded, now, ends }) => {
      const owned = structuredClone(before);
      if (recorded !== undefined) owned.spec = { ...owned.spec, providerID: recorded };
      else delete owned.spec?.providerID;
      if (kind !== undefined)
        owned.metadata.ownerReferences = [{ apiVersion: 'v1', kind, name: 'o', uid: 'o1', controller: true }];
      const after = copyOf(owned);
      after.metadata.labels = { node: 'n-3' };
      if (now === undefined) delete after.spec.providerID;
      else after.spec.providerID = now;

      const body = JSON.stringify(recordPatch(owned, after, false)?.body);

      expect(body).toContain('"node":"n-3"');
      expect(body.includes('"managedFields":[{}]')).toBe(ends);
    },
  );

  test('takes away members of the status that are gone', () => {
    const after = change((copy) => {
      copy.status.currentStatus = { phase: 'Unknown' };
      copy.status.lastOperation = { type: 'HealthCheck', state: 'Processing' };
      delete copy.status.lastKnownState;
    });

    expect(machineStatusChange(before, after)).toEqual({
      currentStatus: { phase: 'Unknown', lastUpdateTime: null },
      lastOperation: {
        type: 'HealthCheck',
        state: 'Processing',
        description: null,
        errorCode: null,
        lastUpdateTime: null,
      },
    });
  });

  test('replaces lists', () => {
    const after = change((copy) => {
      copy.status.conditions = [{ type: 'Ready', status: 'True' }];
    });

    expect(machineStatusChange(before, after)).toEqual({ conditions: [{ type: 'Ready', status: 'True' }] });
  });
});

/** Writes what `apply` does to a Machine, and returns what was asked for. */
async function written(
  observed: Machine,
  apply: (copy: MachineCopy, pass: MachineNotes) => void,
  failures: readonly unknown[] = [],
) {
  const client = new MemoryClient();
  client.put(machines, observed);
  client.failures.push(...failures);
  using pass = new MachineNotes();
  const copy = copyOf(observed);
  apply(copy, pass);
  const world = new FakeWorld();
  const nodes = { cluster: 'target' } as MachineContext['nodes'];
  const deps = { writer: client, clock: world.clock, recorder: { event() {} }, refused: new RefusedRecords(world) };
  await writePass(deps, { ...world.context(observed, pass), machine: copy, nodes });
  return client.writes;
}

describe('the writes of a pass', () => {
  const going = machine((m) => {
    m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    m.metadata.resourceVersion = '7';
    m.metadata.finalizers = [MACHINE_FINALIZER];
  });

  test('of phase Failed need a proof of life of all its clusters', async () => {
    const writes = await written(before, (copy, pass) => {
      copy.status.currentStatus = { phase: 'Failed' };
      pass.intent = 'destroy';
    });

    const guard = { intent: 'destroy', clusters: ['control', 'target'], resourceVersion: '7' };
    expect(writes).toMatchObject([{ what: 'machines/m-1/status', ...guard }]);
  });

  test('of another phase need none', async () => {
    const writes = await written(before, (copy) => void (copy.status.currentStatus = { phase: 'Unknown' }));

    expect(writes).toMatchObject([{ what: 'machines/m-1/status', intent: 'change', clusters: [] }]);
  });

  test('go on top of each other, and both fail when anybody else wrote meanwhile', async () => {
    const writes = await written(before, (copy) => {
      copy.spec.providerID = 'sim:///new';
      copy.status.currentStatus = { phase: 'Pending' };
    });

    expect(writes).toMatchObject([
      { what: 'machines/m-1', resourceVersion: '7' },
      { what: 'machines/m-1/status', resourceVersion: '1001' },
    ]);
  });

  test('let a Machine go with a proof of life of the control cluster, and write nothing after it', async () => {
    const writes = await written(going, (copy) => {
      copy.metadata.finalizers = [];
      copy.status.lastKnownState = 'gone';
    });

    expect(writes).toMatchObject([
      { what: 'machines/m-1', intent: 'destroy', clusters: ['control'], resourceVersion: '7' },
    ]);
  });

  describe('of a machine whose VM has vanished, which somebody else has recorded', () => {
    const vanished = (shown: 'True' | 'False' | undefined): Machine =>
      machine((m) => {
        m.status.currentStatus.phase = 'Failed';
        Object.assign(m.status.lastOperation, { type: 'HealthCheck', state: 'Failed', errorCode: 'NotFound' });
        m.status.lastOperation.description = 'VM sim:///m-1 no longer exists';
        if (shown === undefined) return;
        m.status.machineConditions = [{ type: 'VMCreated', status: shown, reason: 'VMCreated', message: '' }];
      });

    test('tell of that in its conditions', async () => {
      const writes = await written(vanished('True'), () => undefined);

      expect(writes).toMatchObject([{ what: 'machines/m-1/status' }]);
      const told = writes[0]?.body as Pick<Machine, 'status'> | undefined;
      expect(told?.status?.machineConditions).toContainEqual(
        expect.objectContaining({
          type: 'VMCreated',
          status: 'False',
          reason: 'VMVanished',
          message: 'VM sim:///m-1 no longer exists',
        }),
      );
    });

    test.each(['False', undefined] as const)(
      'are none when the condition is %s: an API server may not store conditions',
      async (shown) => {
        expect(await written(vanished(shown), () => undefined)).toEqual([]);
      },
    );
  });

  test('are made to tell of a maintenance alone, once', async () => {
    const annotations = {
      'machine.sapcloud.io/maintenance': 'true',
      'machine.sapcloud.io/maintenance-since': '2026-01-01T00:00:00Z',
      'machine.sapcloud.io/maintenance-node': 'none',
    };
    const maintained = machine((m) => void Object.assign(m.metadata, { annotations }));

    const writes = await written(maintained, () => undefined);

    expect(writes.map(({ what }) => what)).toEqual(['machines/m-1/status']);
    const body = writes[0]?.body as Pick<Machine, 'status'> | undefined;
    const told = machine((m) => {
      Object.assign(m.metadata, { annotations });
      m.status = { ...m.status, machineConditions: body?.status?.machineConditions ?? [] };
    });
    expect(await written(told, () => undefined)).toEqual([]);
  });

  test('destroy too when others still hold the Machine', async () => {
    const held = machine((m) => {
      Object.assign(m.metadata, going.metadata);
      m.metadata.finalizers = ['example.com/other', MACHINE_FINALIZER];
    });
    const writes = await written(held, (copy) => {
      copy.metadata.finalizers = ['example.com/other'];
      copy.status.lastKnownState = 'gone';
    });

    expect(writes).toMatchObject([{ what: 'machines/m-1', intent: 'destroy' }, { what: 'machines/m-1/status' }]);
  });

  test('take a request for preservation away only as it was seen', async () => {
    const asked = machine((m) => {
      m.metadata.resourceVersion = '7';
      m.metadata.annotations = { [PRESERVE_ANNOTATION]: 'now' };
    });

    const writes = await written(asked, (copy) => void (copy.metadata.annotations = {}));

    const body = { metadata: { annotations: { [PRESERVE_ANNOTATION]: null } } };
    expect(writes).toMatchObject([{ what: 'machines/m-1', resourceVersion: '7', body }]);
  });

  test('of a Machine that is gone are none that failed', async () => {
    const gone = new ApiError(404, 'NotFound', 'gone');

    expect(await written(before, (copy) => void (copy.spec.providerID = 'sim:///new'), [gone])).toHaveLength(1);
  });
});
