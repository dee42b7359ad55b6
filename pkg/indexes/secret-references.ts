import type { MachineClass, SecretReference } from '../apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../apis/meta.ts';

/** Name of the index of MachineClasses by the Secrets that they name. */
export const SECRET_INDEX = 'secret';

/** The index function: keys of the Secrets that the class names, each once, in the order in which their data is merged. */
export function secretIndex(machineClass: MachineClass): string[] {
  const keys = [machineClass.secretRef, machineClass.credentialsSecretRef].flatMap((ref) =>
    keyOfRef(machineClass, ref),
  );
  return [...new Set(keys)];
}

/** A reference without namespace means that of the class. */
function keyOfRef(machineClass: MachineClass, reference: SecretReference | undefined): string[] {
  const { name = '', namespace = '' } = reference ?? {};
  if (name === '') return [];
  return [keyOf({ metadata: { namespace: namespace || (machineClass.metadata.namespace ?? ''), name } })];
}
