import { replicasOf } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import { REVISION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type {
  MachineDeployment,
  MachineDeploymentStatus,
} from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { REPLACEMENT_HELD } from '../../../pkg/controllers/machine/replacement-hold.ts';
import { RolloutError } from './error.ts';

/** Where a rollout stands, in kubectl's words. */
export interface RolloutStatus {
  readonly text: string;
  readonly isDone: boolean;
  /** What keeps it from being done, as far as the controllers know. */
  readonly trouble?: string;
}

/**
 * Where the rollout of `deployment` stands. Throws RolloutError when it has exceeded its progress deadline, and when it is
 * another revision than the one asked for (0 asks for none).
 */
export function rolloutStatus(deployment: MachineDeployment, revision: number): RolloutStatus {
  const { metadata, status = {} } = deployment;
  requireRevision(deployment, revision);
  if ((metadata.generation ?? 0) > (status.observedGeneration ?? 0)) {
    return { text: 'Waiting for machine deployment spec update to be observed...', isDone: false };
  }
  const progressing = status.conditions?.find(({ type }) => type === 'Progressing');
  if (progressing?.reason === 'ProgressDeadlineExceeded') {
    throw new RolloutError(`machine deployment "${metadata.name}" exceeded its progress deadline`);
  }
  const what = remaining(deployment);
  if (what === undefined) {
    return { text: `machine deployment "${metadata.name}" successfully rolled out`, isDone: true };
  }
  const trouble = troubleOf(status);
  return {
    text: `Waiting for machine deployment "${metadata.name}" rollout to finish: ${what}...`,
    isDone: false,
    ...(trouble === '' ? {} : { trouble }),
  };
}

/** Conditions that tell of trouble when they are True; those of the progress are told by the counts. */
const TROUBLES: ReadonlySet<string> = new Set(['InvalidSpec', 'ReplicaFailure', REPLACEMENT_HELD]);

/** In one line; '' when there is none. The machine that is named stays the same as long as it fails. */
function troubleOf({ conditions, failedMachines }: MachineDeploymentStatus): string {
  const told = (conditions ?? [])
    .filter(({ type, status }) => TROUBLES.has(type) && status === 'True')
    .map(({ type, message = '' }) => `${type}: ${message}`);
  const failed = (failedMachines ?? []).toSorted((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1));
  const [first] = failed;
  if (first !== undefined) {
    const count = failed.length === 1 ? '1 machine fails' : `${failed.length} machines fail, for example`;
    told.push(`${count} ${first.name}: ${first.lastOperation?.description ?? 'for an unknown reason'}`);
  }
  return told.join('; ').replaceAll(/\s+/g, ' ');
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

function requireRevision({ metadata }: MachineDeployment, revision: number): void {
  const running = Number(metadata.annotations?.[REVISION_ANNOTATION] ?? 0);
  if (revision > 0 && running !== revision) {
    throw new RolloutError(`desired revision (${revision}) is different from the running revision (${running})`);
  }
}
