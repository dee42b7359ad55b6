import { REVISION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { rolloutOf, troublesOf } from '../../../pkg/fleet/rollout.ts';
import { CommandError } from '../command-error.ts';

/** The progress of a rollout, in kubectl's words. */
export interface RolloutStatus {
  readonly text: string;
  readonly isDone: boolean;
  /** What keeps it from being done, as far as the controllers know, in one line. */
  readonly trouble?: string;
}

/**
 * The progress of the rollout of `deployment`. Throws CommandError when it has exceeded its progress deadline, and when it is
 * another revision than the requested one (0: any).
 */
export function rolloutStatus(deployment: MachineDeployment, revision: number): RolloutStatus {
  requireRevision(deployment, revision);
  const { state, text } = rolloutOf(deployment);
  if (state === 'late') throw new CommandError(text);
  if (state !== 'waiting') return { text, isDone: state === 'done' };
  const trouble = troublesOf(deployment)
    .map((one) => one.text)
    .join('; ');
  return {
    text: `Waiting for machine deployment "${deployment.metadata.name}" rollout to finish: ${text}...`,
    isDone: false,
    ...(trouble === '' ? {} : { trouble }),
  };
}

function requireRevision({ metadata }: MachineDeployment, revision: number): void {
  const running = Number(metadata.annotations?.[REVISION_ANNOTATION] ?? 0);
  if (revision > 0 && running !== revision) {
    throw new CommandError(`desired revision (${revision}) is different from the running revision (${running})`);
  }
}
