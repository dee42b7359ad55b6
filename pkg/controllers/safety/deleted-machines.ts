import { MACHINE_NAME_LABEL, NODE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import { BoundedMap } from '../../kube/events/bounded-map.ts';
import { hasVM } from '../machine-facts/node-owner.ts';
import { areOfOneScheme, isSameVM } from '../../apis/machine/v1alpha1/same-vm.ts';

/** So many are remembered; the oldest are forgotten first. */
const CAPACITY = 8_192;

/** What is left of a machine whose VM was deleted. */
export interface DeletedMachine {
  readonly name: string;
  /** The name that its Node has or would have had. */
  readonly nodeName: string;
  readonly providerID: string;
  /** When the Machine was created, if it is known: a Node that is older did not join late. */
  readonly createdAt?: string;
}

/** What is left of a Machine. One that no driver has shown a VM leaves nothing: its provider id may be that of another namespace's VM. */
export function remainsOf(machine: Machine): DeletedMachine {
  const { metadata, spec } = machine;
  const { name, labels, creationTimestamp } = metadata;
  const providerID = hasVM(machine) ? (spec.providerID ?? '') : '';
  return { name, nodeName: labels?.[NODE_LABEL] ?? name, providerID, createdAt: creationTimestamp };
}

/** Machines whose VM was deleted by us: a Node that shows such a VM, or such a Machine, joined too late. Kept in memory only. */
export class DeletedMachines {
  readonly #byProviderID = new BoundedMap<string, DeletedMachine>(CAPACITY);
  readonly #byName = new BoundedMap<string, DeletedMachine>(CAPACITY);
  readonly #byNodeName = new BoundedMap<string, DeletedMachine>(CAPACITY);

  #late: (machine: DeletedMachine) => void = () => undefined;

  /** Who is told of machines whose VM went later than they; one only. */
  onLate(told: (machine: DeletedMachine) => void): void {
    this.#late = told;
  }

  /** The VM of a machine that was gone before is gone now: its Nodes can go too. */
  addLate(machine: DeletedMachine): void {
    this.add(machine);
    this.#late(machine);
  }

  add(machine: DeletedMachine): void {
    if (machine.providerID === '') return;
    this.#byProviderID.set(machine.providerID, machine);
    this.#byName.set(machine.name, machine);
    this.#byNodeName.set(machine.nodeName, machine);
  }

  /** A later Machine of this name or VM has vanished: what shows either may be its, and nobody of ours has deleted that. */
  forget({ name, nodeName, providerID }: DeletedMachine): void {
    for (const one of [this.#byProviderID.get(providerID), this.#byName.get(name), this.#byNodeName.get(nodeName)]) {
      if (one === undefined) continue;
      this.#byProviderID.delete(one.providerID);
      this.#byName.delete(one.name);
      this.#byNodeName.delete(one.nodeName);
    }
  }

  /** This VM was not deleted after all. Another one of its name, such as its twin, may have been. */
  forgetVM(providerID: string): void {
    const one = this.#byProviderID.get(providerID);
    if (one === undefined) return;
    this.#byProviderID.delete(providerID);
    if (this.#byName.get(one.name) === one) this.#byName.delete(one.name);
    if (this.#byNodeName.get(one.nodeName) === one) this.#byNodeName.delete(one.nodeName);
  }

  /** The cluster was set back: Machines that have gone may be there again. */
  clear(): void {
    this.#byProviderID.clear();
    this.#byName.clear();
    this.#byNodeName.clear();
  }

  has(providerID: string): boolean {
    return this.#byProviderID.get(providerID) !== undefined;
  }

  /**
   * The machine whose Node this was. A Node that says that it is another machine's is not, nor one that shows another VM of the same
   * provider. An id of another form than the driver's is believed where a name is right too: the last segment alone may be another cloud's. A name
   * alone is not believed of a Node that is older than the Machine: another namespace may have a Machine of that name.
   */
  of(node: Node): DeletedMachine | undefined {
    const providerID = node.spec?.providerID ?? '';
    const says = node.metadata.labels?.[MACHINE_NAME_LABEL] ?? '';
    const ofVM = this.#byProviderID.get(providerID);
    if (ofVM !== undefined) return says === '' || says === ofVM.name ? ofVM : undefined;
    const named = says === '' ? this.#byNodeName.get(node.metadata.name) : this.#byName.get(says);
    if (named === undefined) return undefined;
    const isOlder = node.metadata.creationTimestamp < (named.createdAt ?? '');
    const isOfOtherScheme = says !== '' && !isOlder && !areOfOneScheme(providerID, named.providerID);
    return isOfOtherScheme || isSameVM(providerID, named.providerID) === true ? named : undefined;
  }
}
