import { classNameOf, providerIDOf, vmClassNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { VM_CLASS_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineCopy } from '../../machine-facts/status.ts';

/**
 * With which MachineClass the VM of a Machine was requested. Another class may be in another account of the provider, where the VM is not: a
 * Machine whose `spec.class` is changed would be given a second VM, and the first would be deleted by nobody.
 *
 * | Machine                         | recorded with       | class in use                                                  |
 * |---------------------------------|---------------------|---------------------------------------------------------------|
 * | has a VM, or is being deleted   | a class             | that one                                                      |
 * | has a VM                        | none                | the one that it named when this process saw it first          |
 * | in creation                     | the class it names  | that one                                                      |
 * | in creation                     | another class       | that one until its driver says that there is no VM, then the one that it names |
 *
 * It is recorded with the VM, when CreateMachine has failed, and before CreateMachine is sent where a second call could make a second VM; while
 * CreateMachine runs once the Machine names another class, or that of the VM could be deleted meanwhile.
 */
export class VMClasses {
  /** By the UID of the Machine: as the table says, also where that is not recorded yet. */
  readonly #recorded = new Map<string, string>();
  /** Classes that were left because their driver knows no VM of the Machine. */
  readonly #left = new Map<string, string>();

  /** The class that a Machine without a VM is to be created with, or looked for with. */
  inCreation(machine: Machine): string {
    const { uid } = machine.metadata;
    const former = this.#recordedOf(machine);
    return former === undefined || this.#left.get(uid) === former ? classNameOf(machine) : former;
  }

  /** Whether CreateMachine was sent with another class before, as far as anybody knows. */
  hasFormer(machine: Machine, className: string): boolean {
    const known = this.#recordedOf(machine);
    return known !== undefined && known !== className;
  }

  /** A VM was found with this class, or is being requested with it. */
  requested({ metadata: { uid } }: Machine, className: string): void {
    this.#recorded.set(uid, className);
    this.#left.delete(uid);
  }

  /** CreateMachine was answered with the promise that nothing was made. */
  refused({ metadata: { uid } }: Machine): void {
    this.#recorded.delete(uid);
  }

  /** The driver of this class knows no VM of the Machine, and no answer of it is missing. */
  left({ metadata: { uid } }: Machine, className: string): void {
    this.#left.set(uid, className);
  }

  /** Puts on the copy what this process knows. */
  record({ metadata }: MachineCopy): void {
    const known = this.#recorded.get(metadata.uid);
    if (known === undefined || known === metadata.annotations?.[VM_CLASS_ANNOTATION]) return;
    metadata.annotations = { ...metadata.annotations, [VM_CLASS_ANNOTATION]: known };
  }

  /** Remembers the class of a VM that is recorded without it, as the original does; once the Machine names another one, that is recorded. */
  watch(machine: MachineCopy): void {
    const { uid, annotations } = machine.metadata;
    if (providerIDOf(machine) === '' || annotations?.[VM_CLASS_ANNOTATION] !== undefined) return;
    const known = this.#recorded.get(uid);
    if (known === undefined) this.#recorded.set(uid, classNameOf(machine));
    else if (known !== classNameOf(machine)) this.record(machine);
  }

  forget(machineUID: string): void {
    this.#recorded.delete(machineUID);
    this.#left.delete(machineUID);
  }

  #recordedOf(machine: Machine): string | undefined {
    const { uid, annotations } = machine.metadata;
    return (
      this.#recorded.get(uid) ?? (annotations?.[VM_CLASS_ANNOTATION] === undefined ? undefined : vmClassNameOf(machine))
    );
  }
}
