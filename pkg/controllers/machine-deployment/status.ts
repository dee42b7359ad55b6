import type { MachineSummary } from '../../apis/machine/v1alpha1/machine.ts';
import type {
  MachineDeployment,
  MachineDeploymentCondition,
  MachineDeploymentStatus,
} from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { fromTimestamp, toTimestamp } from '../../base/clock/clock.ts';
import { statusPatch } from '../../kube/client/patch.ts';
import { withoutCondition, conditionOf, dated, withCondition } from '../../work/reconcile/conditions.ts';
import { next } from '../../work/reconcile/result.ts';
import { NODE_SYNC_REFUSED, nodeSyncRefusal } from '../machine-facts/node-refusal.ts';
import { REPLACEMENT_HELD, replacementHold } from '../machine-facts/replacement-held-condition.ts';
import { CHANGE_REFUSED } from '../replicas/events.ts';
import { countMachines, LISTED_FAILED_MACHINES, type MachineCounts } from '../replicas/machine-state.ts';
import { INVALID_ANNOTATION, invalidAnnotations } from '../replicas/invalid-annotations.ts';
import { statusChange } from '../replicas/status-change.ts';
import type { Collaborators, DeploymentPass, DeploymentStep } from './step.ts';
import { selectsAll } from './events.ts';
import { refusedCleanUp } from './sets/cleanup.ts';
import { maintenanceHold } from './rollout/maintenance-hold.ts';
import {
  creationFailureOf,
  initialProgressOf,
  maintenanceProgress,
  orderProgress,
  pauseProgress,
  rolloutProgressOf,
  type ProgressingUpdate,
} from './rollout/progressing-condition.ts';
import { observeDeployment, type Observed } from './observed.ts';
import { leastAvailable, rolloutLimitsOf } from '../replicas/limits.ts';

type Deps = Pick<Collaborators, 'machineSets' | 'machines' | 'recorder' | 'clock' | 'statuses' | 'changes'>;

export const status = ({ statuses, recorder, ...deps }: Deps): DeploymentStep => ({
  name: 'status',
  async run(pass) {
    const { key, object, invalid, unsupported, isCutShort = false } = pass;
    pass.refusal ??= refusedCleanUp(deps, pass.observed);
    const refusal = statuses.failureOf(key, pass.refusal)?.text;
    const failed = statuses.failureOf(key, creationFailureOf(pass.announced), 'creation', 'Progressing');
    if (failed !== undefined) pass.announced &&= { ...pass.announced, message: failed.text };
    const nowMs = deps.clock.now();
    const patchOf = (deployment: MachineDeployment) => {
      const observed = observeDeployment(deps, deployment, pass.observed);
      const { newSet, oldSets, machinesOf } = observed;
      const change = statusChange(
        deployment.status,
        deploymentStatusOf({
          deployment,
          observedGeneration: (isCutShort ? deployment.status?.observedGeneration : object.metadata.generation) ?? 0,
          newSet,
          oldSets,
          machinesOf,
          collisionCount: deployment.status?.collisionCount,
          invalid,
          unsupported,
          isCutShort,
          refusal,
          nowMs,
          progress: (counts) => progressOf(pass, observed, counts, nowMs),
        }),
      );
      return change && statusPatch(deployment, change);
    };
    const isNews = await statuses.write(pass, patchOf, invalid ?? unsupported?.message);
    if (isNews && hasEmptySelector(object)) recorder.event(selectsAll(object));
    return next;
  },
});

function progressOf(
  { announced, isRollout = false, waitsFor }: DeploymentPass,
  observed: Observed,
  counts: MachineDeploymentStatus,
  nowMs: number,
): ProgressingUpdate | undefined {
  const { deployment, newSet } = observed;
  const pause = isBeingDeleted(deployment) ? undefined : pauseProgress(deployment);
  if (pause !== undefined) return pause;
  const order = waitsFor !== undefined || isRollout ? orderProgress(deployment, waitsFor) : undefined;
  if (announced !== undefined || order !== undefined) return announced ?? order;
  if (!isRollout) return undefined;
  const name = newSet?.metadata.name;
  const hold = maintenanceHold(observed);
  if (hold !== undefined) return maintenanceProgress(deployment, counts, hold);
  const progress = rolloutProgressOf(deployment, counts, name, nowMs);
  const told = progress ?? maintenanceProgress(deployment, counts, undefined);
  return told ?? (name === undefined ? undefined : initialProgressOf(deployment, counts, name));
}

function hasEmptySelector({ spec }: MachineDeployment): boolean {
  const { matchLabels, matchExpressions } = spec.selector ?? { matchLabels: { absent: '' } };
  return Object.keys(matchLabels ?? {}).length + (matchExpressions ?? []).length === 0;
}

const NOT_SUPPORTED = 'StrategyNotSupported';

/** Why a MachineDeployment is obeyed in part only; `message` names the field and the remedy. */
export interface Unsupported {
  readonly reason: typeof NOT_SUPPORTED;
  readonly message: string;
}

export interface MachineDeploymentStatusFacts extends Pick<Observed, 'newSet' | 'oldSets' | 'machinesOf'> {
  readonly deployment: MachineDeployment;
  readonly observedGeneration: number;
  readonly collisionCount: number | null | undefined;
  /** Why the spec cannot be obeyed. */
  readonly invalid: string | undefined;
  /** Why the spec is obeyed in part only. */
  readonly unsupported: Unsupported | undefined;
  /** The work ended before it came to tell whether the spec is obeyed in part only. */
  readonly isCutShort?: boolean;
  /** A change that was rejected. */
  readonly refusal?: string | undefined;
  readonly nowMs: number;
  /** What is said of the progress, given the counts. */
  progress(counts: MachineDeploymentStatus): ProgressingUpdate | undefined;
}

/** The status as it should be. Conditions of other writers are kept. */
export function deploymentStatusOf(facts: MachineDeploymentStatusFacts): MachineDeploymentStatus {
  const { newSet, oldSets, machinesOf, deployment } = facts;
  const sets = newSet === undefined ? oldSets : [newSet, ...oldSets];
  const counted = sets.map((set) => countMachines(machinesOf(set)));
  const sum = (count: keyof MachineCounts): number => counted.reduce((total, counts) => total + counts[count], 0);
  const wanted = sets.reduce((total, { spec }) => total + (spec.replicas ?? 0), 0);
  const available = sum('available');

  const counts: MachineDeploymentStatus = {
    observedGeneration: facts.observedGeneration,
    replicas: sum('replicas'),
    updatedReplicas: newSet === undefined ? 0 : machinesOf(newSet).length,
    readyReplicas: sum('ready'),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, wanted - available),
    preservedFailedReplicas: sum('preservedFailed'),
    collisionCount: facts.collisionCount ?? null,
    failedMachines: newestFailures(sets.flatMap(({ status: its }) => its?.failedMachines ?? [])),
  };
  return { ...counts, conditions: conditionsOf(deployment, counts, sets, facts) };
}

/** As the sets list them; when they are too many, the newest of all sets. */
function newestFailures(failures: MachineSummary[]): MachineSummary[] {
  if (failures.length <= LISTED_FAILED_MACHINES) return failures;
  const failedMs = ({ lastOperation }: MachineSummary): number => fromTimestamp(lastOperation?.lastUpdateTime) ?? 0;
  return failures.toSorted((a, b) => failedMs(b) - failedMs(a)).slice(0, LISTED_FAILED_MACHINES);
}

function conditionsOf(
  deployment: MachineDeployment,
  counts: MachineDeploymentStatus,
  sets: readonly MachineSet[],
  facts: MachineDeploymentStatusFacts,
): MachineDeploymentCondition[] {
  let conditions = deployment.status?.conditions ?? [];
  const set = (
    type: string,
    condition: Omit<MachineDeploymentCondition, 'type'> | undefined,
    refresh = condition?.message !== conditionOf(conditions, type)?.message,
  ): void => {
    conditions = changed(conditions, type, condition, refresh, facts.nowMs);
  };
  const { machinesOf, invalid, unsupported } = facts;
  const wrong = invalidAnnotations('MachineDeployment', deployment);
  set(INVALID_ANNOTATION, wrong === undefined ? undefined : { status: 'True', reason: 'UnknownValue', message: wrong });
  if (invalid !== undefined) {
    set('InvalidSpec', { status: 'True', reason: 'ValidationFailed', message: invalid });
    return conditions;
  }
  const isCorrected = ['RollingUpdate', 'Recreate'].includes(deployment.spec.strategy?.type ?? '');
  const isUntold =
    facts.isCutShort === true && !isCorrected && conditionOf(conditions, 'InvalidSpec')?.reason === NOT_SUPPORTED;
  if (!isUntold) set('InvalidSpec', unsupported && { status: 'True', ...unsupported });
  set('Available', availability(deployment, counts), false);
  const progress = facts.progress(counts);
  if (progress !== undefined) {
    const { refresh, ...condition } = progress;
    set('Progressing', condition, refresh);
    // Of a creation that goes on failing the times tell since when, and the message why it does now.
    const told = conditionOf(conditions, 'Progressing');
    const message = creationFailureOf(progress);
    if (told !== undefined && message !== undefined) conditions = withCondition(conditions, { ...told, message });
  }
  set('ReplicaFailure', replicaFailure(sets, facts));
  const machines = sets.flatMap(machinesOf);
  const held = replacementHold(machines);
  set(REPLACEMENT_HELD, held && { status: 'True', ...held });
  const refused = nodeSyncRefusal(machines);
  set(NODE_SYNC_REFUSED, refused && { status: 'True', ...refused });
  return conditions;
}

function availability(
  { spec }: MachineDeployment,
  { availableReplicas = 0, preservedFailedReplicas = 0 }: MachineDeploymentStatus,
): Omit<MachineDeploymentCondition, 'type'> {
  return availableReplicas >= leastAvailable(rolloutLimitsOf(spec), preservedFailedReplicas)
    ? { status: 'True', reason: 'MinimumReplicasAvailable', message: 'Deployment has minimum availability.' }
    : {
        status: 'False',
        reason: 'MinimumReplicasUnavailable',
        message: 'Deployment does not have minimum availability.',
      };
}

/** What ends the work; otherwise the failure of the new set, or of the first set that has one; otherwise a refusal that delays nothing. */
function replicaFailure(
  sets: readonly MachineSet[],
  { refusal, isCutShort = false }: Pick<MachineDeploymentStatusFacts, 'refusal' | 'isCutShort'>,
): Omit<MachineDeploymentCondition, 'type'> | undefined {
  const failures = sets.map(({ status: its }) => conditionOf(its?.machineSetCondition, 'ReplicaFailure'));
  const failure = failures.find((condition) => condition !== undefined);
  if (refusal !== undefined && (isCutShort || failure === undefined)) {
    return { status: 'True', reason: CHANGE_REFUSED, message: refusal };
  }
  if (failure === undefined) return undefined;
  const { reason, message } = failure;
  return {
    status: failure.status,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
}

/** Equal status and reason change nothing, unless `refresh`; an equal status keeps its lastTransitionTime. */
function changed(
  conditions: readonly MachineDeploymentCondition[],
  type: string,
  wanted: Omit<MachineDeploymentCondition, 'type'> | undefined,
  refresh: boolean,
  nowMs: number,
): MachineDeploymentCondition[] {
  const before = conditionOf(conditions, type);
  if (wanted === undefined) return withoutCondition(conditions, type);
  if (before?.status === wanted.status && before.reason === wanted.reason && !refresh) return [...conditions];

  const current = { type, ...wanted, lastUpdateTime: toTimestamp(nowMs) };
  return withCondition(conditions, dated(current, conditions, nowMs));
}
