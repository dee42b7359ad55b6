import { refOf } from '../../../apis/meta.ts';
import { rollbackRevisionOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { TEMPLATE_HASH_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { equalTemplate } from '../../../apis/machine/v1alpha1/template-equality.ts';
import { mergePatchIfUnchanged, type MergePatch } from '../../../kube/client/patch.ts';
import { isDenial } from '../../../kube/client/errors.ts';
import { machineDeployments } from '../../../kube/client/resource.ts';
import { replacing } from '../../../kube/client/merge-change.ts';
import { next, stop, type StepResult } from '../../../work/reconcile/result.ts';
import { isFirstFailure, isWorthReporting } from '../../machine-facts/node-refusal.ts';
import { describeRefusedChange } from '../../replicas/refused-change.ts';
import { revisionNotFound, rolledBack, templateUnchanged } from '../events.ts';
import { isTaintRecorded, recordTaint } from '../node-marks/rollout-node-marks.ts';
import type { Observed } from '../observed.ts';
import type { Collaborators, DeploymentPass, DeploymentStep, MachineDeploymentDeps } from '../step.ts';
import { rolledBackAnnotations } from '../sets/annotation-copies.ts';
import { rolledBackProgress } from './progressing-condition.ts';
import { orderHoldOf, type OrderDeps } from './update-order.ts';
import { isChangedCopy } from '../sets/changed-copy.ts';
import { revisionOf } from '../sets/revision.ts';
import { AGAIN, createSet, type RolloutDeps } from './rollout.ts';
import { EMPTY_SET } from '../sets/set-facts.ts';
import { grownSize } from '../scaling/size-rule.ts';

/** The set of `revision`; of revision 0 the last one before the present template, which may have no set yet, or several. */
export function rollbackTarget(
  { deployment, newSet, oldSets }: Pick<Observed, 'deployment' | 'newSet' | 'oldSets'>,
  revision: number,
): MachineSet | undefined {
  const sets = newSet === undefined || revision === 0 ? oldSets : [newSet, ...oldSets];
  const latestFirst = sets.filter((set) => revisionOf(set) > 0).toSorted((a, b) => revisionOf(b) - revisionOf(a));
  return revision === 0
    ? latestFirst.find((set) => isOtherTemplate(deployment, set))
    : latestFirst.find((set) => revisionOf(set) === revision);
}

/** Whether its template is another one, and none that the present or an earlier one was made on the creation of a set. */
function isOtherTemplate(deployment: MachineDeployment, set: MachineSet): boolean {
  return !equalTemplate(set.spec.template, deployment.spec.template) && !isChangedCopy(deployment, set);
}

type Deps = RolloutDeps & OrderDeps & Pick<Collaborators, 'failedRollbacks'>;

/**
 * Rolls back when it is asked for. Without the set of the present template there would be no revision to leave; it grows unless the rollout has to
 * wait. A set that nobody may create is left without: often it is the very reason to roll back.
 */
export const rollBackOnRequest = (deps: Deps): DeploymentStep => ({
  name: 'rollback',
  async run(pass) {
    const { observed } = pass;
    const { deployment, newSet, facts, limits } = observed;
    const isRequested = rollbackRevisionOf(deployment) !== undefined;
    if (!isRequested) deps.failedRollbacks.forget(deployment.metadata.uid);
    if (deployment.spec.paused === true || !isRequested) return next;
    if (newSet !== undefined || observed.isFrozen) return await rollBackIfAllowed(deps, pass);
    const grows = deployment.spec.strategy?.type !== 'Recreate' && orderHoldOf(deps, observed) === undefined;
    pass.isRollout = true;
    const result = await createSet(deps, pass, grows ? grownSize(EMPTY_SET, facts.oldSets, limits) : 0);
    if (!isDenial(pass.error) && !deps.creations.isStuck(deployment.metadata.uid, pass.error)) return result;
    Object.assign(pass, { error: undefined, announced: undefined });
    return await rollBackIfAllowed(deps, pass);
  },
});

/** What is refused is asked for again. Meanwhile, the number of replicas counts: the sets are scaled, and nothing is rolled out. */
async function rollBackIfAllowed(deps: Deps, pass: DeploymentPass): Promise<StepResult> {
  const { uid } = pass.object.metadata;
  try {
    const result = await rollBack(deps, pass);
    deps.failedRollbacks.forget(uid);
    return result;
  } catch (error) {
    if (!isWorthReporting(error) || isFirstFailure(error, deps.failedRollbacks, uid, 'a rollback failed')) throw error;
    Object.assign(pass, { error, isCutShort: true, refusal: describeRefusedChange(error) });
    return next;
  }
}

/**
 * Puts the template of an earlier revision back into the MachineDeployment and clears `rollbackTo`, in one write. What
 * follows is an ordinary rollout: the set of that template is the new one again. A Node that refuses to lose its taint does not
 * hold that up: the rollout takes it away at its end.
 */
export async function rollBack(deps: RolloutDeps, pass: DeploymentPass): Promise<StepResult> {
  const { observed, signal } = pass;
  const { deployment } = observed;
  const revision = rollbackRevisionOf(deployment) ?? 0;
  const target = rollbackTarget(observed, revision);
  if (target === undefined) {
    await write(deps, deployment, {}, signal);
    deps.recorder.event(revisionNotFound(deployment, revision));
    return stop;
  }
  const { hasMore, isDone } = await deps.marker.mark(deployment, observed.machinesOf(target), { taint: false }, signal);
  if (hasMore) return AGAIN;
  if (isDone && isTaintRecorded(target)) await recordTaint(deps, target, false, signal);
  if (equalTemplate(target.spec.template, deployment.spec.template)) {
    await write(deps, deployment, {}, signal);
    deps.recorder.event(templateUnchanged(deployment));
    return stop;
  }
  await write(deps, deployment, rollbackChange(deployment, target), signal);
  pass.announced = rolledBackProgress(deployment);
  deps.recorder.event(rolledBack(deployment, revisionOf(target)));
  return stop;
}

/** The template of `target`, and the annotations that tell of it, as a merge patch of the MachineDeployment. */
export function rollbackChange(deployment: MachineDeployment, target: MachineSet): MergePatch<MachineDeployment> {
  const { [TEMPLATE_HASH_LABEL]: _hash, ...labels } = target.spec.template?.metadata?.labels ?? {};
  const template = { ...target.spec.template, metadata: { ...target.spec.template?.metadata, labels } };
  const annotations = rolledBackAnnotations(deployment, target);
  return { metadata: { annotations }, spec: { template: replacing(deployment.spec.template, template) } };
}

async function write(
  { writer }: Pick<MachineDeploymentDeps, 'writer'>,
  deployment: MachineDeployment,
  change: MergePatch<MachineDeployment>,
  signal: AbortSignal,
): Promise<void> {
  const patch = mergePatchIfUnchanged(deployment, { ...change, spec: { ...change.spec, rollbackTo: null } });
  await writer.patch('change', machineDeployments, refOf(deployment), patch, { signal });
}
