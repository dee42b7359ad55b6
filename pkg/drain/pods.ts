import type { Pod } from '../apis/wire.ts';
import { controllerOf, keyOf } from '../apis/meta.ts';
import type { Barrier, DrainRequest, PodRule } from './drain.ts';

/** Set by kubelet on the API's picture of a static pod: deleting the picture does not stop the pod. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
/** What cordoning means to the scheduler. */
const CORDON_TAINT = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const;
/** Grace of a pod that does not say; the API server's default. */
const DEFAULT_GRACE_SECONDS = 30;

/**
 * Whether a drain sends this pod away: all but mirror pods and pods of DaemonSets, which would come straight back.
 * Finished, terminating and unmanaged pods and pods with emptyDir volumes go too.
 */
export function isDrained(pod: Pod): boolean {
  if (pod.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) return false;
  return controllerOf(pod)?.kind !== 'DaemonSet';
}

const LEAVES: PodRule = { behavior: 'leaves', order: 0 };

/** Pods that go at the same time: those that are sent away, and those that are only waited for. */
export interface PodTurn {
  readonly leaving: readonly Pod[];
  readonly completing: readonly Pod[];
}

/** The pods that a drain sends away or waits for, in turns: each begins when the one before has ended. */
export function turnsOf(pods: readonly Pod[], ruleOf: (pod: Pod) => PodRule = () => LEAVES): readonly PodTurn[] {
  const concerned = pods.filter(isDrained).map((pod) => ({ pod, rule: ruleOf(pod) }));
  const waiting = concerned.filter(({ rule, pod }) => rule.behavior !== 'completes' || !hasCompleted(pod));
  const byOrder = Map.groupBy(
    waiting.filter(({ rule }) => rule.behavior !== 'stays'),
    ({ rule }) => (rule.behavior === 'leaves' ? rule.order : 0),
  );
  const orders = [...byOrder.keys()].toSorted((a, b) => a - b);
  return orders.map((order) => {
    const turn = byOrder.get(order) ?? [];
    const of = (behavior: PodRule['behavior']): readonly Pod[] =>
      turn.flatMap(({ pod, rule }) => (rule.behavior === behavior ? [pod] : []));
    return { leaving: of('leaves'), completing: of('completes') };
  });
}

export function hasCompleted({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/**
 * Whether this pod has a volume by claim. Generic ephemeral volumes do not count, as in the original: they are not
 * waited for anywhere else.
 */
export function hasClaim(pod: Pod): boolean {
  return claimsOf(pod).length > 0;
}

/** Names of the PersistentVolumeClaims that the pod names, each once. */
export function claimsOf(pod: Pod): readonly string[] {
  const claims = (pod.spec?.volumes ?? []).flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? []);
  return [...new Set(claims)];
}

/** The plan for pods that leave. Within `serial` the highest priority comes first, ties by name. */
export function planDrain(
  pods: readonly Pod[],
  { isVolumeBlind }: Pick<DrainRequest, 'isVolumeBlind'> = {},
): { readonly parallel: readonly Pod[]; readonly serial: readonly Pod[] } {
  const leaving = pods.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  if (isVolumeBlind === true) return { parallel: leaving, serial: [] };
  return {
    parallel: leaving.filter((pod) => !hasClaim(pod)),
    serial: leaving.filter(hasClaim).toSorted((a, b) => priorityOf(b) - priorityOf(a)),
  };
}

/**
 * Whether the scheduler may bind this pod to the node in spite of the barrier. Such a pod is not chased: it might come
 * back forever.
 */
export function toleratesBarrier(pod: Pod, barrier: Barrier): boolean {
  const taint = typeof barrier === 'string' ? CORDON_TAINT : barrier.taint;
  return (pod.spec?.tolerations ?? []).some((toleration) => {
    if (toleration.effect !== undefined && toleration.effect !== '' && toleration.effect !== taint.effect) return false;
    if (toleration.key === undefined || toleration.key === '') return toleration.operator === 'Exists';
    if (toleration.key !== taint.key) return false;
    return toleration.operator === 'Exists' || (toleration.value ?? '') === '';
  });
}

/** How long the pod may take to end once it was asked to, in ms. */
export function graceMsOf(pod: Pod): number {
  const { deletionGracePeriodSeconds } = pod.metadata;
  return (deletionGracePeriodSeconds ?? pod.spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
}

function priorityOf(pod: Pod): number {
  return pod.spec?.priority ?? 0;
}
