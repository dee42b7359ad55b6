import {
  DELETION_PREPARATION_SINCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine, MachineCondition } from '../../apis/machine/v1alpha1/machine.ts';
import { conditionOf } from '../../work/reconcile/conditions.ts';

/** Type of the condition of a Machine whose deletion is prepared, or the preparation of which is being undone. */
export const DELETION_PREPARED = 'DeletionPrepared';

/** How far a preparation is. `failed`: something is tried again, and the message says what. */
export type PreparationPhase = 'started' | 'completed' | 'aborting' | 'failed';

/** Reason of that condition: its phase, or that it was started and its drain is blocked. */
export type PreparationReason = PreparationPhase | 'blocked';

export function preparationPhaseOf(reason: string | undefined): string | undefined {
  return reason === ('blocked' satisfies PreparationReason) ? 'started' : reason;
}

/** Values of the annotation that say something: anything but `true` asks for nothing, or takes a request back. */
const UNDERSTOOD: ReadonlySet<string> = new Set(['true', 'false', '']);

/** Whether it is asked that the Machine is deleted once its Node is empty. */
export function isPreparationRequested({ metadata }: Pick<Machine, 'metadata'>): boolean {
  return metadata.annotations?.[PREPARE_DELETION_ANNOTATION] === 'true';
}

/** Whether a preparation has begun, and may have cordoned the Node: recorded before that. */
export function hasPreparationBegun({ metadata }: Pick<Machine, 'metadata'>): boolean {
  return metadata.annotations?.[DELETION_PREPARATION_SINCE_ANNOTATION] !== undefined;
}

/** Whether a machine is to be deleted once its Node is empty, or that is being undone: nothing else is begun with it. */
export function isUnderPreparation(machine: Pick<Machine, 'metadata'>): boolean {
  return isPreparationRequested(machine) || hasPreparationBegun(machine);
}

/** What was told of the preparation when the status was last written. For display. */
export function preparationShownBy({ status }: Pick<Machine, 'status'>): MachineCondition | undefined {
  return conditionOf(status?.machineConditions, DELETION_PREPARED);
}

export function isPreparationValue(text: string): boolean {
  return UNDERSTOOD.has(text);
}
