import type { ContractReference } from '../api/contract.ts';

/** `<Kind> <name>`; undefined where nothing is named. */
export function referenceName(reference: ContractReference | undefined): string | undefined {
  return reference === undefined ? undefined : `${reference.kind} ${reference.name}`;
}
