import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import { MACHINE_FINALIZER, TEMPLATE_HASH_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { equalTemplate } from '../../../apis/machine/v1alpha1/template-equality.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError, isAlreadyExists } from '../../../kube/client/errors.ts';
import type { New } from '../../../kube/client/client.ts';
import { statusPatch } from '../../../kube/client/patch.ts';
import { machineDeployments, machineSets } from '../../../kube/client/resource.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { failedToCreateSet, scaledSet } from '../events.ts';
import { sizeNotes } from './new-set.ts';
import { newSetAnnotations } from './revision.ts';
import type { MachineDeploymentDeps } from '../step.ts';
import { hashesOf, isCopyOfPresent, noteChangedCopies } from './changed-copy.ts';
import { claimsOn } from './set-claims.ts';
import { hashInName, templateHash } from './template-hash.ts';
import { claimedSets } from '../observed.ts';

/** What is stored as MachineSets of the present template never has that template. */
export class ChangedTemplateError extends Error {
  override readonly name = 'ChangedTemplateError';

  constructor(set: string) {
    super(
      `MachineSet ${set} was created from spec.template but has another template, as its predecessor had: a webhook or ` +
        'CustomResourceDefinition changes MachineSets. Fix that, then change spec.template, for example by `machinist rollout restart`',
    );
  }
}

/**
 * Creates the set of the present template. A repeated creation finds the set of the first one by its name and takes it.
 * Returns undefined when there is more to do in the next pass: the set of that name and template has lost its owner and is
 * adopted there, or another set has the name and another name is tried.
 */
export async function createNewSet(
  deps: Pick<MachineDeploymentDeps, 'writer' | 'reader' | 'recorder' | 'machineSets' | 'brake'>,
  deployment: MachineDeployment,
  oldSets: readonly MachineSet[],
  replicas: number,
  signal: AbortSignal,
): Promise<MachineSet | undefined> {
  const wanted = newSetFor(deployment, oldSets, replicas);
  const { name, namespace = '' } = wanted.metadata;
  try {
    const set = await deps.writer.create('create', machineSets, wanted, { signal });
    deps.brake.createdSet(deployment.metadata.uid);
    if (replicas > 0) deps.recorder.event(scaledSet(deployment, name, 0, replicas));
    return set;
  } catch (err) {
    if (!isAlreadyExists(err)) {
      if (isFailedCreation(err, signal)) deps.recorder.event(failedToCreateSet(deployment, name, err));
      throw err;
    }
  }
  const live = await deps.reader.get(machineSets, { namespace, name }, { signal });
  if (equalTemplate(live.spec.template, deployment.spec.template)) {
    const { claimed, adopt } = claimsOn(deployment, [live]);
    if (claimed.length + adopt.length > 0) deps.machineSets.wrote(live);
    if (claimed.length > 0) return live;
    if (adopt.length > 0) return undefined; // let go by somebody meanwhile: the next pass takes it back
  }
  await noteChangedCopies(deps, deployment, claimedSets(deps, deployment), signal);
  if (wasChangedTwice(deps, deployment, live)) {
    const err = new ChangedTemplateError(name);
    deps.recorder.event(failedToCreateSet(deployment, name, err));
    throw err;
  }
  const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
  const ref = { namespace, name: deployment.metadata.name };
  await deps.writer.patch('change', machineDeployments, ref, statusPatch(deployment, { collisionCount }), { signal });
  return undefined;
}

/**
 * Whether `live` is ours, made from the present template, and has another one, and so is the set that was made before the last
 * collision. One such set may have been edited by hand and is passed over; a third would be no better than two.
 */
function wasChangedTwice(
  deps: Pick<MachineDeploymentDeps, 'machineSets'>,
  deployment: MachineDeployment,
  live: MachineSet,
): boolean {
  const { now, before } = hashesOf(deployment);
  return (
    (deployment.status?.collisionCount ?? 0) > 0 &&
    isCopyOfPresent(deployment, live, [now]) &&
    claimsOn(deployment, [live]).claimed.length > 0 &&
    claimedSets(deps, deployment).some((set) => isCopyOfPresent(deployment, set, [before]))
  );
}

/** Whether an error tells of the set: not a closed gate, the end of the process, or a namespace on its way out. */
export function isFailedCreation(err: unknown, signal: AbortSignal): boolean {
  if (err instanceof GateClosedError || signal.aborted) return false;
  const causes = err instanceof ApiError ? (err.status?.details?.causes ?? []) : [];
  return !causes.some(({ reason }) => reason === 'NamespaceTerminating');
}

/**
 * The set that gives the present template its Machines. Hash and name follow from template and collisionCount alone, so
 * that a repeated creation finds the first one's set.
 */
export function newSetFor(
  deployment: MachineDeployment,
  oldSets: readonly MachineSet[],
  replicas: number,
): New<MachineSet> {
  const { metadata, spec, status } = deployment;
  const hash = templateHash(spec.template, status?.collisionCount);
  const labels = { ...spec.template.metadata?.labels, [TEMPLATE_HASH_LABEL]: hash };
  const unannotated = { metadata: { ...metadata, annotations: {} } };
  return {
    metadata: {
      name: `${metadata.name}-${hashInName(hash)}`,
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      labels,
      annotations: { ...newSetAnnotations(deployment, unannotated, oldSets), ...sizeNotes(deployment) },
      finalizers: [MACHINE_FINALIZER],
      ownerReferences: [controllerReference(deployment, API_VERSION, 'MachineDeployment')],
    },
    spec: {
      replicas,
      selector: {
        ...spec.selector,
        matchLabels: { ...spec.selector?.matchLabels, [TEMPLATE_HASH_LABEL]: hash },
      },
      template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
      ...(spec.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
      ...(spec.autoPreserveFailedMachineMax === undefined
        ? {}
        : { autoPreserveFailedMachineMax: spec.autoPreserveFailedMachineMax }),
    },
  };
}
