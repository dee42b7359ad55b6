import { describe, expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { eventsOf } from '../../../../test/fakes/notes.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Node, VolumeAttachment } from '../../../apis/wire.ts';
import type { Activity } from '../../../work/activity/activity.ts';
import type { BlockedPod, DrainOutcome } from '../../../drain/drain.ts';
import { DrainSession } from '../../../drain/session.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { providerResource } from '../../../kube/client/resource.ts';
import { PassNotes } from '../../../work/reconcile/object-pass/pass-notes.ts';
import { runSteps } from '../../../work/reconcile/result.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { deletionSteps } from './deletion-steps.ts';
import { attachedVolumes } from './deletion/detach-volumes.ts';
import { hookNamesOf } from './deletion/hooks.ts';
import { nodeCareOf } from './deletion/node-care.ts';
import { isOver } from './deletion/waits.ts';
import type { ExternalLookup } from './externals.ts';
import type { MachinePass, NodeDrain, StepDeps, WorkingMachine } from './machine-pass.ts';
import type { NodeCluster } from './node-clusters.ts';
import type { ObservedBootstrap, ObservedInfrastructure, ObservedNode } from './observed.ts';
import { describeRemainingPods } from './deletion/drain.ts';

const START = '2026-01-01T00:00:00Z';
const PRE_DRAIN = 'pre-drain.delete.hook.machine.cluster.x-k8s.io';
const resource = providerResource({ group: 'g', version: 'v1', plural: 'sims', kind: 'Sim' });

const object = (name: string, more: object = {}): KubeObject => ({
  metadata: { name, namespace: 'ns', uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: START, ...more },
});
const found = (name: string, more: object = {}): ObservedInfrastructure & ObservedBootstrap =>
  ({ kind: 'found', external: { object: object(name, more), resource, contract: 'v1beta2' }, report: {} }) as never;
const nodeOf = (uid: string, unschedulable: boolean): ObservedNode => ({
  kind: 'found',
  node: node((n) => void Object.assign(n, { metadata: { ...n.metadata, name: 'n', uid }, spec: { unschedulable } })),
});
const NODE = nodeOf('drained', true);

const NODE_REF = { name: 'n' };
const UNDECIDED: ObservedNode = { kind: 'undecided', problem: 'p' };
const UNREACHABLE = { kind: 'unreachable', why: 'w', isOver: true, isLost: true } as const satisfies ObservedNode;
const LOST: NodeCluster = { kind: 'unreachable', why: 'w', sinceMs: 0, lostSinceMs: 0 };

const controlPlaneWith = (more: object, status: object = {}): ExternalLookup => ({
  kind: 'found',
  object: { ...object('cp', more), status } as KubeObject,
  resource,
  contract: 'v1beta2',
});

interface World {
  readonly now?: number;
  /** Since when the drain has ended. */
  readonly restedMs?: number;
  readonly infrastructureFailure?: ApiError;
  readonly drained?: 'running' | 'drained' | 'drained-silent' | 'node-gone' | 'none' | 'failed' | BlockedPod['reason'];
  /** What was reported of it last. */
  readonly drainText?: string;
  readonly volumes?: readonly string[];
  /** PersistentVolumes of pods that stay. */
  readonly kept?: readonly string[];
  readonly gone?: readonly string[];
  readonly nodeFailure?: ApiError;
  /** The pass is repeated after so long. */
  readonly repeatedAfterMs?: number;
  readonly controlPlane?: ExternalLookup;
  /** Machines of the Cluster. */
  readonly machines?: readonly KubeObject[];
}

/** A drain that has come so far; or has ended while a Pod was held for that reason. */
function drainIn(drained: World['drained'], settledAtMs: number): Activity<DrainOutcome> | undefined {
  switch (drained) {
    case 'none':
      return undefined;
    case 'running':
      return { state: 'running', sinceMs: 0 };
    case 'failed':
      return { state: 'failed', error: new Error('no rules'), settledAtMs };
    case 'drained':
    case 'drained-silent':
    case undefined:
      return { state: 'done', result: { kind: 'drained' }, settledAtMs };
    case 'node-gone':
      return { state: 'done', result: { kind: drained }, settledAtMs };
    default: {
      const blocked = [{ pod: 'ns/a', reason: drained, detail: 'x' }];
      return {
        state: 'done',
        result: { kind: 'incomplete', progress: { remainingPods: 1, blocked } },
        settledAtMs,
      };
    }
  }
}

/** What this process knows of the drain that the world has come to. */
function attemptIn(drained: World['drained'], text: string): NodeDrain {
  return {
    owner: { uid: 'uid-of-m', key: 'Machine/ns/m', account: undefined },
    nodeUID: 'drained',
    isSilent: drained === 'drained-silent',
    report: { text },
    progress: undefined,
    isSuperseded: false,
  };
}

/** What the steps do for a Machine, in order; and what it waits for. */
async function run(
  {
    now = Date.parse(START),
    drained = 'drained',
    drainText,
    restedMs = 0,
    volumes = [],
    kept = [],
    gone = [],
    nodeFailure,
    infrastructureFailure,
    repeatedAfterMs,
    controlPlane = { kind: 'absent' },
    machines = [],
  }: World,
  change: Partial<MachinePass> & {
    annotations?: object;
    deletion?: object;
    deletionStatus?: object;
    conditions?: object[];
    nodeRef?: object;
    isProvisioned?: boolean;
  },
): Promise<{
  readonly did: string[];
  readonly waits: string | undefined;
  readonly says: string | undefined;
  readonly told: string | undefined;
  readonly isToldDrained: true | undefined;
  readonly isHeld: boolean;
}> {
  const did: string[] = [];
  const clock = new FakeClock();
  clock.advance(now - clock.now());
  const drains = new DrainSession<NodeDrain>({
    drain: () => Promise.reject(new Error('not begun')),
    activities: {
      get: () => drainIn(drained, clock.monotonicMs() - restedMs),
      startOrGet: () => void did.push('drain'),
      abort: () => undefined,
      forget: () => undefined,
    } as never,
  });
  if (drainText !== undefined || drained !== 'none') drains.begin(attemptIn(drained, drainText ?? ''), {} as never);
  did.splice(0);
  const target = {
    cluster: 'target',
    volumeAttachments: {
      byIndex: () =>
        volumes.map((name) => ({
          metadata: { name },
          spec: { source: { persistentVolumeName: `pv-${name}` } },
          status: { attached: true },
        })),
    },
    writer: {
      delete: () => {
        did.push('delete node');
        return nodeFailure === undefined ? Promise.resolve(undefined) : Promise.reject(nodeFailure);
      },
    },
  } as unknown as Target;
  const deps = {
    clock,
    machines: { byIndex: () => machines },
    externals: {
      find: () => controlPlane,
      isGone: (_holder: unknown, { name }: { name: string }) => Promise.resolve(gone.includes(name)),
    },
    writer: {
      delete: (_intent: string, _resource: unknown, { name }: { name: string }) => {
        did.push(`delete ${name}`);
        return infrastructureFailure === undefined
          ? Promise.resolve(object(name))
          : Promise.reject(infrastructureFailure);
      },
    },
    rules: { of: () => Promise.resolve(() => ({ behavior: 'leaves', order: 0 })) },
    keptVolumes: () => Promise.resolve(kept.map((name) => ({ name, id: undefined }))),
    drains,
  } as unknown as StepDeps;
  const machine = {
    ...object('m', {
      deletionTimestamp: START,
      finalizers: ['machine.cluster.x-k8s.io'],
      annotations: change.annotations,
    }),
    spec: {
      infrastructureRef: { apiGroup: 'g', kind: 'Sim', name: 'infra' },
      bootstrap: { configRef: { apiGroup: 'g', kind: 'Sim', name: 'config' } },
      deletion: change.deletion,
    },
    status: {
      deletion: change.deletionStatus,
      conditions: change.conditions,
      nodeRef: change.nodeRef,
      initialization: { infrastructureProvisioned: change.isProvisioned ?? true },
    },
  } as unknown as WorkingMachine;
  const pass: MachinePass = {
    observed: machine,
    machine,
    cluster: object('c'),
    key: 'Machine/ns/m',
    nodeCluster: { kind: 'reached', target, identity: undefined },
    signal: new AbortController().signal,
    infrastructure: found('infra'),
    bootstrap: found('config'),
    node: NODE,
    dataSecret: undefined,
    upToDate: undefined,
    care: 'cared-for',
    older: [],
    deleting: undefined,
    problems: [],
    failures: [],
    notes: new PassNotes(),
    ...change,
  };
  const steps = deletionSteps(deps);
  if (repeatedAfterMs !== undefined) {
    await Promise.allSettled([runSteps(steps, pass)]);
    clock.advance(repeatedAfterMs);
    pass.deleting = undefined;
  }
  const [ended] = await Promise.allSettled([runSteps(steps, pass)]);
  if (ended.status === 'rejected' && ended.reason !== infrastructureFailure) throw ended.reason;
  const events = eventsOf(pass.notes);
  did.push(...events.flatMap((one) => (one.reason === 'SuccessfulDrainNode' ? [] : [`tell ${one.reason}`])));
  const { reason, message, event } = pass.deleting ?? {};
  return {
    did,
    waits: reason,
    says: message,
    isToldDrained: events.some((one) => one.reason === 'SuccessfulDrainNode') || undefined,
    told: event && `${event.type} ${event.reason}`,
    isHeld: machine.metadata.finalizers?.length === 1,
  };
}

const OVER: Partial<MachinePass> = { infrastructure: { kind: 'absent' }, bootstrap: { kind: 'absent' } };
const ALL_GONE = ['infra', 'config'];

test.each([
  { remainingPods: 2, blocked: [], says: '2 Pods remain' },
  {
    remainingPods: 1,
    blocked: [{ pod: 'ns/keep', reason: 'completion', detail: 'MachineDrainRule jobs' }] as const,
    says: '1 Pod is left; ns/keep (not evicted; waiting for it to complete, required by MachineDrainRule jobs)',
  },
])('of a drain it is said that $says', ({ says, ...progress }) => {
  expect(describeRemainingPods(progress)).toBe(says);
});

test.each<{ what: string; world?: World; change?: Parameters<typeof run>[1]; told: string | undefined }>([
  {
    what: 'a hook',
    change: { annotations: { [`${PRE_DRAIN}/x`]: '' }, nodeRef: NODE_REF },
    told: 'Normal WaitingForPreDrainHook',
  },
  {
    what: 'a hook after the drain',
    change: { annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io': '' } },
    told: 'Normal WaitingForPreTerminateHook',
  },
  { what: 'volumes', world: { volumes: ['v'] }, told: 'Normal WaitingForVolumeDetach' },
  { what: 'a cluster that cannot be reached', change: { node: UNREACHABLE }, told: 'Warning DrainBlocked' },
  { what: 'a drain that has begun', world: { drained: 'none' }, told: undefined },
  { what: 'a drain that has failed', world: { drained: 'failed' }, told: 'Warning DrainBlocked' },
  { what: 'Pods that a budget holds', world: { drained: 'disruption-budget' }, told: 'Warning DrainBlocked' },
  { what: 'Pods that a rule holds', world: { drained: 'completion' }, told: 'Normal DrainBlocked' },
  { what: 'Pods that are ending', world: { drained: 'ending' }, told: undefined },
  { what: 'its infrastructure', world: {}, told: undefined },
])('an Event tells of a deletion that waits for $what: $told', async ({ world = {}, change = {}, told }) => {
  expect((await run(world, change)).told).toBe(told);
});

const PRE_TERMINATE = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io';
const UNKNOWN = { kind: 'unknown', problem: 'p' } as const;

test.each<{ what: string; change: Parameters<typeof run>[1] }>([
  { what: 'whether the cluster of its Node is there', change: { node: UNREACHABLE } },
  { what: 'which its Node is', change: { node: UNDECIDED } },
  { what: 'whether its infrastructure exists', change: { infrastructure: UNKNOWN } },
  {
    what: 'what its infrastructure is, as the manager has just begun',
    change: { infrastructure: { kind: 'reading' } },
  },
])('a drain that was over before hooks were waited for stays over when it is not known $what', async ({ change }) => {
  const annotations = { [PRE_TERMINATE]: '' };
  const deleting = { type: 'Deleting', status: 'True', reason: 'WaitingForPreTerminateHook', message: 'of hooks' };
  const { waits, says } = await run({ drained: 'none' }, { ...change, annotations, conditions: [deleting] });
  const known = await run(
    { drained: 'none' },
    { annotations, conditions: [{ ...deleting, reason: waits, message: says }] },
  );

  expect([waits, known.did, known.waits]).toEqual([deleting.reason, [], deleting.reason]);
});

test.each([
  { before: 'WaitingForPreDrainHook', waits: 'DrainingNode' },
  { before: 'DrainingNode', waits: 'DrainingNode' },
  { before: 'WaitingForVolumeDetach', waits: 'DrainingNode' },
  { before: 'WaitingForBootstrapDeletion', waits: 'WaitingForBootstrapDeletion' },
])('a deletion that waits for the cluster of its Node after $before: $waits', async ({ before, waits }) => {
  const conditions = [{ type: 'Deleting', status: 'True', reason: before, message: '' }];

  expect((await run({}, { node: UNREACHABLE, conditions })).waits).toBe(waits);
});

test('a deletion that begins while objects are still being read waits for the cluster of its Node as for a drain afterwards', async () => {
  const first = await run({}, { infrastructure: { kind: 'reading' } });
  const conditions = [{ type: 'Deleting', status: 'True', reason: first.waits, message: first.says }];

  expect((await run({}, { node: UNREACHABLE, conditions })).waits).toBe('DrainingNode');
});

test('what a deletion waits for is told as before while objects are still being read', async () => {
  const said = { type: 'Deleting', status: 'True', reason: 'DrainingNode', message: 'Draining Node n: x' };

  const ended = await run({}, { infrastructure: { kind: 'reading' }, conditions: [said] });

  expect([ended.waits, ended.says]).toEqual([said.reason, said.message]);
});

test('who knows which Node a Machine has is told how it goes without waiting for that', async () => {
  const { did, says } = await run({}, { node: UNDECIDED });

  expect(did).toEqual([]);
  expect(says).toBe(
    'Waiting until its Node is known: p. To delete the Machine and its VM without a drain, set annotations machine.cluster.x-k8s.io/exclude-node-draining and ' +
      'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach',
  );
});

describe('a deletion', () => {
  // promise: cluster-api/deletion/those-pods-stay
  test.each<{
    title: string;
    world?: World;
    change?: Parameters<typeof run>[1];
    did: readonly string[];
    waits: string | undefined;
  }>([
    {
      title: 'waits for a hook',
      change: { annotations: { [`${PRE_DRAIN}/x`]: '' }, nodeRef: NODE_REF },
      did: [],
      waits: 'WaitingForPreDrainHook',
    },
    ...(
      [
        { kind: 'gone' },
        UNREACHABLE,
        UNDECIDED,
        { kind: 'unknown', problem: 'p' },
      ] as const satisfies readonly ObservedNode[]
    ).map((seen) => ({
      title: `waits for such a hook for as long as it is there, whatever has become of the Node: ${seen.kind}`,
      world: { now: Date.parse(START) + 5_000_000 },
      change: {
        node: seen,
        nodeRef: NODE_REF,
        annotations: {
          [`${PRE_DRAIN}/x`]: '',
          'machine.cluster.x-k8s.io/exclude-node-draining': '',
          'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach': '',
        },
      },
      did: [],
      waits: 'WaitingForPreDrainHook',
    })),
    {
      title: 'does not wait for such a hook where there was never a Node to drain',
      change: { node: { kind: 'absent' }, annotations: { [`${PRE_DRAIN}/x`]: '' } },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'does not wait for such a hook when the Cluster goes',
      change: {
        nodeRef: NODE_REF,
        annotations: { [`${PRE_DRAIN}/x`]: '' },
        cluster: object('c', { deletionTimestamp: START }),
      },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    { title: 'drains first', world: { drained: 'none' }, did: ['drain'], waits: 'DrainingNode' },
    { title: 'waits for the drain', world: { drained: 'running' }, did: [], waits: 'DrainingNode' },
    {
      title: 'goes on after the timeout of the drain',
      world: { drained: 'running', now: Date.parse(START) + 5_000 },
      change: { deletion: { nodeDrainTimeoutSeconds: 5 }, deletionStatus: { nodeDrainStartTime: START } },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'drains for as long as it takes without a timeout',
      world: { drained: 'running', now: Date.parse(START) + 5_000_000 },
      change: { deletion: { nodeDrainTimeoutSeconds: 0 }, deletionStatus: { nodeDrainStartTime: START } },
      did: [],
      waits: 'DrainingNode',
    },
    {
      title: 'leaves out a drain that nobody wants',
      world: { drained: 'none' },
      change: { annotations: { 'machine.cluster.x-k8s.io/exclude-node-draining': '' } },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'does not drain a Node whose machine is going',
      world: { drained: 'none' },
      change: { infrastructure: found('infra', { deletionTimestamp: START }) },
      did: [],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'lets the Node alone when the Cluster goes, and tells of it',
      world: { drained: 'none', gone: ALL_GONE },
      change: { ...OVER, cluster: object('c', { deletionTimestamp: START }) },
      did: ['tell NodeLeft'],
      waits: undefined,
    },
    ...[undefined, 0].map((nodeDrainTimeoutSeconds) => ({
      title: `waits for a cluster that cannot be reached, for as long as it takes with a drain timeout of ${nodeDrainTimeoutSeconds}`,
      world: { now: Date.parse(START) + 5_000_000 },
      change: {
        node: UNREACHABLE,
        deletion: { nodeDrainTimeoutSeconds },
        deletionStatus: { nodeDrainStartTime: START },
      },
      did: [],
      waits: 'DrainingNode',
    })),
    {
      title: 'counts the timeout of the drain from when it begins to wait for the cluster',
      world: { now: Date.parse(START) + 5_000_000 },
      change: { node: UNREACHABLE, deletion: { nodeDrainTimeoutSeconds: 5 } },
      did: [],
      waits: 'DrainingNode',
    },
    ...[undefined, 0].map((nodeVolumeDetachTimeoutSeconds) => ({
      title: `then waits as long for volumes of which nothing is known: ${nodeVolumeDetachTimeoutSeconds}`,
      world: { now: Date.parse(START) + 5_000_000 },
      change: {
        node: UNREACHABLE,
        deletion: { nodeDrainTimeoutSeconds: 5, nodeVolumeDetachTimeoutSeconds },
        deletionStatus: { nodeDrainStartTime: START, waitForNodeVolumeDetachStartTime: START },
      },
      did: [],
      waits: 'WaitingForVolumeDetach',
    })),
    {
      title: 'goes on after both timeouts when the cluster cannot be reached',
      world: { now: Date.parse(START) + 5_000 },
      change: {
        node: UNREACHABLE,
        deletion: { nodeDrainTimeoutSeconds: 5, nodeVolumeDetachTimeoutSeconds: 5 },
        deletionStatus: { nodeDrainStartTime: START, waitForNodeVolumeDetachStartTime: START },
      },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'does not wait for a cluster that cannot be reached where none has ever answered and no Node was found',
      change: {
        node: UNREACHABLE,
        cluster: {
          ...object('c'),
          status: { conditions: [{ type: 'ControlPlaneInitialized', status: 'False', reason: '', message: '' }] },
        },
      },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'does not wait for a cluster that cannot be reached where the infrastructure was never provisioned',
      change: { node: UNREACHABLE, isProvisioned: false },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    ...[
      { what: 'in which a Node was found', node: UNREACHABLE, nodeRef: NODE_REF },
      {
        what: 'that has just stopped responding',
        node: { ...UNREACHABLE, isOver: false, isLost: false },
        nodeRef: undefined,
      },
      { what: 'that may respond', node: { ...UNREACHABLE, isLost: false }, nodeRef: undefined },
    ].map(({ what, node: seen, nodeRef }) => ({
      title: `waits for a cluster all the same ${what}`,
      change: { node: seen, isProvisioned: false, ...(nodeRef !== undefined && { nodeRef }) },
      did: [],
      waits: 'DrainingNode',
    })),
    {
      title: 'does not wait for a cluster that cannot be reached once the infrastructure goes',
      change: { node: UNREACHABLE, infrastructure: found('infra', { deletionTimestamp: START }) },
      did: [],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'tries for a while to delete a Node that cannot be reached when all else is gone',
      world: { gone: ALL_GONE, now: Date.parse(START) + 5_000_000, repeatedAfterMs: 9_999 },
      change: { ...OVER, node: UNREACHABLE, nodeRef: NODE_REF },
      did: [],
      waits: 'DeletingNode',
    },
    {
      title: 'leaves such a Node then, and tells of it',
      world: { gone: ALL_GONE, repeatedAfterMs: 10_000 },
      change: { ...OVER, node: UNREACHABLE, nodeRef: NODE_REF },
      did: ['tell FailedDeleteNode'],
      waits: undefined,
    },
    {
      title: 'tries for as long as its Machine says',
      world: { gone: ALL_GONE, repeatedAfterMs: 19_999 },
      change: { ...OVER, node: UNREACHABLE, nodeRef: NODE_REF, deletion: { nodeDeletionTimeoutSeconds: 20 } },
      did: [],
      waits: 'DeletingNode',
    },
    {
      title: 'tries for ever with a timeout of 0',
      world: { gone: ALL_GONE, repeatedAfterMs: 1e9 },
      change: { ...OVER, node: UNREACHABLE, nodeRef: NODE_REF, deletion: { nodeDeletionTimeoutSeconds: 0 } },
      did: [],
      waits: 'DeletingNode',
    },
    {
      title: 'neither drains nor deletes a Node whose control plane goes, nor waits for its cluster',
      world: { gone: ALL_GONE, controlPlane: controlPlaneWith({ deletionTimestamp: START }) },
      change: {
        ...OVER,
        node: UNREACHABLE,
        nodeRef: NODE_REF,
        nodeCluster: LOST,
        cluster: { ...object('c'), spec: { controlPlaneRef: { apiGroup: 'g', kind: 'Sim', name: 'cp' } } },
      },
      did: [],
      waits: undefined,
    },
    {
      title: 'waits while it cannot be told yet whether its control plane goes',
      world: { controlPlane: { kind: 'reading' } },
      change: {
        cluster: { ...object('c'), spec: { controlPlaneRef: { apiGroup: 'g', kind: 'Sim', name: 'cp' } } },
      },
      did: [],
      waits: 'DrainingNode',
    },
    {
      title: 'waits while it cannot be told which Node it is, whatever the timeout of the drain',
      world: { now: Date.parse(START) + 5_000_000 },
      change: { node: UNDECIDED, deletion: { nodeDrainTimeoutSeconds: 5 } },
      did: [],
      waits: 'DrainingNode',
    },
    {
      title: 'does not wait to know the Node when the Cluster goes',
      change: { node: UNDECIDED, cluster: object('c', { deletionTimestamp: START }) },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'does not wait for the cluster when that goes',
      change: { node: UNREACHABLE, cluster: object('c', { deletionTimestamp: START }) },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'does not wait for the cluster when nobody cares for the Node',
      change: {
        node: UNREACHABLE,
        annotations: {
          'machine.cluster.x-k8s.io/exclude-node-draining': '',
          'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach': '',
        },
      },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'drains a Node that has registered anew since',
      change: { node: nodeOf('anew', false) },
      did: ['drain'],
      waits: 'DrainingNode',
    },
    {
      title: 'drains a Node that has registered anew since, also when it is cordoned',
      change: { node: nodeOf('anew', true) },
      did: ['drain'],
      waits: 'DrainingNode',
    },
    {
      title: 'drains a Node that somebody has uncordoned since',
      world: { restedMs: 5_000 },
      change: { node: nodeOf('drained', false) },
      did: ['drain'],
      waits: 'DrainingNode',
    },
    {
      title: 'does not drain it at once, for whoever has done so may do it again',
      world: { restedMs: 4_999 },
      change: { node: nodeOf('drained', false) },
      did: [],
      waits: 'DrainingNode',
    },
    ...[19_999, 20_000].map((restedMs) => ({
      title: `tries again after a drain that has failed, not before 20 s: after ${restedMs} ms`,
      world: { drained: 'failed', restedMs } as const,
      did: restedMs < 20_000 ? [] : ['drain'],
      waits: 'DrainingNode',
    })),
    {
      title: 'waits to see what has become of a Node that the drain has not found',
      world: { drained: 'node-gone' },
      did: [],
      waits: 'DrainingNode',
    },
    {
      title: 'drains one that came in its place',
      world: { drained: 'node-gone' },
      change: { node: nodeOf('anew', false) },
      did: ['drain'],
      waits: 'DrainingNode',
    },
    {
      title: 'drains none anew while it waits for such hooks, where no time of that is stored',
      world: { drained: 'none' },
      change: {
        annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io': '' },
        conditions: [{ type: 'Deleting', status: 'True', reason: 'WaitingForPreTerminateHook', message: '' }],
      },
      did: [],
      waits: 'WaitingForPreTerminateHook',
    },
    {
      title: 'drains none anew while it waits for hooks that need the machine without Pods',
      change: {
        node: nodeOf('anew', false),
        annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io': '' },
        deletionStatus: { waitForPreTerminateHookStartTime: START },
      },
      did: [],
      waits: 'WaitingForPreTerminateHook',
    },
    { title: 'waits for volumes', world: { volumes: ['v'] }, did: [], waits: 'WaitingForVolumeDetach' },
    {
      title: 'does not wait for volumes of pods that stay',
      world: { volumes: ['v'], kept: ['pv-v'] },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'does not wait for volumes that nobody wants to wait for',
      world: { volumes: ['v'] },
      change: { annotations: { 'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach': '' } },
      did: ['delete infra'],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'waits for the second hook',
      change: { annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io': '' } },
      did: [],
      waits: 'WaitingForPreTerminateHook',
    },
    { title: 'deletes the infrastructure and waits', did: ['delete infra'], waits: 'WaitingForInfrastructureDeletion' },
    {
      title: 'believes no cache that says that the infrastructure is gone',
      change: { infrastructure: { kind: 'absent' } },
      did: [],
      waits: 'WaitingForInfrastructureDeletion',
    },
    {
      title: 'deletes the bootstrap object next',
      world: { gone: ['infra'] },
      change: { infrastructure: { kind: 'absent' } },
      did: ['delete config'],
      waits: 'WaitingForBootstrapDeletion',
    },
    { title: 'deletes the Node last', world: { gone: ALL_GONE }, change: OVER, did: ['delete node'], waits: undefined },
    {
      title: 'tells of no Node that goes with its cluster',
      world: { gone: ALL_GONE },
      change: {
        ...OVER,
        cluster: object('c', { deletionTimestamp: START }),
        nodeCluster: { kind: 'reached', target: {} as Target, identity: 'u' },
      },
      did: [],
      waits: undefined,
    },
    {
      title: 'goes on without a Node that cannot be deleted in time',
      world: { gone: ALL_GONE, nodeFailure: new ApiError(500, 'InternalError', 'no'), repeatedAfterMs: 10_000 },
      change: OVER,
      did: ['delete node', 'delete node', 'tell FailedDeleteNode'],
      waits: undefined,
    },
  ])('$title', async ({ world = {}, change = {}, did, waits }) => {
    const ended = await run(world, change);

    expect(ended).toMatchObject({ did, waits, isHeld: waits !== undefined });
  });

  test.each([
    {
      what: 'nobody',
      finalizers: [],
      type: 'Warning',
      says: /^Node n is kept: .* It no longer belongs to a Machine: kubectl delete node n$/,
    },
    {
      what: 'a machine of ours',
      finalizers: ['node.machine.sapcloud.io/machine-controller'],
      type: 'Normal',
      says: /^Node n is kept: .* it belongs to machine ours .*, which deletes it after its VM\. If that machine/,
    },
  ])('that leaves a Node of $what says who deletes it', async ({ finalizers, type, says }) => {
    const labels = { 'node.gardener.cloud/machine-name': 'ours' };
    const left = node((n) => void Object.assign(n.metadata, { name: 'n', labels, finalizers }));
    const notes: MachinePass['notes'] = new PassNotes();
    const cluster = object('c', { deletionTimestamp: START });

    await run({ gone: ALL_GONE }, { ...OVER, cluster, notes, node: { kind: 'found', node: left } });

    expect(eventsOf(notes)).toEqual([{ type, reason: 'NodeLeft', message: expect.stringMatching(says) }]);
  });

  test('is tried again while the Node resists and there is time', async () => {
    const nodeFailure = new ApiError(500, 'InternalError', 'no');

    await expect(run({ gone: ALL_GONE, nodeFailure }, OVER)).rejects.toThrow('no');
  });

  test('that is refused says so', async () => {
    const infrastructureFailure = new ApiError(403, 'Forbidden', 'no');

    const ended = await run({ infrastructureFailure }, {});

    expect(ended).toMatchObject({ waits: 'WaitingForInfrastructureDeletion', says: 'Deleting Sim infra: no' });
  });

  test.each([
    { reason: 'DrainingNode', isToldDrained: true },
    { reason: 'WaitingForInfrastructureDeletion', isToldDrained: undefined },
  ])('that its Node is drained is told once: after $reason $isToldDrained', async ({ reason, isToldDrained }) => {
    const ended = await run({}, { conditions: [{ type: 'Deleting', status: 'True', reason, message: '' }] });

    expect(ended.isToldDrained).toBe(isToldDrained);
  });

  // promise: cluster-api/deletion/dead-node-held-up
  test.each([
    { ready: 'Unknown', did: ['delete infra'] },
    { ready: 'True', did: ['drain'] },
  ])(
    'of a Node that was drained while its kubelet was silent drains it anew when that answers: $ready',
    async (row) => {
      const silent = node((n) => {
        Object.assign(n.metadata, { name: 'n', uid: 'drained' });
        Object.assign(n, {
          spec: { unschedulable: true },
          status: { conditions: [{ type: 'Ready', status: row.ready }] },
        });
      });

      const ended = await run(
        { drained: 'drained-silent', restedMs: 20_000 },
        { node: { kind: 'found', node: silent } },
      );

      expect(ended.did).toEqual(row.did);
    },
  );

  test.each<{ what: string; world: World; node?: ObservedNode; says: string }>([
    { what: 'nothing', world: { drained: 'none' }, says: 'Draining Node n' },
    { what: 'what holds it', world: { drained: 'none', drainText: ': x' }, says: 'Draining Node n: x' },
    { what: 'what holds it', world: { drained: 'running', drainText: ': x' }, says: 'Draining Node n: x' },
    {
      what: 'why it failed',
      world: { drained: 'failed', restedMs: 20_000, drainText: ': x' },
      says: 'Draining Node n: no rules',
    },
    {
      what: 'what holds another Node of its name',
      world: { drained: 'none', drainText: ': x' },
      node: nodeOf('anew', true),
      says: 'Draining Node n again: the Node re-registered or was uncordoned, or its kubelet responds again',
    },
  ])(
    'a drain that begins ($world.drained) after $what was reported says: $says',
    async ({ world, node: its = NODE, says }) => {
      expect((await run(world, { node: its })).says).toBe(says);
    },
  );

  // promise: machines-cluster-api/object-belongs-somebody-else
  test('an object of somebody else is let alone', async () => {
    const foreign = { kind: 'foreign', problem: 'p' } as const;

    const ended = await run({ gone: [] }, { infrastructure: foreign, bootstrap: foreign });

    expect(ended).toMatchObject({ did: ['delete node'], waits: undefined, isHeld: false });
  });

  // promise: machines-cluster-api/drain-left-out-because
  test.each([
    { seen: { kind: 'reading' } as const, waits: 'DrainingNode' },
    { seen: { kind: 'unknown', problem: 'p' } as const, waits: 'WaitingForInfrastructureDeletion' },
  ])('nothing is begun while it cannot be told what there is: $seen', async ({ seen, waits }) => {
    for (const change of [{ infrastructure: seen }, { bootstrap: seen }]) {
      const ended = await run({ drained: 'none', gone: ALL_GONE }, change);
      expect(ended).toMatchObject({ did: [], waits, isHeld: true });
    }
  });
});

const HOME: NodeCluster = { kind: 'reached', target: {} as Target, identity: undefined };
const AWAY: NodeCluster = { kind: 'reached', target: {} as Target, identity: 'u' };
const ofControlPlane = (more: object = {}): KubeObject =>
  object('m', { labels: { 'cluster.x-k8s.io/control-plane': '' }, ...more });
// promise: cluster-api/deletion/control-plane-goes-node
test.each<{ what: string; facts: Partial<Parameters<typeof nodeCareOf>[0]>; care: string }>([
  { what: 'Cluster that goes', facts: { cluster: object('c', { deletionTimestamp: START }) }, care: 'cluster-goes' },
  { what: 'Cluster without a control plane of its own', facts: {}, care: 'cared-for' },
  { what: 'the same, out of reach', facts: { nodeCluster: LOST }, care: 'cared-for' },
  {
    what: 'control plane that goes',
    facts: { controlPlane: controlPlaneWith({ deletionTimestamp: START }), machines: [ofControlPlane()] },
    care: 'control-plane-goes',
  },
  {
    what: 'control plane that goes, of Nodes in the target cluster of the manager',
    facts: { controlPlane: controlPlaneWith({ deletionTimestamp: START }), nodeCluster: HOME },
    care: 'cared-for',
  },
  {
    what: 'control plane elsewhere, which has no Machines',
    facts: { controlPlane: controlPlaneWith({}, { externalManagedControlPlane: true }), nodeCluster: LOST },
    care: 'cared-for',
  },
  {
    what: 'control plane elsewhere, whose Cluster had Machines of one before',
    facts: {
      controlPlane: controlPlaneWith({}, { externalManagedControlPlane: true }),
      cluster: object('c', { annotations: { 'cluster-api.machine.sapcloud.io/had-control-plane': 'true' } }),
      nodeCluster: LOST,
    },
    care: 'cared-for',
  },
  { what: 'control-plane Machine that stays', facts: { machines: [ofControlPlane()] }, care: 'cared-for' },
  {
    what: 'control-plane Machine of two that goes',
    facts: { machines: [ofControlPlane(), ofControlPlane({ deletionTimestamp: START })] },
    care: 'cared-for',
  },
  {
    what: 'last control-plane Machine that goes',
    facts: { machines: [ofControlPlane({ deletionTimestamp: START })] },
    care: 'no-control-plane',
  },
  {
    what: 'the same, of Nodes in the target cluster of the manager',
    facts: { machines: [ofControlPlane({ deletionTimestamp: START })], nodeCluster: HOME },
    care: 'cared-for',
  },
  {
    what: 'control plane whose last Machine is gone',
    facts: { cluster: object('c', { annotations: { 'cluster-api.machine.sapcloud.io/had-control-plane': 'true' } }) },
    care: 'no-control-plane',
  },
  {
    what: 'control plane that is gone, and does not answer',
    facts: { controlPlane: { kind: 'absent' }, nodeCluster: LOST },
    care: 'no-control-plane',
  },
  {
    what: 'control plane whose object is gone, and which answers',
    facts: { controlPlane: { kind: 'absent' } },
    care: 'cared-for',
  },
  {
    what: 'control plane that cannot be read, and does not answer',
    facts: { controlPlane: { kind: 'unknown', problem: 'p' }, nodeCluster: LOST },
    care: 'cared-for',
  },
  {
    what: 'control plane without Machines that does not answer',
    facts: { controlPlane: controlPlaneWith({}), nodeCluster: LOST },
    care: 'cared-for',
  },
])('the Node of a $what: $care', ({ facts, care }) => {
  const given = { cluster: object('c'), nodeCluster: AWAY, controlPlane: undefined, machines: [], ...facts };

  expect(nodeCareOf(given)).toBe(care);
});

test.each([
  { annotations: undefined, want: [] },
  {
    annotations: { [PRE_DRAIN]: '', [`${PRE_DRAIN}/b`]: '', [`${PRE_DRAIN}x/c`]: '', other: '', [`x${PRE_DRAIN}`]: '' },
    want: [PRE_DRAIN, `${PRE_DRAIN}/b`, `${PRE_DRAIN}x/c`],
  },
])('hooks in $annotations are $want', ({ annotations, want }) => {
  expect(hookNamesOf(object('m', { annotations }), PRE_DRAIN)).toEqual(want);
});

test.each([
  { since: START, seconds: 10, after: 10_000, want: true },
  { since: START, seconds: 10, after: 9_999, want: false },
  { since: START, seconds: 0, after: 1e9, want: false },
  { since: START, seconds: undefined, after: 1e9, want: false },
  { since: undefined, seconds: 1, after: 1e9, want: false },
])('$after ms after $since of $seconds s it is over: $want', ({ since, seconds, after, want }) => {
  expect(isOver(since, seconds, Date.parse(START) + after)).toBe(want);
});

test('volumes count by what the Node and what their attachments say', () => {
  const it: Node = node((n) => {
    n.status = { ...n.status, volumesAttached: [{ name: 'csi^1', devicePath: '' }] };
  });
  const of = (name: string) => ({ source: { persistentVolumeName: `pv-${name}` } });
  const attachments = [
    { metadata: { name: 'on' }, spec: of('on'), status: { attached: true } },
    { metadata: { name: 'off' }, spec: of('off'), status: { attached: false } },
  ] as unknown as VolumeAttachment[];
  const target = { volumeAttachments: { byIndex: () => attachments } } as unknown as Target;

  expect(attachedVolumes(it, target)).toEqual(['csi^1', 'on']);
  expect(attachedVolumes(it, target, [{ name: 'pv-on', id: '1' }])).toEqual([]);
  expect(attachedVolumes(it, target, [{ name: 'pv-other', id: undefined }])).toEqual(['csi^1', 'on']);
});
