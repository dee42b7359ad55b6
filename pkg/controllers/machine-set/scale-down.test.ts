import { describe, expect, test } from '@jest/globals';

import { machine, machineSet, node } from '../../../test/builders.ts';
import { SetWorld } from '../../../test/fakes/replicas-world.ts';
import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../apis/wire.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { nodes } from '../../kube/client/resource.ts';
import { scaleDown } from './scale-down.ts';

const SET = machineSet();
const signal = new AbortController().signal;
const failed = machine((m) => void (m.status.currentStatus.phase = 'Failed'));

test('a victim is deleted only as it was chosen, while its clusters are known to live', async () => {
  const deps = new SetWorld([SET], [machine()]);

  await scaleDown(deps, SET, [{ machine: machine(), reason: 'surplus' }], signal);

  const { uid, resourceVersion } = machine().metadata;
  const guard = { intent: 'destroy', uid, resourceVersion, clusters: ['target'] };
  expect(deps.client.writes).toEqual([{ verb: 'delete', what: 'machines/m-1', body: undefined, ...guard }]);
  expect(deps.events).toEqual(['SuccessfulDelete']);
});

describe('a Failed machine', () => {
  test('whose Node works again stays', async () => {
    const deps = new SetWorld([SET]);
    deps.targetClient.put(nodes, node());

    expect(await scaleDown(deps, SET, [{ machine: failed, reason: 'failed' }], signal)).toEqual({ recovered: 1 });
    expect(deps.client.writes).toEqual([]);
    expect((await deps.metrics.deleted.get()).values).toEqual([]);
  });

  test.each([
    { what: 'that it names itself', own: 'DiskPressure,Tainted', flag: [], recovered: 0 },
    { what: 'that it does not name', own: 'DiskPressure', flag: ['Tainted'], recovered: 1 },
    { what: 'that the flag names', own: undefined, flag: ['Tainted'], recovered: 0 },
    { what: 'that the flag names, beside an empty list of its own', own: '', flag: ['Tainted'], recovered: 0 },
    { what: 'that nothing names', own: undefined, flag: [], recovered: 1 },
  ])('whose Node has a bad condition $what is kept: $recovered', async ({ own, flag, recovered }) => {
    const deps = new SetWorld([SET]);
    deps.nodeConditions = flag;
    deps.targetClient.put(
      nodes,
      node((n) => void n.status.conditions.push({ type: 'Tainted', status: 'True' })),
    );
    const machineOf = machine((m) => {
      m.status.currentStatus.phase = 'Failed';
      if (own !== undefined) m.spec.nodeConditions = own;
    });

    expect(await scaleDown(deps, SET, [{ machine: machineOf, reason: 'failed' }], signal)).toEqual({ recovered });
  });

  test('that has never joined, and whose Node is not set up, is deleted', async () => {
    const deps = new SetWorld([SET]);
    const key = 'node.gardener.cloud/critical-components-not-ready';
    deps.targetClient.put(
      nodes,
      node((n) => void (n.spec.taints = [{ key, effect: 'NoSchedule' }])),
    );
    const late = machine((m) => {
      m.status.currentStatus.phase = 'Failed';
      m.status.lastOperation = { type: 'Create', state: 'Failed', description: 'failed to join' };
    });

    expect(await scaleDown(deps, SET, [{ machine: late, reason: 'failed' }], signal)).toEqual({ recovered: 0 });
  });

  test.each([
    { shown: 'True', other: 'True', forMs: 60_000, phaseIs: 'the same', ends: 'replaced' },
    { shown: 'True', other: 'Unknown', forMs: 60_000, phaseIs: 'the same', ends: 'replaced' },
    // No node conditions, of whomever, find anything bad: its controller has not seen it.
    { shown: 'True', other: 'False', forMs: 86_400_000, phaseIs: 'the same', ends: 'kept' },
    { shown: 'True', other: 'True', forMs: 59_999, phaseIs: 'the same', ends: 'kept' },
    { shown: 'True', other: 'True', forMs: 60_000, phaseIs: 'new', ends: 'kept' },
    { shown: 'Unknown', other: 'True', forMs: 86_400_000, phaseIs: 'the same', ends: 'kept' },
  ] as const)(
    'whose Node has worked for $forMs ms, with another condition $other, whose status shows Ready $shown and whose phase is $phaseIs is $ends',
    async ({ shown, other, forMs, phaseIs, ends }) => {
      const deps = new SetWorld([SET]);
      const another = { type: 'Tainted', status: other };
      deps.targetClient.put(
        nodes,
        node((n) => void n.status.conditions.push(another)),
      );
      const one = machine((m) => {
        m.status.currentStatus = { phase: 'Failed', lastUpdateTime: '2026-01-01T00:00:00Z' };
        m.status.conditions = [{ type: 'Ready', status: shown, reason: 'Some', message: 'other words' }, another];
      });
      await scaleDown(deps, SET, [{ machine: one, reason: 'failed' }], signal);

      deps.clock.advance(forMs);
      if (phaseIs === 'new') one.status.currentStatus.lastUpdateTime = '2026-01-01T00:00:30Z';
      await scaleDown(deps, SET, [{ machine: one, reason: 'failed' }], signal);

      expect(deps.client.writes.map(({ verb }) => verb)).toEqual(ends === 'replaced' ? ['delete'] : []);
    },
  );

  test('whose Node is gone is deleted', async () => {
    const deps = new SetWorld([SET], [failed]);

    expect(await scaleDown(deps, SET, [{ machine: failed, reason: 'failed' }], signal)).toEqual({ recovered: 0 });
    expect(deps.client.writes).toHaveLength(1);
    expect((await deps.metrics.deleted.get()).values).toMatchObject([{ labels: { reason: 'failed' }, value: 1 }]);
  });

  test.each([{ is: 'spared' }, { is: 'deleted' }])('that is $is comes last if it is there again', async ({ is }) => {
    const deps = new SetWorld([SET]);
    if (is === 'spared') deps.targetClient.put(nodes, node());
    const ends: unknown[] = [];
    deps.turns.each = async (_set, all, remove) => {
      for (const one of all) ends.push(await remove(one));
    };

    await scaleDown(deps, SET, [{ machine: failed, reason: 'failed' }], signal);

    expect(ends).toEqual([is === 'deleted']);
  });

  test("that names another machine's Node goes with its own", async () => {
    const mislabelled = machine((m) => {
      m.status.currentStatus.phase = 'Failed';
      m.metadata.labels = { node: 'm-2' };
    });
    const other = node((n) => {
      n.metadata.name = 'm-2';
      n.metadata.labels[MACHINE_NAME_LABEL] = 'm-2';
    });
    const own = node((n) => void (n.metadata.labels[MACHINE_NAME_LABEL] = 'm-1'));
    const there = machine((m) => void (m.metadata.name = 'm-2'));
    const recovered = async (nodesThere: Node[]): Promise<unknown> => {
      const deps = new SetWorld([SET], [there]);
      deps.targetClient.put(nodes, ...nodesThere);
      for (const one of nodesThere) deps.nodes.put(one);
      return await scaleDown(deps, SET, [{ machine: mislabelled, reason: 'failed' }], signal);
    };

    expect(await recovered([other])).toEqual({ recovered: 0 });
    expect(await recovered([other, own])).toEqual({ recovered: 1 });
  });

  test('whose Node cannot be looked at stays', async () => {
    const deps = new SetWorld([SET]);
    deps.targetClient.readFailure = new ApiError(503, 'ServiceUnavailable', 'no answer');

    await expect(scaleDown(deps, SET, [{ machine: failed, reason: 'failed' }], signal)).rejects.toThrow('no answer');
    expect(deps.client.writes).toEqual([]);
  });

  test('whose Node was chosen for an update in place is deleted although the Node is Ready', async () => {
    const deps = new SetWorld([SET]);
    const chosen = node((n) => void (n.metadata.labels['node.machine.sapcloud.io/selected-for-update'] = 'true'));
    deps.targetClient.put(nodes, chosen);

    await scaleDown(deps, SET, [{ machine: failed, reason: 'failed' }], signal);
    expect(deps.client.writes).toHaveLength(1);
  });
});

test.each([
  { end: 'is gone already', failure: new ApiError(404, 'NotFound', 'gone'), throws: false, events: [] },
  { end: 'has changed', failure: new ApiError(409, 'Conflict', 'changed'), throws: true, events: [] },
  { end: 'meets a closed gate', failure: new GateClosedError('outage', 'target', 'x'), throws: true, events: [] },
  { end: 'is refused', failure: new ApiError(403, 'Forbidden', 'no'), throws: true, events: ['FailedDelete'] },
])('a victim that $end fails the pass: $throws', async ({ failure, throws, events }) => {
  const deps = new SetWorld([SET]);
  deps.client.failures.push(failure);

  const [{ status }] = await Promise.allSettled([
    scaleDown(deps, SET, [{ machine: machine(), reason: 'surplus' }], signal),
  ]);

  expect(status).toBe(throws ? 'rejected' : 'fulfilled');
  expect(deps.events).toEqual(events);
});
