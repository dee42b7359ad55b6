import { MACHINE_NAME_LABEL, NODE_LABEL } from '../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../apis/machine/v1alpha1/machine-set.ts';
import { isSameVM } from '../apis/machine/v1alpha1/same-vm.ts';
import { controllerOf, keyBeside, type KubeObject } from '../apis/meta.ts';
import type { Node } from '../apis/wire.ts';
import type { Lister } from '../kube/cache/lister.ts';
import { ownedMachines } from '../controllers/machine-deployment/observed.ts';
import { belongsTo, ownNodeOf } from '../controllers/machine-facts/node-owner.ts';
import { machinesOfNode } from '../operator/indexes/machines-of-node.ts';
import { parsePlaceholder } from './placeholder.ts';

/** What of a Node, or of an instance without one, a client tells. */
export interface NodeIdentifier {
  /** `spec.providerID`, or the id of an instance. */
  readonly providerId: string;
  readonly name: string;
  /** As the client has seen them, which may be minutes ago. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface MembershipDeps {
  readonly machines: Lister<Machine>;
  readonly machineSets: Lister<MachineSet>;
  readonly machineDeployments: Lister<MachineDeployment>;
  readonly nodes: Lister<Node>;
  readonly nodesOf: (machine: Machine) => readonly Node[];
}

/** Which Nodes, Machines and MachineDeployments belong together. Each question about one of them costs the same, however many there are. */
export class Membership {
  readonly #deps: MembershipDeps;

  constructor(deps: MembershipDeps) {
    this.#deps = deps;
  }

  /** The Machine of a Node, which may be gone already, or of a placeholder; undefined when it is nobody's. */
  machineOf({ providerId, name }: NodeIdentifier): Machine | undefined {
    const { machines, nodes } = this.#deps;
    const placeholder = parsePlaceholder(providerId) ?? parsePlaceholder(name);
    if (placeholder !== undefined)
      return placeholder.kind === 'machine' ? machines.byIndex('name', placeholder.machine)[0] : undefined;

    const node = this.#nodeNamed(providerId, name);
    if (node !== undefined) {
      const found = machinesOfNode(machines, node).find((machine) => belongsTo(node, machine, machines));
      if (found !== undefined) return found;
    }
    const ofVM = providerId === '' ? [] : machines.byIndex('providerID', providerId);
    // Of several that claim one VM only the Node's name can tell.
    if (ofVM.length > 1) return ofVM.find(({ metadata }) => metadata.labels?.[NODE_LABEL] === name);
    if (ofVM.length > 0 || node !== undefined || name === '') return ofVM[0];
    // Another one has the name: the Node that is meant was an earlier one, or is in a cluster that counts its servers in the same way.
    if (nodes.get(name) !== undefined) return undefined;
    // The Node is gone, and its Machine has not noticed. The id was the Node's, which may have another form than the Machine's.
    return machines.byIndex('node', name).find(({ spec }) => isSameVM(providerId, spec?.providerID) !== false);
  }

  /** Whether there is such a Node, of a Machine or not. */
  isNode({ providerId, name }: NodeIdentifier): boolean {
    return this.#nodeNamed(providerId, name) !== undefined;
  }

  /** Whether the client has seen the Node when it showed another Machine than this one, which has its name, or its VM, since then. */
  wasOfAnother(seen: NodeIdentifier, machine: Machine): boolean {
    const showed = seen.labels?.[MACHINE_NAME_LABEL] ?? '';
    if (showed === '' || showed === machine.metadata.name) return false;
    return this.#nodeNamed(seen.providerId, seen.name)?.metadata.labels?.[MACHINE_NAME_LABEL] !== showed;
  }

  deploymentOf(machine: Machine): MachineDeployment | undefined {
    const set = ownerIn(this.#deps.machineSets, machine);
    return set && ownerIn(this.#deps.machineDeployments, set);
  }

  /** All Machines of a MachineDeployment, by name. */
  machinesOf(deployment: MachineDeployment): readonly Machine[] {
    return ownedMachines(this.#deps, deployment).toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  /** The Node that a Machine has become; undefined when there is none, or nobody can tell which of several. */
  nodeOf(machine: Machine): Node | undefined {
    const own = ownNodeOf(machine, { ofMachine: this.#deps.nodesOf });
    if (own !== undefined) return own;
    // One that has just joined shows neither the name nor the VM of its Machine yet.
    const [only, ...others] = this.#deps.nodesOf(machine);
    return others.length === 0 ? only : undefined;
  }

  /** Whether it has become any Node, even if nobody can tell which. */
  hasNode(machine: Machine): boolean {
    return this.#deps.nodesOf(machine).length > 0;
  }

  /**
   * By provider id, else by name; a Node of that name and another VM is another Node. Of several Nodes or Machines that claim one VM only the
   * name can tell: anyone else of them may be well.
   */
  #nodeNamed(providerId: string, name: string): Node | undefined {
    const { nodes, machines } = this.#deps;
    const ofVM = providerId === '' ? [] : nodes.byIndex('providerID', providerId);
    if (ofVM.length > 0) {
      const isOne = ofVM.length === 1 && machines.byIndex('providerID', providerId).length <= 1;
      return ofVM.find(({ metadata }) => metadata.name === name) ?? (isOne ? ofVM[0] : undefined);
    }
    const named = name === '' ? undefined : nodes.get(name);
    return providerId === '' || (named?.spec?.providerID ?? '') === '' ? named : undefined;
  }
}

/** The object that controls another one, if it is that very object. */
function ownerIn<T extends KubeObject>(owners: Lister<T>, object: KubeObject): T | undefined {
  const reference = controllerOf(object);
  const owner = reference && owners.get(keyBeside(object, reference.name));
  return owner?.metadata.uid === reference?.uid ? owner : undefined;
}
