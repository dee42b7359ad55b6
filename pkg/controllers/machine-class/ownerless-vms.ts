import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { ListedMachine } from '../../driver/driver.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Drivers } from '../../driver/drivers.ts';
import type { MachineDriver } from '../../driver/gated-driver.ts';
import { hasFinalizer } from '../../apis/finalizers.ts';
import { keyOf } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { classIndex } from '../../operator/indexes/class-index.ts';
import type { Reader } from '../../kube/client/client.ts';
import { machines as machineResource } from '../../kube/client/resource.ts';
import type { MachineIndex } from '../machine-facts/node-owner.ts';
import { forcedRemovalsOf, mayBeLeftBy } from '../vms/forced-removals.ts';
import { classOfVM } from '../vms/class-of-vm.ts';
import { identify, isOfNamespace, mayBeOfOther, namesakesOf } from '../vms/ownership.ts';
import type { SecretContents } from '../class-secrets/secret-contents.ts';
import type { LeftoverVMs } from './finalizer-decision.ts';
import type { Target } from '../../kube/targets/targets.ts';
import { isSameVM } from '../../apis/machine/v1alpha1/same-vm.ts';

export interface OwnerlessDeps {
  readonly classes: Pick<Lister<MachineClass>, 'get' | 'list'>;
  readonly drivers: Drivers;
  /** As far as this process may read them. */
  readonly sets: () => readonly MachineSet[];
  readonly secrets: Pick<SecretContents, 'of'>;
  readonly reader: Reader;
  readonly namespace: string;
  /** Where namespaces share a target cluster, those of all of them. */
  readonly machines: MachineIndex;
  /** Whether a Node shows a VM that no Machine has, and is about to be deleted because that is gone. */
  readonly hasNodeLeft: (providerID: string) => boolean;
  readonly log: Logger;
  /** Whether this process deletes what Machines that were let go by force have left, and takes the note of each away then. */
  readonly cleansUp: boolean;
}

/**
 * Asks the driver for its VMs, and after that, live, which Machines exist: a VM made in between belongs to a Machine that is
 * seen. The VM of a Machine that was let go by force is nobody's, although another Machine has its name by now.
 *
 * Classes may have the same account of the provider, whose list shows the VMs of all of them. A VM of a Machine of another class is that
 * one's if the list for its own class shows it, too: else only this class finds it. In a list of the whole cluster so is a VM without Machine,
 * of the class that its set tells; where none does, or that class is gone, any class in use finds it. A class that cannot be listed finds
 * nothing. What may be of another namespace counts for nothing: the orphan loop leaves it alone. Throws DriverError and ApiError.
 */
export async function findOwnerlessVMs(
  deps: OwnerlessDeps,
  machineClass: MachineClass,
  signal: AbortSignal,
): Promise<LeftoverVMs> {
  const { drivers, reader, namespace, hasNodeLeft, cleansUp } = deps;
  const driver = drivers.resolve(machineClass);
  if (driver === undefined) return 'unknown';
  const { methods, listScope } = await driver.capabilities(signal);
  if (!methods.has('ListMachines')) return 'unsupported';
  const vms = await vmsOf(deps, driver, machineClass, signal);
  const removals = forcedRemovalsOf(machineClass);
  // No list shows ports and disks without a VM.
  if (cleansUp && removals.some(({ machine }) => machine !== undefined)) return 'some';
  // Its note is what the Node is found by, whoever goes on.
  if (removals.some(({ providerID }) => providerID !== undefined && hasNodeLeft(providerID))) return 'some';
  if (vms.length === 0) return 'none';
  const { items } = await reader.list(machineResource, { namespace, signal });
  const identities = identify(items);
  const ownKey = keyOf(machineClass);
  const classOf = classOfVM(identities, deps.sets());
  const judged = vms.map((vm) => {
    const isLeft = removals.some((one) => mayBeLeftBy(vm, one));
    const namesake = isLeft ? undefined : namesakesOf(vm, identities)[0];
    const owner = identities.byProviderID.get(vm.providerID) ?? namesake;
    if (owner !== undefined) return { vm, owner, key: classIndex(owner)[0] };
    return { vm, owner, key: isLeft || listScope === 'class' ? ownKey : classOf(vm) };
  });
  if (judged.some(({ owner, key }) => owner === undefined && key === ownKey)) return 'some';
  const others = new Map<string, ReadonlySet<string> | undefined>();
  const idsIn = async (key: string): Promise<ReadonlySet<string> | undefined> => {
    if (!others.has(key)) others.set(key, await knownIDsOf(deps, key, signal));
    return others.get(key);
  };
  let isUnknown = false;
  for (const { vm, owner, key = '' } of judged) {
    if (key === ownKey) continue;
    const named = deps.classes.get(key);
    const isNamed = named !== undefined && (owner !== undefined || hasFinalizer(named, MACHINE_FINALIZER));
    let isFound = false;
    let mayBeFound = false;
    for (const one of isNamed || listScope === 'class' ? [key] : inUseBeside(deps, machineClass, items)) {
      if (isFound) break;
      const ids = await idsIn(one);
      isFound = ids?.has(vm.providerID) === true;
      mayBeFound ||= ids === undefined;
    }
    // What has a Machine is known, and not lost for good. What has none is known by lists alone, and this class has one.
    if (!isFound && !(owner !== undefined && mayBeFound)) return 'some';
    isUnknown ||= !isFound;
  }
  return isUnknown ? 'unknown' : 'none';
}

/** The other classes in use of the same driver, by whatever Secret: whichever of those that list a VM is the last holds itself. */
function inUseBeside(
  { classes, drivers }: OwnerlessDeps,
  machineClass: MachineClass,
  machines: readonly Machine[],
): readonly string[] {
  const providerOf = (one: MachineClass): string | undefined => drivers.resolve(one)?.provider;
  const used = new Set(machines.flatMap(classIndex));
  return classes
    .list()
    .filter((one) => hasFinalizer(one, MACHINE_FINALIZER) && providerOf(one) === providerOf(machineClass))
    .map(keyOf)
    .filter((key) => used.has(key));
}

/** Those of another class; undefined if it could not be listed. */
async function knownIDsOf(
  deps: OwnerlessDeps,
  classKey: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string> | undefined> {
  try {
    return await idsOf(deps, classKey, signal);
  } catch (err) {
    signal.throwIfAborted();
    deps.log.warn({ err, class: classKey }, 'could not list VMs of a class beside an unused one');
    return undefined;
  }
}

/** Provider ids of the VMs of another class; none of one that cannot list. */
async function idsOf(deps: OwnerlessDeps, classKey: string, signal: AbortSignal): Promise<Set<string>> {
  const machineClass = deps.classes.get(classKey);
  if (machineClass === undefined) return new Set();
  const driver = deps.drivers.resolve(machineClass);
  if (driver === undefined) return new Set();
  const { methods } = await driver.capabilities(signal);
  if (!methods.has('ListMachines')) return new Set();
  const vms = await vmsOf(deps, driver, machineClass, signal);
  return new Set(vms.map(({ providerID }) => providerID));
}

async function vmsOf(
  { secrets, namespace, machines }: OwnerlessDeps,
  driver: MachineDriver,
  machineClass: MachineClass,
  signal: AbortSignal,
): Promise<readonly ListedMachine[]> {
  const { listScope } = await driver.capabilities(signal);
  const { data } = await secrets.of(machineClass, signal);
  const listed = await driver.list({ machineClass, secretData: data }, signal);
  return listed.filter((vm) => isOfNamespace(vm, namespace, listScope) && !mayBeOfOther(vm, namespace, machines));
}

/** Whether a Node shows a VM that no Machine has, in whatever form either writes the provider id. Looks at every Node: for rare questions. */
export function hasLeftoverNode(
  providerID: string,
  { machines, targets }: Pick<Caches, 'machines'> & { readonly targets: readonly Pick<Target, 'nodes'>[] },
): boolean {
  const isShown = targets.some(({ nodes }) =>
    nodes.list().some(({ spec }) => isSameVM(spec?.providerID, providerID) === true),
  );
  return isShown && !machines.list().some((machine) => isSameVM(providerIDOf(machine), providerID) === true);
}
