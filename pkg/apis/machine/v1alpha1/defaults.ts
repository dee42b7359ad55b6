import { parseGoBool } from '../../go-bool.ts';
import { FORCE_DELETION_LABEL, NODE_LABEL, VM_CLASS_ANNOTATION } from './labels.ts';
import type { Machine, MachineSpec, MachineTemplateSpec } from './machine.ts';
import type { MachineDeployment } from './machine-deployment.ts';
import type { MachineSet } from './machine-set.ts';
import type { MachinePhase } from './phases.ts';

/** What absent members count as. Null is absent: Go writes it. Never throws, whatever laxer CRDs have stored. */

type Specified<T extends { spec: unknown }> = { readonly spec?: Readonly<T['spec']> | undefined };

export const MAX_REPLICAS = 2_147_483_647;

/** How many Machines there should be: absent and negative count as 0. */
export function replicasOf({ spec }: Specified<MachineSet> | Specified<MachineDeployment>): number {
  return Math.max(0, spec?.replicas ?? 0);
}

/** How many failed Machines may be preserved without being asked: absent and negative count as 0. */
export function autoPreserveMaxOf({ spec }: Specified<MachineSet> | Specified<MachineDeployment>): number {
  return Math.max(0, spec?.autoPreserveFailedMachineMax ?? 0);
}

/** How many old MachineSets are kept; undefined keeps all. */
export function revisionHistoryLimitOf({ spec }: Specified<MachineDeployment>): number | undefined {
  const limit = spec?.revisionHistoryLimit ?? undefined;
  return limit === undefined ? undefined : Math.max(0, limit);
}

/** How long a rollout may go without progress, in milliseconds; undefined is forever. */
export function progressDeadlineMsOf({ spec }: Specified<MachineDeployment>): number | undefined {
  const seconds = spec?.progressDeadlineSeconds ?? undefined;
  return seconds === undefined ? undefined : Math.max(0, seconds) * 1000;
}

/** The revision to go back to, 0 for the one before; undefined when no rollback is asked for. */
export function rollbackRevisionOf({ spec }: Specified<MachineDeployment>): number | undefined {
  const rollback = spec?.rollbackTo ?? undefined;
  return rollback === undefined ? undefined : (rollback.revision ?? 0);
}

export function templateLabelsOf(template: MachineTemplateSpec | undefined): Readonly<Record<string, string>> {
  return template?.metadata?.labels ?? {};
}

/** The phase of a Machine; empty until a VM is confirmed. */
export function phaseOf({ status }: Pick<Machine, 'status'>): MachinePhase | '' {
  return status?.currentStatus?.phase ?? '';
}

/** Whether the status of a Machine tells that it has a Node, or waits for one: it never does where there is no target cluster. */
export function hadNode(machine: Pick<Machine, 'status'>): boolean {
  return phaseOf(machine) === 'Pending' || showsNode(machine);
}

/** Whether a Machine shows the conditions of a Node, which it has from that alone. */
export function showsNode({ status }: Pick<Machine, 'status'>): boolean {
  return (status?.conditions ?? []).length > 0;
}

/** Name of the Node of a Machine, as its label says; empty without one. */
export function nodeNameOf({ metadata }: Pick<Machine, 'metadata'>): string {
  return metadata.labels?.[NODE_LABEL] ?? '';
}

/** Name of the MachineClass of a Machine; empty without one. */
export function classNameOf({ spec }: { readonly spec?: Pick<MachineSpec, 'class'> | undefined }): string {
  return spec?.class?.name ?? '';
}

/** Name of the MachineClass that the VM of a Machine was asked for with, as far as that is recorded; else of the one that it names. */
export function vmClassNameOf({ metadata, spec }: Pick<Machine, 'metadata'> & Partial<Pick<Machine, 'spec'>>): string {
  return metadata.annotations?.[VM_CLASS_ANNOTATION] || classNameOf({ spec });
}

/** Whether the label of a Machine asks for a deletion that waits for nothing. */
export function hasForceDeletionLabel({ metadata }: Pick<Machine, 'metadata'>): boolean {
  return parseGoBool(metadata.labels?.[FORCE_DELETION_LABEL]) === true;
}

/** Provider id of the VM of a Machine; empty until it is recorded. */
export function providerIDOf({ spec }: { readonly spec?: Pick<MachineSpec, 'providerID'> | undefined }): string {
  return spec?.providerID ?? '';
}
