import { type KubeObject } from '../../apis/meta.ts';
import type { MachineSummary } from '../../apis/machine/v1alpha1/machine.ts';
import type { ConditionStatus } from '../../apis/machine/v1alpha1/phases.ts';
import { fromTimestamp } from '../clock/clock.ts';

/** Labels of a failed Machine in the metrics of its owners. */
export const FAILED_MACHINE_LABELS = [
  'failed_machine_name',
  'failed_machine_provider_id',
  'failed_machine_owner_ref',
  'failed_machine_last_operation_state',
  'failed_machine_last_operation_machine_operation_type',
] as const;

export function failedMachineLabels(machine: MachineSummary): Record<(typeof FAILED_MACHINE_LABELS)[number], string> {
  return {
    failed_machine_name: machine.name ?? '',
    failed_machine_provider_id: machine.providerID ?? '',
    failed_machine_owner_ref: machine.ownerRef ?? '',
    failed_machine_last_operation_state: machine.lastOperation?.state ?? '',
    failed_machine_last_operation_machine_operation_type: machine.lastOperation?.type ?? '',
  };
}

/** A condition as a number, as the original's dashboards read it. */
export function conditionValue(status: ConditionStatus): number {
  return status === 'True' ? 1 : status === 'False' ? 0 : 2;
}

/** A timestamp in Unix seconds, as a label value. */
export function seconds(timestamp: string): string {
  return String(Math.floor((fromTimestamp(timestamp) ?? 0) / 1_000));
}

export function objectNameLabels({ metadata }: KubeObject): { name: string; namespace: string } {
  return { name: metadata.name, namespace: metadata.namespace ?? '' };
}
