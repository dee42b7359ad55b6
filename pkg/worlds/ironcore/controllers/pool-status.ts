import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreMachineClass } from '../api/machine-class.ts';
import { capacityKey, type IronCoreMachinePool, type IronCoreMachinePoolStatus } from '../api/machine-pool.ts';
import type { RuntimeClass } from '../runtime/runtime.ts';
import { dated, withCondition } from '../../../work/reconcile/conditions.ts';
import { runtimeClassFor } from './runtime-class.ts';

/** What a runtime answered when it was last asked, or why it did not; or why nothing is to be made there although it does. */
export type Probe =
  | { readonly classes: readonly RuntimeClass[] }
  | { readonly why: string; readonly state: 'Offline' | 'Error'; readonly reason: string };

export interface PoolFacts {
  readonly pool: IronCoreMachinePool;
  readonly probe: Probe;
  readonly classes: readonly IronCoreMachineClass[];
  readonly machines: readonly IronCoreMachine[];
}

/** The status of a pool; what others have put there stays. Of a runtime that does not answer it is the capacity as it was. */
export function poolStatus(facts: PoolFacts, nowMs: number): IronCoreMachinePoolStatus {
  const { pool, probe } = facts;
  const conditions = withCondition(pool.status?.conditions, ready(facts, nowMs));
  // Of a machinepoollet that served it before: nobody answers there any more.
  const { addresses: _addresses, daemonEndpoints: _endpoints, ...others } = pool.status ?? {};
  const base = { ...others, conditions };
  if ('why' in probe) return { ...base, state: probe.state };
  const places = placesIn(facts, probe.classes);
  const quantities = (of: (place: Place) => number): Record<string, string> =>
    Object.fromEntries(places.map((place) => [capacityKey(place.machineClass), String(of(place))]));
  return {
    ...base,
    state: 'Ready',
    availableMachineClasses: places.map(({ machineClass: name }) => ({ name })),
    capacity: quantities(({ total }) => total),
    allocatable: quantities(({ total, used }) => Math.max(0, total - used)),
  };
}

interface Place {
  readonly machineClass: string;
  readonly total: number;
  readonly used: number;
}

function placesIn({ classes, machines }: PoolFacts, offered: readonly RuntimeClass[]): readonly Place[] {
  return classes
    .flatMap((one) => {
      const found = runtimeClassFor(one, offered);
      const machineClass = one.metadata.name;
      const used = machines.filter(({ spec }) => spec.machineClassRef.name === machineClass).length;
      return found === undefined ? [] : [{ machineClass, total: found.quantity, used }];
    })
    .toSorted((a, b) => (a.machineClass < b.machineClass ? -1 : 1));
}

function ready(
  { pool, probe }: PoolFacts,
  nowMs: number,
): NonNullable<IronCoreMachinePoolStatus['conditions']>[number] {
  const said =
    'why' in probe
      ? ({ status: 'False', reason: probe.reason, message: probe.why } as const)
      : ({ status: 'True', reason: 'HeartbeatReceived', message: 'The runtime answers' } as const);
  const { generation } = pool.metadata;
  const current = { type: 'Ready', ...said, ...(generation !== undefined && { observedGeneration: generation }) };
  return dated(current, pool.status?.conditions, nowMs);
}
