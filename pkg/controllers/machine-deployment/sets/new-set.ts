import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import {
  DESIRED_REPLICAS_ANNOTATION,
  LAST_SCALER_CHANGE_ANNOTATION,
  MACHINE_FINALIZER,
  MAX_REPLICAS_ANNOTATION,
  SCALE_UP_DISABLED_LABEL,
  TEMPLATE_HASH_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet, MachineSetSpec } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { equalTemplate } from '../../../apis/machine/v1alpha1/template-equality.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import type { New } from '../../../kube/client/client.ts';
import type { MergePatch } from '../../../kube/client/patch.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { newSetAnnotations } from './revision.ts';
import { byAge } from './set-facts.ts';
import { inPlaceChange } from '../../replicas/in-place-change.ts';
import { annotatedSurge } from '../../replicas/limits.ts';
import { hashInName, templateHash } from './template-hash.ts';

/** The set whose template is the MachineDeployment's; of several the oldest. All others are old sets. */
export function findNewSet(deployment: MachineDeployment, sets: readonly MachineSet[]): MachineSet | undefined {
  return oldestFirst(sets).find((set) => equalTemplate(set.spec.template, deployment.spec.template));
}

/** Sets from the oldest to the newest; equally old ones by name. */
export function oldestFirst(sets: readonly MachineSet[]): MachineSet[] {
  return sets.toSorted((a, b) => byAge(ageOf(a), ageOf(b)));
}

function ageOf({ metadata }: MachineSet): { createdMs: number; name: string } {
  return { createdMs: fromTimestamp(metadata.creationTimestamp) ?? 0, name: metadata.name };
}

/** The annotations by which a set remembers for how many replicas it was scaled. */
export function sizeNotes({ spec }: MachineDeployment): Record<string, string> {
  const replicas = spec.replicas ?? 0;
  return {
    [DESIRED_REPLICAS_ANNOTATION]: String(replicas),
    [MAX_REPLICAS_ANNOTATION]: String(replicas + annotatedSurge(spec)),
  };
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

/**
 * What of the MachineDeployment has to reach its new set without a rollout, as a merge patch: annotations, revision, node
 * template, machine configuration, class kind and two counts; undefined when the set is in step. While it `isScaling`, the time
 * of the autoscaler's change is left to the write of its size (see resize.ts).
 */
export function newSetChange(
  deployment: MachineDeployment,
  newSet: MachineSet,
  oldSets: readonly MachineSet[],
  isScaling = false,
): MergePatch<MachineSet> | undefined {
  const { [LAST_SCALER_CHANGE_ANNOTATION]: scalerTime, ...others } = newSetAnnotations(deployment, newSet, oldSets);
  const isNews =
    scalerTime !== undefined && isLater(scalerTime, newSet.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION]);
  const annotations = {
    ...others,
    ...(isNews && !isScaling ? { [LAST_SCALER_CHANGE_ANNOTATION]: scalerTime } : {}),
  };
  const template = inPlaceChange(deployment.spec.template.spec ?? {}, newSet.spec.template?.spec ?? {});
  const spec: MergePatch<MachineSetSpec> = template === undefined ? {} : { template: { spec: template } };
  for (const count of ['minReadySeconds', 'autoPreserveFailedMachineMax'] as const) {
    if ((deployment.spec[count] ?? 0) !== (newSet.spec[count] ?? 0)) spec[count] = deployment.spec[count] ?? null;
  }
  const metadata = {
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    // Left by an in-place update in which it was an old set.
    ...(newSet.metadata.labels?.[SCALE_UP_DISABLED_LABEL] === undefined
      ? {}
      : { labels: { [SCALE_UP_DISABLED_LABEL]: null } }),
  };
  const change = {
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(Object.keys(spec).length === 0 ? {} : { spec }),
  };
  return Object.keys(change).length === 0 ? undefined : change;
}

/** The change that a set was told of is never taken back to an earlier one: its Machines would be taken for newly chosen. */
function isLater(time: string, known: string | undefined): boolean {
  const [atMs, knownMs] = [fromTimestamp(time), fromTimestamp(known)];
  return atMs === undefined || knownMs === undefined || atMs > knownMs;
}
