import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import type { Lister } from '../../cache/lister.ts';
import { isSameVM } from './same-vm.ts';

/** The Machines that there are, with MACHINE_INDEXES of pkg/indexes. */
export type KnownMachines = Pick<Lister<Machine>, 'byIndex'>;

/**
 * Whether a Node that has the right name, label or provider id is this machine's. Names and provider ids may be wrong: drivers
 * mix VMs up, people edit, Node names are reused. That ids differ proves nothing by itself: drivers and cloud controllers may
 * write them in different forms. Only another Machine that has a better claim makes the Node another's.
 *
 * | the Node's machine-name label | provider ids of Node and Machine  | others that may have it     | is this machine's |
 * |-------------------------------|-----------------------------------|-----------------------------|-------------------|
 * | this machine                  | any                               | any                         | yes               |
 * | another living Machine        | any                               | any                         | no                |
 * | a Machine that is gone        | of one VM                         | any                         | yes               |
 * | a Machine that is gone        | not known to be of one VM         | any                         | no                |
 * | none                          | any                               | none                        | yes               |
 * | none                          | of different VMs                  | some, one of them not so    | no                |
 * | none                          | any                               | only such as are no better  | the namesake's, else the oldest's |
 */
export function belongsTo(node: Node, machine: Machine, machines: KnownMachines): boolean {
  const says = labelOf(node);
  if (says === machine.metadata.name) return true;
  if (says !== '' && machines.byIndex('name', says).length > 0) return false;
  const isOurVM = isVMOf(node, machine);
  if (says !== '') return isOurVM === true;
  const rivals = rivalsFor(node, machine, machines);
  const better = rivals.filter((rival) => isVMOf(node, rival) !== false);
  if (isOurVM === false) return better.length === 0 && isFirst(node, machine, rivals);
  return isFirst(node, machine, better);
}

/**
 * Whether a Node may be drained and deleted with this machine, or take it along: what a doubt must not do. It is this machine's, and
 * shows its name or no provider id of another VM.
 */
export function goesWith(node: Node, machine: Machine, machines: KnownMachines): boolean {
  if (!belongsTo(node, machine, machines)) return false;
  return labelOf(node) === machine.metadata.name || isVMOf(node, machine) !== false;
}

/** The Nodes that a machine may have become, from a cache. */
interface FoundNodes {
  ofMachine(machine: Machine): readonly Node[];
}

/**
 * The Node that this machine has become, whatever its label `node` says: the only one that shows its name, or else the only one of its
 * VM. A Node that was there before the Machine may be an earlier machine's of that name: its provider id must not speak against it. Undefined: there is
 * none, or nobody can tell which.
 */
export function ownNodeOf(machine: Machine, nodes: FoundNodes): Node | undefined {
  const found = nodes.ofMachine(machine);
  const shown = found.filter((node) => labelOf(node) === machine.metadata.name && mayBeOurs(node, machine));
  const [own, ...others] = shown.length > 0 ? shown : found.filter((node) => isVMOf(node, machine) === true);
  return others.length === 0 ? own : undefined;
}

function mayBeOurs(node: Node, machine: Machine): boolean {
  return isVMOf(node, machine) !== false || node.metadata.creationTimestamp >= machine.metadata.creationTimestamp;
}

/** The living Machine other than this one whose name a Node shows; undefined when there is none. */
export function otherOwnerOf(node: Node, machine: Machine, machines: KnownMachines): Machine | undefined {
  const says = labelOf(node);
  return says === '' || says === machine.metadata.name ? undefined : machines.byIndex('name', says)[0];
}

function labelOf({ metadata }: Node): string {
  return metadata.labels?.[MACHINE_NAME_LABEL] ?? '';
}

/** By the provider ids; undefined when one of them is not known. */
function isVMOf(node: Node, { spec }: Machine): boolean | undefined {
  return isSameVM(node.spec?.providerID, spec?.providerID);
}

function rivalsFor(node: Node, machine: Machine, machines: KnownMachines): readonly Machine[] {
  const { providerID = '' } = node.spec ?? {};
  const named = machines.byIndex('node', node.metadata.name);
  const sameVM = providerID === '' ? [] : machines.byIndex('providerID', providerID);
  return [...named, ...sameVM].filter((one) => one.metadata.uid !== machine.metadata.uid);
}

/** Two Machines that claim one Node would undo each other's labels forever. */
function isFirst(node: Node, { metadata }: Machine, rivals: readonly Machine[]): boolean {
  if (rivals.length === 0 || metadata.name === node.metadata.name) return true;
  return rivals.every((rival) => rival.metadata.name !== node.metadata.name && isOlder(metadata, rival.metadata));
}

interface Age {
  readonly creationTimestamp: string;
  readonly name: string;
}

function isOlder(a: Age, b: Age): boolean {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp;
  return a.name < b.name;
}
