import type { KubeObject } from '../../../apis/meta.ts';
import { quantityAsNumber } from '../../../apis/quantity.ts';
import type { IronCoreCondition, Reference } from './reference.ts';
import type { IronCoreTaint } from './taint.ts';

/** Namespace of the Leases by which pools show that they are looked after; each has the name of its pool. */
export const POOL_LEASE_NAMESPACE = 'ironcore-machinepool-lease';

/** Where machines run: one runtime with so many places for each class. Is of the cluster, in no namespace. */
export interface IronCoreMachinePool extends KubeObject {
  spec?: { readonly providerID?: string; readonly taints?: readonly IronCoreTaint[] };
  status?: IronCoreMachinePoolStatus;
}

export interface IronCoreMachinePoolStatus {
  readonly state?: string;
  readonly conditions?: readonly IronCoreCondition[];
  readonly availableMachineClasses?: readonly Reference[];
  readonly addresses?: readonly { readonly type: string; readonly address: string }[];
  readonly daemonEndpoints?: { readonly machinepoolletEndpoint?: { readonly port: number } };
  /** Quantities by `class/machine.<name of the class>`: how many machines fit in all. */
  readonly capacity?: Readonly<Record<string, string | number>>;
  /** The same without the machines that are there. */
  readonly allocatable?: Readonly<Record<string, string | number>>;
}

/** Whether it can be used, as it says itself; undefined: it says nothing. */
export function readyCondition({ status }: IronCoreMachinePool): IronCoreCondition | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready');
}

export function capacityKey(machineClass: string): string {
  return `class/machine.${machineClass}`;
}

/** How many Machines of a class fit in the pool in all; 0 when it does not say so, or says no number. */
export function capacityFor({ status }: IronCoreMachinePool, machineClass: string): number {
  const quantity = quantityAsNumber(status?.capacity?.[capacityKey(machineClass)] ?? 0) ?? 0;
  return Math.max(0, Math.floor(quantity));
}
