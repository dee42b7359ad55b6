import { replicasOf } from '../apis/machine/v1alpha1/defaults.ts';
import { FREEZE_LABEL, UNFREEZE_ANNOTATION } from '../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment, MachineDeploymentStatus } from '../apis/machine/v1alpha1/machine-deployment.ts';
import { isStopped } from '../controllers/replicas/creation-brake.ts';
import { REPLACEMENT_HELD } from '../controllers/machine-facts/replacement-held-condition.ts';
import { progress, trouble, troubleSaid, type Trouble } from './trouble.ts';

export interface Rollout {
  /** `unobserved`: its controller has not seen the latest spec; `late`: the progress deadline has passed. */
  readonly state: 'unobserved' | 'late' | 'waiting' | 'done';
  readonly text: string;
}

export function rolloutOf(deployment: MachineDeployment): Rollout {
  const { metadata, status = {} } = deployment;
  if ((metadata.generation ?? 0) > (status.observedGeneration ?? 0)) {
    return { state: 'unobserved', text: 'Waiting for machine deployment spec update to be observed...' };
  }
  const progressing = status.conditions?.find(({ type }) => type === 'Progressing');
  if (progressing?.reason === 'ProgressDeadlineExceeded') {
    return { state: 'late', text: `machine deployment "${metadata.name}" exceeded its progress deadline` };
  }
  const what = remaining(deployment);
  return what === undefined
    ? { state: 'done', text: `machine deployment "${metadata.name}" successfully rolled out` }
    : { state: 'waiting', text: what };
}

/** Conditions that tell of trouble when they are True. */
const TROUBLES: ReadonlySet<string> = new Set(['InvalidSpec', 'ReplicaFailure', REPLACEMENT_HELD]);
/** The reasons of condition Progressing that the counts do not tell. */
const UNTOLD: ReadonlySet<string> = new Set([
  'MachineSetCreateError',
  'WaitingForUpdateOrder',
  'WaitingForMaintenance',
]);

/** What keeps a MachineDeployment from being as asked for. The machine that is named stays the same as long as it fails. */
export function troublesOf(deployment: MachineDeployment): readonly Trouble[] {
  const { conditions, failedMachines }: MachineDeploymentStatus = deployment.status ?? {};
  // A looser schema stores null.
  const told = (conditions ?? [])
    .filter(({ type, status, reason = '' }) =>
      type === 'Progressing' ? UNTOLD.has(reason) : TROUBLES.has(type) && status === 'True',
    )
    .map(({ type, reason = '', message = '' }) => trouble(type === 'Progressing' ? reason : type, message));
  const freeze = freezeOf(deployment);
  if (freeze !== undefined) told.unshift(freeze);
  if (deployment.spec.paused === true)
    told.unshift(trouble('Paused', 'nothing is rolled out until the rollout is resumed'));
  const failed = (failedMachines ?? []).toSorted((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1));
  const [first] = failed;
  if (first !== undefined) {
    const count = failed.length === 1 ? '1 machine is failing:' : `${failed.length} machines are failing, for example`;
    const why = first.lastOperation?.description ?? 'for an unknown reason';
    told.push(troubleSaid('MachinesFailing', `${count} ${first.name}: ${why}`));
  }
  return told;
}

/** That it is frozen, since when, why, and what ends it; undefined when it is not. */
function freezeOf({ metadata, status }: MachineDeployment): Trouble | undefined {
  const condition = status?.conditions?.find((one) => one.type === 'Frozen' && one.status === 'True');
  if (condition === undefined && metadata.labels?.[FREEZE_LABEL] !== 'True') return undefined;
  const { lastTransitionTime, message = `it has label ${FREEZE_LABEL}=True` } = condition ?? {};
  const since = lastTransitionTime === undefined ? '' : ` since ${lastTransitionTime}`;
  if (isStopped(status?.conditions)) return troubleSaid('Frozen', `Frozen${since}: ${message}`); // says itself what ends it
  const end = `it is unfrozen when there are few enough machines, or by annotation ${UNFREEZE_ANNOTATION}=True on this MachineDeployment`;
  return troubleSaid('Frozen', `Frozen${since}, no machines are created: ${message}; ${end}`);
}

/** How far it is, as one of its troubles. */
export function progressOf(deployment: MachineDeployment): Trouble {
  const { state, text } = rolloutOf(deployment);
  if (state === 'late') return trouble('ProgressDeadlineExceeded', text);
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = deployment.status ?? {};
  const wanted = replicasOf(deployment);
  // All machines that there are have the newest template.
  if (state === 'waiting' && replicas === updatedReplicas) {
    const what =
      availableReplicas < wanted
        ? `${availableReplicas} of ${wanted} replicas are available`
        : `${replicas - wanted} replicas are pending termination`;
    return progress('Progressing', what);
  }
  return progress('RollingOut', text);
}

function remaining(deployment: MachineDeployment): string | undefined {
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = deployment.status ?? {};
  const wanted = replicasOf(deployment);
  if (updatedReplicas < wanted) return `${updatedReplicas} out of ${wanted} new replicas have been updated`;
  if (replicas > updatedReplicas) return `${replicas - updatedReplicas} old replicas are pending termination`;
  if (availableReplicas < updatedReplicas) {
    return `${availableReplicas} of ${updatedReplicas} updated replicas are available`;
  }
  return undefined;
}
