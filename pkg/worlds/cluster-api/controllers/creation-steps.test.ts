import { expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { eventsOf } from '../../../../test/fakes/notes.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { NODE_CLUSTER_ANNOTATION } from '../api/keys.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { NODE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { clusterAPIMachines } from '../api/resources.ts';
import { PassNotes } from '../../../work/reconcile/object-pass/pass-notes.ts';
import { stop } from '../../../work/reconcile/result.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { trimNode } from '../../../operator/cached/target.ts';
import { creationSteps } from './creation-steps.ts';
import { nodeByProviderID } from './creation/node-by-provider-id.ts';
import type { MachinePass, StepDeps, WorkingMachine } from './machine-pass.ts';
import type { NodeCluster } from './node-clusters.ts';
import type { ObservedInfrastructure } from './observed.ts';
import { CLUSTER_API_MACHINE_INDEXES } from './kinds.ts';

const ID = 'sim:///1';

const machine = (name: string, nodeName?: string): ClusterAPIMachine => ({
  metadata: { name, namespace: 'ns', uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: '' },
  spec: { providerID: ID, infrastructureRef: { apiGroup: 'g', kind: 'Sim', name: 'i' } },
  status: nodeName === undefined ? {} : { nodeRef: { name: nodeName } },
});

const clock = new FakeClock();
const cluster = { metadata: { ...machine('c').metadata, name: 'c' } };
const target = (...nodes: Node[]): Target =>
  ({
    nodes: new MemoryInformer(nodes, NODE_INDEXES),
    writer: { patch: () => Promise.resolve(undefined) },
  }) as unknown as Target;
const empty = target();
const withNode = target(
  node((n) => void Object.assign(n, { metadata: { ...n.metadata, name: 'n' }, spec: { providerID: ID } })),
);
const reached = (of: Target): NodeCluster => ({ kind: 'reached', target: of, identity: 'u' });
const away = (sinceMs: number, lostSinceMs?: number): NodeCluster => ({
  kind: 'unreachable',
  why: 'w',
  sinceMs,
  lostSinceMs,
});
const lost = (agoMs: number): NodeCluster => away(clock.monotonicMs() - agoMs, clock.monotonicMs() - agoMs);
const agoMs = (ms: number): number => clock.monotonicMs() - ms;

const ABSENT: ObservedInfrastructure = { kind: 'absent' };
const THERE = { kind: 'found', external: { object: machine('i') }, report: {} } as unknown as ObservedInfrastructure;
const GOING = {
  kind: 'found',
  external: { object: { metadata: { ...machine('i').metadata, deletionTimestamp: 'now' } } },
} as unknown as ObservedInfrastructure;
const FOREIGN: ObservedInfrastructure = { kind: 'foreign', problem: 'it belongs to Machine first' };

/** What is asked for other Machines: their infrastructure is there, or is not. */
const depsOf = (machines: readonly ClusterAPIMachine[], others: 'there' | 'absent' = 'absent'): StepDeps => {
  const object = { ...machine('i'), spec: { providerID: ID } };
  const found = { kind: 'found', object, resource: clusterAPIMachines, contract: 'v1beta2' };
  return {
    machines: new MemoryInformer([...machines], CLUSTER_API_MACHINE_INDEXES),
    externals: { find: () => (others === 'there' ? found : { kind: 'absent' }) },
    servedAs: () => 'cluster.x-k8s.io/v1beta2',
    clock,
  } as unknown as StepDeps;
};

test.each<{
  what: string;
  own?: string;
  other?: ClusterAPIMachine;
  others?: 'there';
  infrastructure?: ObservedInfrastructure;
  kind: string;
}>([
  { what: 'that nobody else has', kind: 'found' },
  { what: 'that it has already', own: 'n', other: machine('copy'), kind: 'found' },
  { what: 'that a copy of it says is its own too', own: 'n', other: machine('copy', 'n'), kind: 'found' },
  { what: 'that the Machine has of which it is a copy', other: machine('first', 'n'), kind: 'unknown' },
  {
    what: 'that one has whose infrastructure is gone, while this one has its own',
    other: machine('first', 'n'),
    infrastructure: THERE,
    kind: 'undecided',
  },
  {
    what: 'that it has, but whose VM is that of another by now',
    own: 'n',
    other: machine('next'),
    others: 'there',
    kind: 'unknown',
  },
  { what: 'of infrastructure of another Machine', own: 'n', infrastructure: FOREIGN, kind: 'none' },
])(
  'the Node with the provider id of a Machine, $what, is $kind',
  ({ own, other, others, infrastructure = ABSENT, kind }) => {
    const one = machine('m', own);
    const nodeCluster = { kind: 'reached', target: withNode, identity: undefined } as const;

    const pass = { machine: one as WorkingMachine, infrastructure, nodeCluster, cluster };
    expect(nodeByProviderID(depsOf([one, ...(other === undefined ? [] : [other])], others), pass)).toMatchObject({
      kind,
    });
  },
);

test.each([
  { what: 'cannot be read yet, which wakes others only', kind: 'reading', result: { afterMs: 20_000 } },
  { what: 'is there', kind: 'found', result: stop },
])('a Machine looks again by itself when the infrastructure of another with its provider ID $what', async (world) => {
  const [one, other] = [machine('m', 'n'), machine('other')];
  const object = { ...machine('i'), spec: { providerID: ID } };
  const externals = { find: () => ({ kind: world.kind, object, resource: clusterAPIMachines, contract: 'v1beta2' }) };
  const pass = {
    machine: one,
    infrastructure: ABSENT,
    nodeCluster: { kind: 'reached', target: withNode, identity: undefined },
    cluster,
    notes: new PassNotes(),
  } as unknown as MachinePass;
  const deps = { ...depsOf([one, other]), externals } as unknown as StepDeps;
  await creationSteps(deps)
    .find(({ name }) => name === 'node')
    ?.run(pass);

  expect(pass.notes.resultOf(stop)).toMatchObject(world.result);
});

test('of several Machines with a provider ID the same one is named, whichever was written last', () => {
  const [one, other, third] = [machine('m'), machine('o'), machine('p')];
  const nodeCluster = { kind: 'reached', target: withNode, identity: undefined } as const;
  const infrastructure = { ...THERE, report: { providerID: ID } } as unknown as ObservedInfrastructure;
  const pass = { machine: one as WorkingMachine, infrastructure, nodeCluster, cluster };
  const [before, after] = [
    [one, other, third],
    [one, third, other],
  ].map((all) => nodeByProviderID(depsOf(all, 'there'), pass));

  expect(before).toMatchObject({ kind: 'undecided', problem: expect.stringContaining('Machines ns/m and ns/o have') });
  expect(after).toEqual(before);
});

test('two Nodes with the provider id of a Machine are decided by the name that it knows', () => {
  const nodeCluster = { kind: 'reached', target: target(twin('a'), twin('b')), identity: undefined } as const;
  const seen = [undefined, 'b', 'c'].map((known) => {
    const one = machine('m', known);
    const pass = { machine: one as WorkingMachine, infrastructure: ABSENT, nodeCluster, cluster };
    return nodeByProviderID(depsOf([one]), pass);
  });

  expect(seen).toMatchObject([
    { kind: 'undecided' },
    { kind: 'found', node: { metadata: { name: 'b' } } },
    { kind: 'gone' },
  ]);
});

const bare = node((n) => void Object.assign(n, { metadata: { ...n.metadata, name: 'n' }, spec: {} }));

test.each<{ what: string; live: Node | ApiError; clusterGoes?: boolean; want: object }>([
  { what: 'is not there', live: new ApiError(404, 'NotFound', 'no'), want: { kind: 'gone' } },
  { what: 'has registered anew', live: bare, want: { kind: 'undecided' } },
  { what: 'cannot be read', live: new ApiError(500, 'InternalError', 'no'), want: { kind: 'undecided' } },
  { what: 'is in a cluster that goes', live: bare, clusterGoes: true, want: { kind: 'gone' } },
])('a Node that the cache does not show, and that $what, is $want', async ({ live, clusterGoes = false, want }) => {
  const one = machine('m', 'n');
  const reader = { get: () => (live instanceof ApiError ? Promise.reject(live) : Promise.resolve(live)) };
  const of = clusterGoes ? { ...cluster, metadata: { ...cluster.metadata, deletionTimestamp: 'now' } } : cluster;
  const pass = {
    machine: one,
    infrastructure: ABSENT,
    nodeCluster: { kind: 'reached', target: { ...empty, reader }, identity: undefined },
    cluster: of,
    problems: [],
    notes: new PassNotes(),
  } as unknown as MachinePass;
  const step = creationSteps(depsOf([one])).find(({ name }) => name === 'node');
  await Promise.allSettled([step?.run(pass)]);

  expect(pass.node).toMatchObject(want);
});

const twin = (name: string, providerID = ID): Node =>
  node((n) => void Object.assign(n, { metadata: { ...n.metadata, name }, spec: { providerID } }));

const TOLD = 'The Node is b: n no longer exists, and it has the provider ID';

test.each<{
  what: string;
  others: readonly string[];
  holder?: string;
  infrastructure?: ObservedInfrastructure;
  kind: string;
  nodeRef: string;
  told: readonly string[];
}>([
  {
    what: 'one',
    others: ['b'],
    kind: 'found',
    nodeRef: 'b',
    told: [TOLD],
  },
  { what: 'two', others: ['b', 'c'], kind: 'undecided', nodeRef: 'n', told: [] },
  { what: 'one that another Machine has', others: ['b'], holder: 'b', kind: 'undecided', nodeRef: 'n', told: [] },
  { what: 'one while another Machine waits', others: ['b'], holder: 'x', kind: 'found', nodeRef: 'b', told: [TOLD] },
  ...[ABSENT, GOING].map((infrastructure) => ({
    what: `one, and infrastructure that is ${infrastructure === ABSENT ? 'gone' : 'going'}`,
    others: ['b'],
    infrastructure,
    kind: 'gone',
    nodeRef: 'n',
    told: [],
  })),
  {
    what: 'one, and infrastructure Reading that',
    others: ['b'],
    infrastructure: { kind: 'reading' } as const,
    kind: 'undecided',
    nodeRef: 'n',
    told: [],
  },
])(
  'a Machine whose Node is gone, with $what of its provider ID: $kind',
  async ({ others, holder, infrastructure = THERE, kind, nodeRef, told }) => {
    const one = { ...machine('m', 'n'), metadata: { ...machine('m').metadata, deletionTimestamp: 'now' } };
    const copies = holder === undefined ? [] : [machine('copy', holder)];
    const reader = { get: () => Promise.reject(new ApiError(404, 'NotFound', 'no')) };
    const nodeCluster = {
      kind: 'reached',
      target: { ...target(...others.map((name) => twin(name))), reader },
      identity: undefined,
    };
    const pass = {
      machine: structuredClone(one),
      infrastructure,
      nodeCluster,
      cluster,
      problems: [],
      notes: new PassNotes(),
    } as unknown as MachinePass;
    await creationSteps(depsOf([one, ...copies]))
      .find(({ name }) => name === 'node')
      ?.run(pass);

    expect([pass.node.kind, pass.machine.status.nodeRef?.name]).toEqual([kind, nodeRef]);
    expect(eventsOf(pass.notes).map(({ message }) => message)).toEqual(told);
  },
);

// promise: cluster-api/contracts-providers/addresses-failure-domain-follow
test.each([
  { was: true, isProvisioned: true, wanted: 'az-2' },
  { was: true, isProvisioned: false, wanted: 'az-2' },
  { was: false, isProvisioned: true, wanted: 'az-2' },
  { was: false, isProvisioned: false, wanted: undefined },
])('a Machine that was provisioned ($was) follows an object that is ($isProvisioned)', async (row) => {
  const one = machine('m');
  const observed = { ...one, status: { initialization: { infrastructureProvisioned: row.was } } };
  const controller = {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    name: 'm',
    uid: 'uid-of-m',
    controller: true,
  };
  const metadata = {
    ...machine('i').metadata,
    ownerReferences: [controller],
    labels: { 'cluster.x-k8s.io/cluster-name': 'c' },
  };
  const object = {
    metadata,
    spec: { providerID: ID, failureDomain: 'az-2' },
    status: { initialization: { provisioned: row.isProvisioned } },
  };
  const find = () => ({ kind: 'found', object, resource: clusterAPIMachines, contract: 'v1beta2' });
  const writer = { patch: () => Promise.resolve(object) };
  const deps = { ...depsOf([observed]), externals: { find }, writer } as unknown as StepDeps;
  const pass = {
    machine: structuredClone(observed),
    cluster,
    problems: [],
    notes: new PassNotes(),
  } as unknown as MachinePass;

  await creationSteps(deps)
    .find(({ name }) => name === 'infrastructure')
    ?.run(pass);

  expect(pass.infrastructure.kind).toBe('found');
  expect(pass.machine.spec.failureDomain).toBe(row.wanted);
  expect(pass.machine.status.initialization?.infrastructureProvisioned).toBe(row.was || row.isProvisioned);
});

// Its Node may have joined: kubelets do not wait for the infrastructure to be provisioned.
test.each([
  { what: 'is being deleted', deletionTimestamp: '2026-01-01T00:00:00Z', providerID: ID, nodeKind: 'found' },
  { what: 'is not', deletionTimestamp: undefined, providerID: '', nodeKind: 'none' },
])(
  'the provider ID of an object that is not provisioned yet: $providerID of a Machine that $what',
  async ({ deletionTimestamp, providerID, nodeKind }) => {
    const { metadata, spec } = machine('m');
    const one = {
      metadata: { ...metadata, ...(deletionTimestamp !== undefined && { deletionTimestamp }) },
      spec: { ...spec, providerID: '' },
      status: {},
    };
    const controller = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Machine', name: 'm', uid: 'uid-of-m' };
    const object = {
      metadata: {
        ...machine('i').metadata,
        ownerReferences: [{ ...controller, controller: true }],
        labels: { 'cluster.x-k8s.io/cluster-name': 'c' },
      },
      spec: { providerID: ID },
      status: { initialization: { provisioned: false } },
    };
    const find = () => ({ kind: 'found', object, resource: clusterAPIMachines, contract: 'v1beta2' });
    const writer = { patch: () => Promise.resolve(object) };
    const deps = { ...depsOf([one]), externals: { find }, writer } as unknown as StepDeps;
    const pass = {
      machine: structuredClone(one),
      cluster,
      nodeCluster: { kind: 'reached', target: withNode, identity: undefined },
      problems: [],
      notes: new PassNotes(),
    } as unknown as MachinePass;

    for (const name of ['infrastructure', 'node'])
      await creationSteps(deps)
        .find((step) => step.name === name)
        ?.run(pass);

    expect([pass.machine.spec.providerID, pass.node.kind]).toEqual([providerID, nodeKind]);
    expect(pass.machine.status.initialization?.infrastructureProvisioned).toBeUndefined();
  },
);

test('what a Node says of its system is followed', async () => {
  const one = { ...machine('m', 'n'), status: { nodeRef: { name: 'n' }, nodeInfo: { kubeletVersion: 'v1.33.0' } } };
  const going = { ...one, metadata: { ...one.metadata, deletionTimestamp: 'now' } };
  const nodeInfo = { kubeletVersion: 'v1.34.0' };
  const upgraded = node((n) =>
    Object.assign(n, { metadata: { ...n.metadata, name: 'n' }, spec: { providerID: ID }, status: { nodeInfo } }),
  );
  const pass = {
    machine: going,
    infrastructure: ABSENT,
    nodeCluster: reached(target(trimNode(upgraded))),
    cluster,
    notes: new PassNotes(),
  } as unknown as MachinePass;
  await creationSteps(depsOf([going]))
    .find(({ name }) => name === 'node')
    ?.run(pass);

  expect(pass.machine.status.nodeInfo).toEqual(nodeInfo);
});

// promise: cluster-api/nodes/labels-domains-cluster-api
test.each([
  { what: 'follows a Machine that goes', providerID: ID, refusal: undefined, written: 1 },
  {
    what: 'holds up no Machine that goes',
    providerID: ID,
    refusal: new ApiError(503, 'Unreachable', 'no'),
    written: 1,
  },
  { what: 'is let alone while it has no provider ID', providerID: undefined, refusal: undefined, written: 0 },
])('a Node $what', async ({ providerID, refusal, written }) => {
  const one = machine('m', 'n');
  const going = {
    ...one,
    metadata: { ...one.metadata, deletionTimestamp: 'now', labels: { 'node.cluster.x-k8s.io/a': 'b' } },
  };
  const joined = node((n) => Object.assign(n, { metadata: { ...n.metadata, name: 'n' }, spec: { providerID } }));
  const patches: unknown[] = [];
  const writer = {
    patch: (...patch: unknown[]) => {
      patches.push(patch);
      return refusal === undefined ? Promise.resolve(undefined) : Promise.reject(refusal);
    },
  };
  const reader = { get: () => Promise.resolve(joined) };
  const pass = {
    machine: structuredClone(going),
    infrastructure: THERE,
    nodeCluster: { kind: 'reached', target: { ...target(joined), writer, reader }, identity: undefined },
    cluster,
    problems: [],
    notes: new PassNotes(),
  } as unknown as MachinePass;

  await creationSteps(depsOf([going]))
    .find(({ name }) => name === 'node')
    ?.run(pass);

  expect([pass.node.kind, patches.length]).toEqual(['found', written]);
});

// promise: cluster-api/nodes/said-last-told-two
test.each<{
  what: string;
  nodeCluster: NodeCluster;
  own?: string;
  providerID?: string;
  annotations?: Record<string, string>;
  want: object;
}>([
  { what: 'in a cluster of its own', nodeCluster: reached(withNode), want: { kind: 'found' } },
  { what: 'that has not joined', nodeCluster: reached(empty), want: { kind: 'absent' } },
  {
    what: 'that was found there and is gone',
    nodeCluster: reached(empty),
    own: 'n',
    annotations: { [NODE_CLUSTER_ANNOTATION]: 'u' },
    want: { kind: 'gone' },
  },
  {
    what: 'that was found elsewhere',
    nodeCluster: reached(empty),
    own: 'n',
    want: { kind: 'unreachable', isOver: true, isLost: false },
  },
  {
    what: 'that was not looked for there',
    nodeCluster: lost(0),
    want: { kind: 'unreachable', isOver: false, isLost: false },
  },
  {
    what: 'of 119 s ago',
    nodeCluster: lost(119_000),
    own: 'n',
    want: { kind: 'unreachable', isOver: false, isLost: false },
  },
  {
    what: 'of 2 minutes ago',
    nodeCluster: lost(120_000),
    own: 'n',
    want: { kind: 'unreachable', isOver: true, isLost: true },
  },
  {
    what: 'of a cluster of which nothing was ever known, and which may respond',
    nodeCluster: away(-Infinity),
    want: { kind: 'unreachable', isOver: true, isLost: false },
  },
  {
    what: 'of a cluster that has refused us for 2 minutes',
    nodeCluster: away(agoMs(120_000)),
    want: { kind: 'unreachable', isOver: true, isLost: false },
  },
  { what: 'of no provider id', nodeCluster: lost(0), providerID: '', want: { kind: 'none' } },
])('a Node $what is $want', ({ nodeCluster, own, providerID = ID, annotations = {}, want }) => {
  const one = machine('m', own);
  const pass = {
    machine: { ...one, metadata: { ...one.metadata, annotations }, spec: { providerID } } as WorkingMachine,
    infrastructure: ABSENT,
    nodeCluster,
    cluster,
  };

  expect(nodeByProviderID(depsOf([one]), pass)).toMatchObject(want);
});

test.each([
  { what: 'has just gone away', nodeCluster: lost(20_000), wakesInMs: 100_000 },
  {
    what: 'was never known, and whose Secret is missing',
    nodeCluster: away(-Infinity, agoMs(20_000)),
    wakesInMs: 100_000,
  },
  { what: 'was never known, and may respond', nodeCluster: away(-Infinity), wakesInMs: undefined },
  { what: 'is lost', nodeCluster: lost(120_000), wakesInMs: undefined },
])('the pass of a Machine whose cluster $what is repeated in $wakesInMs ms', async ({ nodeCluster, wakesInMs }) => {
  const notes = new PassNotes();
  const pass = { machine: machine('m'), cluster, nodeCluster, infrastructure: ABSENT, notes } as unknown as MachinePass;
  await creationSteps(depsOf([]))
    .find(({ name }) => name === 'node')
    ?.run(pass);

  expect(notes.resultOf(stop)).toMatchObject(wakesInMs === undefined ? stop : { afterMs: wakesInMs });
});
