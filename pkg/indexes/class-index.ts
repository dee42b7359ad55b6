import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import { keyOf } from '../apis/meta.ts';

/** Name of the index of Machines by their MachineClass. */
export const CLASS_INDEX = 'class';

/** The index function: key of the MachineClass, which is in the Machine's namespace. Nothing for other kinds of class. */
export function classIndex({ metadata, spec }: Machine): string[] {
  const { kind, name = '' } = spec.class ?? {};
  if (kind !== 'MachineClass' || name === '') return [];
  return [keyOf({ metadata: { namespace: metadata.namespace ?? '', name } })];
}
