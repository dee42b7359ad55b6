import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { describe, expect, test } from '@jest/globals';

import { runMaintenance } from '../../cmd/machinist/maintenance/maintenance.ts';
import type { MaintenanceGoal } from '../../cmd/machinist/maintenance/state.ts';
import { CORDONED_BY_MAINTENANCE_ANNOTATION, MAINTENANCE_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { PodDisruptionBudget } from '../../pkg/apis/wire.ts';
import { fromTimestamp } from '../../pkg/base/clock/clock.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { events, nodes, podDisruptionBudgets, pods } from '../../pkg/kube/client/resource.ts';
import { refuse } from '../env/refusal.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { conditionOf, KeptOne } from './kept-machines.ts';
import { MachineWorld } from './machine-world.ts';

const HOOK = 'pre-drain.hook.machine.sapcloud.io/backup';
const DELETE_HOOK = 'pre-drain.delete.hook.machine.cluster.x-k8s.io/move-leader';
const HEALTH_TIMEOUT_MS = 2_000;
const PATIENCE = { timeoutMs: 120_000 };

const ofMachine = ({ status }: Machine): string | undefined => {
  const found = status?.machineConditions?.find(({ type }) => type === 'Maintenance');
  return found && `${found.status} ${found.reason}`;
};

/** A budget over the pod of that name that allows no eviction. */
async function forbid(world: MachineWorld, pod: string): Promise<PodDisruptionBudget> {
  const ref = { namespace: world.namespace, name: pod };
  const found = await world.user.reader.get(pods, ref);
  await world.user.writer.patch('change', pods, ref, mergePatch(found, { metadata: { labels: { held: 'yes' } } }));
  const { metadata } = await world.user.writer.create('create', podDisruptionBudgets, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { namespace: world.namespace, name: 'cart' },
    spec: { minAvailable: 1, selector: { matchLabels: { held: 'yes' } } },
  });
  return await eventually(async () => {
    const budget = await world.user.reader.get(podDisruptionBudgets, {
      namespace: world.namespace,
      name: metadata.name,
    });
    expect(budget.status?.expectedPods).toBe(1);
    return budget;
  }, PATIENCE);
}

/** What the command says, and its exit code. */
async function maintenance(
  world: MachineWorld,
  goal: MaintenanceGoal,
  target: string,
): Promise<{ code: number; out: string[]; err: string[] }> {
  const [out, err]: [string[], string[]] = [[], []];
  const options = { kubeconfig: world.connection.kubeconfig, namespace: world.namespace, wait: true, timeout: 60_000 };
  const code = await runMaintenance(goal, [target], options, {
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    env: {},
  });
  return { code, out, err };
}

async function kubectl({ connection }: MachineWorld, ...args: string[]): Promise<string> {
  const program = connection.programs.kubectl?.path ?? 'kubectl';
  return (await promisify(execFile)(program, [...args, '--kubeconfig', connection.kubeconfig])).stdout;
}

describe('maintenance', () => {
  // promise: maintenance/pods-evicted-budgets-allow
  // promise: maintenance/health-timeout-counts-lasts
  // promise: openstack/maintenance/evictions-budgets-allow-cordon
  // promise: openstack/maintenance/node-down-three-health
  test('waits for hooks and budgets, outlives a restart, and keeps a machine whose Node is down until it ends', async () => {
    await using world = await MachineWorld.open({
      // Its budget is judged by kube-controller-manager.
      connection: connect(),
      flags: { 'machine-health-timeout': `${HEALTH_TIMEOUT_MS / 1_000}s` },
    });
    const one = new KeptOne(world, await world.create((m) => void (m.metadata.annotations = { [HOOK]: '' })));
    await world.settled(one.name);
    await one.pod('web');
    await one.pod('cart-0');
    const budget = await forbid(world, 'cart-0');

    await one.onNode({ annotations: { [MAINTENANCE_ANNOTATION]: 'true' } });
    await one.shows((machine, node) => {
      expect(ofMachine(machine)).toBe('False WaitingForHooks');
      expect(conditionOf(node, 'Maintenance')).toMatchObject({ status: 'False', reason: 'WaitingForHooks' });
      expect(node.spec?.unschedulable).toBeUndefined();
    });
    await one.onMachine({ [HOOK]: null });
    await one.shows(async (machine, node) => {
      expect(ofMachine(machine)).toBe('False DrainBlocked');
      expect(conditionOf(node, 'Maintenance')?.message).toMatch(
        /cart-0 \(pod disruption budget \S+\/cart is misconfigured/,
      );
      expect(node.spec?.unschedulable).toBe(true);
      expect(node.metadata.annotations).toHaveProperty([CORDONED_BY_MAINTENANCE_ANNOTATION], 'true');
      expect((await one.pods()).map(({ metadata }) => metadata.name)).toEqual(['cart-0']);
    });
    expect(await kubectl(world, 'describe', 'node', one.name)).toMatch(
      /Maintenance +False .* DrainBlocked +Waiting for 1 pod/,
    );

    await world.restart();
    const { uid } = budget.metadata;
    const ref = { namespace: world.namespace, name: budget.metadata.name };
    await world.user.writer.delete('destroy', podDisruptionBudgets, ref, { uid });
    await one.shows(async (machine, node) => {
      expect(ofMachine(machine)).toBe('True InMaintenance');
      expect(conditionOf(node, 'Maintenance')).toMatchObject({ status: 'True' });
      expect(await one.pods()).toEqual([]);
    });

    await world.cloud.nodes?.setReadiness(one.name, 'unknown');
    const unknown = await world.inPhase(one.name, 'Unknown');
    const sinceMs = fromTimestamp(unknown.status?.currentStatus?.lastUpdateTime) ?? 0;
    await eventually(() => Date.now() > sinceMs + 3 * HEALTH_TIMEOUT_MS, PATIENCE);
    await world.touch(one.name);
    expect((await one.machine()).status?.currentStatus?.phase).toBe('Unknown');

    await one.onNode({ annotations: { [MAINTENANCE_ANNOTATION]: null } });
    const failed = await world.inPhase(one.name, 'Failed');
    expect(ofMachine(failed)).toBe('False NotInMaintenance');
    const ended = failed.status?.machineConditions?.find(({ type }) => type === 'Maintenance')?.lastTransitionTime;
    const failedMs = fromTimestamp(failed.status?.currentStatus?.lastUpdateTime) ?? 0;
    // The whole timeout counts from then on; times are told in seconds.
    expect(failedMs - (fromTimestamp(ended) ?? Infinity)).toBeGreaterThanOrEqual(HEALTH_TIMEOUT_MS - 1_000);
    const { annotations = {} } = failed.metadata;
    expect(Object.keys(annotations).filter((key) => key.includes('maintenance'))).toEqual([]);
    await one.shows((_machine, node) => {
      expect(node.spec?.unschedulable).toBeUndefined();
      expect(Object.keys(node.metadata.annotations ?? {}).filter((key) => /maintenance|scale-down/.test(key))).toEqual(
        [],
      );
    });
    await eventually(async () => {
      const { items } = await world.user.reader.list(events, { namespace: world.namespace });
      const told = items.map(({ reason }) => reason);
      const expected = ['MaintenanceStarted', 'WaitingForHooks', 'DrainBlocked', 'InMaintenance', 'MaintenanceEnded'];
      expect(told).toEqual(expect.arrayContaining(expected));
    }, PATIENCE);
  });

  // promise: maintenance/node-cordoned-hand-stays
  // promise: openstack/maintenance/off-uncordoned-unless-cordoned
  test('is started, told and ended by the command; a Node that was cordoned by hand stays so', async () => {
    await using world = await MachineWorld.open();
    const one = new KeptOne(world, await world.create());
    await world.settled(one.name);
    await one.pod('web');
    const node = await one.node();
    await world.user.writer.patch(
      'change',
      nodes,
      { name: one.name },
      mergePatch(node, { spec: { unschedulable: true } }),
    );

    const started = await maintenance(world, 'start', one.name);
    expect(started).toMatchObject({ code: 0, err: [] });
    expect(started.out[0]).toBe(`machine.machine.sapcloud.io/${one.name} maintenance requested`);
    expect(started.out.at(-1)).toMatch(/InMaintenance: Node \S+ is cordoned and drained\. It ends when annotation /);
    expect(await one.pods()).toEqual([]);
    expect((await maintenance(world, 'status', one.name)).out).toEqual(started.out.slice(-1));

    const ended = await maintenance(world, 'end', `node/${one.name}`);
    expect(ended).toMatchObject({ code: 0, err: [] });
    expect(ended.out[0]).toBe(
      `machine.machine.sapcloud.io/${one.name} maintenance no longer requested on the Machine; if its Node requests it as well, ` +
        `end that with: kubectl annotate node ${one.name} ${MAINTENANCE_ANNOTATION}-`,
    );
    expect(ended.out.at(-1)).toBe(`machine "${one.name}" is not in maintenance`);
    expect((await one.node()).spec?.unschedulable).toBe(true);

    expect(await maintenance(world, 'start', 'nobody')).toEqual({
      code: 1,
      out: [],
      err: ['error: no machine "nobody" found, and no machine whose Node has that name'],
    });
  });

  test('does not end while its Node cannot be given back; a deletion waits for its own hooks', async () => {
    await using world = await MachineWorld.open({ connection: connect() });
    const one = new KeptOne(world, await world.create());
    await world.settled(one.name);
    expect(await maintenance(world, 'start', one.name)).toMatchObject({ code: 0 });
    {
      await using _refusal = await refuse({
        resource: 'nodes',
        operations: ['UPDATE'],
        concerns: `object.metadata.name == '${one.name}'`,
        unless: 'has(object.spec.unschedulable) && object.spec.unschedulable',
        probe: { method: 'PATCH', path: `/api/v1/nodes/${one.name}`, body: { spec: { unschedulable: null } } },
      });
      await one.onMachine({ [MAINTENANCE_ANNOTATION]: null });
      await one.shows((machine, node) => {
        expect(ofMachine(machine)).toBe('False UncordonFailed');
        expect(conditionOf(node, 'Maintenance')?.message).toContain('refused by a test');
        expect(node.spec?.unschedulable).toBe(true);
      });
    }
    // The policy is in force for a moment longer.
    await eventually(async () => {
      await world.touch(one.name);
      expect(ofMachine(await one.machine())).toBe('False NotInMaintenance');
      expect((await one.node()).spec?.unschedulable).toBeUndefined();
    }, PATIENCE);

    await one.onMachine({ [DELETE_HOOK]: '' });
    await world.delete(one.name);
    await one.shows((machine, node) => {
      const { status, reason, message } =
        machine.status?.machineConditions?.find(({ type }) => type === 'Drained') ?? {};
      expect({ status, reason }).toEqual({ status: 'False', reason: 'WaitingForHooks' });
      expect(message).toContain(DELETE_HOOK);
      expect(node.spec?.unschedulable).toBeUndefined();
    });
    await one.onMachine({ [DELETE_HOOK]: null });
    await world.gone(one.name);
  });
});
