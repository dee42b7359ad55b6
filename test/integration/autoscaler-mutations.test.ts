import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { Status } from 'nice-grpc';

import { TRIGGER_DELETION_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Mutated } from '../../pkg/autoscaler/mutations/decision.ts';
import { placeholderOf } from '../../pkg/autoscaler/placeholder.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeploymentStrategy } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { refOf } from '../../pkg/apis/meta.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { machineDeployments, machineSets } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { GroupChanger } from './group-changer.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const PATIENCE = { timeoutMs: 120_000 };

const names = (world: MachineSetWorld): string[] =>
  world
    .running()
    .map(({ metadata }) => metadata.name)
    .toSorted();

/** Waits until `replicas` Machines run, as the changer sees them too, and none is going. */
async function settled(world: MachineSetWorld, changer: GroupChanger, replicas: number): Promise<string[]> {
  await eventually(() => {
    expect(world.running()).toHaveLength(replicas);
    expect(world.machines.list()).toHaveLength(replicas);
    const seen = changer.machines.list().filter(({ status }) => status?.currentStatus?.phase === 'Running');
    expect(seen).toHaveLength(replicas);
  }, PATIENCE);
  return names(world);
}

/** Loses the answer of every second change of a MachineDeployment, after the API server has obeyed. */
function losingAnswers(): Interceptor {
  let writes = 0;
  return async ({ text }, send) => {
    const answer = await send();
    if (text.startsWith('PATCH machinedeployments') && ++writes % 2 === 1) {
      throw new ApiError(0, 'Unreachable', 'the answer is lost');
    }
    return answer;
  };
}

test('what an autoscaler asks for happens once, whatever answer is lost and at whatever write the manager dies', async () => {
  await using world = await MachineSetWorld.start({ withNodes: true });
  await using changer = new GroupChanger(world.connection, world.namespace.name, losingAnswers());
  await world.createDeployment(3);
  let staying = await settled(world, changer, 3);
  for (let n = 1; n <= 5; n++) {
    await world.killManager();
    const dying = await world.startMortalManager(n);
    const [chosen = ''] = staying;

    await Promise.all([changer.delete(chosen), changer.delete(chosen), changer.increase(1)]);
    await eventually(async () => {
      expect(await changer.delete(chosen)).toMatchObject({ machines: [] });
      const isOver = world.machines.list().length === 3 && !names(world).includes(chosen);
      expect(dying.writes > n || isOver).toBe(true);
    }, PATIENCE);
    await world.killManager();
    await world.startManager();

    await eventually(() => expect(names(world)).not.toContain(chosen), PATIENCE);
    const after = await settled(world, changer, 3);
    expect(after).toEqual(expect.arrayContaining(staying.slice(1)));
    staying = after;
  }
});

test('many ask for one Machine each at the same time, and a person scales: all are obeyed', async () => {
  await using world = await MachineSetWorld.start({ withNodes: true });
  const scaled: number[] = [];
  // Between the look and the write.
  const scale: Interceptor = async ({ text }, send) => {
    if (text.startsWith('PATCH machinedeployments') && scaled.length < 2) {
      const { spec } = await world.get(machineDeployments, 'd');
      scaled.push((spec.replicas ?? 0) + 1);
      await world.patch(machineDeployments, 'd', { spec: { replicas: (spec.replicas ?? 0) + 1 } });
    }
    return send();
  };
  await using changer = new GroupChanger(world.connection, world.namespace.name, scale);
  await world.createDeployment(6);
  const before = await settled(world, changer, 6);
  const chosen = before.slice(0, 4);

  await Promise.all(chosen.map((name) => changer.delete(name)));

  expect(scaled).toHaveLength(2);
  // On the way there may be four, of which some are still to go.
  await eventually(() => expect(names(world).filter((name) => chosen.includes(name))).toEqual([]), PATIENCE);
  const after = await settled(world, changer, 4);
  expect(after).toEqual(expect.arrayContaining(before.slice(4)));
  expect(after).not.toEqual(expect.arrayContaining([expect.stringMatching(new RegExp(`^(${chosen.join('|')})$`))]));
  expect(changer.events.map(({ reason }) => reason)).toEqual(Array(4).fill('ScaleDownAccepted'));
  expect(changer.events[0]?.subject).toMatchObject({ kind: 'MachineDeployment', name: 'd' });
});

test('what has not come is taken back by name, and what has come stays', async () => {
  const comesUp = new Set<string>();
  await using world = await MachineSetWorld.start({
    withNodes: true,
    comesUp: ({ metadata }) => comesUp.has(metadata.name) || comesUp.size < 2,
  });
  world.machines.onChange((_old, current) => {
    if (current?.status?.currentStatus?.phase === 'Running') comesUp.add(current.metadata.name);
  });
  await using changer = new GroupChanger(world.connection, world.namespace.name);
  await world.createDeployment(2);
  const joined = await settled(world, changer, 2);
  await changer.increase(3);
  await eventually(() => expect(changer.machines.list()).toHaveLength(5), PATIENCE);
  const [waiting = ''] = changer.machines
    .list()
    .map(({ metadata }) => metadata.name)
    .filter((name) => !joined.includes(name));

  const [late = ''] = joined;
  await expect(changer.delete(placeholderOf(late))).rejects.toMatchObject({ details: expect.stringContaining(late) });
  await changer.delete(placeholderOf(waiting));
  await expect(changer.decrease(-3)).resolves.toMatchObject({ before: 4, after: 2 });
  await expect(changer.decrease(-1)).rejects.toMatchObject({
    details: expect.stringContaining('none of which can be removed'),
  });

  expect(await settled(world, changer, 2)).toEqual(joined);
  await eventually(async () => {
    const { metadata, spec } = await world.get(machineDeployments, 'd');
    expect(spec.replicas).toBe(2);
    expect(Object.keys(metadata.annotations ?? {})).not.toContain(TRIGGER_DELETION_ANNOTATION);
  }, PATIENCE);
});

test.each<{ strategy: MachineDeploymentStrategy; surge: number }>([
  { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }, surge: 1 },
  {
    strategy: {
      type: 'InPlaceUpdate',
      inPlaceUpdate: { maxSurge: 0, maxUnavailable: 1, orchestrationType: 'Manual' },
    },
    surge: 0,
  },
])(
  'replicas of a rollout of type $strategy.type whose Machines the API server rejects are taken back, and cost no Machine that works',
  async ({ strategy, surge }) => {
    await using world = await MachineSetWorld.start({ withNodes: true });
    await using changer = new GroupChanger(world.connection, world.namespace.name);
    await world.createDeployment(3, ({ spec }) => void (spec.strategy = strategy));
    const before = await settled(world, changer, 3);
    await world.killManager();
    await world.startManager({
      intercept: ({ text }, send) => {
        if (text.startsWith('POST machines ')) throw new ApiError(403, 'Forbidden', 'exceeded quota');
        return send();
      },
    });
    const untilNewHas = async (size: number): Promise<void> =>
      eventually(async () => {
        const sets = await world.list(machineSets);
        const bySet = new Map(sets.map(({ spec }) => [spec.template?.spec?.class?.name, spec.replicas]));
        expect([bySet.get('c'), bySet.get('c2')]).toEqual([3, size]);
      }, PATIENCE);

    await world.patch(machineDeployments, 'd', {
      spec: { template: { spec: { class: { kind: 'MachineClass', name: 'c2' } } } },
    });
    await untilNewHas(surge);
    await changer.increase(2);
    await untilNewHas(2 + surge);
    await expect(changer.decrease(-1)).resolves.toMatchObject({ before: 5, after: 4 });
    await untilNewHas(1 + surge);
    await expect(changer.decrease(-3)).resolves.toMatchObject({ before: 4, after: 3 });
    await untilNewHas(surge);

    expect(names(world)).toEqual(before);
    await expect(changer.decrease(-1)).rejects.toMatchObject({
      details: expect.stringContaining('none of which can be removed'),
    });
  },
);

/** What happens in one round, at the same time: the autoscaler and a person. */
interface Round {
  readonly autoscaler: 'increase' | 'decrease' | 'delete' | 'delete again';
  readonly which: number;
  readonly person: number;
}

const ROUND = {
  autoscaler: fc.constantFrom<Round['autoscaler']>('increase', 'decrease', 'delete', 'delete again'),
  which: fc.nat(20),
};

test.each([
  { title: 'only raises', lowest: 0 },
  { title: 'raises and lowers', lowest: -2 },
])('an autoscaler, and a person who $title the size, take no Node that nobody has chosen', async ({ lowest }) => {
  await using world = await MachineSetWorld.start({ withNodes: true, comesUp: () => false });
  await using changer = new GroupChanger(world.connection, world.namespace.name, losingAnswers());
  const joined = new Set<string>();
  await world.createDeployment(4);
  const rounds = fc.record<Round>({ ...ROUND, person: fc.integer({ min: lowest, max: 1 }) });
  const named = new Set<string>();
  let [asked, lowered]: [string, number] = ['', 0];

  for (const { autoscaler, which, person } of fc.sample(rounds, { numRuns: 12, seed: 20261122 })) {
    await bringUpAll(world, changer);
    for (const { metadata } of world.running()) joined.add(metadata.name);
    const alive = [...joined].filter((name) => !named.has(name));
    if (autoscaler === 'delete') asked = alive[which % Math.max(1, alive.length)] ?? '';
    const call = {
      increase: () => changer.increase(2),
      decrease: () => changer.decrease(-1),
      delete: () => changer.delete(asked),
      'delete again': () => changer.delete(asked),
    }[autoscaler];
    const refused = (err: { code: Status }): Pick<Mutated, 'machines'> => {
      if (err.code !== Status.FAILED_PRECONDITION && err.code !== Status.ABORTED) throw err as unknown;
      return { machines: [] };
    };

    const [{ machines }] = await Promise.all([call().catch(refused), scaleBy(world, person)]);
    for (const name of machines) named.add(name);
    lowered -= Math.min(0, person);
  }

  await converged(world, changer);
  const left = world.living().map(({ metadata }) => metadata.name);
  expect(left.filter((name) => named.has(name))).toEqual([]);
  const unnamed = [...joined].filter((name) => !left.includes(name) && !named.has(name));
  expect(unnamed.length).toBeLessThanOrEqual(lowered);
});

/**
 * Makes all Machines run, as everybody sees then: no VM starts while sizes change. What was seen to have converged may be from before the
 * last change of the size, so that Machines go and others come meanwhile: each look begins with the Machines that there are.
 */
async function bringUpAll(world: MachineSetWorld, changer: GroupChanger): Promise<void> {
  const isUp = ({ status }: Machine): boolean => status?.currentStatus?.phase === 'Running';
  await eventually(async () => {
    await expectConverged(world, changer);
    for (const machine of world.living()) {
      if (!isUp(machine)) await world.bringUp(machine);
    }
    for (const seen of [world.machines, changer.machines, world.manager.caches.machines]) {
      expect(seen.list().every(isUp)).toBe(true);
    }
  }, PATIENCE);
}

/** Waits until there are as many Machines as wanted, none is going, and the changer sees that. */
async function converged(world: MachineSetWorld, changer: GroupChanger): Promise<void> {
  await eventually(() => expectConverged(world, changer), PATIENCE);
}

async function expectConverged(world: MachineSetWorld, changer: GroupChanger): Promise<void> {
  const { metadata, spec } = await world.get(machineDeployments, 'd');
  expect(Object.keys(metadata.annotations ?? {})).not.toContain(TRIGGER_DELETION_ANNOTATION);
  expect(world.machines.list()).toHaveLength(spec.replicas ?? 0);
  expect(world.living()).toHaveLength(spec.replicas ?? 0);
  expect(changer.machines.list()).toHaveLength(spec.replicas ?? 0);
}

/** What `kubectl scale` does; a size below 0 is none. */
async function scaleBy(world: MachineSetWorld, by: number): Promise<void> {
  if (by === 0) return;
  const deployment = await world.get(machineDeployments, 'd');
  const replicas = Math.max(0, (deployment.spec.replicas ?? 0) + by);
  const patch = { type: 'merge' as const, subresource: 'scale' as const, body: { spec: { replicas } } };
  await world.user.writer.patch('change', machineDeployments, refOf(deployment), patch);
}
