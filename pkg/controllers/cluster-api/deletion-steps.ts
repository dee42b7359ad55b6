import type { Activity } from '../../activity/activity.ts';
import { conditionOf, type Condition } from '../../apis/cluster-api/condition.ts';
import type { ContractReference } from '../../apis/cluster-api/contract.ts';
import {
  EXCLUDE_DETACH_ANNOTATION,
  EXCLUDE_DRAIN_ANNOTATION,
  MACHINE_FINALIZER,
  PRE_DRAIN_HOOK_PREFIX,
  PRE_TERMINATE_HOOK_PREFIX,
} from '../../apis/cluster-api/keys.ts';
import type { ClusterAPIMachineStatus } from '../../apis/cluster-api/machine.ts';
import { MACHINE_NAME_LABEL, NODE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, refOf, type KubeObject } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import { fromTimestamp, toTimestamp } from '../../clock/clock.ts';
import type { DrainProgress, DrainRequest } from '../../drain/drain.ts';
import { isHeldUp, mainHold, mainWait, volumeWait } from '../../drain/progress-text.ts';
import type { TrackedVolume } from '../../drain/volumes.ts';
import { GateClosedError } from '../../gate/gate.ts';
import { ApiError, ignoreNotFound, isNotFound } from '../../kube/errors.ts';
import { nodes } from '../../kube/resource.ts';
import { next, waitFor, type StepResult } from '../../reconcile/result.ts';
import type { Target } from '../../targets/targets.ts';
import type { DrainedMachine } from '../machines/pod-rules.ts';
import { NODE_DELETION_TIMEOUT_SECONDS } from './defaults.ts';
import {
  targetOf,
  type EndedDrain,
  type MachinePass,
  type MachineStep,
  type StepDeps,
  type Told,
  type Waiting,
} from './machine-pass.ts';
import type { Seen } from './seen.ts';

/** How often a drain or volumes that are still attached are looked at again. */
const LOOK_AGAIN_MS = 20_000;
/** When to go on after the gate was closed, a Node has gone that the cache still shows, or somebody has uncordoned one. */
const SOON_MS = 5_000;
/** A drain without a timeout is begun anew after so long, so that nothing of it is forgotten. */
const DRAIN_ROUND_MS = 600_000;

/** Reason while volumes are not off the Node. */
const OF_VOLUMES = 'WaitingForVolumeDetach';
/** Reasons while objects are being deleted. */
const OF_INFRASTRUCTURE = 'WaitingForInfrastructureDeletion';
const OF_BOOTSTRAP = 'WaitingForBootstrapDeletion';
const OF_NODE = 'DeletingNode';

type StartTime = keyof NonNullable<ClusterAPIMachineStatus['deletion']>;

const PRE_DRAIN = {
  name: 'pre-drain',
  prefix: PRE_DRAIN_HOOK_PREFIX,
  reason: 'WaitingForPreDrainHook',
  startTime: 'waitForPreDrainHookStartTime',
} as const;
const PRE_TERMINATE = {
  name: 'pre-terminate',
  prefix: PRE_TERMINATE_HOOK_PREFIX,
  reason: 'WaitingForPreTerminateHook',
  startTime: 'waitForPreTerminateHookStartTime',
} as const;

/** Reasons of steps that come after the drain. */
const AFTER_DRAIN: readonly string[] = [PRE_TERMINATE.reason, OF_INFRASTRUCTURE, OF_BOOTSTRAP, OF_NODE];

/**
 * What is done for a Machine that is being deleted, in this order; each waits for the one before. The Node is let alone where there is
 * none, and where the whole Cluster goes.
 *
 *   hooks ─▶ drain ─▶ volumes detached ─▶ hooks ─▶ infrastructure gone ─▶ bootstrap gone ─▶ Node gone ─▶ finalizer
 */
export function deletionSteps(deps: StepDeps): readonly MachineStep[] {
  return [
    located,
    reachable,
    ofNode(hooks(deps, PRE_DRAIN)),
    ofNode(drainStep(deps)),
    ofNode(detachStep(deps)),
    hooks(deps, PRE_TERMINATE),
    removal(deps, 'infrastructure', OF_INFRASTRUCTURE, (pass) => [
      pass.infrastructure,
      pass.machine.spec.infrastructureRef,
    ]),
    removal(deps, 'bootstrap', OF_BOOTSTRAP, (pass) => [pass.bootstrap, pass.machine.spec.bootstrap?.configRef]),
    ofNode(nodeRemoval(deps)),
    release,
  ];
}

/** Names of the hooks with a prefix that hold a Machine. */
export function hooksOf({ metadata }: KubeObject, prefix: string): readonly string[] {
  const keys = Object.keys(metadata.annotations ?? {});
  return keys.filter((key) => key === prefix || key.startsWith(`${prefix}/`)).toSorted();
}

/** Whether a time that began then is over; without a limit it never is. */
export function isOver(sinceTimestamp: string | undefined, seconds: number | undefined, nowMs: number): boolean {
  const sinceMs = fromTimestamp(sinceTimestamp);
  if (sinceMs === undefined || seconds === undefined || seconds === 0) return false;
  return nowMs - sinceMs >= seconds * 1_000;
}

/** Volumes that are attached to a Node, by what it says and by what VolumeAttachments say, but those of pods that stay. */
export function attachedVolumes(
  node: Node,
  { volumeAttachments }: Pick<Target, 'volumeAttachments'>,
  kept: readonly TrackedVolume[] = [],
): readonly string[] {
  const isKept = (reported: string): boolean => kept.some(({ id = '' }) => id !== '' && reported.includes(id));
  const reported = (node.status?.volumesAttached ?? []).map(({ name }) => name).filter((name) => !isKept(name));
  const attached = volumeAttachments
    .byIndex('node', node.metadata.name)
    .filter(({ status, spec }) => {
      const name = spec.source.persistentVolumeName;
      return status?.attached === true && !kept.some((volume) => volume.name === name);
    })
    .map(({ metadata }) => metadata.name);
  return [...reported, ...attached];
}

/** Nothing is begun while it cannot be told what there is: a drain that is left out cannot be made up for. */
const located: MachineStep = {
  name: 'located',
  run(pass) {
    const { infrastructureRef, bootstrap = {} } = pass.machine.spec;
    for (const [seen, reference] of [
      [pass.infrastructure, infrastructureRef],
      [pass.bootstrap, bootstrap.configRef],
    ] as const) {
      if (seen.kind !== 'unknown' && seen.kind !== 'reading') continue;
      const what = `${reference?.kind} ${reference?.name}`;
      if (seen.kind === 'unknown') {
        return waitsToKnow(pass, OF_INFRASTRUCTURE, `It cannot be told whether ${what} is there: ${seen.problem}`);
      }
      // A manager that has just begun to watch a kind knows nothing new: what was said last stands.
      const said = saidLast(pass);
      const reading = `It cannot be told whether ${what} is there: it is being read`;
      return waits(pass, said?.reason ?? OF_INFRASTRUCTURE, said?.message ?? reading);
    }
    return next;
  },
};

/**
 * While nothing is known of the cluster of the Node, or which Node it is, nothing is drained and nothing deleted, however long it takes: unless the Cluster goes as a
 * whole, or somebody has said that the Node need not be cared for.
 */
const reachable: MachineStep = {
  name: 'reachable',
  run(pass) {
    const { node, machine, cluster } = pass;
    const { annotations } = machine.metadata;
    const isLetGo = [EXCLUDE_DRAIN_ANNOTATION, EXCLUDE_DETACH_ANNOTATION].every(
      (one) => annotations?.[one] !== undefined,
    );
    if (isLetGo || isBeingDeleted(cluster)) return next;
    if (node.kind === 'undecided')
      return waitsToKnow(pass, 'DrainingNode', `Waiting to know its Node: ${node.problem}`);
    if (node.kind !== 'unreachable') return next;
    const text = 'Waiting for the cluster of its Node';
    const event = { type: 'Warning', reason: 'DrainBlocked', why: text } as const;
    return waitsToKnow(pass, 'DrainingNode', `${text}: ${node.why}`, { event });
  },
};

/** A step that concerns the Node: skipped where there is none, or where it goes with its whole Cluster. */
function ofNode(step: MachineStep): MachineStep {
  return {
    name: step.name,
    run: (pass) => (pass.node.kind !== 'found' || isBeingDeleted(pass.cluster) ? next : step.run(pass)),
  };
}

function hooks(
  { clock }: Pick<StepDeps, 'clock'>,
  { name, prefix, reason, startTime }: { name: string; prefix: string; reason: string; startTime: StartTime },
): MachineStep {
  return {
    name,
    run(pass) {
      const held = hooksOf(pass.machine, prefix);
      if (held.length === 0) return next;
      started(pass, startTime, clock.now());
      const message = `Waiting for hooks to be removed: ${held.join(', ')}`;
      return waits(pass, reason, message, { event: { type: 'Normal', reason } });
    },
  };
}

/** By what rules for drains tell Machines apart. */
function drainedMachine({ machine, cluster }: MachinePass): DrainedMachine {
  return { labels: machine.metadata.labels, clusterLabels: cluster.metadata.labels };
}

/** Nobody reaches a Node whose machine is going. */
function isTooLate({ infrastructure, machine, observed }: MachinePass): boolean {
  if (machine.status.deletion?.waitForPreTerminateHookStartTime !== undefined) return true;
  // The older version stores no such time.
  if (conditionOf(observed, 'Deleting')?.reason === PRE_TERMINATE.reason) return true;
  return infrastructure.kind !== 'found' || isBeingDeleted(infrastructure.external.object);
}

function drainStep({
  drains,
  drain,
  rules,
  clock,
}: Pick<StepDeps, 'drains' | 'drain' | 'rules' | 'clock'>): MachineStep {
  /** What a running drain waits for, by the UID of its Machine. */
  const running = new Map<string, DrainProgress>();
  const begin = (pass: MachinePass, target: Target, node: Node, leftMs: number | undefined): void => {
    const { uid } = pass.machine.metadata;
    const { name: nodeName, uid: nodeUID } = node.metadata;
    const request: DrainRequest = {
      target,
      nodeName,
      nodeUID,
      barrier: 'cordon',
      rules: (asked) => rules.of(drainedMachine(pass), target, asked),
      force: false,
      deadlineMs: clock.now() + (leftMs ?? DRAIN_ROUND_MS),
      // A budget is respected for as long as the Machine says, and no Pod is deleted instead.
      maxEvictRetries: Number.MAX_SAFE_INTEGER,
      pvDetachTimeoutMs: DRAIN_ROUND_MS,
      pvReattachTimeoutMs: LOOK_AGAIN_MS,
    };
    drains.startOrGet({ uid, key: pass.key, account: undefined }, 'drain', (signal) =>
      drain(request, signal, (progress) => void running.set(uid, progress))
        .then((outcome) => ({ nodeUID, outcome }))
        .finally(() => running.delete(uid)),
    );
  };
  return {
    name: 'drain',
    run(pass) {
      const { machine } = pass;
      const { uid, annotations } = machine.metadata;
      const target = targetOf(pass);
      if (pass.node.kind !== 'found' || target === undefined) return next;
      if (annotations?.[EXCLUDE_DRAIN_ANNOTATION] !== undefined || isTooLate(pass)) return next;
      const { node } = pass.node;
      const { name } = node.metadata;
      const seconds = machine.spec.deletion?.nodeDrainTimeoutSeconds;
      const since = started(pass, 'nodeDrainStartTime', clock.now());
      const activity = drains.get(uid, 'drain');
      if (isOver(since, seconds, clock.now())) {
        drains.abort(uid, 'drain', 'it has taken too long');
        if (activity?.state !== 'running') drains.forget(uid, 'drain');
        return next;
      }
      const leftMs = seconds === undefined || seconds === 0 ? undefined : timeLeftMs(since, seconds, clock.now());
      if (leftMs !== undefined) pass.again.push({ afterMs: leftMs, waitingFor: 'the drain timeout' });
      if (activity?.state === 'running') {
        const progress = running.get(uid);
        const said =
          progress === undefined ? saidBefore(pass, name) : `Draining Node ${name}: ${describeProgress(progress)}`;
        const event = progress && eventOf(progress);
        return waits(pass, 'DrainingNode', said, { againMs: LOOK_AGAIN_MS, event });
      }
      const stands = activity?.state === 'done' ? standOf(activity.result, node) : undefined;
      if (stands === 'empty') {
        if (!isKnownToBeDrained(pass)) {
          pass.told.push({ type: 'Normal', reason: 'SuccessfulDrainNode', message: `Node ${name} is drained` });
        }
        return next;
      }
      if (activity !== undefined) {
        const restMs = activity.settledAtMs + restMsAfter(activity, node) - clock.monotonicMs();
        if (restMs > 0) {
          const [why, event] = stands === 'open' ? [ONCE_MORE, undefined] : toldOfEnd(activity);
          pass.again.push({ afterMs: restMs, waitingFor: 'the next attempt to drain' });
          return waits(pass, 'DrainingNode', `Draining Node ${name}${why}`, { event });
        }
        drains.forget(uid, 'drain');
      }
      begin(pass, target, node, leftMs);
      const said = stands === 'open' ? `Draining Node ${name}${ONCE_MORE}` : saidBefore(pass, name);
      return waits(pass, 'DrainingNode', said, { againMs: LOOK_AGAIN_MS });
    },
  };
}

type EndedActivity = Exclude<Activity<EndedDrain>, { readonly state: 'running' }>;

/** Why a Node is drained that was drained. */
const ONCE_MORE = ' once more: it has registered anew, or takes Pods again';

/**
 * How long a drain rests that did not empty the Node. Each pass wakes the next by what it writes, so that one that fails at once, or a Node that
 * somebody uncordons whenever it is cordoned, would be begun again and again without that.
 */
function restMsAfter(activity: EndedActivity, node: Node): number {
  if (activity.state === 'failed') return activity.error instanceof GateClosedError ? SOON_MS : LOOK_AGAIN_MS;
  switch (standOf(activity.result, node)) {
    case 'open':
      return node.metadata.uid === activity.result.nodeUID ? SOON_MS : 0;
    case 'gone':
      return SOON_MS;
    default:
      return LOOK_AGAIN_MS;
  }
}

/** A drain that has only just begun has no news: what was said of this Node last stands, so that it is not told again in each round. */
function saidBefore(pass: MachinePass, name: string): string {
  const text = `Draining Node ${name}`;
  const said = saidLast(pass);
  if (said?.reason !== 'DrainingNode') return text;
  return [':', ONCE_MORE].some((more) => said.message.startsWith(`${text}${more}`)) ? said.message : text;
}

/** Whether that was told, and what comes after it is tried again. */
function isKnownToBeDrained({ observed }: MachinePass): boolean {
  if (observed.status?.deletion?.waitForNodeVolumeDetachStartTime !== undefined) return true;
  return conditionOf(observed, 'Deleting')?.reason === OF_INFRASTRUCTURE;
}

/**
 * What a drain that has ended says of the Node as it is now. empty: it is drained, and takes no Pods. open: it was drained, and another has
 * its name since, or somebody has uncordoned it: Pods may be on it. gone: the API server has it no more, and the cache will tell what it has.
 * left: Pods are.
 */
function standOf({ nodeUID, outcome }: EndedDrain, node: Node): 'empty' | 'open' | 'gone' | 'left' {
  if (outcome.kind === 'incomplete') return 'left';
  if (node.metadata.uid !== nodeUID) return 'open';
  if (outcome.kind === 'node-gone') return 'gone';
  return node.spec?.unschedulable === true ? 'empty' : 'open';
}

function detachStep({ clock, rules, keptVolumes }: Pick<StepDeps, 'clock' | 'rules' | 'keptVolumes'>): MachineStep {
  return {
    name: 'detach-volumes',
    async run(pass) {
      const { machine, signal } = pass;
      const target = targetOf(pass);
      if (pass.node.kind !== 'found' || target === undefined) return next;
      if (machine.metadata.annotations?.[EXCLUDE_DETACH_ANNOTATION] !== undefined || isTooLate(pass)) return next;
      const ready = pass.node.node.status?.conditions?.find(({ type }) => type === 'Ready');
      if (ready?.status === 'Unknown') return next;
      const { node } = pass.node;
      if (attachedVolumes(node, target).length === 0) return next;
      const ruleOf = await rules.of(drainedMachine(pass), target, signal);
      const kept = await keptVolumes(target, node.metadata.name, ruleOf, signal);
      const volumes = attachedVolumes(node, target, kept);
      if (volumes.length === 0) return next;
      const seconds = machine.spec.deletion?.nodeVolumeDetachTimeoutSeconds;
      const since = started(pass, 'waitForNodeVolumeDetachStartTime', clock.now());
      if (isOver(since, seconds, clock.now())) return next;
      const limit = seconds === undefined || seconds === 0 ? LOOK_AGAIN_MS : timeLeftMs(since, seconds, clock.now());
      pass.again.push({ afterMs: Math.min(limit, LOOK_AGAIN_MS), waitingFor: 'volumes to be detached' });
      const message = `Waiting for volumes to be detached: ${volumes.slice(0, 5).join(', ')}`;
      return waits(pass, OF_VOLUMES, message, { event: { type: 'Normal', reason: OF_VOLUMES } });
    },
  };
}

/** Deletes an object that the Machine owns, and waits until it is gone. That of somebody else is let alone. */
function removal(
  { externals, writer }: Pick<StepDeps, 'externals' | 'writer'>,
  name: string,
  reason: string,
  of: (pass: MachinePass) => readonly [Seen<unknown>, ContractReference | undefined],
): MachineStep {
  return {
    name,
    async run(pass): Promise<StepResult> {
      const [seen, reference] = of(pass);
      if (reference === undefined || seen.kind === 'none') return next;
      const what = `${reference.kind} ${reference.name}`;
      const { signal, machine } = pass;
      if (seen.kind === 'absent') {
        if (await externals.isGone(machine, reference, signal)) return next;
        return waits(pass, reason, `${what} is not gone yet`, { againMs: LOOK_AGAIN_MS });
      }
      if (seen.kind !== 'found') return next;
      const { object, resource } = seen.external;
      if (!isBeingDeleted(object)) {
        const { uid } = object.metadata;
        // A Cluster that goes may have lost its API server already.
        const target = isBeingDeleted(pass.cluster) ? undefined : targetOf(pass);
        const clusters = target === undefined ? [] : [target.cluster];
        const left = await writer
          .delete('destroy', resource, refOf(object), { uid }, { signal, clusters })
          .catch(ignoreNotFound)
          .catch((err: unknown) => {
            waits(pass, reason, `Deleting ${what}: ${messageOf(err)}`);
            throw err;
          });
        if (left === undefined && (await externals.isGone(machine, reference, signal))) return next;
      }
      return waits(pass, reason, `Waiting for ${what} to be gone`);
    },
  };
}

function nodeRemoval({ clock }: Pick<StepDeps, 'clock'>): MachineStep {
  return {
    name: 'node-removal',
    async run(pass): Promise<StepResult> {
      const { machine, signal } = pass;
      const target = targetOf(pass);
      if (pass.node.kind !== 'found' || target === undefined) return next;
      const { name, uid } = pass.node.node.metadata;
      try {
        await target.writer.delete('destroy', nodes, { name }, { uid }, { signal });
        return next;
      } catch (err) {
        if (isNotFound(err)) return next;
        const seconds = machine.spec.deletion?.nodeDeletionTimeoutSeconds ?? NODE_DELETION_TIMEOUT_SECONDS;
        if (err instanceof ApiError && isOver(machine.metadata.deletionTimestamp, seconds, clock.now())) return next;
        waits(pass, OF_NODE, `Deleting Node ${name}: ${messageOf(err)}`);
        throw err;
      }
    },
  };
}

/** Lets go of the Machine. A Node in the target cluster of the manager does not go with a Cluster that is deleted, and is told of. */
const release: MachineStep = {
  name: 'release',
  run({ machine, cluster, node, nodeCluster, told }) {
    const { finalizers = [] } = machine.metadata;
    machine.metadata.finalizers = finalizers.filter((one) => one !== MACHINE_FINALIZER);
    const isAtHome = nodeCluster.kind === 'reached' && nodeCluster.identity === undefined;
    if (node.kind === 'found' && isAtHome && isBeingDeleted(cluster)) told.push(leftNode(node.node, cluster));
    return next;
  },
};

/** What becomes of a Node that a deleted Cluster leaves: one with the finalizer of a machine of ours is that one's, and nobody else's to delete. */
function leftNode({ metadata }: Node, cluster: KubeObject): Told {
  const { name, finalizers = [], labels = {} } = metadata;
  const reason = 'NodeLeft';
  const why = `Nodes are not deleted with Cluster ${cluster.metadata.name}`;
  if (finalizers.includes(NODE_FINALIZER)) {
    const owner = labels[MACHINE_NAME_LABEL] ?? 'that made it';
    const message = `Node ${name} is left: ${why}, and it belongs to machine ${owner} (machine.sapcloud.io, kubectl get mc), which deletes it when its VM is gone. Leave it; where there is no such machine any more, take finalizer ${NODE_FINALIZER} off it and delete it`;
    return { type: 'Normal', reason, message };
  }
  const message = `Node ${name} is left: ${why}, and it is in the target cluster of the manager, which stays. It belongs to nobody any more: kubectl delete node ${name}`;
  return { type: 'Warning', reason, message };
}

/** Since when a step waits: remembered, so that the next leader goes on counting. */
function started({ machine }: MachinePass, name: StartTime, nowMs: number): string {
  const since = machine.status.deletion?.[name] ?? toTimestamp(nowMs);
  machine.status.deletion = { ...machine.status.deletion, [name]: since };
  return since;
}

function waits(
  pass: MachinePass,
  reason: string,
  message: string,
  { againMs, event }: { readonly againMs?: number; readonly event?: Waiting['event'] } = {},
): StepResult {
  pass.deleting = { reason, message, ...(event !== undefined && { event }) };
  if (againMs !== undefined) pass.again.push({ afterMs: againMs, waitingFor: message });
  return waitFor(message);
}

/**
 * The same while something is not known that was known before: a step after the drain that was reached keeps its reason. It is all that the
 * older version stores of hooks that were waited for, and a Node is not drained any more after them.
 */
function waitsToKnow(
  pass: MachinePass,
  reason: string,
  message: string,
  { event }: { readonly event?: Waiting['event'] } = {},
): StepResult {
  const said = saidLast(pass)?.reason;
  return waits(pass, said !== undefined && AFTER_DRAIN.includes(said) ? said : reason, message, { event });
}

/** What condition Deleting has said of the deletion. */
function saidLast({ observed }: MachinePass): Condition | undefined {
  const said = conditionOf(observed, 'Deleting');
  return said?.status === 'True' ? said : undefined;
}

function timeLeftMs(since: string, seconds: number, nowMs: number): number {
  return Math.max(0, (fromTimestamp(since) ?? nowMs) + seconds * 1_000 - nowMs);
}

/** What a drain has left, or why it has failed, in words, and what is told of it. What was given up at a closed gate goes on by itself. */
function toldOfEnd(activity: EndedActivity): readonly [string, Waiting['event']] {
  if (activity.state === 'failed') {
    const why = messageOf(activity.error);
    const isGate = activity.error instanceof GateClosedError;
    return [`: ${why}`, isGate ? undefined : { type: 'Warning', reason: 'DrainBlocked', why }];
  }
  const { outcome } = activity.result;
  if (outcome.kind !== 'incomplete') return [': it is not there any more', undefined];
  return [`: ${describeProgress(outcome.progress)}`, eventOf(outcome.progress)];
}

/** How many Pods are left, and what one of them waits for: `1 Pod is left; ns/a (waits for pods that go first)`. */
export function describeProgress(progress: DrainProgress): string {
  const { remainingPods } = progress;
  const left = remainingPods === 1 ? '1 Pod is left' : `${remainingPods} Pods are left`;
  return [left, mainWait(progress)].filter((part) => part !== undefined).join('; ');
}

/** Pods that only take the time that they were given are no news; volumes go off by themselves, but that may take minutes. */
function eventOf(progress: DrainProgress): Waiting['event'] {
  const ofVolumes = volumeWait(progress);
  if (ofVolumes !== undefined) return { type: 'Normal', reason: OF_VOLUMES, why: ofVolumes };
  const why = mainHold(progress);
  return why === undefined
    ? undefined
    : { type: isHeldUp(progress) ? 'Warning' : 'Normal', reason: 'DrainBlocked', why };
}

function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}
