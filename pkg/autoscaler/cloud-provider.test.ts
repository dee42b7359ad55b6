import { describe, expect, test } from '@jest/globals';

import { type BuiltMachine, machine, machineDeployment, machineSet, node } from '../../test/builders.ts';
import { MemoryInformer } from '../../test/memory-informer.ts';
import {
  MACHINE_NAME_LABEL,
  NODE_GROUP_MAX_ANNOTATION,
  NODE_GROUP_MIN_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
} from '../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { Node } from '../apis/wire.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { wireMessage } from '../../test/fakes/wire-message.ts';
import { nodeAccess } from '../controllers/machine-facts/node-access.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../operator/indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../operator/indexes/owner-index.ts';
import { createRegistry } from '../base/metrics/registry.ts';
import type { Target } from '../kube/targets/targets.ts';
import { CloudProvider, type CloudProviderDeps } from './cloud-provider.ts';
import {
  InstanceStatus_InstanceState as State,
  NodeGroupAutoscalingOptions,
} from './gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import { NodeGroups } from './groups.ts';
import { LearnedShapes } from './learned.ts';
import { Membership } from './membership.ts';
import { Places } from './places.ts';
import { autoscalerMetrics } from './metrics.ts';
import { Status } from 'nice-grpc';

const owned = <T extends KubeObject>(object: T, { metadata: { name, uid } }: KubeObject): T => {
  object.metadata.ownerReferences = [{ apiVersion: 'v1', kind: 'Any', name, uid, controller: true }];
  return object;
};
const pool = (name: string, annotations: Record<string, string>) =>
  machineDeployment((d) => {
    d.metadata.name = name;
    d.metadata.annotations = annotations;
    d.spec.replicas = 3;
  });
const LIMITS = { [NODE_GROUP_MIN_ANNOTATION]: '1', [NODE_GROUP_MAX_ANNOTATION]: '5' };
const [group, other] = [pool('group', LIMITS), pool('other', {})];
const [set, otherSet] = [group, other].map((d) => {
  const named = machineSet((s) => {
    s.metadata.name = `${d.metadata.name}-1`;
  });
  return owned(named, d);
});
const named = (name: string, of = set, change: (m: BuiltMachine) => void = () => undefined) => {
  const built = machine((m) => {
    m.metadata.name = name;
    m.metadata.labels = {};
    m.spec.providerID = `cloud:///${name}`;
    change(m);
  });
  return of === undefined ? built : owned(built, of);
};

const ALWAYS_SEEN: CloudProviderDeps['trust'] = { blindMs: () => 0, graceLeftMs: () => 0 };

function provider(
  list?: string,
  more: readonly Machine[] = [],
  moreNodes: readonly Node[] = [],
  trust = ALWAYS_SEEN,
): CloudProvider {
  const exhausted = named('exhausted', set, (m) => {
    m.status.currentStatus.phase = 'CrashLoopBackOff';
    m.status.lastOperation = { type: 'Create', state: 'Failed', errorCode: 'ResourceExhausted', description: 'full' };
  });
  const denied = named('denied', set, (m) => {
    m.status.currentStatus.phase = 'CrashLoopBackOff';
    m.status.lastOperation = { type: 'Create', state: 'Failed', errorCode: 'PermissionDenied', description: 'no' };
  });
  const machines = new MemoryInformer([named('running'), exhausted, denied, named('elsewhere', otherSet), ...more], {
    ...MACHINE_INDEXES,
    [CONTROLLER_INDEX]: controllerIndex,
  });
  const nodes = new MemoryInformer(
    [
      node((n) => {
        n.metadata.name = 'running';
        n.metadata.labels = { [MACHINE_NAME_LABEL]: 'running' };
        n.spec = { providerID: 'cloud:///running' };
      }),
      ...moreNodes,
    ],
    NODE_INDEXES,
  );
  const listing = structuredClone(group);
  listing.spec.replicas = 3 + more.length;
  if (list !== undefined) listing.metadata.annotations[TRIGGER_DELETION_ANNOTATION] = list;
  const machineDeployments = new MemoryInformer([listing, other]);
  const refuse = () => Promise.reject(new Error('nothing is changed here'));
  return new CloudProvider({
    groups: new NodeGroups({ deployments: machineDeployments, namespace: 'default', listed: new Map() }),
    membership: new Membership({
      machines,
      machineSets: new MemoryInformer(
        [set, otherSet].filter((s) => s !== undefined),
        { [CONTROLLER_INDEX]: controllerIndex },
      ),
      machineDeployments,
      nodes,
      nodesOf: (m) => nodeAccess({ nodes } as unknown as Target, machines).ofMachine(m),
    }),
    machineDeployments,
    machineClasses: { get: () => undefined, hasSynced: false },
    learned: new LearnedShapes(),
    announced: () => Promise.resolve(undefined),
    mutations: { increase: refuse, delete: refuse, decrease: refuse },
    places: new Places('x'),
    owed: () => 0,
    catchUp: () => Promise.resolve(),
    gpu: { gpuLabel: 'gpu', gpuTypes: ['t4'] },
    clock: new FakeClock(),
    trust,
    clusters: ['control', 'target'],
  });
}

describe('what an autoscaler is told', () => {
  test('the instances of a group, with classes of errors as it numbers them', () => {
    const of = (id: string, instanceState: State, errorInfo?: object) => ({ id, status: { instanceState, errorInfo } });
    const error = (errorCode: string, errorMessage: string, instanceErrorClass: number) => ({
      errorCode,
      errorMessage,
      instanceErrorClass,
    });

    expect(provider().nodeGroupNodes({ id: 'group' })).toEqual({
      instances: [
        of('requested://denied', State.instanceCreating, error('PermissionDenied', 'no', 99)),
        of('requested://exhausted', State.instanceCreating, error('ResourceExhausted', 'full', 1)),
        of('cloud:///running', State.instanceRunning),
      ],
    });
  });

  test('that a Machine comes too late, once the client has said how long it waits', () => {
    const late = named('late', set, (m) => {
      m.metadata.creationTimestamp = '2025-12-31T23:59:00Z';
      m.status.currentStatus.phase = 'Pending';
    });
    const asked = provider(undefined, [late]);
    const codeOf = (id: string) =>
      asked.nodeGroupNodes({ id: 'group' }).instances.find((one) => one.id === id)?.status?.errorInfo?.errorCode;
    const before = codeOf('requested://late');
    const defaults = wireMessage(NodeGroupAutoscalingOptions, { maxNodeProvision: { seconds: 60n, nanos: 0 } });

    expect(() => asked.nodeGroupGetOptions({ id: 'group', defaults })).toThrow('has no settings');

    expect([before, codeOf('requested://late')]).toEqual([undefined, 'DeadlineExceeded']);
  });

  test.each<{ what: string; trust: Partial<CloudProviderDeps['trust']>; want: string | undefined }>([
    {
      what: 'nothing, while Nodes that have joined in an outage may be yet to come',
      trust: { graceLeftMs: () => 1 },
      want: undefined,
    },
    { what: 'nothing, when too much of the time was without sight', trust: { blindMs: () => 7_000 }, want: undefined },
    { what: 'that it is late, when enough of it was not', trust: { blindMs: () => 6_000 }, want: 'DeadlineExceeded' },
    {
      what: 'what was without sight since its creation, on both clusters',
      trust: { blindMs: (clusters, sinceMs) => (clusters.join(',') === 'control,target' ? -sinceMs : 0) },
      want: undefined,
    },
  ])('of a Machine that comes too late, $what', ({ trust, want }) => {
    const late = named('late', set, (m) => {
      m.metadata.creationTimestamp = '2025-12-31T23:59:00Z';
      m.status.currentStatus.phase = 'Pending';
    });
    const asked = provider(undefined, [late], [], { ...ALWAYS_SEEN, ...trust });
    const defaults = wireMessage(NodeGroupAutoscalingOptions, { maxNodeProvision: { seconds: 60n, nanos: 0 } });

    expect(() => asked.nodeGroupGetOptions({ id: 'group', defaults })).toThrow('has no settings');
    const { instances } = asked.nodeGroupNodes({ id: 'group' });
    const found = instances.find(({ id }) => id === 'requested://late');
    expect(found?.status?.errorInfo?.errorCode).toBe(want);
  });

  test('no error of a Machine that has several Nodes', () => {
    const twice = named('twice', set, (m) => {
      m.metadata.creationTimestamp = '2025-12-31T23:59:00Z';
      m.status.currentStatus.phase = 'Pending';
    });
    const its = ['a', 'b'].map((name) =>
      node((n) => {
        Object.assign(n.metadata, { name, uid: name, labels: { [MACHINE_NAME_LABEL]: 'twice' } });
        n.spec = { providerID: 'cloud:///twice' };
      }),
    );
    const defaults = wireMessage(NodeGroupAutoscalingOptions, { maxNodeProvision: { seconds: 60n, nanos: 0 } });
    const errorWith = (nodes: readonly Node[]) => {
      const asked = provider(undefined, [twice], nodes);
      expect(() => asked.nodeGroupGetOptions({ id: 'group', defaults })).toThrow('has no settings');
      const { instances } = asked.nodeGroupNodes({ id: 'group' });
      return instances.find(({ id }) => id === 'requested://twice')?.status?.errorInfo?.errorCode;
    };

    expect([errorWith([]), errorWith(its)]).toEqual(['DeadlineExceeded', undefined]);
  });

  test('that what is listed to go is going, and that another is missing for it', () => {
    const { instances } = provider('running~2026-01-01T00:00:00Z').nodeGroupNodes({ id: 'group' });

    expect(instances.map(({ id, status }) => [id, status?.instanceState])).toEqual([
      ['requested://denied', State.instanceCreating],
      ['requested://exhausted', State.instanceCreating],
      ['cloud:///running', State.instanceDeleting],
      ['requested://group#x-0', State.instanceCreating],
    ]);
  });

  test.each([
    { what: 'a Node of a group', node: { providerId: 'cloud:///running', name: 'running' }, want: 'group' },
    { what: 'a placeholder', node: { providerId: 'requested://denied', name: 'requested://denied' }, want: 'group' },
    { what: 'a replica without a Machine', node: { providerId: 'requested://group#0', name: 'x' }, want: 'group' },
    { what: 'a replica of no group', node: { providerId: 'requested://other#0', name: 'x' }, want: '' },
    {
      what: 'a Machine whose MachineDeployment is no group',
      node: { providerId: 'cloud:///elsewhere', name: 'x' },
      want: '',
    },
    { what: 'a Node of nobody', node: { providerId: 'cloud:///x', name: 'x' }, want: '' },
  ])('$what is in "$want"', ({ node: { providerId, name }, want }) => {
    const found = provider().nodeGroupForNode({ node: { providerId, name, labels: {}, annotations: {} } });

    expect(found).toMatchObject({ nodeGroup: { id: want, ...(want === '' ? {} : { minSize: 1, maxSize: 5 }) } });
  });

  test('what is not implemented, why', async () => {
    const unimplemented = (says: string) =>
      expect.objectContaining({ code: Status.UNIMPLEMENTED, details: expect.stringContaining(says) });

    expect(() => provider().pricingNodePrice()).toThrow(unimplemented('expander other than price'));
    expect(() => provider().pricingPodPrice()).toThrow(unimplemented('expander other than price'));
    expect(() => provider().nodeGroupGetOptions({ id: 'group', defaults: undefined })).toThrow(
      unimplemented('no settings'),
    );
    const call = { signal: new AbortController().signal };
    const asked = provider().nodeGroupTemplateNodeInfo({ id: 'group' }, call as never);
    await expect(asked).rejects.toEqual(unimplemented('apply deploy/rbac'));
  });

  test('GPUs as the flags say', () => {
    expect(provider().gPULabel()).toEqual({ label: 'gpu' });
    expect(Object.keys(provider().getAvailableGPUTypes().gpuTypes ?? {})).toEqual(['t4']);
  });

  test('and metrics show the sizes of each group', async () => {
    const registry = createRegistry();
    autoscalerMetrics(registry, () => provider().sizes());

    const text = await registry.metrics();

    const size = (of: string, value: number): string =>
      `machinist_autoscaler_node_group_size{namespace="default",group="group",of="${of}"} ${value}`;
    for (const line of [
      size('min', 1),
      size('max', 5),
      size('target', 3),
      size('running', 1),
      size('creating', 2),
      size('deleting', 0),
      size('synthetic', 0),
    ]) {
      expect(text).toContain(line);
    }
  });

  test('and count replicas without a Machine by themselves', async () => {
    const registry = createRegistry();
    const limits = { id: 'g', namespace: 'default', name: 'g', min: 0, max: 5 };
    const instances = ['requested://m', 'requested://g#0', 'requested://g#1'].map((id) => ({
      id,
      state: 'creating' as const,
    }));
    autoscalerMetrics(registry, () => [{ group: limits, target: 3, instances }]);

    const text = await registry.metrics();

    expect(text).toContain('group="g",of="creating"} 1');
    expect(text).toContain('group="g",of="synthetic"} 2');
  });
});
