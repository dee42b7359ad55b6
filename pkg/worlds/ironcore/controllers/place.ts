import type { IronCoreMachine } from '../api/machine.ts';
import { capacityFor, readyCondition, type IronCoreMachinePool } from '../api/machine-pool.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { tolerated } from '../api/taint.ts';
import type { PlacesTaken } from './places-taken.ts';

/** The pool that a Machine goes to, or a sentence that says why it waits. */
export type Placement = { readonly pool: string } | { readonly why: string };

/** Why a pool does not take a Machine, in the order in which that is looked at; `class`: it has no places at all for its class. */
type Refusal = 'ready' | 'taints' | 'labels' | 'class' | 'full';

/**
 * Chooses the pool with the most free places for the class of the Machine, of those that are ready, whose taints it tolerates and which
 * have the labels that it asks for; of equal ones the first by name. What is free is the capacity without the places that are taken:
 * `allocatable` is not asked, which lags behind and has the Machines of the pool taken off already.
 */
export function place(
  machine: IronCoreMachine,
  pools: Iterable<IronCoreMachinePool>,
  taken: Pick<PlacesTaken, 'in'>,
): Placement {
  const refusals: Record<Refusal, number> = { ready: 0, taints: 0, labels: 0, class: 0, full: 0 };
  let best: { readonly pool: string; readonly free: number } | undefined;
  for (const pool of pools) {
    const found = freePlaces(machine, pool, taken);
    const { name } = pool.metadata;
    if (typeof found === 'string') refusals[found] += 1;
    else if (best === undefined || found > best.free || (found === best.free && name < best.pool))
      best = { pool: name, free: found };
  }
  return best === undefined ? { why: whyNone(machine, refusals) } : { pool: best.pool };
}

/** More than 0, or why there are none. */
function freePlaces(
  { spec }: IronCoreMachine,
  pool: IronCoreMachinePool,
  taken: Pick<PlacesTaken, 'in'>,
): number | Refusal {
  const { metadata } = pool;
  if (readyCondition(pool)?.status !== 'True' || isBeingDeleted(pool)) return 'ready';
  if (!tolerated(pool.spec?.taints, spec.tolerations)) return 'taints';
  const wanted = Object.entries(spec.machinePoolSelector ?? {});
  if (!wanted.every(([key, value]) => metadata.labels?.[key] === value)) return 'labels';
  const machineClass = spec.machineClassRef.name;
  const capacity = capacityFor(pool, machineClass);
  if (capacity === 0) return 'class';
  const free = capacity - taken.in(metadata.name, machineClass);
  return free > 0 ? free : 'full';
}

function whyNone({ spec }: IronCoreMachine, refusals: Readonly<Record<Refusal, number>>): string {
  const words: readonly (readonly [Refusal, string])[] = [
    ['ready', 'not ready'],
    ['taints', 'tainted'],
    ['labels', 'without the labels of machinePoolSelector'],
    ['class', `without ${spec.machineClassRef.name}`],
    ['full', 'full'],
  ];
  const counts = words
    .filter(([refusal]) => refusals[refusal] > 0)
    .map(([refusal, text]) => `${refusals[refusal]} ${text}`);
  return counts.length === 0 ? 'There is no MachinePool' : `No MachinePool is suitable: ${counts.join(', ')}`;
}
