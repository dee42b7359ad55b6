import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, node } from '../../../../test/builders.ts';
import { DeploymentWorld } from '../../../../test/fakes/replicas-world.ts';
import { MACHINE_NAME_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machines as machineResource, nodes as nodeResource } from '../../../kube/client/resource.ts';
import { NodeMarker } from './node-marker.ts';

const OWNER = 'default/deployment-1';
const DEPLOYMENT = machineDeployment();
const MARKS = { holdScaleDown: true };
const FORBIDDEN = new ApiError(403, 'Forbidden', 'no');
const CONFLICT = new ApiError(409, 'Conflict', 'changed');
const conflicts = (times: number): unknown[] => Array.from({ length: times }, () => CONFLICT);
/** Longest pause between two tries, and how far a pause may be from what it is meant to be. */
const LONGEST_MS = 300_000;
const FORGOTTEN_AFTER_MS = 600_000;
const JITTER = 0.2;

/** Machines m-0, m-1, … with their Nodes; what is written to Nodes fails as `failures` say, one after the other. */
function scene(count = 1, failures: readonly unknown[] = []) {
  const names = Array.from({ length: count }, (_unused, i) => `m-${i}`);
  const machines = names.map((name) =>
    machine((m) => {
      m.metadata.name = name;
      m.metadata.labels['node'] = name;
    }),
  );
  const nodes = names.map((name) => node((n) => void Object.assign(n.metadata, { name, uid: `uid-of-${name}` })));
  const deps = new DeploymentWorld(machineDeployment(), { machines, nodes });
  deps.targetClient.failures.push(...failures);
  const events: string[] = [];
  const recorder = { event: ({ message }: { readonly message: string }) => void events.push(message) };
  const marker = new NodeMarker(Object.assign(deps, { recorder }));
  const { clock, targetClient } = deps;
  /** How many Nodes the Events tell of. */
  const told = (): number => events.reduce((sum, text) => sum + Number(/update (\d+) node/.exec(text)?.[1]), 0);
  /** One pass, with the time that its retries take; how many writes it took, and of how many Nodes it told. */
  const pass = async (owner = DEPLOYMENT, signal = new AbortController().signal) => {
    const before = { writes: targetClient.writes.length, told: told() };
    const [run] = await Promise.all([
      marker.mark(owner, machines, MARKS, signal).catch((error: unknown) => ({ error })),
      clock.advanceAsync(1_000),
    ]);
    return { ...run, writes: targetClient.writes.length - before.writes, told: told() - before.told };
  };
  const refuseAll = (): unknown => targetClient.failures.push(...names.map(() => FORBIDDEN));
  /** Somebody takes all marks off. */
  const unmark = (): void => nodes.forEach((one) => targetClient.wrote(nodeResource, one));
  return { deps, marker, clock, pass, refuseAll, unmark };
}

test('the Node of another machine, which label node of a machine names, is left as it is', async () => {
  const { deps, pass } = scene(2);
  const [first] = deps.nodes.list();
  if (first === undefined) throw new Error('no Node');
  deps.nodes.put({
    ...first,
    metadata: { ...first.metadata, resourceVersion: '2', labels: { [MACHINE_NAME_LABEL]: 'm-1' } },
  });

  expect(await pass()).toMatchObject({ writes: 1, isDone: true });
  expect(deps.targetClient.writes.map(({ what }) => what)).toEqual(['nodes/m-1']);
});

describe('a Node', () => {
  test.each([
    { answer: 'takes its marks', failures: [], writes: 1, isDone: true, told: 0 },
    {
      answer: 'is gone (404)',
      failures: [new ApiError(404, 'NotFound', 'gone')],
      writes: 1,
      isDone: true,
      told: 0,
    },
    { answer: 'changed meanwhile (409)', failures: [CONFLICT], writes: 2, isDone: true, told: 0 },
    { answer: 'changed four times (409)', failures: conflicts(4), writes: 5, isDone: true, told: 0 },
    { answer: 'changed five times (409)', failures: conflicts(5), writes: 5, isDone: false, told: 1 },
    { answer: 'is refused by a policy (403)', failures: [FORBIDDEN], writes: 1, isDone: false, told: 1 },
    {
      answer: 'is refused by a webhook (422)',
      failures: [new ApiError(422, 'Invalid', 'no')],
      writes: 1,
      isDone: false,
      told: 1,
    },
    {
      answer: 'meets a server that fails (500)',
      failures: [new ApiError(500, 'InternalError', 'no')],
      writes: 1,
      isDone: false,
      told: 1,
    },
  ])('that $answer takes $writes writes; marked: $isDone', async ({ failures, writes, isDone, told }) => {
    const { pass } = scene(1, failures);

    expect(await pass()).toEqual({ hasMore: false, isDone, told, writes });
  });

  test('that has what it should have is not written', async () => {
    const { deps, pass } = scene();
    deps.nodes.put(
      node((n) => {
        Object.assign(n.metadata, { name: 'm-0', uid: 'uid-of-m-0', resourceVersion: '2' });
        for (const by of ['', '-by-mcm']) {
          n.metadata.annotations[`cluster-autoscaler.kubernetes.io/scale-down-disabled${by}`] = 'true';
        }
      }),
    );

    expect(await pass()).toEqual({ hasMore: false, isDone: true, told: 0, writes: 0 });
  });

  test('keeps the autoscaler away while its machine is in maintenance', async () => {
    const { deps, marker } = scene();
    const maintained = machine((m) => {
      m.metadata.name = 'm-0';
      m.metadata.labels['node'] = 'm-0';
      m.metadata.annotations['machine.sapcloud.io/maintenance-since'] = '2026-01-01T00:00:00Z';
    });
    deps.nodes.put(
      node((n) => {
        Object.assign(n.metadata, { name: 'm-0', uid: 'uid-of-m-0', resourceVersion: '2' });
        for (const by of ['', '-by-mcm']) {
          n.metadata.annotations[`cluster-autoscaler.kubernetes.io/scale-down-disabled${by}`] = 'true';
        }
      }),
    );

    await marker.mark(DEPLOYMENT, [maintained], { holdScaleDown: false }, new AbortController().signal);

    expect(deps.targetClient.writes).toEqual([]);
  });

  test.each([
    { here: false, live: 'is preserved', expiry: '2030-01-01T00:00:00Z', writes: [] },
    { here: false, live: 'is another one by now', uid: 'another', expiry: '', writes: [] },
    { here: false, live: 'is as the cache shows it', expiry: '', writes: ['nodes/m-0'] },
    { here: true, live: 'is preserved', expiry: '2030-01-01T00:00:00Z', writes: ['nodes/m-0'] },
  ])(
    'is given back to the autoscaler, with the machine controller here: $here, when the machine $live: $writes',
    async (row) => {
      const { deps, marker } = scene();
      deps.isLeadingMachines = row.here;
      const [cached] = deps.machines.list();
      if (cached === undefined) throw new Error('it is there');
      const metadata = { ...cached.metadata, uid: row.uid ?? cached.metadata.uid };
      const currentStatus = { ...cached.status?.currentStatus, preserveExpiryTime: row.expiry };
      const live: Machine = { ...cached, metadata, status: { ...cached.status, currentStatus } };
      deps.client.put(machineResource, live);
      deps.nodes.put(
        node((n) => {
          Object.assign(n.metadata, { name: 'm-0', uid: 'uid-of-m-0', resourceVersion: '2' });
          for (const by of ['', '-by-mcm']) {
            n.metadata.annotations[`cluster-autoscaler.kubernetes.io/scale-down-disabled${by}`] = 'true';
          }
        }),
      );

      const marked = await marker.mark(DEPLOYMENT, [cached], { holdScaleDown: false }, new AbortController().signal);

      expect(deps.targetClient.writes.map(({ what }) => what)).toEqual(row.writes);
      expect(marked).toEqual({ hasMore: false, isDone: true });
    },
  );

  test('that does not exist for its machine is not missed', async () => {
    const { deps, pass } = scene();
    deps.nodes.remove('m-0');

    expect(await pass()).toEqual({ hasMore: false, isDone: true, told: 0, writes: 0 });
  });

  test('that meets a closed gate counts as neither marked nor refused', async () => {
    const closed = new GateClosedError('outage', 'target', 'unreachable');
    const { marker, pass } = scene(1, [closed]);

    expect(await pass()).toEqual({ error: closed, writes: 1, told: 0 });
    expect(marker.dueInMs(OWNER)).toBeUndefined();
    expect(await pass()).toMatchObject({ isDone: true, writes: 1 });
  });

  test('of a process that ends counts as neither marked nor refused', async () => {
    const ending = new AbortController();
    const { marker, pass } = scene(1, [CONFLICT, FORBIDDEN]);
    ending.abort(new Error('the process ends'));

    expect(await pass(DEPLOYMENT, ending.signal)).toMatchObject({ error: new Error('the process ends') });
    expect(marker.dueInMs(OWNER)).toBeUndefined();
  });
});

describe('a Node that refused', () => {
  test('is left alone for a pause that doubles up to five minutes, told of once, and forgotten when it is marked', async () => {
    const { marker, clock, pass, refuseAll, unmark } = scene();
    const pauses = [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, LONGEST_MS, LONGEST_MS];

    for (const [i, pauseMs] of pauses.entries()) {
      refuseAll();
      expect(await pass()).toMatchObject({ isDone: false, told: i === 0 ? 1 : 0, writes: 1 });
      const dueMs = marker.dueInMs(OWNER) ?? 0;
      // A pass takes a second here.
      expect(dueMs + 1_000).toBeGreaterThanOrEqual(pauseMs * (1 - JITTER));
      expect(dueMs).toBeLessThanOrEqual(Math.min(pauseMs * (1 + JITTER), LONGEST_MS));
      expect(await pass()).toEqual({ hasMore: false, isDone: false, told: 0, writes: 0 });
      clock.advance(dueMs);
    }

    expect(await pass()).toMatchObject({ isDone: true, writes: 1 });
    expect(marker.dueInMs(OWNER)).toBeUndefined();
    unmark();
    refuseAll();
    expect(await pass()).toMatchObject({ told: 1 });
  });

  test('makes nobody come back but who asked for it, and nobody at all who no longer asks', async () => {
    const { marker, clock, pass, refuseAll } = scene();
    refuseAll();
    await pass();

    expect(marker.dueInMs('default/another')).toBeUndefined();
    clock.advance(marker.dueInMs(OWNER) ?? 0);
    expect(marker.dueInMs(OWNER)).toBeUndefined();
    // Long after that it is news again.
    clock.advance(FORGOTTEN_AFTER_MS + 1);
    marker.dueInMs(OWNER);
    refuseAll();
    expect(await pass()).toMatchObject({ told: 1 });
  });

  test('keeps no other from being marked', async () => {
    const { pass, unmark } = scene(3, [undefined, FORBIDDEN]);

    expect(await pass()).toEqual({ hasMore: false, isDone: false, told: 1, writes: 3 });
    expect(await pass()).toMatchObject({ isDone: false, writes: 0 });
    unmark();
    expect(await pass()).toMatchObject({ isDone: false, writes: 2 });
  });
});

describe('250 Nodes none of which can be marked', () => {
  test('are tried once each, 100 in a pass, and then left alone until their pauses are over', async () => {
    const { marker, clock, pass, refuseAll } = scene(250);
    refuseAll();

    const passes = [await pass(), await pass(), await pass(), await pass()];

    expect(passes.map(({ writes }) => writes)).toEqual([100, 100, 50, 0]);
    expect(passes).toMatchObject([{ hasMore: true }, { hasMore: true }, { hasMore: false }, { hasMore: false }]);
    expect(passes.map((one) => 'isDone' in one && one.isDone)).toEqual([false, false, false, false]);
    expect(passes.map((one) => one.told)).toEqual([100, 100, 50, 0]);
    const dueMs = marker.dueInMs(OWNER) ?? 0;
    expect(dueMs).toBeGreaterThan(0);
    expect(dueMs).toBeLessThanOrEqual(5_000 * (1 + JITTER));

    // All are due by now, and told of already.
    clock.advance(5_000 * (1 + JITTER));
    refuseAll();
    expect(await pass()).toEqual({ hasMore: true, isDone: false, told: 0, writes: 100 });
  });

  test('do not keep a Node behind them from being marked', async () => {
    const { deps, pass, refuseAll, unmark } = scene(251);
    refuseAll();
    const { failures } = deps.targetClient;
    failures[250] = undefined;

    await pass();
    await pass();
    await pass();

    expect(deps.targetClient.writes.at(-1)?.what).toBe('nodes/m-250');
    unmark();
    expect(await pass()).toMatchObject({ writes: 1 });
  });
});
