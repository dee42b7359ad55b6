import { EXCLUDE_DRAIN_ANNOTATION } from '../../api/keys.ts';
import type { Node } from '../../../../apis/wire.ts';
import type { DrainOutcome, DrainRequest, DrainProgress } from '../../../../drain/drain.ts';
import { messageOf } from '../../../../driver/errno.ts';
import { GateClosedError } from '../../../../kube/gate/gate.ts';
import { ignoreNotFound } from '../../../../kube/client/errors.ts';
import { nodes } from '../../../../kube/client/resource.ts';
import type { Ended } from '../../../../work/activity/activity.ts';
import { conditionOf } from '../../../../work/reconcile/conditions.ts';
import { next, type StepResult } from '../../../../work/reconcile/result.ts';
import type { Target } from '../../../../kube/targets/targets.ts';
import {
  targetOf,
  type ClusterAPIMachineStep,
  type DrainReport,
  type MachinePass,
  type NodeDrain,
  type StepDeps,
  type DeletionWait,
} from '../machine-pass.ts';
import { older } from '../older-conditions.ts';
import { drainedMachine, isUnreachable, isTooLate } from './of-node.ts';
import { awaitCluster, mayHaveNode, type UnreachedStep } from './reachable.ts';
import {
  DELETION_RECHECK_MS,
  DRAINING,
  notedWhileWaiting,
  OF_INFRASTRUCTURE,
  started,
  timeLeftMs,
  waits,
} from './waits.ts';
import { isBlocked, mainHold, mainWait } from '../../../../drain/progress-text.ts';

/** When to drain again after the gate was closed, a Node has gone that the cache still shows, or somebody has uncordoned one. */
const SOON_MS = 5_000;
/** A drain without a timeout is begun again after so long, so that nothing of it is forgotten. */
const DRAIN_ROUND_MS = 600_000;

const UNREACHED: UnreachedStep = {
  reason: DRAINING,
  startTime: 'nodeDrainStartTime',
  timeout: 'nodeDrainTimeoutSeconds',
};

/** Condition of the older contract. */
const SUCCEEDED = 'DrainingSucceeded';

const BEGUN: DrainReport = { text: '' };
/** Why a Node is drained that was drained. */
const ONCE_MORE: DrainReport = {
  text: ' again: the Node re-registered or was uncordoned, or its kubelet responds again',
};

type Deps = Pick<StepDeps, 'drains' | 'rules' | 'clock'>;

/** Drains the Node, and waits until it is empty, or its timeout is over. */
export function drainStep(deps: Deps): ClusterAPIMachineStep {
  const { drains, clock } = deps;
  const step: ClusterAPIMachineStep = {
    name: 'drain',
    run(pass) {
      const { metadata, spec } = pass.machine;
      const isExcluded = metadata.annotations?.[EXCLUDE_DRAIN_ANNOTATION] !== undefined;
      if (isExcluded || isTooLate(pass) || !mayHaveNode(pass)) return next;
      const since = started(pass, 'nodeDrainStartTime', clock.now());
      const leftMs = timeLeftMs(since, spec.deletion?.nodeDrainTimeoutSeconds, clock.now());
      if (leftMs === 0) {
        drains.end(metadata.uid, 'its timeout expired');
        return next;
      }
      if (pass.node.kind === 'unreachable') return awaitCluster(pass, pass.node.why, UNREACHED, clock.now());
      const target = targetOf(pass);
      if (pass.node.kind !== 'found' || target === undefined) return next;
      if (leftMs !== undefined) pass.notes.alsoAfter(leftMs, 'the drain timeout');
      return advance(deps, pass, { target, node: pass.node.node, leftMs });
    },
  };
  return notedWhileWaiting(step, SUCCEEDED, 'Draining');
}

interface DrainedNode {
  readonly target: Target;
  readonly node: Node;
  /** Until the timeout; undefined without one. */
  readonly leftMs: number | undefined;
}

/**
 * Brings the drain forward. A Node that was drained is drained again when another has its name, somebody has uncordoned it, or its kubelet
 * responds again: Pods may be on it.
 */
function advance(deps: Deps, pass: MachinePass, drained: DrainedNode): StepResult {
  const { drains, clock } = deps;
  const { uid } = pass.machine.metadata;
  const { node } = drained;
  const drain = drains.advance(uid);
  const attempt = drains.attempts.get(uid);
  if (attempt === undefined) return begin(deps, pass, drained, BEGUN);
  if (drain?.state === 'running') {
    if (attempt.isSilent !== isUnreachable(node)) drains.supersede(uid, 'its Node has changed');
    if (attempt.progress !== undefined) attempt.report = reportOf(attempt.progress);
    return waitsFor(pass, node, attempt.report, DELETION_RECHECK_MS);
  }
  if (drain !== undefined) {
    if (isEmpty(drain, attempt, node)) return reportEmpty(pass, node);
    const { restMs, report } = restAfter(drain);
    drains.rest(uid, drain.settledAtMs + restMs);
    attempt.report = report;
  }
  if (attempt.isSuperseded || attempt.nodeUID !== node.metadata.uid) return begin(deps, pass, drained, ONCE_MORE);
  const restMs = (attempt.retryAtMs ?? 0) - clock.monotonicMs();
  if (restMs <= 0) return begin(deps, pass, drained, attempt.report);
  pass.notes.alsoAfter(restMs, 'the next drain retry');
  return waitsFor(pass, node, attempt.report);
}

function begin(deps: Deps, pass: MachinePass, drained: DrainedNode, report: DrainReport): StepResult {
  const { key, machine } = pass;
  const { node } = drained;
  const attempt: NodeDrain = {
    owner: { uid: machine.metadata.uid, key, account: undefined },
    nodeUID: node.metadata.uid,
    isSilent: isUnreachable(node),
    report,
    progress: undefined,
    isSuperseded: false,
  };
  deps.drains.begin(attempt, requestOf(deps, pass, drained));
  return waitsFor(pass, node, report, DELETION_RECHECK_MS);
}

function waitsFor(pass: MachinePass, { metadata }: Node, { text, event }: DrainReport, againMs?: number): StepResult {
  return waits(pass, DRAINING, `Draining Node ${metadata.name}${text}`, {
    ...(againMs !== undefined && { againMs }),
    event,
  });
}

function requestOf({ rules, clock }: Deps, pass: MachinePass, { target, node, leftMs }: DrainedNode): DrainRequest {
  const { name: nodeName, uid: nodeUID } = node.metadata;
  return {
    target,
    nodeName,
    nodeUID,
    barrier: 'cordon',
    rules: (signal) => rules.of(drainedMachine(pass), target, signal),
    force: false,
    deadlineMs: clock.now() + (leftMs ?? DRAIN_ROUND_MS),
    // A budget is respected for as long as the Machine says, and no Pod is deleted instead.
    maxEvictRetries: Number.MAX_SAFE_INTEGER,
    pvDetachTimeoutMs: DRAIN_ROUND_MS,
    pvReattachTimeoutMs: DELETION_RECHECK_MS,
    // The next step waits for volumes, for as long as the Machine says.
    isVolumeBlind: true,
    isNodeSilent: async (signal) => isUnreachable(node) && (await isSilentNow(target, nodeName, signal)),
  };
}

/** Asks the API server: to take Pods for gone that may run is not to follow from a cache that is late. Throws ApiError. */
async function isSilentNow({ reader }: Target, name: string, signal: AbortSignal): Promise<boolean> {
  const node = await reader.get(nodes, { name }, { signal }).catch(ignoreNotFound);
  return node !== undefined && isUnreachable(node);
}

/**
 * How long a drain rests that did not empty the Node, and what is reported of it. Each pass wakes the next by what it writes, so that one that fails
 * at once, or a Node that somebody uncordons whenever it is cordoned, would be begun again and again without that. What a closed gate ended
 * continues by itself.
 */
function restAfter(end: Ended<DrainOutcome>): { readonly restMs: number; readonly report: DrainReport } {
  if (end.state === 'failed') {
    const why = messageOf(end.error);
    if (end.error instanceof GateClosedError) return { restMs: SOON_MS, report: { text: `: ${why}` } };
    const event = { type: 'Warning', reason: 'DrainBlocked', why } as const;
    return { restMs: DELETION_RECHECK_MS, report: { text: `: ${why}`, event } };
  }
  switch (end.result.kind) {
    case 'incomplete':
      return { restMs: DELETION_RECHECK_MS, report: reportOf(end.result.progress) };
    case 'node-gone':
      return { restMs: SOON_MS, report: { text: ': it no longer exists' } };
    case 'drained':
      return { restMs: SOON_MS, report: ONCE_MORE };
  }
}

/** Whether a drain that has ended has emptied the Node as it is now. */
function isEmpty(end: Ended<DrainOutcome>, { nodeUID, isSilent }: NodeDrain, node: Node): boolean {
  if (end.state === 'failed' || end.result.kind !== 'drained' || node.metadata.uid !== nodeUID) return false;
  return node.spec?.unschedulable === true && (!isSilent || isUnreachable(node));
}

/** Notes once that the Node is drained: not while what comes after it is tried again. */
function reportEmpty(pass: MachinePass, { metadata: { name } }: Node): StepResult {
  const { status } = pass.observed;
  pass.older.push(older(SUCCEEDED, 'True'));
  const isKnown =
    status?.deletion?.waitForNodeVolumeDetachStartTime !== undefined ||
    conditionOf(status?.conditions, 'Deleting')?.reason === OF_INFRASTRUCTURE;
  if (!isKnown)
    pass.notes.record({ type: 'Normal', reason: 'SuccessfulDrainNode', message: `Node ${name} is drained` });
  return next;
}

function reportOf(progress: DrainProgress): DrainReport {
  return { text: `: ${describeRemainingPods(progress)}`, event: eventOf(progress) };
}

/** How many Pods are left, and what one of them waits for: `1 Pod is left; ns/a (waits for pods that go first)`. */
export function describeRemainingPods(progress: DrainProgress): string {
  const { remainingPods } = progress;
  const left = remainingPods === 1 ? '1 Pod is left' : `${remainingPods} Pods remain`;
  return [left, mainWait(progress)].filter((part) => part !== undefined).join('; ');
}

/** Pods that only take the time that they were given are no news. */
function eventOf(progress: DrainProgress): DeletionWait['event'] {
  const why = mainHold(progress);
  return why === undefined
    ? undefined
    : { type: isBlocked(progress) ? 'Warning' : 'Normal', reason: 'DrainBlocked', why };
}
