import type { MachineCondition } from '../../apis/machine/v1alpha1/machine.ts';
import { refOf } from '../../apis/meta.ts';
import { FREEZE_LABEL, UNFREEZE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { toTimestamp } from '../../base/clock/clock.ts';
import type { Writer } from '../../kube/client/client.ts';
import { mergePatchIfUnchanged, statusPatch, type Patch } from '../../kube/client/patch.ts';
import { machineDeployments, machineSets } from '../../kube/client/resource.ts';
import type { Resource } from '../../apis/resource.ts';
import { withoutCondition, conditionOf, withCondition } from '../../work/reconcile/conditions.ts';
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

const FROZEN = 'True';

/** Why an object is frozen; the first two reasons are the original's. */
export interface FreezeCause {
  readonly reason: 'OverShootingReplicaCount' | 'MachineDeploymentStateSync' | typeof CREATION_LIMIT_REACHED;
  readonly message: string;
}

export function isFreezeMarked({ isLabelled, hasCondition }: FreezeMarks): boolean {
  return isLabelled || hasCondition;
}

/** Why a set is frozen, as its condition says it; undefined without one. */
export function freezeMessageOf({ status }: MachineSet): string | undefined {
  return conditionOf(status?.machineSetCondition, 'Frozen')?.message;
}

/** Whether somebody asks for the object to be unfrozen; any value does. */
export function isUnfreezeRequested({ metadata }: Pick<MachineSet, 'metadata'>): boolean {
  return metadata.annotations?.[UNFREEZE_ANNOTATION] !== undefined;
}

const FREEZE = { metadata: { labels: { [FREEZE_LABEL]: FROZEN } } };
const UNFREEZE = { metadata: { labels: { [FREEZE_LABEL]: null }, annotations: { [UNFREEZE_ANNOTATION]: null } } };

/** What both kinds of condition have in common. */
type Condition = Pick<MachineCondition, 'type' | 'status' | 'reason'>;

interface FreezeKind<T, C extends Condition> {
  readonly resource: Resource<T & Freezable>;
  readonly conditionsOf: (object: T) => readonly C[];
  readonly frozen: (cause: FreezeCause, now: string) => C;
  /** The patch that replaces all conditions. */
  readonly replace: (object: T, conditions: C[] | null) => Patch;
}

type Freezable = MachineSet | MachineDeployment;

/** Reads and writes the marks of one kind. Writes fail (409) on an object that has changed. */
interface Freezing<T> {
  readonly marksOf: (object: T) => FreezeMarks;
  /** Puts the marks on an object: the condition first, then the label. */
  readonly freeze: (writer: Writer, object: T, cause: FreezeCause, nowMs: number, signal: AbortSignal) => Promise<void>;
  /** Puts the label on an object, which alone holds it back: its condition is there already. */
  readonly label: (writer: Writer, object: T, signal: AbortSignal) => Promise<void>;
  /** Takes the marks, and the annotation that asks for it, from an object: the condition first. */
  readonly unfreeze: (writer: Writer, object: T, signal: AbortSignal) => Promise<void>;
}

function freezing<T extends Freezable, C extends Condition>(kind: FreezeKind<T, C>): Freezing<T> {
  const { resource, conditionsOf, frozen, replace } = kind;
  const send = (writer: Writer, object: T, patch: Patch, signal: AbortSignal): Promise<T> =>
    writer.patch('change', resource, refOf(object), patch, { signal });
  const label = async (writer: Writer, object: T, signal: AbortSignal): Promise<void> => {
    await send(writer, object, mergePatchIfUnchanged<Freezable>(object, FREEZE), signal);
  };
  return {
    marksOf: (object) => ({
      isLabelled: object.metadata.labels?.[FREEZE_LABEL] === FROZEN,
      hasCondition: isFrozen(conditionsOf(object)),
      isStopped: isStopped(conditionsOf(object)),
    }),
    async freeze(writer, object, cause, nowMs, signal) {
      const stored = conditionsOf(object);
      // A freeze that is there already is reported anew only when no number ends it.
      const isSaid = cause.reason !== CREATION_LIMIT_REACHED && isFrozen(stored);
      const conditions = withCondition(stored, frozen(cause, toTimestamp(nowMs)));
      const base = isSaid ? object : await send(writer, object, replace(object, conditions), signal);
      await label(writer, base, signal);
    },
    label,
    async unfreeze(writer, object, signal) {
      const others = withoutCondition(conditionsOf(object), 'Frozen');
      const conditions = others.length === 0 ? null : others;
      const base = isFrozen(conditionsOf(object))
        ? await send(writer, object, replace(object, conditions), signal)
        : object;
      await send(writer, base, mergePatchIfUnchanged<Freezable>(base, UNFREEZE), signal);
    },
  };
}

export const setFreeze: Freezing<MachineSet> = freezing({
  resource: machineSets,
  conditionsOf: ({ status }) => status?.machineSetCondition ?? [],
  frozen: (cause, now) => ({ type: 'Frozen', status: 'True', lastTransitionTime: now, ...cause }),
  replace: (set, machineSetCondition) => statusPatch(set, { machineSetCondition }),
});

export const deploymentFreeze: Freezing<MachineDeployment> = freezing({
  resource: machineDeployments,
  conditionsOf: ({ status }) => status?.conditions ?? [],
  frozen: (cause, now) => ({ type: 'Frozen', status: 'True', lastUpdateTime: now, lastTransitionTime: now, ...cause }),
  replace: (deployment, conditions) => statusPatch(deployment, { conditions }),
});

function isFrozen(conditions: readonly { readonly type: string }[]): boolean {
  return conditionOf(conditions, 'Frozen') !== undefined;
}
