import { describe, expect, test } from '@jest/globals';

import {
  CANDIDATE_FOR_UPDATE_LABEL,
  CRITICAL_COMPONENTS_TAINT,
  PREFER_NO_SCHEDULE_KEY,
  SCALE_UP_DISABLED_LABEL,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_RESULT_LABEL,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { machineDeployments, machineSets, nodes } from '../../pkg/kube/client/resource.ts';
import { connect } from '../env/environment.ts';
import { refuse } from '../env/refusal.ts';
import { eventually } from '../expect/eventually.ts';
import { InPlaceAgents } from './in-place-agents.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const PATIENCE = { timeoutMs: 90_000 };
/** Of the same template but for what an agent can change on a running machine. */
const VERSION_2 = { spec: { template: { metadata: { annotations: { version: '2' } } } } };
const VERSION_1 = { spec: { template: { metadata: { annotations: { version: null } } } } };

const inPlace =
  (orchestrationType: 'Auto' | 'Manual', maxSurge: number, maxUnavailable: number) =>
  ({ spec }: Pick<MachineDeployment, 'spec'>): void => {
    spec.strategy = { type: 'InPlaceUpdate', inPlaceUpdate: { maxSurge, maxUnavailable, orchestrationType } };
  };

/** Waits until `replicas` Machines run, all of the set of the present template, and nothing is left to be done. */
async function settled(world: MachineSetWorld, replicas: number, version: string | undefined): Promise<Machine[]> {
  return eventually(async () => {
    const { status, metadata } = await world.get(machineDeployments, 'd');
    expect(status).toMatchObject({
      observedGeneration: metadata.generation,
      replicas,
      updatedReplicas: replicas,
      availableReplicas: replicas,
    });
    const running = world.running();
    expect(world.machines.list()).toHaveLength(replicas);
    const set = await setOf(world, version);
    expect(running.map(({ metadata: m }) => m.ownerReferences?.[0]?.uid)).toEqual(
      Array(replicas).fill(set.metadata.uid),
    );
    expect(running.filter(({ metadata: m }) => m.labels?.[UPDATE_RESULT_LABEL] !== undefined)).toEqual([]);
    const marked = (await nodesOf(world)).filter(({ metadata: { labels = {} } }) =>
      [CANDIDATE_FOR_UPDATE_LABEL, SELECTED_FOR_UPDATE_LABEL, UPDATE_RESULT_LABEL].some((key) => key in labels),
    );
    expect(marked).toEqual([]);
    return running;
  }, PATIENCE);
}

async function setOf(world: MachineSetWorld, version: string | undefined): Promise<MachineSet> {
  const sets = await world.list(machineSets);
  const set = sets.find(({ spec }) => spec.template?.metadata?.annotations?.['version'] === version);
  if (set === undefined) throw new Error(`no machine set of version ${version ?? 'none'}`);
  return set;
}

async function nodesOf(world: MachineSetWorld): Promise<readonly Node[]> {
  return (await world.user.reader.list(nodes, { labelSelector: `world=${world.namespace.name}` })).items;
}

const isUpdated = ({ metadata }: Node): boolean => metadata.labels?.[UPDATE_RESULT_LABEL] !== undefined;
const uids = (machines: readonly Machine[]): string[] => machines.map(({ metadata }) => metadata.uid).toSorted();

async function choose(world: MachineSetWorld, name: string): Promise<void> {
  const node = await world.user.reader.get(nodes, { name });
  const patch = mergePatch(node, { metadata: { labels: { [SELECTED_FOR_UPDATE_LABEL]: 'true' } } });
  await world.user.writer.patch('change', nodes, { name }, patch);
}

describe('an automatic update in place', () => {
  test('keeps every machine, has no more of them unavailable than allowed, and gives the Nodes back', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await using agents = InPlaceAgents.start(world);
    await world.createDeployment(5, inPlace('Auto', 0, 2));
    const before = await settled(world, 5, undefined);
    world.moments.length = 0;

    await world.patch(machineDeployments, 'd', VERSION_2);
    const after = await settled(world, 5, '2');

    expect(uids(after)).toEqual(uids(before));
    expect(world.succeeded('create', 'machines')).toBe(5);
    expect(world.succeeded('delete', 'machines')).toBe(0);
    expect(agents.mostAtOnce).toBeLessThanOrEqual(2);
    expect(Math.min(...world.moments.map(({ available }) => available))).toBeGreaterThanOrEqual(3);
    for (const { spec } of await nodesOf(world)) {
      expect(spec?.unschedulable).toBeUndefined();
      expect(spec?.taints?.map(({ key }) => key)).toContain(CRITICAL_COMPONENTS_TAINT);
      expect(spec?.taints?.map(({ key }) => key)).not.toContain(PREFER_NO_SCHEDULE_KEY);
    }
    expect((await setOf(world, undefined)).metadata.labels?.[SCALE_UP_DISABLED_LABEL]).toBe('true');
  });

  test('with surge makes as many machines more, and gives up as many old ones at the end', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await using _half = InPlaceAgents.start(world);
    await world.createDeployment(4, inPlace('Auto', 1, 0));
    const before = await settled(world, 4, undefined);
    world.moments.length = 0;

    await world.patch(machineDeployments, 'd', VERSION_2);
    const after = await settled(world, 4, '2');

    expect(uids(after).filter((uid) => uids(before).includes(uid))).toHaveLength(3);
    expect(world.succeeded('create', 'machines')).toBe(5);
    expect(world.succeeded('delete', 'machines')).toBe(1);
    expect(Math.max(...world.moments.map(({ existing }) => existing))).toBe(5);
    expect(Math.min(...world.moments.map(({ available }) => available))).toBeGreaterThanOrEqual(4);
  });

  test('goes on around an updated Node that refuses to be given back, which is told of, and gives it back once it does not', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true }, connect());
    await using _half = InPlaceAgents.start(world);
    await world.createDeployment(3, inPlace('Auto', 0, 2));
    const before = await settled(world, 3, undefined);
    const node = before[0]?.metadata.name ?? '';
    const updated = async (): Promise<readonly string[]> =>
      (await nodesOf(world)).filter(isUpdated).map(({ metadata }) => metadata.name);

    await using refusals = new AsyncDisposableStack();
    refusals.use(
      await refuse({
        resource: 'nodes',
        operations: ['UPDATE'],
        concerns: `object.metadata.name == '${node}'`,
        unless: `!object.spec.?taints.orValue([]).exists(taint, taint.key == '${CRITICAL_COMPONENTS_TAINT}')`,
        probe: {
          method: 'PATCH',
          path: `/api/v1/nodes/${node}`,
          body: { spec: { taints: [{ key: CRITICAL_COMPONENTS_TAINT, effect: 'NoSchedule' }] } },
        },
      }),
    );
    await world.patch(machineDeployments, 'd', VERSION_2);
    await eventually(async () => {
      const { status } = await world.get(machineDeployments, 'd');
      expect(status).toMatchObject({ updatedReplicas: 3, availableReplicas: 3 });
      expect(await updated()).toEqual([node]);
      expect(world.events.map(({ reason }) => reason)).toContain('NodeUpdateFailed');
    }, PATIENCE);

    await refusals.disposeAsync();
    expect(uids(await settled(world, 3, '2'))).toEqual(uids(before));
  });

  test('replaces a machine whose update failed', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await using agents = InPlaceAgents.start(world);
    await world.createDeployment(3, inPlace('Auto', 0, 1));
    const before = await settled(world, 3, undefined);
    const [unlucky] = before;
    agents.failing.add(unlucky?.metadata.name ?? '');

    await world.patch(machineDeployments, 'd', VERSION_2);
    const after = await settled(world, 3, '2');

    expect(uids(after)).not.toContain(unlucky?.metadata.uid);
    expect(world.succeeded('create', 'machines')).toBe(4);
    expect(world.succeeded('delete', 'machines')).toBe(1);
  });

  test.each([{ to: [2] }, { to: [7, 3] }])(
    'scaled from 5 to $to on the way goes on to the new number',
    async ({ to }) => {
      await using world = await MachineSetWorld.start({ withNodes: true });
      await using _half = InPlaceAgents.start(world);
      await world.createDeployment(5, inPlace('Auto', 0, 1));
      await settled(world, 5, undefined);

      await world.patch(machineDeployments, 'd', VERSION_2);
      await eventually(async () => ((await setOf(world, '2')).spec.replicas ?? 0) > 0, PATIENCE);
      for (const replicas of to) await world.patch(machineDeployments, 'd', { spec: { replicas } });
      await settled(world, to.at(-1) ?? 0, '2');

      expect(world.succeeded('create', 'machines')).toBeLessThanOrEqual(Math.max(5, ...to));
      expect(world.succeeded('create', 'machines') - world.succeeded('delete', 'machines')).toBe(to.at(-1));
    },
  );

  test('goes back in place too, also to a set that was kept from refilling', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await using _half = InPlaceAgents.start(world);
    await world.createDeployment(3, inPlace('Auto', 0, 1));
    const before = await settled(world, 3, undefined);

    await world.patch(machineDeployments, 'd', VERSION_2);
    await eventually(async () => ((await setOf(world, '2')).spec.replicas ?? 0) > 0, PATIENCE);
    await world.patch(machineDeployments, 'd', VERSION_1);
    const after = await settled(world, 3, undefined);
    await world.patch(machineDeployments, 'd', { spec: { replicas: 4 } });
    await settled(world, 4, undefined);

    expect(uids(after)).toEqual(uids(before));
    expect((await setOf(world, undefined)).metadata.labels?.[SCALE_UP_DISABLED_LABEL]).toBeUndefined();
  });

  test('is continued by the next manager, whatever write the one before died at', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await using _half = InPlaceAgents.start(world);
    await world.createDeployment(3, inPlace('Auto', 0, 1));
    const before = await settled(world, 3, undefined);
    await world.patch(machineDeployments, 'd', VERSION_2);
    for (let n = 1; n <= 6; n++) {
      await world.killManager();
      const dying = await world.startMortalManager(n, true);
      const isDone = async (): Promise<boolean> => ((await setOf(world, '2')).spec.replicas ?? 0) === 3;
      await eventually(async () => dying.writes > n || (await isDone()), PATIENCE);
    }
    await world.killManager();
    await world.startManager();
    const after = await settled(world, 3, '2');

    expect(uids(after)).toEqual(uids(before));
  });
});

describe('a manual update in place', () => {
  test('touches nothing before a person has chosen a Node, and then this one alone', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await using agents = InPlaceAgents.start(world);
    await world.createDeployment(3, inPlace('Manual', 1, 1));
    const before = await settled(world, 3, undefined);
    const [first, ...others] = before.map(({ metadata }) => metadata.name).toSorted();

    await world.patch(machineDeployments, 'd', VERSION_2);
    await eventually(async () => {
      const candidates = (await nodesOf(world)).filter(
        ({ metadata }) => metadata.labels?.[CANDIDATE_FOR_UPDATE_LABEL] === 'true',
      );
      expect(candidates).toHaveLength(3);
    }, PATIENCE);
    expect((await setOf(world, '2')).spec.replicas).toBe(0);
    await choose(world, first ?? '');
    await eventually(async () => {
      expect((await setOf(world, '2')).spec.replicas).toBe(1);
      expect((await setOf(world, undefined)).spec.replicas).toBe(2);
      const chosen = (await nodesOf(world)).filter(
        ({ metadata }) => SELECTED_FOR_UPDATE_LABEL in (metadata.labels ?? {}),
      );
      expect(chosen).toHaveLength(0);
      // The agents see the next ones in the moment in which they are chosen.
      expect(agents.atOnce).toBe(0);
    }, PATIENCE);
    for (const name of others) await choose(world, name);
    const after = await settled(world, 3, '2');

    expect(uids(after)).toEqual(uids(before));
    expect(agents.mostAtOnce).toBeLessThanOrEqual(2);
    expect(world.succeeded('create', 'machines')).toBe(3);
  });

  test('that is scaled on the way makes the missing machines of the new template', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await using _half = InPlaceAgents.start(world);
    await world.createDeployment(2, inPlace('Manual', 0, 1));
    await settled(world, 2, undefined);

    await world.patch(machineDeployments, 'd', VERSION_2);
    await world.patch(machineDeployments, 'd', { spec: { replicas: 4 } });
    await eventually(async () => {
      expect((await setOf(world, '2')).spec.replicas).toBe(2);
      expect(world.running()).toHaveLength(4);
    }, PATIENCE);

    expect((await setOf(world, undefined)).spec.replicas).toBe(2);
  });
});
