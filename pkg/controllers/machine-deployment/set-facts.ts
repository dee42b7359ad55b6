import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { DESIRED_REPLICAS_ANNOTATION, MAX_REPLICAS_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { fromTimestamp } from '../../clock/clock.ts';
import { countMachines } from '../machine-set/machine-state.ts';

/** One MachineSet as far as rollout and scaling look at it. */
export interface SetFacts {
  readonly name: string;
  readonly createdMs: number;
  /** How many Machines it should have. */
  readonly size: number;
  /** How many it has, terminating ones included. */
  readonly existing: number;
  /** How many of them are available; never more than `size`, because the others are about to go. */
  readonly available: number;
  /** Replicas of the MachineDeployment when it was last scaled. */
  readonly desiredNote: number | undefined;
  /** Replicas plus surge of the MachineDeployment when it was last scaled. */
  readonly maxNote: number | undefined;
}

/** A set that does not exist yet. */
export const UNBORN: SetFacts = {
  name: '',
  createdMs: 0,
  size: 0,
  existing: 0,
  available: 0,
  desiredNote: undefined,
  maxNote: undefined,
};

/** New sizes by name of the set; what is not named keeps its size. */
export type Resizes = ReadonlyMap<string, number>;

/** What is known of `set` and the Machines that it controls. */
export function factsOf(set: MachineSet, machines: readonly Machine[]): SetFacts {
  const { replicas, available } = countMachines(machines);
  const size = set.spec.replicas ?? 0;
  return {
    name: set.metadata.name,
    createdMs: fromTimestamp(set.metadata.creationTimestamp) ?? 0,
    size,
    existing: replicas,
    available: Math.min(available, size),
    desiredNote: integerOf(set.metadata.annotations?.[DESIRED_REPLICAS_ANNOTATION]),
    maxNote: integerOf(set.metadata.annotations?.[MAX_REPLICAS_ANNOTATION]),
  };
}

/** Oldest first; equally old ones by name, so that the order is total. */
export function byAge(a: Pick<SetFacts, 'createdMs' | 'name'>, b: Pick<SetFacts, 'createdMs' | 'name'>): number {
  if (a.createdMs !== b.createdMs) return a.createdMs - b.createdMs;
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}

/** Sum of what `value` gives for each set. */
export function sumOf(sets: readonly SetFacts[], value: (set: SetFacts) => number): number {
  return sets.reduce((sum, set) => sum + value(set), 0);
}

function integerOf(text: string | undefined): number | undefined {
  return text !== undefined && /^[+-]?\d+$/.test(text) ? Number(text) : undefined;
}
