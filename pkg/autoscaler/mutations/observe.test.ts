import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachine } from '../../../test/builders.ts';
import { ReplicasWorld } from '../../../test/fakes/replicas-world.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { FREEZE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { groupStateOf } from './group-state.ts';

const deployment = machineDeployment();
const setOf = (name: string, replicas: number, className = 'class-1') =>
  machineSet(({ metadata, spec }) => {
    Object.assign(metadata, { name, uid: name });
    metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
    spec.replicas = replicas;
    spec.template.spec = { class: { kind: 'MachineClass', name: className } };
  });
const newSet = setOf('new', 1);
const machineOf = (set: typeof newSet, change: (m: BuiltMachine) => void = () => undefined) =>
  machine((m) => {
    m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
    change(m);
  });

describe('a rollout', () => {
  const old = setOf('old', 1, 'class-0');
  const empty = setOf('old', 0, 'class-0');
  const living = machineOf(empty);
  const leaving = machineOf(empty, ({ metadata }) => {
    Object.assign(metadata, { name: 'm-2', uid: 'm-2', deletionTimestamp: '2026-01-01T00:00:00Z' });
  });
  test.each([
    { title: 'all is of the template', sets: [newSet], machines: [], want: 'none' },
    { title: 'an old set is empty', sets: [newSet, empty], machines: [], want: 'none' },
    { title: 'an old set has a size', sets: [newSet, old], machines: [], want: 'choosing' },
    { title: 'a Machine of an old set is to go', sets: [newSet, empty], machines: [living], want: 'choosing' },
    { title: 'one of two is on its way', sets: [newSet, empty], machines: [living, leaving], want: 'choosing' },
    { title: 'the last is on its way', sets: [newSet, empty], machines: [leaving], want: 'emptying' },
    { title: 'there is no set of the template yet', sets: [old], machines: [], want: 'choosing' },
    { title: 'neither, and the last is on its way', sets: [empty], machines: [leaving], want: 'choosing' },
    { title: 'it is paused', sets: [newSet, old], machines: [], isPaused: true, want: 'none' },
  ])('$want when $title', ({ sets, machines, isPaused, want }) => {
    const paused = { ...deployment, spec: { ...deployment.spec, paused: isPaused ?? false } };

    expect(groupStateOf(new ReplicasWorld({ sets, machines }), paused, new Map()).rollout).toBe(want);
  });

  const limits = { maxSurge: 1, maxUnavailable: 2 };
  const rolling = { type: 'RollingUpdate', rollingUpdate: limits } as const;
  const inPlace = { type: 'InPlaceUpdate', inPlaceUpdate: { ...limits, orchestrationType: 'Auto' } } as const;
  const manual = { type: 'InPlaceUpdate', inPlaceUpdate: { ...limits, orchestrationType: 'Manual' } } as const;
  const three = setOf('new', 3);
  const membersOfNew = (['Running', 'Running', 'Pending'] as const).map((phase, i) =>
    machineOf(three, (m) => {
      Object.assign(m.metadata, { name: `n-${i}`, uid: `n-${i}` });
      m.status.currentStatus.phase = phase;
    }),
  );
  const working = (set: typeof newSet, count: number) =>
    Array.from({ length: count }, (_, i) =>
      machineOf(set, ({ metadata }) => void Object.assign(metadata, { name: `w-${i}`, uid: `w-${i}` })),
    );
  const failing = (set: typeof newSet) =>
    machineOf(set, (m) => void (m.status.currentStatus.phase = 'CrashLoopBackOff'));
  const [left, bad, again] = [setOf('left', 3, 'class-0'), setOf('bad', 1, 'class-bad'), setOf('new', 3)];
  const frozen = { [FREEZE_LABEL]: 'True' };
  const gone = membersOfNew.map((one) => ({
    ...one,
    metadata: { ...one.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
  }));
  test.each([
    { title: 'as many as may be missing', sets: [three, old], want: 2 },
    {
      title: 'what its new machines do not make up for',
      sets: [three, old],
      machines: [...membersOfNew, ...working(old, 1)],
      want: 1,
    },
    { title: 'also for new machines that are going', sets: [three, old], machines: gone, want: 2 },
    {
      title: 'what goes before a machine may come for it',
      sets: [setOf('new', 0), empty],
      machines: [leaving, living],
      want: 1,
    },
    { title: 'nothing while old machines fill all', sets: [three, setOf('old', 4, 'class-0')], want: 0 },
    { title: 'nothing before it has a set', sets: [old], want: 0 },
    { title: 'nothing while its set waits to grow', sets: [setOf('new', 0), old], want: 0 },
    { title: 'what has no machine yet of a frozen one', sets: [setOf('new', 0), left], labels: frozen, want: 1 },
    { title: 'no more than may be missing of a frozen one', sets: [setOf('new', 0), old], labels: frozen, want: 2 },
    { title: 'nothing of a frozen one before it has a set', sets: [old], labels: frozen, want: 0 },
    {
      title: 'what was emptied for machines that failed, after a rollback',
      sets: [again, bad],
      machines: [...working(again, 3), failing(bad)],
      want: 1,
    },
    {
      title: 'what was emptied for machines that failed, while its set waits to grow',
      sets: [setOf('new', 0), left, bad],
      machines: [...working(left, 3), failing(bad)],
      want: 1,
    },
    {
      title: 'what was emptied for machines that failed, before it has a set',
      sets: [left, bad],
      machines: [...working(left, 3), failing(bad)],
      want: 1,
    },
    {
      title: 'nothing for what was requested before it began, and never came',
      sets: [setOf('new', 0), setOf('left', 4, 'class-0')],
      machines: [...working(setOf('left', 4), 3), failing(setOf('left', 4))],
      want: 0,
    },
    { title: 'nothing when it is complete', sets: [three], want: 0 },
    {
      title: 'what an update in place has emptied',
      sets: [setOf('new', 1), left],
      machines: working(left, 3),
      strategy: inPlace,
      want: 1,
    },
    { title: 'nothing in place where a person chooses', sets: [setOf('new', 1), left], strategy: manual, want: 0 },
    { title: 'nothing of a Recreate', sets: [three, old], strategy: { type: 'Recreate' } as const, want: 0 },
    {
      title: 'what is missing at the end of an update in place',
      sets: [setOf('new', 4), old],
      machines: [...membersOfNew, ...working(old, 1)],
      strategy: inPlace,
      want: 1,
    },
  ])('owes $title', ({ sets, machines = [], labels = {}, strategy = rolling, want }) => {
    const { metadata, spec } = deployment;
    const rolled = { ...deployment, metadata: { ...metadata, labels }, spec: { ...spec, replicas: 4, strategy } };

    expect(groupStateOf(new ReplicasWorld({ sets, machines }), rolled, new Map()).owed).toBe(want);
  });
});

describe('a Machine has a Node', () => {
  const its = node((n) => void (n.metadata.name = 'm-1'));
  const other = node((n) =>
    Object.assign(n, { metadata: { ...n.metadata, name: 'x' }, spec: { providerID: 'sim:///x' } }),
  );
  test.each([
    { title: 'there is one', phase: 'Pending', nodes: [its], want: true },
    { title: 'there is another', phase: 'Pending', nodes: [other], want: false },
    { title: 'it is not seen yet, and the Machine runs', phase: 'Running', nodes: [], want: true },
    { title: 'there is none', phase: 'Pending', nodes: [], want: false },
    { title: 'there was one, which may come back', phase: 'Unknown', nodes: [], want: true, isLost: true },
    { title: 'there was one that is there again', phase: 'Unknown', nodes: [its], want: true },
  ] as const)('$want when $title', ({ phase, nodes, want, ...row }) => {
    const seen = machineOf(newSet, (m) => void (m.status.currentStatus.phase = phase));
    const deps = new ReplicasWorld({ sets: [newSet], machines: [seen], nodes });

    const member = groupStateOf(deps, deployment, new Map()).members.get('m-1');
    expect(member).toMatchObject({ hasNode: want, isLost: 'isLost' in row });
  });
});

test('what was read from the API server counts more than the cache', () => {
  const cached = machineOf(newSet, (m) => void (m.status.currentStatus.phase = 'Pending'));
  const live = machineOf(newSet);
  const deps = new ReplicasWorld({ sets: [newSet], machines: [cached] });

  expect(groupStateOf(deps, deployment, new Map([['m-1', live]])).members.get('m-1')?.machine).toBe(live);
  expect(groupStateOf(deps, deployment, new Map([['m-1', undefined]])).members.size).toBe(0);
});
