import type { MachineSummary } from '../../apis/machine/v1alpha1/machine.ts';
import type { ConditionStatus } from '../../apis/machine/v1alpha1/phases.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { DeclareGauge } from './object-gauges.ts';
import { conditionValue, failedMachineLabels, FAILED_MACHINE_LABELS, objectNameLabels } from './object-labels.ts';

export const NAMED = ['name', 'namespace'] as const;

/** Gauges with labels NAMED, by name: what they say, and how they are read; undefined leaves the series out. */
export type ObjectValues<T> = Readonly<Record<string, readonly [help: string, of: (object: T) => number | undefined]>>;

export interface OwnerValues<T> {
  readonly values: ObjectValues<T>;
  readonly conditionsOf: (object: T) => readonly { readonly type: string; readonly status: ConditionStatus }[];
  readonly failedMachinesOf: (object: T) => readonly MachineSummary[];
}

/** Declares what MachineSets and MachineDeployments show alike: values, conditions, and the Machines whose last operation failed. */
export function ownerGauges<T extends KubeObject>(
  each: DeclareGauge<T>,
  { values, conditionsOf, failedMachinesOf }: OwnerValues<T>,
): void {
  for (const [name, [help, of]] of Object.entries(values)) {
    each(name, help, NAMED, (object) => {
      const value = of(object);
      return value === undefined ? [] : [[objectNameLabels(object), value]];
    });
  }
  each('status_condition', 'Conditions: 1 True, 0 False, 2 Unknown.', [...NAMED, 'condition'], (object) =>
    conditionsOf(object).map(
      ({ type, status }) => [{ ...objectNameLabels(object), condition: type }, conditionValue(status)] as const,
    ),
  );
  each('failed_machines', 'Machines whose last operation failed.', [...NAMED, ...FAILED_MACHINE_LABELS], (object) =>
    failedMachinesOf(object).map(
      (machine) => [{ ...objectNameLabels(object), ...failedMachineLabels(machine) }, 1] as const,
    ),
  );
}
