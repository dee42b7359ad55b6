import { replicasOf } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import { REVISION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { RolloutError } from './error.ts';

/** Where a rollout stands, in kubectl's words. */
export interface RolloutStatus {
  readonly text: string;
  readonly isDone: boolean;
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
  return what === undefined
    ? { text: `machine deployment "${metadata.name}" successfully rolled out`, isDone: true }
    : { text: `Waiting for machine deployment "${metadata.name}" rollout to finish: ${what}...`, isDone: false };
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
