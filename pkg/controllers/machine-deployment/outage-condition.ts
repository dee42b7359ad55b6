import type { MachineDeploymentCondition } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { toTimestamp } from '../../base/clock/clock.ts';
import { describeBlockingOutages, type Outage } from '../../kube/gate/outage.ts';
import { statusPatch } from '../../kube/client/patch.ts';
import { machineDeployments as deploymentResource } from '../../kube/client/resource.ts';
import { withoutCondition, conditionOf, withCondition, dated } from '../../work/reconcile/conditions.ts';
import type { MachineDeploymentDeps } from './step.ts';

const TYPE = 'APIServerUnreachable';
const REASON = 'NoAnswerToProbes';
/** The control cluster itself may be what does not answer: a worker is not to wait for it. */
const WRITE_TIMEOUT_MS = 5_000;

/**
 * The conditions of a MachineDeployment as they should be while `outages` last: one of type APIServerUnreachable that names the
 * clusters, since when and why; none without an outage. Undefined when they are so already. Others are left alone.
 */
export function conditionsDuring(
  outages: readonly Outage[],
  conditions: readonly MachineDeploymentCondition[],
  nowMs: number,
): MachineDeploymentCondition[] | undefined {
  const before = conditionOf(conditions, TYPE);
  if (outages.length === 0) return before === undefined ? undefined : withoutCondition(conditions, TYPE);

  const message = describeBlockingOutages(outages);
  if (before?.status === 'True' && before.message === message) return undefined;
  const current = { type: TYPE, status: 'True', reason: REASON, message, lastUpdateTime: toTimestamp(nowMs) } as const;
  return withCondition(conditions, dated(current, conditions, nowMs));
}

/**
 * Writes condition APIServerUnreachable, as a report: it passes during an outage. Done before each pass, because what
 * the pass itself would do may be refused. Never touches label or condition of the overshoot safety. Throws ApiError.
 */
export async function showOutage(
  { machineDeployments, writer, clock }: Pick<MachineDeploymentDeps, 'machineDeployments' | 'writer' | 'clock'>,
  key: string,
  outages: readonly Outage[],
  signal: AbortSignal,
): Promise<void> {
  const deployment = machineDeployments.get(key);
  if (deployment === undefined) return;
  const conditions = conditionsDuring(outages, deployment.status?.conditions ?? [], clock.now());
  if (conditions === undefined) return;
  const { namespace = '', name } = deployment.metadata;
  const patch = statusPatch(deployment, { conditions: conditions.length === 0 ? null : conditions });
  const options = { signal, timeoutMs: WRITE_TIMEOUT_MS };
  await writer.patch('report', deploymentResource, { namespace, name }, patch, options);
}
