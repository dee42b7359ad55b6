import { replicasOf } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';

const LONGEST = 40;

/** How far a rollout is, in a line of at most `columns`: `█` is an updated machine that is available, `▒` one that is not yet. */
export function rolloutBar(deployment: MachineDeployment, columns: number): string {
  const { updatedReplicas = 0, replicas = 0, availableReplicas = 0 } = deployment.status ?? {};
  const wanted = replicasOf(deployment);
  const old = Math.max(0, replicas - updatedReplicas);
  // Those that are available may be old ones: only so many can be new ones for sure.
  const available = Math.max(0, Math.min(updatedReplicas, availableReplicas - old));
  const counts = [
    `${updatedReplicas} of ${wanted} updated`,
    `${availableReplicas} available`,
    ...(old === 0 ? [] : [`${old} old`]),
  ].join(', ');
  const width = Math.min(LONGEST, columns - counts.length - 3);
  const of = (count: number): number => (wanted === 0 ? width : Math.round((width * Math.min(count, wanted)) / wanted));
  if (width < 5) return counts.slice(0, Math.max(0, columns));
  const full = of(available);
  const half = of(updatedReplicas) - full;
  return `${'█'.repeat(full)}${'▒'.repeat(half)}${'░'.repeat(width - full - half)}  ${counts}`;
}
