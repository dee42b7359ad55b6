import { refOf } from '../../apis/meta.ts';
import { FREEZE_LABEL, UNFREEZE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { toTimestamp } from '../../clock/clock.ts';
import type { Writer } from '../../kube/client.ts';
import { mergePatchIfUnchanged, statusPatch } from '../../kube/patch.ts';
import { machineDeployments, machineSets } from '../../kube/resource.ts';
import { CREATION_LIMIT_REACHED, isStopped } from './creation-brake.ts';

/** What the API shows of a freeze; Machines are held back by the label alone. */
export interface FreezeMarks {
  /** Label `freeze` is `True`. */
  readonly isLabelled: boolean;
  /** Condition `Frozen` is there. */
  readonly hasCondition: boolean;
  /** The condition says that the object created too much: its own controller froze it, and no number ends that. */
  readonly isStopped?: boolean;
}

/** Value of the label. */
const FROZEN = 'True';

/** Why an object is frozen; the first two reasons are the original's. */
export interface FreezeCause {
  readonly reason: 'OverShootingReplicaCount' | 'MachineDeploymentStateSync' | typeof CREATION_LIMIT_REACHED;
  readonly message: string;
}

/** What a set shows. */
export function marksOfSet({ metadata, status }: MachineSet): FreezeMarks {
  return {
    isLabelled: metadata.labels?.[FREEZE_LABEL] === FROZEN,
    hasCondition: isFrozen(status?.machineSetCondition ?? []),
    isStopped: isStopped(status?.machineSetCondition),
  };
}

/** Whether any mark is there. */
export function isFreezeMarked({ isLabelled, hasCondition }: FreezeMarks): boolean {
  return isLabelled || hasCondition;
}

/** Why a set is frozen, as its condition says it; undefined without one. */
export function freezeMessageOf({ status }: MachineSet): string | undefined {
  return status?.machineSetCondition?.find(({ type }) => type === 'Frozen')?.message;
}

/** What a MachineDeployment shows. */
export function marksOfDeployment({ metadata, status }: MachineDeployment): FreezeMarks {
  return {
    isLabelled: metadata.labels?.[FREEZE_LABEL] === FROZEN,
    hasCondition: isFrozen(status?.conditions ?? []),
    isStopped: isStopped(status?.conditions),
  };
}

/** Puts the marks on a set: the condition first, then the label. Both fail (409) on a set that has changed. */
export async function freezeSet(
  writer: Writer,
  set: MachineSet,
  cause: FreezeCause,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  const stored = set.status?.machineSetCondition ?? [];
  const condition = { type: 'Frozen', status: 'True', lastTransitionTime: toTimestamp(nowMs), ...cause } as const;
  const base = isSaid(stored, cause)
    ? set
    : await writer.patch(
        'change',
        machineSets,
        refOf(set),
        statusPatch(set, { machineSetCondition: [...stored.filter(isAnother), condition] }),
        { signal },
      );
  await labelSet(writer, base, signal);
}

/** Puts the label on a set, which alone holds it back: its condition is there already. */
export async function labelSet(writer: Writer, set: MachineSet, signal: AbortSignal): Promise<void> {
  await writer.patch('change', machineSets, refOf(set), mergePatchIfUnchanged(set, FREEZE), { signal });
}

/** Takes the marks, and the annotation that asks for it, from a set: the condition first. */
export async function unfreezeSet(writer: Writer, set: MachineSet, signal: AbortSignal): Promise<void> {
  const stored = set.status?.machineSetCondition ?? [];
  const others = stored.filter(isAnother);
  const ref = refOf(set);
  const base =
    others.length === stored.length
      ? set
      : await writer.patch(
          'change',
          machineSets,
          ref,
          statusPatch(set, { machineSetCondition: others.length === 0 ? null : others }),
          { signal },
        );
  await writer.patch('change', machineSets, ref, mergePatchIfUnchanged(base, UNFREEZE), { signal });
}

/** Puts the marks on a MachineDeployment, as freezeSet does. */
export async function freezeDeployment(
  writer: Writer,
  deployment: MachineDeployment,
  cause: FreezeCause,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  const stored = deployment.status?.conditions ?? [];
  const now = toTimestamp(nowMs);
  const condition = {
    type: 'Frozen',
    status: 'True',
    lastUpdateTime: now,
    lastTransitionTime: now,
    ...cause,
  } as const;
  const base = isSaid(stored, cause)
    ? deployment
    : await writer.patch(
        'change',
        machineDeployments,
        refOf(deployment),
        statusPatch(deployment, { conditions: [...stored.filter(isAnother), condition] }),
        { signal },
      );
  await labelDeployment(writer, base, signal);
}

/** Puts the label on a MachineDeployment, as labelSet does. */
export async function labelDeployment(
  writer: Writer,
  deployment: MachineDeployment,
  signal: AbortSignal,
): Promise<void> {
  const patch = mergePatchIfUnchanged(deployment, FREEZE);
  await writer.patch('change', machineDeployments, refOf(deployment), patch, { signal });
}

/** Takes the marks and the annotation from a MachineDeployment. */
export async function unfreezeDeployment(
  writer: Writer,
  deployment: MachineDeployment,
  signal: AbortSignal,
): Promise<void> {
  const stored = deployment.status?.conditions ?? [];
  const others = stored.filter(isAnother);
  const ref = refOf(deployment);
  const base =
    others.length === stored.length
      ? deployment
      : await writer.patch(
          'change',
          machineDeployments,
          ref,
          statusPatch(deployment, { conditions: others.length === 0 ? null : others }),
          { signal },
        );
  await writer.patch('change', machineDeployments, ref, mergePatchIfUnchanged(base, UNFREEZE), { signal });
}

/** Whether somebody asks for the object to be unfrozen; any value does. */
export function isUnfreezeRequested({ metadata }: Pick<MachineSet, 'metadata'>): boolean {
  return metadata.annotations?.[UNFREEZE_ANNOTATION] !== undefined;
}

const FREEZE = { metadata: { labels: { [FREEZE_LABEL]: FROZEN } } };
const UNFREEZE = { metadata: { labels: { [FREEZE_LABEL]: null }, annotations: { [UNFREEZE_ANNOTATION]: null } } };

/** A freeze that is there already is told anew only of what no number ends. */
function isSaid(
  conditions: readonly { readonly type: string; readonly reason?: string }[],
  cause: FreezeCause,
): boolean {
  return cause.reason !== CREATION_LIMIT_REACHED && isFrozen(conditions);
}

function isAnother({ type }: { readonly type: string }): boolean {
  return type !== 'Frozen';
}

function isFrozen(conditions: readonly { readonly type: string }[]): boolean {
  return !conditions.every(isAnother);
}
