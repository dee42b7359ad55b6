import type { ClusterMachine } from '../api/machine.ts';
import { readProviderValue } from './provider-value.ts';

/**
 * The place in upgrades that is shown of each Machine of a Cluster, by name: the given one, else one after the largest that was given, by
 * age.
 */
export function shownUpgradeIndexes(machines: readonly ClusterMachine[]): ReadonlyMap<string, number> {
  const given = machines.map((machine) => ({ machine, index: readProviderValue(machine).value?.upgradeIndex }));
  const largest = Math.max(0, ...given.map(({ index }) => index ?? 0));
  const byAge = given
    .filter(({ index }) => index === undefined)
    .map(({ machine }) => machine.metadata)
    .toSorted((a, b) => compare(a.creationTimestamp, b.creationTimestamp) || compare(a.name, b.name));
  return new Map([
    ...given.flatMap(({ machine, index }) => (index === undefined ? [] : [[machine.metadata.name, index] as const])),
    ...byAge.map(({ name }, i) => [name, largest + i + 1] as const),
  ]);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
