import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { Patch } from '../../../kube/client/patch.ts';
import { apiVersionOf, providerResource } from '../../../kube/client/resource.ts';
import { ClusterAPIClusterController, type ClusterControllerDeps } from './cluster-controller.ts';
import type { ExternalLookup } from './externals.ts';
import { CLUSTER_API_MACHINE_INDEXES } from './kinds.ts';

const HELD = ['cluster.cluster.x-k8s.io'];
const OWNER = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'c', uid: 'uid-of-c' };
const SET = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineSet',
  name: 's',
  uid: 'uid-of-s',
  controller: true,
};
const resource = providerResource({ group: 'g', version: 'v1', plural: 'sims', kind: 'Sim' });

const named = (name: string, metadata: object = {}): KubeObject => ({
  metadata: { name, namespace: 'ns', uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: '', ...metadata },
});
const going = (spec: object = {}): ClusterAPICluster => ({
  ...named('c', { deletionTimestamp: 'now', finalizers: HELD }),
  spec: { infrastructureRef: { apiGroup: 'g', kind: 'Sim', name: 'i' }, ...spec },
});
const machine = (name: string, metadata: object = {}): ClusterAPIMachine => ({
  ...named(name, metadata),
  spec: { clusterName: 'c' },
});
const infrastructure = (metadata: object = {}): ExternalLookup => ({
  kind: 'found',
  object: named('i', metadata),
  resource,
  contract: 'v1beta2',
});

/** What is done for a Cluster, in order. */
async function reconcile(
  cluster: ClusterAPICluster,
  world: {
    machines?: readonly ClusterAPIMachine[];
    live?: readonly ClusterAPIMachine[];
    found?: ExternalLookup;
    controlPlane?: ExternalLookup;
    isGone?: boolean;
    refusal?: Error;
  } = {},
  wrote: (body: unknown) => void = () => undefined,
): Promise<readonly string[]> {
  const { machines = [], live = machines, found = { kind: 'absent' }, isGone = true, refusal } = world;
  const { controlPlane = { kind: 'absent' } } = world;
  const did: string[] = [];
  const deps = {
    clock: new FakeClock(),
    clusters: new MemoryInformer([cluster]),
    machines: new MemoryInformer(machines, CLUSTER_API_MACHINE_INDEXES),
    externals: {
      use: () => undefined,
      drop: () => undefined,
      find: (_holder: unknown, { kind }: { kind: string }) => (kind === 'Plane' ? controlPlane : found),
      isGone: () => Promise.resolve(isGone),
    },
    nodeClusters: { use: () => undefined, drop: () => undefined, of: () => ({ kind: 'none' }), isApart: () => false },
    reader: { list: () => Promise.resolve({ items: live }) },
    isServed: () => true,
    recorder: { event: ({ type, reason }: { type: string; reason: string }) => did.push(`event ${type} ${reason}`) },
    servedAs: apiVersionOf,
    writer: {
      patch: (_intent: string, { plural }: { plural: string }, _ref: unknown, { body }: Patch) => {
        wrote(body);
        const { metadata, status } = body as {
          metadata?: { finalizers?: string[] };
          status?: ClusterAPICluster['status'];
        };
        const reason = status?.conditions?.find((one) => one.type === 'Deleting')?.reason;
        did.push(
          status === undefined ? `patch ${plural} ${metadata?.finalizers?.length ?? 'owners'}` : `tell ${reason}`,
        );
        return Promise.resolve(cluster);
      },
      delete: (_intent: string, { plural }: { plural: string }, { name }: { name: string }) => {
        did.push(`delete ${plural} ${name}`);
        return refusal === undefined ? Promise.resolve(undefined) : Promise.reject(refusal);
      },
    },
  } as unknown as ClusterControllerDeps;
  const controller = new ClusterAPIClusterController(deps);
  const [ended] = await Promise.allSettled([controller.reconcile('ns/c', new AbortController().signal)]);
  if (ended.status === 'rejected' && refusal === undefined) throw ended.reason;
  return did;
}

const WAITS_FOR_INFRASTRUCTURE = [
  'tell WaitingForInfrastructureDeletion',
  'event Normal WaitingForInfrastructureDeletion',
];

const WAITS_FOR_CONTROL_PLANE = ['tell WaitingForControlPlaneDeletion', 'event Normal WaitingForControlPlaneDeletion'];
const PLANE = { apiGroup: 'g', kind: 'Plane', name: 'p' };
/** Of the control plane, whose object controls it. */
const member = machine('member', {
  labels: { 'cluster.x-k8s.io/control-plane': '' },
  ownerReferences: [{ ...SET, kind: 'Plane' }],
});

describe('a Cluster', () => {
  test('is held before its infrastructure is touched', async () => {
    const cluster = { ...going(), ...named('c') };

    expect(await reconcile(cluster, { found: infrastructure() })).toEqual(['patch clusters 1']);
  });

  test.each([
    {
      title: 'is left alone while it is paused',
      cluster: going({ paused: true }),
      world: {},
      did: ['tell undefined', 'event Normal Paused'],
    },
    {
      title: 'takes along the Machines that it owns, and waits for all',
      cluster: going(),
      world: {
        machines: [
          machine('own', { ownerReferences: [OWNER] }),
          machine('of-a-set', { ownerReferences: [OWNER, SET] }),
          machine('of-nobody'),
          machine('going', { ownerReferences: [OWNER], deletionTimestamp: 'now' }),
        ],
        found: infrastructure({ ownerReferences: [OWNER] }),
      },
      did: ['delete machines own', 'tell WaitingForWorkersDeletion', 'event Normal WaitingForWorkersDeletion'],
    },
    {
      title: 'deletes its infrastructure when no Machine is left, and waits',
      cluster: going(),
      world: { found: infrastructure({ ownerReferences: [OWNER] }), isGone: false },
      did: ['delete sims i', ...WAITS_FOR_INFRASTRUCTURE],
    },
    {
      title: 'waits while it cannot be told whether that is there',
      cluster: going(),
      world: { found: { kind: 'unknown', problem: 'p' } as const },
      did: WAITS_FOR_INFRASTRUCTURE,
    },
    {
      title: 'believes no cache that says that it is gone',
      cluster: going(),
      world: { isGone: false },
      did: WAITS_FOR_INFRASTRUCTURE,
    },
    {
      title: 'leaves that of somebody else where it is',
      cluster: going(),
      world: { found: infrastructure(), isGone: false },
      did: ['patch clusters 0'],
    },
    {
      title: 'believes no cache that shows no Machine: its infrastructure stays',
      cluster: going(),
      world: { live: [machine('unseen')], found: infrastructure({ ownerReferences: [OWNER] }) },
      did: ['tell WaitingForWorkersDeletion', 'event Normal WaitingForWorkersDeletion'],
    },
    {
      title: 'believes no cache that shows no Machine: it stays itself',
      cluster: going(),
      world: { live: [machine('unseen')] },
      did: ['tell WaitingForWorkersDeletion', 'event Normal WaitingForWorkersDeletion'],
    },
    {
      title: 'does not wait for Machines of others',
      cluster: going(),
      world: { live: [{ ...machine('other'), spec: { clusterName: 'd' } }] },
      did: ['patch clusters 0'],
    },
    {
      title: 'waits for its workers before its control plane goes',
      cluster: going({ controlPlaneRef: PLANE }),
      world: { machines: [member, machine('worker')], controlPlane: infrastructure({ ownerReferences: [OWNER] }) },
      did: ['tell WaitingForWorkersDeletion', 'event Normal WaitingForWorkersDeletion'],
    },
    {
      title: 'deletes its control plane, whose Machines that takes along',
      cluster: going({ controlPlaneRef: PLANE }),
      world: { machines: [member], controlPlane: infrastructure({ ownerReferences: [OWNER] }), isGone: false },
      did: ['delete sims i', ...WAITS_FOR_CONTROL_PLANE],
    },
    {
      title: 'believes no cache that shows no worker: its control plane stays',
      cluster: going({ controlPlaneRef: PLANE }),
      world: { live: [machine('unseen')], controlPlane: infrastructure({ ownerReferences: [OWNER] }) },
      did: ['tell WaitingForWorkersDeletion', 'event Normal WaitingForWorkersDeletion'],
    },
    {
      title: 'waits while it cannot be told whether its control plane is there',
      cluster: going({ controlPlaneRef: PLANE }),
      world: { controlPlane: { kind: 'unknown', problem: 'p' } as const },
      did: WAITS_FOR_CONTROL_PLANE,
    },
    {
      title: 'leaves a control plane of somebody else where it is',
      cluster: going({ controlPlaneRef: PLANE }),
      world: { controlPlane: infrastructure(), isGone: true },
      did: ['patch clusters 0'],
    },
    {
      title: 'waits for the Machines of a control plane that is gone before its infrastructure goes',
      cluster: going({ controlPlaneRef: PLANE }),
      world: { machines: [member], found: infrastructure({ ownerReferences: [OWNER] }) },
      did: ['tell WaitingForWorkersDeletion', 'event Normal WaitingForWorkersDeletion'],
    },
    { title: 'goes last', cluster: going(), world: {}, did: ['patch clusters 0'] },
  ])('$title', async ({ cluster, world, did }) => {
    expect(await reconcile(cluster, world)).toEqual(did);
  });

  test.each([
    {
      what: 'of a Machine',
      world: { machines: [machine('own', { ownerReferences: [OWNER] })] },
      did: ['delete machines own', 'tell WaitingForWorkersDeletion', 'event Warning WaitingForWorkersDeletion'],
    },
    {
      what: 'of its infrastructure',
      world: { found: infrastructure({ ownerReferences: [OWNER] }) },
      did: ['delete sims i', 'tell WaitingForInfrastructureDeletion', 'event Warning WaitingForInfrastructureDeletion'],
    },
  ])('says that the deletion $what is refused', async ({ world, did }) => {
    const said: unknown[] = [];

    const done = await reconcile(going(), { ...world, refusal: new ApiError(403, 'Forbidden', 'no') }, (body) =>
      said.push(body),
    );

    expect(done).toEqual(did);
    expect(JSON.stringify(said)).toMatch(/"Cannot delete (Machine own|Sim i): no"/);
  });

  test('asks each of its Machines to go, also when one is refused', async () => {
    // As the cache has them once a has changed.
    const machines = ['b', 'c', 'a'].map((name) => machine(name, { ownerReferences: [OWNER] }));
    const said: unknown[] = [];

    const done = await reconcile(going(), { machines, refusal: new ApiError(403, 'Forbidden', 'no') }, (body) =>
      said.push(body),
    );

    expect(done.slice(0, 3)).toEqual(['delete machines b', 'delete machines c', 'delete machines a']);
    expect(JSON.stringify(said)).toContain('"Cannot delete Machine a: no; and 2 more"');
  });

  test.each([new GateClosedError('outage', 'control', 'x'), new ApiError(0, 'Unreachable', 'x')])(
    'asks none of the others to go when nothing gets through: %s',
    async (refusal) => {
      const machines = ['a', 'b'].map((name) => machine(name, { ownerReferences: [OWNER] }));

      expect(await reconcile(going(), { machines, refusal })).toEqual(['delete machines a']);
    },
  );

  test('says nothing of a deletion that meets a conflict: the next pass is another', async () => {
    const refusal = new ApiError(409, 'Conflict', 'no');

    expect(await reconcile(going(), { found: infrastructure({ ownerReferences: [OWNER] }), refusal })).toEqual([
      'delete sims i',
    ]);
  });

  test('says of its infrastructure what was said last while Reading that, and tells nothing', async () => {
    const conditions = [
      { type: 'InfrastructureReady', status: 'False' as const, reason: 'ObjectDoesNotExist', message: 'm' },
    ];
    const { spec } = going();
    const cluster = { ...named('c', { finalizers: HELD }), ...(spec && { spec }), status: { conditions } };
    const written: unknown[] = [];

    const done = await reconcile(cluster, { found: { kind: 'reading' } }, (body) => written.push(body));

    expect(done).toEqual(['tell NotDeleting']);
    expect(written).toMatchObject([
      { status: { conditions: expect.arrayContaining([expect.objectContaining(conditions[0] ?? {})]) } },
    ]);
  });

  test.each([
    { initialized: false, takes: [] },
    { initialized: true, takes: [{ host: 'h', port: 6443 }] },
  ])('takes the endpoint of a control plane that is initialized: $initialized', async ({ initialized, takes }) => {
    const object = {
      ...named('p', { ownerReferences: [OWNER], labels: { 'cluster.x-k8s.io/cluster-name': 'c' } }),
      spec: { controlPlaneEndpoint: { host: 'h', port: 6443 } },
      status: { initialization: { controlPlaneInitialized: initialized } },
    };
    const controlPlane: ExternalLookup = { kind: 'found', object, resource, contract: 'v1beta2' };
    const written: { spec?: { controlPlaneEndpoint?: object }; status?: object }[] = [];

    await reconcile(
      { ...named('c', { finalizers: HELD, generation: 7 }), spec: { controlPlaneRef: PLANE } },
      { controlPlane },
      (body) => written.push(body as object),
    );

    expect(written.flatMap(({ spec }) => spec?.controlPlaneEndpoint ?? [])).toEqual(takes);
    expect(written.at(-1)).toMatchObject({
      status: {
        observedGeneration: 7,
        deprecated: {
          v1beta1: {
            conditions: expect.arrayContaining([
              expect.objectContaining({ type: 'Ready', status: initialized ? 'True' : 'False' }),
            ]),
          },
        },
      },
    });
  });

  test('writes no member that the definitions of Cluster API refuse because it is empty', async () => {
    const { spec } = going({ controlPlaneRef: { apiGroup: 'g', kind: 'Plane', name: 'p' } });
    const written: unknown[] = [];

    await reconcile({ ...named('c', { finalizers: HELD }), ...(spec && { spec }) }, {}, (body) => written.push(body));

    expect(written).toEqual([expect.objectContaining({ status: expect.not.objectContaining({ initialization: {} }) })]);
  });
});
