import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../../../apis/meta.ts';
import type { Capabilities, ListedMachine } from '../../../driver/driver.ts';
import type { MachineDriver } from '../../../driver/gated-driver.ts';
import { machines } from '../../../kube/client/resource.ts';
import { isOfNamespace, mayBeOfOther } from '../../vms/ownership.ts';
import type { Collaborators } from './collaborators.ts';

export interface ClassAccess {
  readonly key: string;
  readonly machineClass: MachineClass;
  readonly driver: MachineDriver;
  readonly secretData: Readonly<Record<string, Uint8Array>>;
}

export interface ClassList extends ClassAccess {
  readonly scope: Capabilities['listScope'];
  /** Those that may be of our namespace. */
  readonly vms: readonly ListedMachine[];
  /** Those that are left alone because nothing says that they are. */
  readonly foreign: readonly ListedMachine[];
}

/** One look at everything: first the VMs of every class, then the Machines. */
export interface Survey {
  readonly lists: readonly ClassList[];
  /** Classes whose driver cannot list VMs. */
  readonly unlistable: readonly ClassAccess[];
  /** Classes whose VMs could not be listed, and why. */
  readonly failures: readonly { readonly key: string; readonly error: unknown }[];
  /** Read from a quorum after the last VM list had come. */
  readonly machines: readonly Machine[];
}

export type SurveyDeps = Pick<Collaborators, 'drivers' | 'secrets' | 'reader' | 'namespace' | 'machines'>;

/**
 * Looks at everything. Classes are independent: one that cannot be listed is told, and the others are looked at. One whose
 * driver cannot list is only named. Throws ApiError when Machines cannot be read.
 */
export async function survey(deps: SurveyDeps, classes: readonly MachineClass[], signal: AbortSignal): Promise<Survey> {
  const outcomes = await Promise.allSettled(classes.map((one) => listClass(deps, one, signal)));
  signal.throwIfAborted();
  const seen = outcomes.flatMap((one) => (one.status === 'fulfilled' && one.value !== undefined ? [one.value] : []));
  const lists = seen.filter(isListed).map((list) => withoutOthers(deps, list));
  const unlistable = seen.filter((one) => !isListed(one));
  const failures = outcomes.flatMap((one, i) =>
    one.status === 'rejected' ? [{ key: keyOf(classes[i] as MachineClass), error: one.reason as unknown }] : [],
  );
  const { namespace, reader } = deps;
  const { items } = await reader.list(machines, { namespace, signal });
  return { lists, unlistable, failures, machines: items };
}

/** A list without those that may be of another namespace with the same target cluster. */
function withoutOthers({ namespace, machines: known }: SurveyDeps, list: ClassList): ClassList {
  const others = list.vms.filter((vm) => mayBeOfOther(vm, namespace, known));
  if (others.length === 0) return list;
  return { ...list, vms: list.vms.filter((vm) => !others.includes(vm)), foreign: [...list.foreign, ...others] };
}

/** The VMs of one class; without them where its driver cannot list, and undefined where there is none. */
export async function listClass(
  { drivers, secrets }: Pick<SurveyDeps, 'drivers' | 'secrets'>,
  machineClass: MachineClass,
  signal: AbortSignal,
): Promise<ClassList | ClassAccess | undefined> {
  const driver = drivers.resolve(machineClass);
  if (driver === undefined) return undefined;
  const { methods, listScope } = await driver.capabilities(signal);
  const { data: secretData } = await secrets.of(machineClass, signal);
  const access: ClassAccess = { key: keyOf(machineClass), machineClass, driver, secretData };
  if (!methods.has('ListMachines')) return access;
  const listed = await driver.list({ machineClass, secretData }, signal);
  const { namespace = '' } = machineClass.metadata;
  const vms = listed.filter((vm) => isOfNamespace(vm, namespace, listScope));
  const foreign = listed.filter((vm) => !isOfNamespace(vm, namespace, listScope));
  return { ...access, scope: listScope, vms, foreign };
}

export function isListed(one: ClassList | ClassAccess): one is ClassList {
  return 'vms' in one;
}
