import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { NodeCondition } from '../../apis/wire.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { isFailed } from '../replicas/machine-state.ts';

/** Within which a machine controller makes a Failed Machine Running again: it takes no longer than a pass. */
const RECOVERY_MS = 60_000;

interface Sighting {
  /** Since when the Machine is Failed. */
  readonly failedAt: string | null | undefined;
  readonly sinceMs: number;
}

/**
 * Since when the Nodes of Failed Machines are seen to be healthy, by the UIDs of their sets. The machine controller may judge otherwise, because in
 * another process it has other `--node-conditions`; then such a Machine would never be replaced.
 *
 * Kept in memory only: a new process waits as long again.
 */
export class Recoveries {
  readonly #clock: Clock;
  readonly #ofSets = new Map<string, Map<string, Sighting>>();

  constructor(deps: { clock: Clock }) {
    this.#clock = deps.clock;
  }

  /**
   * Whether the machine controller may still make the Machine, whose Node has these healthy conditions now, Running again. It no longer does if it
   * has seen just these, as the status of the Machine shows, and has left the Machine Failed for a minute. A machine controller that does not run
   * has not decided anything; the status then may show the same from before the failure. So only conditions count in which another one could find
   * something bad.
   */
  isExpected({ metadata: { uid } }: MachineSet, machine: Machine, conditions: readonly NodeCondition[]): boolean {
    const { currentStatus, conditions: shown = [] } = machine.status ?? {};
    const failedAt = currentStatus?.lastUpdateTime;
    const ofSet = this.#ofSets.get(uid) ?? new Map<string, Sighting>();
    this.#ofSets.set(uid, ofSet);
    const before = ofSet.get(machine.metadata.uid);
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = before !== undefined && before.failedAt === failedAt ? before.sinceMs : nowMs;
    ofSet.set(machine.metadata.uid, { failedAt, sinceMs });
    if (!conditions.some(mayBeBad)) return true;
    return nowMs - sinceMs < RECOVERY_MS || statusesIn(shown) !== statusesIn(conditions);
  }

  /** Forgets the Machines of a set that are gone, or no longer Failed. */
  keepOnly({ metadata: { uid } }: MachineSet, machines: readonly Machine[]): void {
    const ofSet = this.#ofSets.get(uid);
    if (ofSet === undefined) return;
    const failed = new Set(machines.filter(isFailed).map(({ metadata }) => metadata.uid));
    for (const machineUID of ofSet.keys()) if (!failed.has(machineUID)) ofSet.delete(machineUID);
  }

  forget(uid: string): void {
    this.#ofSets.delete(uid);
  }
}

/** Whether a healthy Node with this condition is unhealthy by some `--node-conditions`. */
function mayBeBad({ type, status }: NodeCondition): boolean {
  return type !== 'Ready' && status !== 'False';
}

/** What a machine controller, also that of the original, always mirrors; it does not mirror each message. */
function statusesIn(conditions: readonly NodeCondition[]): string {
  return conditions
    .map(({ type, status }) => `${type}=${status}`)
    .toSorted()
    .join();
}
