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

/** Machines whose VM was deleted by us, by provider id: a Node that shows such a VM joined too late. Kept in memory only. */
export class GoneMachines {
  readonly #byProviderID = new BoundedMap<string, GoneMachine>(CAPACITY);

  add(machine: GoneMachine): void {
    if (machine.providerID !== '') this.#byProviderID.set(machine.providerID, machine);
  }

  has(providerID: string): boolean {
    return this.#byProviderID.get(providerID) !== undefined;
  }

  /** The machine whose VM this Node was. A Node that says that it is another machine's is not. */
  of(node: Node): GoneMachine | undefined {
    const gone = this.#byProviderID.get(node.spec?.providerID ?? '');
    const says = node.metadata.labels?.[MACHINE_NAME_LABEL] ?? '';
    return gone !== undefined && (says === '' || says === gone.name) ? gone : undefined;
  }
}
