/** A VM of the simulated cloud. What a real cloud keeps in tags is a member here. */
export interface SimVM {
  readonly providerID: string;
  /** Tag: identity of the cluster; empty on a VM that another tool made. */
  readonly cluster: string;
  readonly namespace: string;
  readonly className: string;
  /** The VM's name, which is the Machine's and the Node's. */
  readonly machineName: string;
  /** Tag: UID of the Machine; undefined on a VM that another tool made. */
  readonly machineUID: string | undefined;
  readonly zone: string;
  readonly size: string;
  readonly address: string;
  readonly createdAtMs: number;
  readonly power: 'on' | 'off';
  /** False until InitializeMachine was called, where the provider spec asks for it. */
  readonly initialized: boolean;
  /** When it becomes a Node; undefined: never. Wall time. */
  readonly joinsAtMs: number | undefined;
  readonly nodeLabels: Readonly<Record<string, string>>;
}

/** Whose VM is looked for. */
export interface MachineIdentity {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string | undefined;
  readonly providerID: string | undefined;
}

/**
 * Whether a VM is the one of a machine (rule 1 of the contract): by name and tags, where a missing tag is no contradiction
 * and another UID is. A machine that knows its provider id also owns the VM with that id, unless the UID says otherwise.
 */
export function isVMOf(vm: SimVM, machine: MachineIdentity): boolean {
  if (vm.cluster !== '' && vm.cluster !== machine.cluster) return false;
  if (vm.machineUID !== undefined && machine.uid !== undefined && vm.machineUID !== machine.uid) return false;
  if (vm.providerID === machine.providerID) return true;
  // Without a UID only the id counts: an orphan's stub must never hit the VM that now has the name.
  if (machine.uid === undefined && machine.providerID !== undefined) return false;
  return vm.machineName === machine.name && vm.namespace === machine.namespace;
}
