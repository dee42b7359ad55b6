import {
  CHANGED_ON_CREATION_ANNOTATION,
  DESIRED_REPLICAS_ANNOTATION,
  LAST_SCALER_CHANGE_ANNOTATION,
  MAX_REPLICAS_ANNOTATION,
  SCALE_UP_DISABLED_LABEL,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet, MachineSetSpec } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import type { MergePatch } from '../../../kube/client/patch.ts';
import { newSetAnnotations } from './revision.ts';
import { inPlaceChange } from '../../replicas/in-place-change.ts';
import { annotatedSurge } from '../../replicas/limits.ts';

/** The annotations by which a set remembers for how many replicas it was scaled. */
export function sizeNotes({ spec }: MachineDeployment): Record<string, string> {
  const replicas = spec.replicas ?? 0;
  return {
    [DESIRED_REPLICAS_ANNOTATION]: String(replicas),
    [MAX_REPLICAS_ANNOTATION]: String(replicas + annotatedSurge(spec)),
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
    // Its template is asked for now.
    ...(newSet.metadata.annotations?.[CHANGED_ON_CREATION_ANNOTATION] === undefined
      ? {}
      : { [CHANGED_ON_CREATION_ANNOTATION]: null }),
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
