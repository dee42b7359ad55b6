import { nodeNameOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import { recordedNodeOf, type RecordedNodeDeps } from '../machine-facts/recorded-node.ts';
import { isFailed } from '../replicas/machine-state.ts';
import { preservedUntilMs } from '../machine-facts/preserved.ts';

/** The Node of a Machine: undefined when it names none, `missing` when the one that it names cannot be found, or is another machine's. */
export function nodeOf(deps: RecordedNodeDeps, machine: Machine): Node | 'missing' | undefined {
  return nodeNameOf(machine) === '' ? undefined : (recordedNodeOf(deps, machine) ?? 'missing');
}

/** In how many ms the first of the Failed Machines that are kept has had its time; undefined when none is kept. */
export function nextExpiryInMs(machines: readonly Machine[], nowMs: number): number | undefined {
  const ahead = machines
    .filter(isFailed)
    .map((machine) => (preservedUntilMs(machine) ?? 0) - nowMs)
    .filter((ms) => ms > 0);
  return ahead.length === 0 ? undefined : Math.min(...ahead);
}
