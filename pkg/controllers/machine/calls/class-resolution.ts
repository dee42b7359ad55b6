import { classNameOf, providerIDOf, vmClassNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { Lister } from '../../../kube/cache/lister.ts';
import type { Drivers } from '../../../driver/drivers.ts';
import type { ClassSecrets, SecretContents } from '../../class-secrets/secret-contents.ts';
import { retryRequestOf } from '../../machine-facts/retry-request.ts';
import type { ResolvedClass } from '../context.ts';
import type { VMClasses } from './vm-classes.ts';

/** Why nothing can be asked of the provider; a sentence for people, with what to do about it. */
export interface Unresolved {
  readonly problem: string;
  /** There is no MachineClass at all, and one that was ever used is protected from vanishing; or no driver for its provider. */
  readonly missing: 'class' | 'driver';
}

export interface ClassSources {
  readonly classes: Pick<Lister<MachineClass>, 'get'>;
  readonly secrets: Pick<SecretContents, 'of'>;
  readonly drivers: Pick<Drivers, 'resolve' | 'all'>;
  readonly vmClasses: Pick<VMClasses, 'inCreation'>;
}

/**
 * The MachineClass of a machine with its driver and Secret data. A Secret that does not exist contributes nothing; data of
 * `credentialsSecretRef` goes over that of `secretRef`, key by key. Which class it is, see VMClasses.
 */
export type ResolveClass = (machine: Machine, signal: AbortSignal) => Promise<ResolvedClass | Unresolved>;

export const classResolver =
  (sources: ClassSources): ResolveClass =>
  (machine, signal) =>
    resolveClass(sources, machine, signal);

/** Of a machine in creation a class that does not exist holds no VM that anybody could find. */
function classInUse({ classes, vmClasses }: ClassSources, machine: Machine): string {
  if (providerIDOf(machine) !== '' || isBeingDeleted(machine)) return vmClassNameOf(machine);
  const name = vmClasses.inCreation(machine);
  return classes.get(`${machine.metadata.namespace ?? ''}/${name}`) === undefined ? classNameOf(machine) : name;
}

async function resolveClass(
  sources: ClassSources,
  machine: Machine,
  signal: AbortSignal,
): Promise<ResolvedClass | Unresolved> {
  const { classes, secrets, drivers } = sources;
  const { namespace = '' } = machine.metadata;
  const name = classInUse(sources, machine);
  const { kind = '', name: named = '' } = machine.spec.class ?? {};
  if (name === '' || (kind === '' && name === named)) {
    return {
      problem:
        'The machine does not refer to a MachineClass: set spec.class.kind to MachineClass and spec.class.name to its name.',
      missing: 'class',
    };
  }
  const machineClass = classes.get(`${namespace}/${name}`);
  if (machineClass === undefined) {
    const which = name === named ? '' : ', with which the VM was requested,';
    return { problem: `MachineClass ${namespace}/${name}${which} not found: create it.`, missing: 'class' };
  }
  const driver = drivers.resolve(machineClass, machine);
  if (driver === undefined) {
    const provider = machineClass.provider ?? '';
    const known = drivers.all().map((one) => JSON.stringify(one.provider));
    return {
      problem: `No driver is configured for provider ${JSON.stringify(provider)} of MachineClass ${namespace}/${name} (configured: ${known.join(', ') || 'none'}): start the controller with --driver ${provider || 'PROVIDER'}=<address>, or correct the class.`,
      missing: 'driver',
    };
  }
  const content = await secrets.of(machineClass, signal);
  return {
    machineClass,
    driver,
    secretData: content.data,
    missingSecrets: content.missing,
    fingerprint: fingerprintOf(machine, machineClass, content),
    classVersion: classVersionOf(machineClass, content),
  };
}

/**
 * What is wrong with the kind of a machine's class: undefined for MachineClass, and where none is named. Classes of a provider's own
 * kind, as in the original's old manifests, are served no more.
 */
export function wrongKindOf({ spec }: Machine): string | undefined {
  const { kind = '', name = '' } = spec.class ?? {};
  if (kind === '' || kind === 'MachineClass') return undefined;
  return `The machine refers to a class of kind ${JSON.stringify(kind)}, but only MachineClass is supported: set spec.template.spec.class.kind of its MachineDeployment or MachineSet to MachineClass (spec.class.kind of a Machine without owner), and create MachineClass ${name} if it does not exist.`;
}

export function isUnresolved(resolved: ResolvedClass | Unresolved): resolved is Unresolved {
  return 'problem' in resolved;
}

/** Setting a deletionTimestamp raises the generation, but asks for nothing new. */
function fingerprintOf(machine: Machine, machineClass: MachineClass, { fingerprint }: ClassSecrets): string {
  const generation = isBeingDeleted(machine) ? 'deleted' : String(machine.metadata.generation ?? 0);
  const { uid, resourceVersion } = machineClass.metadata;
  return [generation, uid, resourceVersion, fingerprint, retryRequestOf(machine)].join('/');
}

/** What the class says and its Secrets, and not its other metadata: annotations and finalizers come and go. */
function classVersionOf(machineClass: MachineClass, { fingerprint }: ClassSecrets): string {
  const { uid, generation, resourceVersion } = machineClass.metadata;
  return [uid, generation ?? resourceVersion, fingerprint, retryRequestOf(machineClass)].join('/');
}
