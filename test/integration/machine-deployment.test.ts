import { describe, expect, test } from '@jest/globals';

import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import {
  DESIRED_REPLICAS_ANNOTATION,
  FREEZE_LABEL,
  LAST_SCALER_CHANGE_ANNOTATION,
  MACHINE_FINALIZER,
  MAINTENANCE_ANNOTATION,
  MAX_REPLICAS_ANNOTATION,
  NODE_SYNC_REFUSED_ANNOTATION,
  PREFER_NO_SCHEDULE_KEY,
  REVISION_ANNOTATION,
  TEMPLATE_HASH_LABEL,
  TRIGGER_DELETION_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment, RollingLimits } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import { statusPatch } from '../../pkg/kube/client/patch.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { machineDeployments, machines, machineSets, nodes } from '../../pkg/kube/client/resource.ts';
import { connect } from '../env/environment.ts';
import { refuse } from '../env/refusal.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const HELD = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const CLASS_2 = { spec: { template: { spec: { class: { kind: 'MachineClass', name: 'c2' } } } } };

const limited =
  (limits: RollingLimits) =>
  ({ spec }: Pick<MachineDeployment, 'spec'>): void => {
    spec.strategy = { type: 'RollingUpdate', rollingUpdate: limits };
  };
const recreating = ({ spec }: Pick<MachineDeployment, 'spec'>): void => {
  spec.strategy = { type: 'Recreate' };
};

const condition = async (world: MachineSetWorld, type: string): Promise<unknown> =>
  (await world.get(machineDeployments, 'd')).status?.conditions?.find((c) => c.type === type);

/** Waits until all is of the present template, and said so. */
const complete = (world: MachineSetWorld, replicas: number, className = 'c'): Promise<unknown> =>
  eventually(
    async () => {
      const { status, metadata } = await world.get(machineDeployments, 'd');
      expect(status).toMatchObject({
        observedGeneration: metadata.generation,
        replicas,
        updatedReplicas: replicas,
        availableReplicas: replicas,
      });
      expect(world.running().map(({ spec }) => spec.class?.name)).toEqual(Array(replicas).fill(className));
      expect(world.machines.list()).toHaveLength(replicas);
    },
    { timeoutMs: 120_000, describe: `${replicas} machines of class ${className}` },
  );
const setsBySize = async (world: MachineSetWorld): Promise<MachineSet[]> =>
  (await world.list(machineSets)).toSorted((a, b) => (b.spec.replicas ?? 0) - (a.spec.replicas ?? 0));
const setOf = async (world: MachineSetWorld, className: string): Promise<MachineSet> => {
  const set = (await world.list(machineSets)).find(({ spec }) => spec.template?.spec?.class?.name === className);
  if (set === undefined) throw new Error(`no machine set of class ${className}`);
  return set;
};
const taintedNodes = async (world: MachineSetWorld): Promise<string[]> =>
  (await world.user.reader.list(nodes, { labelSelector: `world=${world.namespace.name}` })).items
    .filter(({ spec }) => spec?.taints?.some(({ key }) => key === PREFER_NO_SCHEDULE_KEY))
    .map(({ metadata }) => metadata.name);

describe('a machine deployment', () => {
  test('creates one set with hash, notes and revision, and its machines', async () => {
    await using world = await MachineSetWorld.start();
    const deployment = await world.createDeployment(3, limited({ maxSurge: '50%', maxUnavailable: 0 }));
    await complete(world, 3);

    const [set, ...others] = await world.list(machineSets);
    const hash = set?.metadata.labels?.[TEMPLATE_HASH_LABEL] ?? '';
    expect(others).toEqual([]);
    expect(set).toMatchObject({
      metadata: {
        labels: { pool: 'd', [TEMPLATE_HASH_LABEL]: expect.stringMatching(/^\d+$/) },
        annotations: {
          [REVISION_ANNOTATION]: '1',
          [DESIRED_REPLICAS_ANNOTATION]: '3',
          [MAX_REPLICAS_ANNOTATION]: '5',
        },
        finalizers: [MACHINE_FINALIZER],
        ownerReferences: [{ kind: 'MachineDeployment', name: 'd', uid: deployment.metadata.uid, controller: true }],
      },
      spec: { replicas: 3, selector: { matchLabels: { pool: 'd', [TEMPLATE_HASH_LABEL]: hash } } },
    });
    expect(world.running()[0]?.metadata.labels).toMatchObject({ pool: 'd', [TEMPLATE_HASH_LABEL]: hash });
    await eventually(async () => {
      expect(await condition(world, 'Progressing')).toMatchObject({ status: 'True', reason: 'NewMachineSetAvailable' });
      expect(await condition(world, 'Available')).toMatchObject({ status: 'True', reason: 'MinimumReplicasAvailable' });
    });
    const { metadata } = await world.get(machineDeployments, 'd');
    expect(metadata.annotations?.[REVISION_ANNOTATION]).toBe('1');
    expect(metadata.finalizers).toEqual([MACHINE_FINALIZER]);
    expect(world.events.map(({ reason }) => reason)).toContain('ScalingMachineSet');
  });

  // promise: node-labels/changed-labels-node-template
  // promise: openstack/labels-nodes/label-running-machine-reaches
  test('passes changes that need no new machines through to the machines', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(2);
    await complete(world, 2);
    await world.patch(machineDeployments, 'd', {
      metadata: { annotations: { note: 'x' } },
      spec: { template: { spec: { drainTimeout: '1h', nodeTemplate: { metadata: { labels: { a: '1' } } } } } },
    });

    await eventually(async () => {
      for (const { spec } of await world.list(machines)) {
        expect(spec).toMatchObject({ drainTimeout: '1h', nodeTemplate: { metadata: { labels: { a: '1' } } } });
      }
    });
    expect((await world.list(machineSets)).map(({ metadata }) => metadata.annotations?.['note'])).toEqual(['x']);
    expect(world.succeeded('create', 'machines')).toBe(2);
  });

  test('of the old samples names a class of a provider, and is corrected without new machines', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(3, ({ spec }) => {
      spec.minReadySeconds = 500;
      spec.strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };
      spec.template.spec = { class: { kind: 'AWSMachineClass', name: 'test-aws' } };
    });
    const kinds = (): unknown[] => world.living().map(({ spec }) => spec.class?.kind);
    await eventually(() => expect(kinds()).toEqual(Array(3).fill('AWSMachineClass')));

    // What a Machine of such a class says to do: test/integration/machine-creation.test.ts.
    await world.patch(machineDeployments, 'd', { spec: { template: { spec: { class: { kind: 'MachineClass' } } } } });

    await eventually(() => expect(kinds()).toEqual(Array(3).fill('MachineClass')));
    expect(world.succeeded('create', 'machines')).toBe(3);
    expect(await world.list(machineSets)).toHaveLength(1);
  });

  test('scales its set up, down, and to nothing', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(3);
    for (const replicas of [3, 6, 1, 0, 2]) {
      await world.patch(machineDeployments, 'd', { spec: { replicas } });
      await complete(world, replicas);
    }

    expect(world.succeeded('create', 'machines')).toBe(8);
    expect(await world.list(machineSets)).toHaveLength(1);
  });

  test('goes after its machines and sets', async () => {
    await using world = await MachineSetWorld.start({ stopMs: 200 });
    await world.createDeployment(3);
    await complete(world, 3);
    await world.delete(machineDeployments, 'd');

    await eventually(async () => {
      await expect(world.get(machineDeployments, 'd')).rejects.toThrow(ApiError);
    });
    expect(await world.list(machineSets)).toEqual([]);
    expect(await world.list(machines)).toEqual([]);
  });

  test('creates no set while frozen', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(2, ({ metadata }) => {
      metadata.labels = { [FREEZE_LABEL]: 'True' };
    });
    await eventually(async () => (await world.get(machineDeployments, 'd')).status?.observedGeneration === 1);
    expect(await world.list(machineSets)).toEqual([]);

    await world.patch(machineDeployments, 'd', { metadata: { labels: { [FREEZE_LABEL]: null } } });
    await complete(world, 2);
  });

  test('tells what is stuck when its deadline has passed', async () => {
    await using world = await MachineSetWorld.start({ startMs: 600_000 });
    await world.createDeployment(1, ({ spec }) => {
      spec.progressDeadlineSeconds = 1;
    });

    await eventually(async () => {
      expect(await condition(world, 'Progressing')).toMatchObject({
        status: 'False',
        reason: 'ProgressDeadlineExceeded',
      });
    });
    expect(await condition(world, 'Available')).toMatchObject({
      status: 'False',
      reason: 'MinimumReplicasUnavailable',
    });
  });

  test('tells with its set what its machines say is refused for their nodes, for as long as one of them says so', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(2);
    await complete(world, 2);
    const [first = '', second = ''] = world.machines.list().map(({ metadata }) => metadata.name);
    const say = (name: string, text: string | null): Promise<unknown> =>
      world.patch(machines, name, { metadata: { annotations: { [NODE_SYNC_REFUSED_ANNOTATION]: text } } });
    const told = async (wanted: object | undefined): Promise<void> => {
      await eventually(
        async () => {
          const [set] = await world.list(machineSets);
          const onSet = set?.status?.machineSetCondition?.find(({ type }) => type === 'NodeSyncRefused');
          expect([onSet, await condition(world, 'NodeSyncRefused')]).toEqual([wanted, wanted]);
        },
        { timeoutMs: 120_000 },
      );
    };
    const refused = (message: string): object =>
      expect.objectContaining({ status: 'True', reason: 'Refused', message });
    const ofOne = refused('Changes of the Node of one machine are refused: label bad (impossible)');

    await say(first, 'label bad (impossible)');
    await told(ofOne);
    await say(second, 'label bad (impossible)');
    await told(refused('Changes of the Nodes of 2 machines are refused: label bad (impossible)'));
    await say(first, null);
    await told(ofOne);
    await say(second, null);
    await told(undefined);
  });

  test('avoids a name that another set has taken', async () => {
    await using world = await MachineSetWorld.start();
    await world.killManager();
    await world.createDeployment(1);
    await world.startManager();
    const taken = await eventually(async () => {
      const [set] = await world.list(machineSets);
      return set ?? false;
    });
    await world.killManager();
    const { name } = (taken as MachineSet).metadata;
    await world.patch(machineSets, name, { metadata: { finalizers: [] } });
    await world.delete(machineSets, name);
    await world.createSet(0, ({ metadata }) => (metadata.name = name));
    await world.startManager();

    await eventually(async () => expect(await world.list(machineSets)).toHaveLength(2));
    expect((await world.get(machineDeployments, 'd')).status?.collisionCount).toBe(1);
  });

  test('keeps the autoscaler from the node of a machine that has come in place of a failed one', async () => {
    const goes = ({ status }: Machine): boolean => status?.currentStatus?.phase !== 'Failed';
    await using world = await MachineSetWorld.start({ goes, withNodes: true });
    await world.createDeployment(2);
    await complete(world, 2);
    const before = world.running().map(({ metadata }) => metadata.name);
    // Who came first is told by seconds.
    const youngestMs = Math.max(...world.running().map(({ metadata }) => Date.parse(metadata.creationTimestamp)));
    await eventually(() => Date.now() >= youngestMs + 1_000, { describe: 'another second' });
    await world.setPhase(before[0] ?? '', 'Failed');

    await eventually(async () => {
      const list = (await world.user.reader.list(nodes, { labelSelector: `world=${world.namespace.name}` })).items;
      const held = list.filter(({ metadata }) => metadata.annotations?.[HELD] === 'true');
      expect(list).toHaveLength(3);
      expect(held.map(({ metadata }) => before.includes(metadata.name))).toEqual([false]);
    });
  });
});

describe('a rolling update', () => {
  test.each([
    { replicas: 6, maxSurge: 1, maxUnavailable: 0, most: 7, least: 6 },
    { replicas: 6, maxSurge: 0, maxUnavailable: 1, most: 6, least: 5 },
    { replicas: 10, maxSurge: '30%', maxUnavailable: '25%', most: 13, least: 8 },
    { replicas: 5, maxSurge: 0, maxUnavailable: 0, most: 5, least: 4 },
    { replicas: 5, maxSurge: '100%', maxUnavailable: '100%', most: 10, least: 0 },
  ])(
    'of $replicas with surge $maxSurge and unavailable $maxUnavailable has at most $most and at least $least',
    async ({ replicas, maxSurge, maxUnavailable, most, least }) => {
      await using world = await MachineSetWorld.start({ startMs: 40, stopMs: 60 });
      await world.createDeployment(replicas, limited({ maxSurge, maxUnavailable }));
      await complete(world, replicas);
      world.moments.length = 0;
      await world.patch(machineDeployments, 'd', CLASS_2);
      await complete(world, replicas, 'c2');

      expect(Math.max(...world.moments.map(({ existing }) => existing))).toBeLessThanOrEqual(most);
      expect(Math.min(...world.moments.map(({ available }) => available))).toBeGreaterThanOrEqual(least);
      expect(world.succeeded('create', 'machines')).toBe(2 * replicas);
      expect((await setsBySize(world)).map(({ spec }) => spec.replicas)).toEqual([replicas, 0]);
      await eventually(async () => {
        expect(await condition(world, 'Progressing')).toMatchObject({ reason: 'NewMachineSetAvailable' });
      });
    },
  );

  test('keeps its limits when the manager dies again and again', async () => {
    await using world = await MachineSetWorld.start({ startMs: 30, stopMs: 30 });
    await world.createDeployment(5, limited({ maxSurge: 1, maxUnavailable: 1 }));
    await complete(world, 5);
    world.moments.length = 0;
    await world.patch(machineDeployments, 'd', CLASS_2);
    for (let n = 1; n <= 8; n++) {
      await world.killManager();
      const dying = await world.startMortalManager(n, true);
      await eventually(() => dying.writes >= n || world.running().every(({ spec }) => spec.class?.name === 'c2'));
    }
    await world.killManager();
    await world.startManager();
    await complete(world, 5, 'c2');

    expect(Math.max(...world.moments.map(({ existing }) => existing))).toBeLessThanOrEqual(6);
    expect(Math.min(...world.moments.map(({ available }) => available))).toBeGreaterThanOrEqual(4);
  });

  test('does not stand still because a failed machine is preserved, although none may be unavailable', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(3, limited({ maxSurge: 1, maxUnavailable: 0 }));
    await complete(world, 3);
    const [name = ''] = world.running().map(({ metadata }) => metadata.name);
    const preserveExpiryTime = toTimestamp(world.user.clock.now() + 3_600_000);
    const patch = statusPatch(await world.get(machines, name), {
      currentStatus: { phase: 'Failed', preserveExpiryTime },
    });
    await world.user.writer.patch('change', machines, { namespace: world.namespace.name, name }, patch);
    await eventually(() => expect(world.running()).toHaveLength(2));
    world.moments.length = 0;
    await world.patch(machineDeployments, 'd', CLASS_2);
    await complete(world, 3, 'c2');

    expect(Math.min(...world.moments.map(({ available }) => available))).toBe(2);
    expect(Math.max(...world.moments.map(({ existing }) => existing))).toBeLessThanOrEqual(4);
  });

  test('replaces a new machine that failed for a passing reason, although one failed machine may be preserved', async () => {
    const created: string[] = [];
    const comesUp = ({ metadata: { name } }: Machine): boolean => created.push(name) !== 4;
    await using world = await MachineSetWorld.start({ comesUp });
    await world.createDeployment(3, ({ spec }) => {
      spec.autoPreserveFailedMachineMax = 1;
    });
    await complete(world, 3);
    await world.patch(machineDeployments, 'd', CLASS_2);
    await eventually(() => expect(created).toHaveLength(4));
    const [, , , first = ''] = created;

    await world.setPhase(first, 'Failed', { type: 'Create', state: 'Failed' });

    await complete(world, 3, 'c2');
    expect(world.machines.list().map(({ metadata }) => metadata.name)).not.toContain(first);
  });

  test('replaces a failed machine while others are still going, however many', async () => {
    // One that was gone before its set looked again would not be replaced, but be one of those that there is no room for yet.
    const goes = ({ spec, status }: Machine): boolean =>
      spec.class?.name !== 'c' && status?.currentStatus?.phase !== 'Failed';
    await using world = await MachineSetWorld.start({ goes });
    await world.createDeployment(3, limited({ maxSurge: '100%', maxUnavailable: '100%' }));
    await complete(world, 3);
    await world.patch(machineDeployments, 'd', CLASS_2);
    await eventually(() => expect(world.running().map(({ spec }) => spec.class?.name)).toEqual(['c2', 'c2', 'c2']));
    await world.patch(machineDeployments, 'd', { spec: { replicas: 2 } });
    await eventually(() => expect(world.machines.list()).toHaveLength(5));
    const [failed] = world.running();
    await world.setPhase(failed?.metadata.name ?? '', 'Failed');

    await eventually(() => {
      expect(world.running()).toHaveLength(2);
      expect(world.running().map(({ metadata }) => metadata.uid)).not.toContain(failed?.metadata.uid);
    });
    expect(world.machines.list()).toHaveLength(6);
  });

  test('has no more machines than it may when two of its sets create at once', async () => {
    await using world = await MachineSetWorld.start({ withoutDeployments: true });
    const { metadata } = await world.createDeployment(16, limited({ maxSurge: 0, maxUnavailable: 1 }));
    const owner = {
      apiVersion: API_VERSION,
      kind: 'MachineDeployment',
      name: 'd',
      uid: metadata.uid,
      controller: true,
    };
    const create = (name: string): Promise<MachineSet> =>
      world.createSet(12, (set) => {
        const labels = { pool: 'd', [TEMPLATE_HASH_LABEL]: name };
        Object.assign(set.metadata, { name, labels, ownerReferences: [owner] });
        set.spec.selector = { matchLabels: labels };
        set.spec.template = { ...set.spec.template, metadata: { labels } };
      });
    await Promise.all([create('a'), create('b')]);
    await eventually(() => expect(world.running().length).toBeGreaterThanOrEqual(16));
    // Both have looked once more.
    for (const name of ['a', 'b']) await world.patch(machineSets, name, { spec: { minReadySeconds: 1 } });
    await eventually(async () => {
      for (const set of await world.list(machineSets)) {
        expect(set.status?.observedGeneration).toBe(set.metadata.generation);
      }
    });

    expect(Math.max(...world.moments.map(({ existing }) => existing))).toBe(16);
  });

  test('gives up machines that do not run before those that do', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(3, limited({ maxSurge: 0, maxUnavailable: 1 }));
    await complete(world, 3);
    const [unwell, ...well] = world.running();
    await world.setPhase(unwell?.metadata.name ?? '', 'Unknown');
    await world.killManager();
    await world.startManager();
    world.moments.length = 0;
    await world.patch(machineDeployments, 'd', CLASS_2);
    await complete(world, 3, 'c2');

    expect(well).toHaveLength(2);
    expect(Math.min(...world.moments.map(({ available }) => available))).toBeGreaterThanOrEqual(2);
  });

  test('that is scaled on the way ends at the new number', async () => {
    await using world = await MachineSetWorld.start({ startMs: 60, stopMs: 60 });
    await world.createDeployment(6, limited({ maxSurge: 2, maxUnavailable: 1 }));
    await complete(world, 6);
    await world.patch(machineDeployments, 'd', CLASS_2);
    await eventually(async () => ((await setOf(world, 'c2')).spec.replicas ?? 0) > 0);
    await world.patch(machineDeployments, 'd', { spec: { replicas: 10 } });
    await eventually(async () => ((await setOf(world, 'c2')).spec.replicas ?? 0) > 4);
    expect((await setOf(world, 'c')).spec.replicas).toBeLessThanOrEqual(6);
    await world.patch(machineDeployments, 'd', { spec: { replicas: 4 } });

    await complete(world, 4, 'c2');
  });

  test('waits while paused, scales all the same, and goes on when resumed', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(3);
    await complete(world, 3);
    await world.patch(machineDeployments, 'd', { spec: { ...CLASS_2.spec, paused: true } });
    await eventually(async () => {
      expect(await condition(world, 'Progressing')).toMatchObject({ status: 'Unknown', reason: 'DeploymentPaused' });
    });
    await world.patch(machineDeployments, 'd', { spec: { replicas: 4 } });
    await eventually(() => expect(world.running()).toHaveLength(4));
    expect(await world.list(machineSets)).toHaveLength(1);

    await world.patch(machineDeployments, 'd', { spec: { paused: false } });
    await complete(world, 4, 'c2');
  });

  test('marks the nodes while it lasts', async () => {
    // It lasts until everything was looked at.
    let isLasting = true;
    const comesUp = ({ spec }: Machine): boolean => spec.class?.name === 'c' || !isLasting;
    await using world = await MachineSetWorld.start({ withNodes: true, comesUp });
    await world.createDeployment(3);
    await complete(world, 3);
    await world.patch(machineDeployments, 'd', CLASS_2);
    await eventually(async () => {
      const list = (await world.user.reader.list(nodes, { labelSelector: `world=${world.namespace.name}` })).items;
      const tainted = list.filter(({ spec }) => spec?.taints?.some(({ key }) => key === PREFER_NO_SCHEDULE_KEY));
      expect(tainted.map(({ metadata }) => metadata.annotations?.[HELD])).toEqual(['true', 'true', 'true']);
      expect((await setOf(world, 'c')).metadata.annotations?.[PREFER_NO_SCHEDULE_KEY]).toBe('True');
      expect(world.living()).toHaveLength(4);
    });
    isLasting = false;
    for (const waiting of world.living().filter(({ spec }) => spec.class?.name === 'c2')) await world.bringUp(waiting);
    await complete(world, 3, 'c2');

    await eventually(async () => {
      const list = (await world.user.reader.list(nodes, { labelSelector: `world=${world.namespace.name}` })).items;
      expect(list).toHaveLength(3);
      expect(list.filter(({ metadata }) => metadata.annotations?.[HELD] !== undefined)).toEqual([]);
    });
  });

  test('taints every node of an old set, also one that changes in that moment, and none when the rollout is turned back', async () => {
    await using world = await MachineSetWorld.start({
      withNodes: true,
      comesUp: ({ spec }) => spec.class?.name === 'c',
    });
    await world.createDeployment(4);
    await complete(world, 4);
    await world.killManager();
    const disturbed = new Set<string>();
    await world.startManager({
      intercept: async ({ text }, send) => {
        const [verb, resource, name = ''] = text.split(' ');
        const isFirst = verb === 'PATCH' && resource === 'nodes' && !disturbed.has(name);
        if (isFirst) {
          disturbed.add(name);
          const now = await world.user.reader.get(nodes, { name });
          const change = mergePatch(now, { metadata: { annotations: { kubelet: String(disturbed.size) } } });
          await world.user.writer.patch('change', nodes, { name }, change);
        }
        return send();
      },
    });
    const old = world.machines.list().map(({ metadata }) => metadata.name);

    await world.patch(machineDeployments, 'd', CLASS_2);
    await eventually(async () => {
      expect((await setOf(world, 'c')).metadata.annotations?.[PREFER_NO_SCHEDULE_KEY]).toBe('True');
    });
    const whileRolling = await taintedNodes(world);
    disturbed.clear();
    await world.patch(machineDeployments, 'd', {
      spec: { template: { spec: { class: { kind: 'MachineClass', name: 'c' } } } },
    });
    await complete(world, 4);
    await eventually(async () => {
      expect((await setOf(world, 'c')).metadata.annotations?.[PREFER_NO_SCHEDULE_KEY]).toBeUndefined();
    });

    expect(whileRolling.toSorted()).toEqual(old.toSorted());
    expect(disturbed.size).toBeGreaterThan(0);
    expect(await taintedNodes(world)).toEqual([]);
  });

  test('rolls on when more nodes than one pass writes refuse their taint, tells of it and leaves them alone for a while', async () => {
    await using world = await MachineSetWorld.start({ withNodes: true }, connect());
    const replicas = 105;
    await world.createDeployment(replicas, limited({ maxSurge: 1, maxUnavailable: 0 }));
    await complete(world, replicas);
    const [node = ''] = world.machines.list().map(({ metadata }) => metadata.name);
    const taints = [{ key: PREFER_NO_SCHEDULE_KEY, effect: 'PreferNoSchedule' }];
    await using _refusal = await refuse({
      resource: 'nodes',
      operations: ['UPDATE'],
      concerns: `object.metadata.?labels.world.orValue('') == '${world.namespace.name}'`,
      unless: `!object.spec.?taints.orValue([]).exists(taint, taint.key == '${PREFER_NO_SCHEDULE_KEY}')`,
      probe: { method: 'PATCH', path: `/api/v1/nodes/${node}`, body: { spec: { taints } } },
    });

    await world.patch(machineDeployments, 'd', CLASS_2);
    await eventually(async () => expect((await setOf(world, 'c')).spec.replicas).toBeLessThan(replicas - 2), {
      timeoutMs: 120_000,
      describe: 'the old set to shrink',
    });

    expect(await taintedNodes(world)).toEqual([]);
    expect((await setOf(world, 'c')).metadata.annotations?.[PREFER_NO_SCHEDULE_KEY]).toBeUndefined();
    expect(world.manager.count('patch', 'nodes')).toBeGreaterThan(100);
    expect(world.manager.count('patch', 'nodes')).toBeLessThan(5 * replicas);
    const told = world.events.filter(({ reason }) => reason === 'NodeUpdateFailed');
    expect(told.map(({ message }) => message).join()).toContain('refused by a test');
  });

  test('that is rolled back keeps how the pool is operated now, and gets the notes of the earlier template', async () => {
    await using world = await MachineSetWorld.start();
    const [limit, min] = ['max-replacements', 'cluster-api-autoscaler-node-group-min-size'];
    await world.createDeployment(1, ({ metadata }) => {
      metadata.annotations = { [`machine.sapcloud.io/${limit}`]: '0', 'kubernetes.io/change-cause': 'first' };
    });
    await complete(world, 1);
    await world.patch(machineDeployments, 'd', {
      metadata: {
        annotations: {
          [`machine.sapcloud.io/${limit}`]: null,
          [`machine.sapcloud.io/${min}`]: '1',
          'autoscaler.gardener.cloud/scale-down-unneeded-time': '1h',
          'kubernetes.io/change-cause': 'second',
        },
      },
      ...CLASS_2,
    });
    await complete(world, 1, 'c2');

    await world.patch(machineDeployments, 'd', { spec: { rollbackTo: { revision: 0 } } });
    await complete(world, 1, 'c');

    const { annotations = {} } = (await world.get(machineDeployments, 'd')).metadata;
    const others = Object.entries(annotations).filter(([key]) => !key.startsWith('deployment.kubernetes.io/'));
    expect(Object.fromEntries(others)).toEqual({
      [`machine.sapcloud.io/${min}`]: '1',
      'autoscaler.gardener.cloud/scale-down-unneeded-time': '1h',
      'kubernetes.io/change-cause': 'first',
    });
  });

  test('that is rolled back uses the set of the earlier template again', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(2);
    await complete(world, 2);
    const first = await setOf(world, 'c');
    await world.patch(machineDeployments, 'd', CLASS_2);
    await complete(world, 2, 'c2');
    await world.patch(machineDeployments, 'd', { spec: { rollbackTo: { revision: 0 } } });
    await complete(world, 2, 'c');

    const { spec, metadata } = await world.get(machineDeployments, 'd');
    expect(spec.rollbackTo ?? undefined).toBeUndefined();
    expect((await setOf(world, 'c')).metadata.uid).toBe(first.metadata.uid);
    await eventually(async () => {
      expect((await setOf(world, 'c')).metadata.annotations?.[REVISION_ANNOTATION]).toBe('3');
    });
    expect(metadata.labels).toEqual(undefined);
    expect(world.events.map(({ reason }) => reason)).toContain('DeploymentRollback');
  });

  test('forgets old sets beyond the history limit', async () => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(1, ({ spec }) => {
      spec.revisionHistoryLimit = 1;
    });
    for (const name of ['c', 'c2', 'c3', 'c4']) {
      await world.patch(machineDeployments, 'd', {
        spec: { template: { spec: { class: { kind: 'MachineClass', name } } } },
      });
      await complete(world, 1, name);
    }

    await eventually(async () => {
      const classes = (await world.list(machineSets)).map(({ spec }) => spec.template?.spec?.class?.name);
      expect(new Set(classes)).toEqual(new Set(['c3', 'c4']));
    });
  });
});

describe('what an autoscaler chose (MCM 965, MCM 972, MCM 1087, MCM 1095)', () => {
  test.each([
    { title: 'with times', entry: (name: string) => `${name}~2026-01-01T00:00:00Z` },
    { title: 'by bare names', entry: (name: string) => name },
  ])('$title goes, and nothing else', async ({ entry }) => {
    await using world = await MachineSetWorld.start();
    await world.createDeployment(5);
    await complete(world, 5);
    const names = world.running().map(({ metadata }) => metadata.name);
    const chosen = [names[1] ?? '', names[3] ?? ''];
    await world.patch(machineDeployments, 'd', {
      metadata: {
        annotations: {
          [TRIGGER_DELETION_ANNOTATION]: chosen.map(entry).join(','),
          [LAST_SCALER_CHANGE_ANNOTATION]: '2026-01-01T00:00:00Z',
        },
      },
      spec: { replicas: 3 },
    });
    await complete(world, 3);

    const left = names.filter((name) => !chosen.includes(name));
    expect(new Set(world.running().map(({ metadata }) => metadata.name))).toEqual(new Set(left));
    expect(world.succeeded('create', 'machines')).toBe(5);
    await eventually(async () => {
      const { annotations } = (await world.get(machineDeployments, 'd')).metadata;
      expect(annotations?.[TRIGGER_DELETION_ANNOTATION]).toBeUndefined();
    });
    expect((await world.list(machineSets))[0]?.metadata.annotations?.[TRIGGER_DELETION_ANNOTATION]).toBeUndefined();
  });
});

describe('a recreation', () => {
  test('makes no new machine before the last old one is gone', async () => {
    await using world = await MachineSetWorld.start({ startMs: 30, stopMs: 100 });
    await world.createDeployment(4, recreating);
    await complete(world, 4);
    const mixed: number[] = [];
    world.machines.onChange(() => {
      mixed.push(new Set(world.machines.list().map(({ spec }) => spec.class?.name)).size);
    });
    await world.patch(machineDeployments, 'd', CLASS_2);
    await complete(world, 4, 'c2');

    expect(Math.max(...mixed)).toBe(1);
    expect(world.succeeded('create', 'machines')).toBe(8);
  });
});

// promise: maintenance/survives-changes-template-uses
// promise: openstack/maintenance/survives-changes-machinedeployment
test('machines in maintenance count as unavailable: they follow changes of the template, and use up what a rollout may take', async () => {
  await using world = await MachineSetWorld.start({ startMs: 30, stopMs: 50 });
  await world.createDeployment(3, limited({ maxSurge: 0, maxUnavailable: 2 }));
  await complete(world, 3);
  const age = ({ metadata }: Machine): string => `${metadata.creationTimestamp} ${metadata.name}`;
  const [oldest, ...others] = world.running().toSorted((a, b) => (age(a) < age(b) ? -1 : 1));
  const names = others.map(({ metadata }) => metadata.name);
  const annotate = (name: string, value: string | null): Promise<Machine> =>
    world.patch(machines, name, { metadata: { annotations: { [MAINTENANCE_ANNOTATION]: value } } });
  const untilAvailable = (availableReplicas: number): Promise<unknown> =>
    eventually(
      async () => expect((await world.get(machineDeployments, 'd')).status).toMatchObject({ availableReplicas }),
      { timeoutMs: 120_000 },
    );
  for (const name of names) await annotate(name, 'true');
  await untilAvailable(1);

  const labels = { a: '1' };
  await world.patch(machineDeployments, 'd', {
    spec: { template: { spec: { nodeTemplate: { metadata: { labels } } } } },
  });
  await eventually(
    () => {
      for (const { metadata, spec } of world.running()) {
        expect(spec.nodeTemplate?.metadata?.labels).toEqual(labels);
        const asked = metadata.annotations?.[MAINTENANCE_ANNOTATION];
        expect(asked).toBe(names.includes(metadata.name) ? 'true' : undefined);
      }
    },
    { timeoutMs: 120_000 },
  );

  await world.patch(machineDeployments, 'd', CLASS_2);
  await eventually(
    async () => {
      const { metadata, status } = await world.get(machineDeployments, 'd');
      expect(status).toMatchObject({
        observedGeneration: metadata.generation,
        updatedReplicas: 0,
        availableReplicas: 1,
      });
      expect((await setOf(world, 'c2')).status?.observedGeneration).toBeGreaterThan(0);
    },
    { timeoutMs: 120_000 },
  );
  expect(world.running().map(({ metadata }) => metadata.name)).toContain(oldest?.metadata.name);
  expect(world.running()).toHaveLength(3);

  for (const name of names) await annotate(name, null);
  await complete(world, 3, 'c2');
});
