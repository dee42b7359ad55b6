import { nodeNameOf, vmClassNameOf } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { controllerOf, keyOf } from '../../../pkg/apis/meta.ts';
import { fromTimestamp } from '../../../pkg/base/clock/clock.ts';
import { explain } from '../../../pkg/controllers/machine/explain/explain.ts';
import type { OpenDrain } from '../../../pkg/health/work-in-progress.ts';
import { conditionOf } from '../../../pkg/work/reconcile/conditions.ts';
import { type Attention, attentionOf } from '../../../pkg/fleet/attention.ts';
import type { TopFacts } from './facts.ts';
import { shortTexts } from './short-texts.ts';

/** A Machine as it is listed. */
export interface MachineRow {
  /** `NAMESPACE/NAME`. */
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  /** Its MachineDeployment, else its MachineSet; empty without either. */
  readonly pool: string;
  readonly machineClass: string;
  /** `<none>` before the first. */
  readonly phase: string;
  readonly reason: string;
  readonly message: string;
  readonly waitingFor: string;
  readonly attention: Attention;
  /** Since when it has been like this, and when it was created (ms since the epoch). */
  readonly sinceMs: number | undefined;
  readonly createdMs: number | undefined;
  readonly node: string;
  readonly providerID: string;
  /** When it becomes Failed (RFC 3339), as far as the manager was asked. */
  readonly failsAt?: string | undefined;
}

/** The most urgent first. */
export const RANKS: Readonly<Record<Attention, number>> = { attention: 0, progressing: 1, ok: 2 };

/** By what machines can be sorted, in the order in which the key `s` offers it. */
export const SORT_KEYS = ['attention', 'name', 'phase', 'pool', 'age'] as const;

export type SortKey = (typeof SORT_KEYS)[number];

const COMPARE: Readonly<Record<SortKey, (a: MachineRow, b: MachineRow) => number>> = {
  attention: (a, b) => RANKS[a.attention] - RANKS[b.attention],
  name: () => 0,
  phase: (a, b) => order(a.phase, b.phase),
  pool: (a, b) => order(a.pool, b.pool),
  // The youngest first: what has just happened is looked for most often.
  age: (a, b) => (b.createdMs ?? Infinity) - (a.createdMs ?? Infinity) || 0,
};

/** What is shown of all machines. */
export interface Choice {
  readonly sort: SortKey;
  readonly isReversed: boolean;
  /** Words that must all occur in a row; empty for all. */
  readonly filter: string;
  readonly onlyAttention: boolean;
}

/** The rows that are chosen, in their order; those that compare equal by their names. */
export function chosenRows(rows: readonly MachineRow[], choice: Choice): readonly MachineRow[] {
  const { sort, isReversed, filter, onlyAttention } = choice;
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const compare = COMPARE[sort];
  const sign = isReversed ? -1 : 1;
  return rows
    .filter((row) => (!onlyAttention || row.attention === 'attention') && contains(row, words))
    .toSorted((a, b) => sign * (compare(a, b) || order(a.name, b.name) || order(a.namespace, b.namespace)));
}

function contains(row: MachineRow, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const { key, pool, machineClass, phase, reason, node, providerID } = row;
  const text = [key, pool, machineClass, phase, reason, node, providerID].join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

interface Owner {
  readonly pool: string;
  /** What its MachineDeployment says of a cluster that does not answer. */
  readonly outage: string | undefined;
}

interface Made extends Owner {
  readonly row: MachineRow;
  /** A preservation that ends changes what is said. */
  readonly untilMs: number;
}

/** Makes the rows of machines, and keeps them: of thousands only those are explained again that have changed. */
export class MachineRows {
  readonly #made = new WeakMap<Machine, Made>();

  of({ machines, deployments, sets, work, nowMs }: TopFacts): readonly MachineRow[] {
    const owners = ownersOf(deployments, sets);
    const drains = new Map(work.flatMap((one) => one.drains).map((drain) => [drain.machine, drain]));
    const deadlines = new Map(
      work.flatMap((one) => one.deadlines ?? []).map(({ machine, failsAt }) => [machine, failsAt]),
    );
    return machines.map((machine) => {
      const owner = controllerOf(machine);
      const { pool, outage } = owners.get(owner?.uid ?? '') ?? { pool: owner?.name ?? '', outage: undefined };
      const row = this.#rowOf(machine, { pool, outage }, nowMs);
      return withWork(row, drains.get(row.key), deadlines.get(row.key));
    });
  }

  #rowOf(machine: Machine, owner: Owner, nowMs: number): MachineRow {
    const made = this.#made.get(machine);
    if (made !== undefined && made.pool === owner.pool && made.outage === owner.outage && nowMs < made.untilMs) {
      return made.row;
    }
    const expiryMs = fromTimestamp(machine.status?.currentStatus?.preserveExpiryTime) ?? 0;
    const isPreserved = expiryMs > nowMs;
    const row = rowOf(machine, owner, nowMs, isPreserved);
    this.#made.set(machine, { ...owner, row, untilMs: isPreserved ? expiryMs : Infinity });
    return row;
  }
}

function rowOf(machine: Machine, { pool, outage }: Owner, nowMs: number, isPreserved: boolean): MachineRow {
  const { metadata, spec } = machine;
  const { phase, reason, message, waitingFor = '', sinceMs } = explain(machine, nowMs, outage);
  return shortTexts({
    key: keyOf(machine),
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    uid: metadata.uid,
    pool,
    machineClass: vmClassNameOf(machine),
    phase: phase === '' ? '<none>' : phase,
    reason: isPreserved && reason === 'Running' ? 'Preserved' : reason,
    message,
    waitingFor,
    attention: isPreserved ? 'attention' : attentionOf({ reason }),
    sinceMs: sinceMs === undefined ? undefined : nowMs - sinceMs,
    createdMs: fromTimestamp(metadata.creationTimestamp),
    node: nodeNameOf(machine),
    providerID: spec?.providerID ?? '',
  });
}

function withWork(row: MachineRow, drain: OpenDrain | undefined, failsAt: string | undefined): MachineRow {
  const isBlocked = drain?.isBlocked === true;
  if (!isBlocked && failsAt === undefined) return row;
  return {
    ...row,
    ...(isBlocked && { attention: 'attention', reason: 'DrainBlocked' }),
    ...(failsAt !== undefined && { failsAt }),
  };
}

/** What the MachineDeployment of a machine says of a cluster that does not answer; undefined when it says nothing, or there is none. */
export function outageOf(machine: Machine, { deployments, sets }: TopFacts): string | undefined {
  return ownersOf(deployments, sets).get(controllerOf(machine)?.uid ?? '')?.outage;
}

/** Pools by the UIDs of their MachineSets. */
function ownersOf(deployments: readonly MachineDeployment[], sets: TopFacts['sets']): ReadonlyMap<string, Owner> {
  const byUID = new Map(
    deployments.map((one) => {
      const condition = conditionOf(one.status?.conditions, 'APIServerUnreachable');
      return [
        one.metadata.uid,
        { pool: one.metadata.name, outage: condition?.status === 'True' ? condition.message : undefined },
      ];
    }),
  );
  return new Map(
    sets.map((set) => [
      set.metadata.uid,
      byUID.get(controllerOf(set)?.uid ?? '') ?? { pool: set.metadata.name, outage: undefined },
    ]),
  );
}
