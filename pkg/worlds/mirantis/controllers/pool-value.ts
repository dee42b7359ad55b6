import type { MachinePool } from '../api/pool.ts';
import { readValue, type ProviderValue, type Read } from './provider-value.ts';
import { FieldReader } from './field-reader.ts';

/** What a pool asks for, as far as we do anything about it. */
export interface PoolValue {
  readonly replicas: number;
  /** Of each of its Machines. */
  readonly machine: ProviderValue;
}

const PATH = 'spec.machineSpec.providerSpec.value';
/** An edit of so many digits is a slip of the finger. */
const MOST_REPLICAS = 10_000;

/** Reads a pool; every problem is named at once. */
export function readPool({ spec }: Pick<MachinePool, 'spec'>): Read<PoolValue> {
  const pool = new FieldReader(spec ?? {}, 'spec');
  const replicas = pool.raw('replicas');
  const isCount = Number.isSafeInteger(replicas) && (replicas as number) >= 0 && (replicas as number) <= MOST_REPLICAS;
  if (!isCount) pool.wrong('replicas', `must be a whole number from 0 to ${MOST_REPLICAS}`);
  const { value, problems = [] } = readValue(spec?.machineSpec?.providerSpec?.value, PATH);
  const single = value === undefined ? [] : ofSingleMachines(value);
  const all = [...pool.problems, ...problems, ...single];
  return value !== undefined && all.length === 0
    ? { value: { replicas: replicas as number, machine: value } }
    : { problems: all };
}

function ofSingleMachines(value: ProviderValue): readonly string[] {
  return (['maintenance', 'delete'] as const).flatMap((member) =>
    value[member] ? [`${PATH}.${member}: can be set for single Machines of the pool only, remove it here`] : [],
  );
}
