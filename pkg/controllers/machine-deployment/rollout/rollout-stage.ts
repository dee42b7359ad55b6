import type { Observed } from '../observed.ts';

/**
 * How far Machines have been moved to another template.
 *
 * | stage    | when                                                                             | the autoscaler may remove Nodes |
 * |----------|----------------------------------------------------------------------------------|---------------------------------|
 * | none     | all are of the present template; or it is paused, and waits for a person         | yes                             |
 * | choosing | the rollout has still to choose which of them go                                 | no                              |
 * | emptying | all that have to go are on their way out, which their drains may hold up for long | yes                             |
 */
export type RolloutStage = 'none' | 'choosing' | 'emptying';

export function rolloutStage({
  deployment,
  newSet,
  facts,
}: Pick<Observed, 'deployment' | 'newSet' | 'facts'>): RolloutStage {
  if (deployment.spec.paused === true) return 'none';
  if (newSet === undefined || facts.oldSets.some(({ size, living }) => size > 0 || living > 0)) return 'choosing';
  return facts.oldSets.some(({ existing }) => existing > 0) ? 'emptying' : 'none';
}
