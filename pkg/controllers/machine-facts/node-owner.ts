import type { ObjectMeta } from '../../apis/meta.ts';
import { hadNode, nodeNameOf, phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { isClearlyOlder } from './clearly-older.ts';
import { areOfOneScheme, isSameVM } from '../../apis/machine/v1alpha1/same-vm.ts';

/** Phases in which a machine may be without a VM. */
const SAYS_NOTHING: ReadonlySet<string> = new Set(['', 'CrashLoopBackOff', 'Failed', 'Terminating']);

/**
 * The Machines whose Nodes may be in the target cluster, with MACHINE_INDEXES of pkg/indexes: those of a namespace, or of all where namespaces
 * share a target, which `reachesAcross` tells. Two of the latter may have one name.
 */
export type MachineIndex = Pick<Lister<Machine>, 'byIndex' | 'reachesAcross'>;

/**
 * Whether a Node that has the right name, label or provider id is this machine's. Names and provider ids may be wrong: drivers
 * mix VMs up, people edit, Node names are reused. That ids differ proves nothing by itself: drivers and cloud controllers may
 * write them in different forms. Only another Machine that has a better claim makes the Node another's.
 *
 * Where namespaces share a target, a label `node` may not claim Nodes of others in it: a Node without a name has to be of this machine's VM.
 *
 * Of namesakes in several namespaces the one has a Node of their name that has a VM; of several such the one that shows that VM, else the oldest. Of
 * those that were created at about the same time it is one that had a Node.
 *
 * | the Node's machine-name label | provider ids of Node and Machine  | others that may have it     | is this machine's |
 * |-------------------------------|-----------------------------------|-----------------------------|-------------------|
 * | this machine                  | any                               | a namesake that may have it | no                |
 * | this machine                  | any                               | any others                  | yes               |
 * | another living Machine        | any                               | any                         | no                |
 * | a Machine that is gone        | of one VM                         | any                         | yes               |
 * | a Machine that is gone        | not known to be of one VM         | any                         | no                |
 * | none, in a shared target      | not known to be of one VM         | any                         | no                |
 * | none                          | any                               | none                        | yes               |
 * | none                          | of different VMs                  | some, one of them not so    | no                |
 * | none                          | any                               | only such as are no better  | the namesake's, else the oldest's |
 */
export function belongsTo(node: Node, machine: Machine, machines: MachineIndex): boolean {
  const says = labelOf(node);
  if (says === machine.metadata.name) return !isOfNamesake(node, machine, machines);
  if (says !== '' && machines.byIndex('name', says).length > 0) return false;
  const isOurVM = isVMOf(node, machine);
  if (isOurVM !== true && (says !== '' || machines.reachesAcross === true)) return false;
  if (says !== '') return true;
  const rivals = rivalsFor(node, machine, machines);
  const better = rivals.filter((rival) => isVMOf(node, rival) !== false);
  if (isOurVM === false) return better.length === 0 && isFirst(node, machine, rivals);
  return isFirst(node, machine, better);
}

/**
 * Whether a Node may be drained and deleted with this machine, or take it along: what a doubt must not do. A Node shows no namespace and no UID:
 * its label alone may name a Machine of another manager's namespace. What this machine has recorded must agree, and where a namesake has a VM
 * too, it must be of the VM of this machine; of two that have recorded that VM it is removed with the one that is clearly older, and with neither
 * if none is:
 *
 * | label `node` of the Machine  | provider ids of Node and Machine | the Node shows      | goes with it                      |
 * |------------------------------|----------------------------------|---------------------|-----------------------------------|
 * | names the Node               | any                              | this machine's name | yes, unless it is an earlier VM's |
 * | names the Node               | not known to be of different VMs | no name             | yes                               |
 * | is missing, or names another | of one VM                        | any                 | if a driver has shown this VM     |
 * | is missing, or names another | not known to be of one VM        | any                 | no                                |
 */
export function isRemovedWith(node: Node, machine: Machine, machines: MachineIndex): boolean {
  if (!belongsTo(node, machine, machines) || mayBeOfNamesake(node, machine, machines)) return false;
  const isOurVM = isVMOf(node, machine);
  if (nodeNameOf(machine) !== node.metadata.name) return isOurVM === true && hasVM(machine);
  return labelOf(node) === machine.metadata.name
    ? mayBeOurs(node, machine) || !isOfOneScheme(node, machine)
    : isOurVM !== false;
}

/**
 * The Nodes that are removed with this machine. If there is none although a Node has joined before, label `node` was changed or removed; then
 * the Node that shows the machine's name is removed, unless it shows another VM. A provider ID that another Machine has too is ignored.
 */
export function nodesRemovedWith(found: readonly Node[], machine: Machine, machines: MachineIndex): readonly Node[] {
  const going = found.filter((node) => isRemovedWith(node, machine, machines));
  if (going.length > 0 || !hadNode(machine)) return going;
  return found.filter(
    (node) =>
      labelOf(node) === machine.metadata.name &&
      node.metadata.name !== nodeNameOf(machine) &&
      !mayBeOfNamesake(node, machine, machines) &&
      !(isVMOf(node, machine) === false && isOfOneScheme(node, machine) && !sharesID(machine, machines)),
  );
}

function sharesID({ metadata, spec }: Machine, machines: MachineIndex): boolean {
  const providerID = spec?.providerID ?? '';
  return (
    providerID !== '' && machines.byIndex('providerID', providerID).some((one) => one.metadata.uid !== metadata.uid)
  );
}

/**
 * Whether a driver has shown the VM of this machine: its provider id alone proves nothing, because anyone may write it. Label `node` is
 * written with the answer of a driver.
 */
export function hasVM(machine: Pick<Machine, 'metadata' | 'status'>): boolean {
  return nodeNameOf(machine) !== '' || hadNode(machine) || !SAYS_NOTHING.has(phaseOf(machine));
}

/**
 * The Node that this machine has become, whatever its label `node` says: the only one that shows its name, or else the only one of its
 * VM. A Node that was there before the Machine may be an earlier machine's of that name: its provider id must not speak against it. Undefined: there is
 * none, or nobody can tell which.
 */
export function ownNodeOf(machine: Machine, nodes: { ofMachine(machine: Machine): readonly Node[] }): Node | undefined {
  const found = nodes.ofMachine(machine);
  const shown = found.filter((node) => labelOf(node) === machine.metadata.name && mayBeOurs(node, machine));
  const [own, ...others] = shown.length > 0 ? shown : found.filter((node) => isVMOf(node, machine) === true);
  return others.length === 0 ? own : undefined;
}

function mayBeOurs(node: Node, machine: Machine): boolean {
  return isVMOf(node, machine) !== false || node.metadata.creationTimestamp >= machine.metadata.creationTimestamp;
}

/** See areOfOneScheme. */
export function isOfOneScheme({ spec }: Node, machine: Machine): boolean {
  return areOfOneScheme(spec?.providerID ?? '', machine.spec?.providerID ?? '');
}

/** The living Machine other than this one whose name a Node shows, and, of a namesake, whose VM it may be; undefined when there is none. */
export function otherOwnerOf(node: Node, machine: Machine, machines: MachineIndex): Machine | undefined {
  const says = labelOf(node);
  if (says === '') return undefined;
  if (says !== machine.metadata.name) return machines.byIndex('name', says)[0];
  const own = claimOf(node, machine);
  return namesakesOf(machine, machines).find((one) => {
    const claim = claimOf(node, one);
    return claim >= CLAIM.unknownVM && claim > own;
  });
}

/** How good the claim to a Node is that shows the name of a Machine: by what that has recorded. */
const CLAIM = { none: 0, otherVM: 1, unknownVM: 2, itsVM: 3 } as const;

function claimOf(node: Node, machine: Machine): number {
  if (!hasRecordedVM(machine)) return CLAIM.none;
  const isItsVM = isVMOf(node, machine);
  if (isItsVM === undefined) return CLAIM.unknownVM;
  return isItsVM ? CLAIM.itsVM : CLAIM.otherVM;
}

/** Whether it has, or says to have, a VM. */
export function hasRecordedVM(machine: Machine): boolean {
  return (machine.spec?.providerID ?? '') !== '' || hasVM(machine);
}

/** The Machines of the same name in other namespaces. */
function namesakesOf({ metadata }: Machine, machines: MachineIndex): readonly Machine[] {
  return machines.byIndex('name', metadata.name).filter((one) => one.metadata.namespace !== metadata.namespace);
}

/** Whether a Node that shows the name of this machine is rather that of another one of this name. */
function isOfNamesake(node: Node, machine: Machine, machines: MachineIndex): boolean {
  const namesakes = namesakesOf(machine, machines);
  const own = claimOf(node, machine);
  if (namesakes.length === 0) return false;
  return (
    own === CLAIM.none ||
    namesakes.some((one) => {
      const claim = claimOf(node, one);
      return claim > own || (claim === own && comesBefore(one, machine));
    })
  );
}

/** Of two with equal claims the older; of two of which neither clearly is, the one that had a Node: to a copy nobody gives one. */
function comesBefore(a: Machine, b: Machine): boolean {
  const isEqual = !isClearlyOlder(a.metadata, b.metadata) && !isClearlyOlder(b.metadata, a.metadata);
  return isEqual && hadNode(a) !== hadNode(b) ? hadNode(a) : isOlder(a.metadata, b.metadata);
}

/**
 * Whether a Node cannot be taken from this machine's namesakes with certainty. Of a copy of this machine, for example in a namespace that was
 * restored under another name, it can: else the VM would be deleted without a drain.
 */
function mayBeOfNamesake(node: Node, machine: Machine, machines: MachineIndex): boolean {
  const rivals = namesakesOf(machine, machines).filter((one) => claimOf(node, one) > CLAIM.none);
  if (rivals.length === 0) return false;
  if (claimOf(node, machine) !== CLAIM.itsVM || isOfNamesake(node, machine, machines)) return true;
  // Else nobody can say which is the copy.
  return rivals.some((one) => claimOf(node, one) === CLAIM.itsVM && !isClearlyOlder(machine.metadata, one.metadata));
}

/** Whether a Node in a target that namespaces share shows neither the name nor the VM of a machine: then it is nobody's. */
export function isUnidentified(node: Node, machine: Machine, machines: MachineIndex): boolean {
  return machines.reachesAcross === true && labelOf(node) === '' && isVMOf(node, machine) !== true;
}

/**
 * Whether nobody can say if a Node is that of this machine, which has a VM, or that of a namesake that has one: it shows the provider id of
 * neither.
 */
export function isInDoubt(node: Node, machine: Machine, machines: MachineIndex): boolean {
  const says = labelOf(node);
  if (says !== '' && says !== machine.metadata.name) return false;
  const claims = namesakesOf(machine, machines).map((one) => claimOf(node, one));
  if (claims.every((claim) => claim === CLAIM.none) || claims.includes(CLAIM.itsVM)) return false;
  const own = claimOf(node, machine);
  return own === CLAIM.unknownVM || (own === CLAIM.otherVM && !isOfOneScheme(node, machine));
}

function labelOf({ metadata }: Node): string {
  return metadata.labels?.[MACHINE_NAME_LABEL] ?? '';
}

/** By the provider ids; undefined when one of them is not known. */
function isVMOf(node: Node, { spec }: Machine): boolean | undefined {
  return isSameVM(node.spec?.providerID, spec?.providerID);
}

function rivalsFor(node: Node, machine: Machine, machines: MachineIndex): readonly Machine[] {
  const { providerID = '' } = node.spec ?? {};
  const named = machines.byIndex('node', node.metadata.name);
  const sameVM = providerID === '' ? [] : machines.byIndex('providerID', providerID);
  return [...named, ...sameVM].filter((one) => one.metadata.uid !== machine.metadata.uid);
}

/** Two Machines that claim one Node would undo each other's labels forever. */
function isFirst(node: Node, { metadata }: Machine, rivals: readonly Machine[]): boolean {
  if (rivals.length === 0) return true;
  const named = rivals.filter((rival) => rival.metadata.name === node.metadata.name);
  if (metadata.name === node.metadata.name) {
    const namesakes = named.filter((rival) => rival.metadata.namespace !== metadata.namespace);
    return namesakes.every((rival) => isOlder(metadata, rival.metadata));
  }
  return named.length === 0 && rivals.every((rival) => isOlder(metadata, rival.metadata));
}

type Age = Pick<ObjectMeta, 'creationTimestamp' | 'name' | 'namespace'>;

function isOlder(a: Age, b: Age): boolean {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp;
  return a.name === b.name ? (a.namespace ?? '') < (b.namespace ?? '') : a.name < b.name;
}
