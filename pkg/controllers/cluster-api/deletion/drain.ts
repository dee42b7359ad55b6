import { EXCLUDE_DRAIN_ANNOTATION } from '../../../apis/cluster-api/keys.ts';
import type { Node } from '../../../apis/wire.ts';
import type { DrainProgress, DrainRequest } from '../../../drain/drain.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import { ignoreNotFound } from '../../../kube/errors.ts';
import { nodes } from '../../../kube/resource.ts';
import { conditionOf } from '../../../reconcile/conditions.ts';
import { next } from '../../../reconcile/result.ts';
import type { Target } from '../../../targets/targets.ts';
import {
  targetOf,
  type EndedDrain,
  type MachinePass,
  type ClusterAPIMachineStep,
  type StepDeps,
} from '../machine-pass.ts';
import { older } from '../older-conditions.ts';
import { describeRemainingPods, eventOf, describeDrainEnd, type EndedActivity } from './drain-text.ts';
import { drainedMachine, isUnreachable, isTooLate } from './of-node.ts';
import { awaitCluster, mayHaveNode, type UnreachedStep } from './reachable.ts';
import {
  isOver,
  DELETION_RECHECK_MS,
  DRAINING,
  notedWhileWaiting,
  OF_INFRASTRUCTURE,
  lastDeletingCondition,
  started,
  timeLeftMs,
  waits,
} from './waits.ts';

/** When to go on after the gate was closed, a Node has gone that the cache still shows, or somebody has uncordoned one. */
const SOON_MS = 5_000;
/** A drain without a timeout is begun anew after so long, so that nothing of it is forgotten. */
const DRAIN_ROUND_MS = 600_000;

const UNREACHED: UnreachedStep = {
  reason: DRAINING,
  startTime: 'nodeDrainStartTime',
  timeout: 'nodeDrainTimeoutSeconds',
};

/** Condition of the older contract. */
const SUCCEEDED = 'DrainingSucceeded';

/** A drain that runs. */
interface RunningDrain {
  /** Whether it takes the kubelet for silent. */
  readonly isSilent: boolean;
  readonly overtaken: AbortController;
  progress?: DrainProgress;
}

/** Drains the Node, and waits until it is empty, or its timeout is over. One whose kubelet falls silent, or answers again, is drained anew. */
export function drainStep({
  drains,
  drain,
  rules,
  clock,
}: Pick<StepDeps, 'drains' | 'drain' | 'rules' | 'clock'>): ClusterAPIMachineStep {
  /** By the UID of their Machines. */
  const running = new Map<string, RunningDrain>();
  const begin = (pass: MachinePass, target: Target, node: Node, leftMs: number | undefined): void => {
    const { uid } = pass.machine.metadata;
    const { name: nodeName, uid: nodeUID } = node.metadata;
    const request: Omit<DrainRequest, 'isNodeSilent'> = {
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
      pvReattachTimeoutMs: DELETION_RECHECK_MS,
      // The next step waits for volumes, for as long as the Machine says.
      isVolumeBlind: true,
    };
    drains.startOrGet({ uid, key: pass.key, account: undefined }, 'drain', async (signal) => {
      const isNodeSilent = isUnreachable(node) && (await isSilentNow(target, nodeName, signal));
      const own: RunningDrain = { isSilent: isNodeSilent, overtaken: new AbortController() };
      running.set(uid, own);
      const { signal: overtaken } = own.overtaken;
      try {
        const until = AbortSignal.any([signal, overtaken]);
        const outcome = await drain({ ...request, isNodeSilent }, until, (progress) => {
          own.progress = progress;
        });
        return { nodeUID, isNodeSilent, outcome };
      } catch (err) {
        if (signal.aborted || !overtaken.aborted) throw err;
        return { nodeUID, isNodeSilent, outcome: { kind: 'overtaken' } };
      } finally {
        running.delete(uid);
      }
    });
  };
  const step: ClusterAPIMachineStep = {
    name: 'drain',
    run(pass) {
      const { machine } = pass;
      const { uid, annotations } = machine.metadata;
      const target = targetOf(pass);
      if (annotations?.[EXCLUDE_DRAIN_ANNOTATION] !== undefined || isTooLate(pass) || !mayHaveNode(pass)) return next;
      const seconds = machine.spec.deletion?.nodeDrainTimeoutSeconds;
      const since = started(pass, 'nodeDrainStartTime', clock.now());
      const activity = drains.get(uid, 'drain');
      if (isOver(since, seconds, clock.now())) {
        drains.abort(uid, 'drain', 'its timeout expired');
        if (activity?.state !== 'running') drains.forget(uid, 'drain');
        return next;
      }
      if (pass.node.kind === 'unreachable') return awaitCluster(pass, pass.node.why, UNREACHED, clock.now());
      if (pass.node.kind !== 'found' || target === undefined) return next;
      const { node } = pass.node;
      const { name } = node.metadata;
      const leftMs = seconds === undefined || seconds === 0 ? undefined : timeLeftMs(since, seconds, clock.now());
      if (leftMs !== undefined) pass.notes.alsoAfter(leftMs, 'the drain timeout');
      if (activity?.state === 'running') {
        const own = running.get(uid);
        // What it has begun goes on in the cluster; it ends, and the next one takes up what there is.
        if (own !== undefined && own.isSilent !== isUnreachable(node))
          own.overtaken.abort(new Error('its Node has changed'));
        const progress = own?.progress;
        const said =
          progress === undefined
            ? reportedBefore(pass, name)
            : `Draining Node ${name}: ${describeRemainingPods(progress)}`;
        const event = progress && eventOf(progress);
        return waits(pass, DRAINING, said, { againMs: DELETION_RECHECK_MS, event });
      }
      const stands = activity?.state === 'done' ? standOf(activity.result, node) : undefined;
      if (stands === 'empty') {
        pass.older.push(older(SUCCEEDED, 'True'));
        if (!isKnownToBeDrained(pass)) {
          pass.notes.record({ type: 'Normal', reason: 'SuccessfulDrainNode', message: `Node ${name} is drained` });
        }
        return next;
      }
      if (activity !== undefined) {
        const restMs = activity.settledAtMs + restMsAfter(activity, node) - clock.monotonicMs();
        if (restMs > 0) {
          const [why, event] = stands === 'open' ? [ONCE_MORE, undefined] : describeDrainEnd(activity);
          pass.notes.alsoAfter(restMs, 'the next drain retry');
          return waits(pass, DRAINING, `Draining Node ${name}${why}`, { event });
        }
        drains.forget(uid, 'drain');
      }
      begin(pass, target, node, leftMs);
      const said = stands === 'open' ? `Draining Node ${name}${ONCE_MORE}` : reportedBefore(pass, name);
      return waits(pass, DRAINING, said, { againMs: DELETION_RECHECK_MS });
    },
  };
  return notedWhileWaiting(step, SUCCEEDED, 'Draining');
}

/** Why a Node is drained that was drained. */
const ONCE_MORE = ' again: the Node re-registered or was uncordoned, or its kubelet responds again';

/** Asks the API server: to take Pods for gone that may run is not to follow from a cache that is late. Throws ApiError. */
async function isSilentNow({ reader }: Target, name: string, signal: AbortSignal): Promise<boolean> {
  const node = await reader.get(nodes, { name }, { signal }).catch(ignoreNotFound);
  return node !== undefined && isUnreachable(node);
}

/**
 * How long a drain rests that did not empty the Node. Each pass wakes the next by what it writes, so that one that fails at once, or a Node that
 * somebody uncordons whenever it is cordoned, would be begun again and again without that.
 */
function restMsAfter(activity: EndedActivity, node: Node): number {
  if (activity.state === 'failed') return activity.error instanceof GateClosedError ? SOON_MS : DELETION_RECHECK_MS;
  const { nodeUID, outcome } = activity.result;
  if (outcome.kind === 'overtaken') return 0;
  switch (standOf(activity.result, node)) {
    case 'open':
      return node.metadata.uid === nodeUID ? SOON_MS : 0;
    case 'gone':
      return SOON_MS;
    default:
      return DELETION_RECHECK_MS;
  }
}

/** A drain that has only just begun has no news: what was said of this Node last stands, so that it is not told again in each round. */
function reportedBefore(pass: MachinePass, name: string): string {
  const text = `Draining Node ${name}`;
  const said = lastDeletingCondition(pass);
  if (said?.reason !== DRAINING) return text;
  return [':', ONCE_MORE].some((more) => said.message.startsWith(`${text}${more}`)) ? said.message : text;
}

/** Whether that was told, and what comes after it is tried again. */
function isKnownToBeDrained({ observed }: MachinePass): boolean {
  if (observed.status?.deletion?.waitForNodeVolumeDetachStartTime !== undefined) return true;
  return conditionOf(observed.status?.conditions, 'Deleting')?.reason === OF_INFRASTRUCTURE;
}

/**
 * What a drain that has ended says of the Node as it is now. empty: it is drained, and takes no Pods. open: it was drained, and another has
 * its name since, somebody has uncordoned it, or its kubelet answers again: Pods may be on it. gone: the API server has it no more, and the
 * cache will tell what it has. left: Pods are.
 */
function standOf({ nodeUID, isNodeSilent, outcome }: EndedDrain, node: Node): 'empty' | 'open' | 'gone' | 'left' {
  if (outcome.kind === 'incomplete') return 'left';
  if (outcome.kind === 'overtaken' || node.metadata.uid !== nodeUID) return 'open';
  if (outcome.kind === 'node-gone') return 'gone';
  if (isNodeSilent && !isUnreachable(node)) return 'open';
  return node.spec?.unschedulable === true ? 'empty' : 'open';
}
