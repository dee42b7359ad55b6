import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { equalTemplate } from '../../apis/machine/v1alpha1/template-equality.ts';
import { controllerOf } from '../../apis/meta.ts';
import { GateClosedError } from '../../gate/gate.ts';
import { ApiError, isAlreadyExists } from '../../kube/errors.ts';
import { statusPatch } from '../../kube/patch.ts';
import { machineDeployments, machineSets } from '../../kube/resource.ts';
import { failedToCreateSet, scaledSet } from './events.ts';
import { newSetFor } from './new-set.ts';
import type { MachineDeploymentParts } from './parts.ts';

/**
 * Creates the set of the present template. A repeated creation finds the set of the first one by its name and takes it.
 * Returns undefined when a stranger has the name: then the next pass tries another one.
 */
export async function createNewSet(
  parts: Pick<MachineDeploymentParts, 'writer' | 'reader' | 'recorder' | 'machineSets'>,
  deployment: MachineDeployment,
  oldSets: readonly MachineSet[],
  replicas: number,
  signal: AbortSignal,
): Promise<MachineSet | undefined> {
  const wanted = newSetFor(deployment, oldSets, replicas);
  const { name, namespace = '' } = wanted.metadata;
  try {
    const set = await parts.writer.create('create', machineSets, wanted, { signal });
    if (replicas > 0) parts.recorder.event(scaledSet(deployment, name, 0, replicas));
    return set;
  } catch (err) {
    if (!isAlreadyExists(err)) {
      if (isFailure(err, signal)) parts.recorder.event(failedToCreateSet(deployment, name, err));
      throw err;
    }
  }
  const live = await parts.reader.get(machineSets, { namespace, name }, { signal });
  if (isOurs(deployment, live)) {
    parts.machineSets.wrote(live);
    return live;
  }
  const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
  const ref = { namespace, name: deployment.metadata.name };
  await parts.writer.patch('change', machineDeployments, ref, statusPatch(deployment, { collisionCount }), { signal });
  return undefined;
}

/** Whether an error tells of the set: not a closed gate, the end of the process, or a namespace on its way out. */
export function isFailure(err: unknown, signal: AbortSignal): boolean {
  if (err instanceof GateClosedError || signal.aborted) return false;
  const causes = err instanceof ApiError ? (err.status?.details?.causes ?? []) : [];
  return !causes.some(({ reason }) => reason === 'NamespaceTerminating');
}

function isOurs(deployment: MachineDeployment, set: MachineSet): boolean {
  return (
    controllerOf(set)?.uid === deployment.metadata.uid && equalTemplate(set.spec.template, deployment.spec.template)
  );
}
