import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import { equal } from '../api-server/json.ts';
import type { MachinesWorld } from './machines-world.ts';

/** What conditions of a pool, its sets and its Machines say where all is well; others are not there, or say the same. */
const FINE: Readonly<Record<string, readonly string[]>> = {
  Available: ['True'],
  Progressing: ['True'],
  VMCreated: ['True'],
  NodeJoined: ['True'],
  Healthy: ['True'],
  // In the provider's words.
  VMState: ['True', 'False', 'Unknown'],
};

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
}

/** What statuses say at rest that is not so, in a world whose pool is as asked for. */
export function untruthsIn(world: MachinesWorld): string[] {
  const { pool, machines, sets } = world;
  return [
    ...(pool === undefined ? [] : untruthsOfCounts('MachineDeployment', pool, machines.length)),
    ...untruthsOfConditions('MachineDeployment', pool?.status?.conditions),
    ...sets.flatMap((set) => [
      ...untruthsOfCounts(`MachineSet ${set.metadata.name}`, set, machines.filter((one) => isOf(one, set)).length),
      ...untruthsOfConditions(`MachineSet ${set.metadata.name}`, set.status?.machineSetCondition),
    ]),
    ...machines.flatMap((machine) => untruthsOfMachine(machine, world)),
  ];
}

interface Counted {
  readonly metadata: { readonly generation?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly unavailableReplicas?: number;
  };
}

function untruthsOfCounts(what: string, { metadata, status = {} }: Counted, count: number): string[] {
  const is: Readonly<Record<string, [said: number, real: number]>> = {
    observedGeneration: [status.observedGeneration ?? 0, metadata.generation ?? 0],
    replicas: [status.replicas ?? 0, count],
    readyReplicas: [status.readyReplicas ?? 0, count],
    availableReplicas: [status.availableReplicas ?? 0, count],
    unavailableReplicas: [status.unavailableReplicas ?? 0, 0],
  };
  return Object.entries(is).flatMap(([field, [said, real]]) =>
    said === real ? [] : [`${what} says ${field} ${said} where it is ${real}`],
  );
}

function untruthsOfConditions(what: string, conditions: readonly Condition[] = []): string[] {
  return conditions
    .filter(({ type, status }) => !(FINE[type] ?? ['False']).includes(status))
    .map(({ type, status, reason }) => `${what} says ${type} ${status} (${reason}) where all is well`);
}

function untruthsOfMachine({ metadata, spec, status }: Machine, { nodes, cloud }: MachinesWorld): string[] {
  const what = `Machine ${metadata.name}`;
  const node = nodes.find((one) => one.metadata.name === metadata.labels?.['node']);
  return [
    ...(node === undefined ? [`${what} names no Node`] : []),
    ...(cloud.get(spec.providerID ?? '') === undefined ? [`${what} names no VM: ${spec.providerID}`] : []),
    ...(node === undefined || equal(told(node.status?.conditions), told(status?.conditions))
      ? []
      : [`${what} has not the conditions of its Node`]),
    ...(status?.lastOperation?.state === 'Successful'
      ? []
      : [`${what} says that its last operation is ${status?.lastOperation?.state}`]),
    ...untruthsOfConditions(what, status?.machineConditions),
  ];
}

function told(
  conditions: Required<Node>['status']['conditions'] | Required<Machine>['status']['conditions'] = [],
): object {
  return Object.fromEntries(conditions.map(({ type, status }) => [type, status]));
}

function isOf({ metadata }: Machine, { metadata: { uid } }: MachineSet): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
}
