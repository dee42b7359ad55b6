import { membersOf, nonEmptyText } from '../../apis/members.ts';
import type { MachineClass, SecretReference } from '../../apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../../apis/meta.ts';
import type { IndexFunctions } from '../../kube/cache/store.ts';

/** Name of the index of MachineClasses by the Secrets that they name. */
export const SECRET_INDEX = 'secret';

/** The index function: keys of the Secrets that the class names, each once, in the order in which their data is merged. */
export function secretIndex(machineClass: MachineClass): string[] {
  const keys = [machineClass.secretRef, machineClass.credentialsSecretRef].flatMap((ref) =>
    keyOfRef(machineClass, ref),
  );
  return [...new Set(keys)];
}

/** Name of the index of MachineClasses by the Secret with bootstrap data that they name. */
export const DATA_SECRET_INDEX = 'dataSecret';

/**
 * The index function: key of the Secret that machines of a class of driver `cluster-api` start with. Its content is nobody's business here;
 * when it comes, or changes, what failed without it may be tried again.
 */
export function dataSecretIndex({ metadata, providerSpec }: MachineClass): string[] {
  const name = nonEmptyText(membersOf(membersOf(providerSpec)['bootstrap'])['dataSecretName']) ?? '';
  return name === '' ? [] : [keyOf({ metadata: { namespace: metadata.namespace ?? '', name } })];
}

/** Indexes of MachineClasses: by the Secrets that they name. */
export const MACHINE_CLASS_INDEXES = {
  [SECRET_INDEX]: secretIndex,
  [DATA_SECRET_INDEX]: dataSecretIndex,
} satisfies IndexFunctions<MachineClass>;

/** A reference without namespace means that of the class. */
function keyOfRef(machineClass: MachineClass, reference: SecretReference | undefined): string[] {
  const { name = '', namespace = '' } = reference ?? {};
  if (name === '') return [];
  return [keyOf({ metadata: { namespace: namespace || (machineClass.metadata.namespace ?? ''), name } })];
}
