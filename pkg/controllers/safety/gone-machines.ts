import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../apis/wire.ts';
import { BoundedMap } from '../../events/bounded-map.ts';

/** So many are remembered; the oldest are forgotten first. */
const CAPACITY = 8_192;

/** What is left of a machine whose VM was deleted. */
export interface GoneMachine {
  readonly name: string;
  readonly providerID: string;
}

/** Machines whose VM was deleted by us: a Node that shows such a VM, or such a Machine, joined too late. Kept in memory only. */
export class GoneMachines {
  readonly #byProviderID = new BoundedMap<string, GoneMachine>(CAPACITY);
  readonly #byName = new BoundedMap<string, GoneMachine>(CAPACITY);

  add(machine: GoneMachine): void {
    if (machine.providerID === '') return;
    this.#byProviderID.set(machine.providerID, machine);
    this.#byName.set(machine.name, machine);
  }

  /** The cluster was set back: Machines that have gone may be there again. */
  clear(): void {
    this.#byProviderID.clear();
    this.#byName.clear();
  }

  has(providerID: string): boolean {
    return this.#byProviderID.get(providerID) !== undefined;
  }

  /**
   * The machine whose Node this was, by the VM or else by the machine that it shows. A Node that says that it is another
   * machine's is not, nor one that shows another VM of the same provider.
   */
  of(node: Node): GoneMachine | undefined {
    const providerID = node.spec?.providerID ?? '';
    const says = node.metadata.labels?.[MACHINE_NAME_LABEL] ?? '';
    const ofVM = this.#byProviderID.get(providerID);
    if (ofVM !== undefined) return says === '' || says === ofVM.name ? ofVM : undefined;
    const named = this.#byName.get(says);
    return named !== undefined && schemeOf(providerID) !== schemeOf(named.providerID) ? named : undefined;
  }
}

/** Who gave a provider id its form: `aws` of `aws:///zone/i-1`; kubelets without a cloud show ids of their own, or none. */
function schemeOf(providerID: string): string {
  return providerID.split('://', 1)[0] ?? '';
}
