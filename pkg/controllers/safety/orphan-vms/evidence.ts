import { toTimestamp } from '../../../base/clock/clock.ts';
import type { LogFields } from '../../../base/log/logger.ts';

/** One look at the provider and, after it, at the API server. */
export interface Snapshot {
  /** Monotonic: when the look began. */
  readonly atMs: number;
  /** The same moment, as wall time. */
  readonly wallMs: number;
  /** VMs that the provider listed. */
  readonly vms: number;
  /** Machines that a quorum list showed afterwards. */
  readonly machines: number;
}

/** What two looks have shown alike. */
export interface Proof {
  readonly first: Snapshot;
  /** Since when every look has shown it; later than `first` if one could not look. Monotonic. */
  readonly sinceMs: number;
  readonly second: Snapshot;
}

/**
 * What looks at the world have shown, until a second look shows the same. A look that shows something else, and an outage in
 * between, begin anew: nothing is ever proved by what was not seen twice in a row.
 */
export class Evidence {
  readonly #entries = new Map<string, { readonly group: string; readonly first: Snapshot; readonly sinceMs: number }>();
  readonly #graceMs: number;

  /** `graceMs`: the least time between two looks that prove something. */
  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Whether something was seen, and not disproved since. */
  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Takes a look into account; the proof, if this one completes it. `group`: with whom the look was taken. */
  see(key: string, group: string, sight: Snapshot): Proof | undefined {
    const known = this.#entries.get(key) ?? { first: sight, sinceMs: Infinity };
    const { first } = known;
    const sinceMs = Math.min(known.sinceMs, sight.atMs);
    this.#entries.set(key, { group, first, sinceMs });
    return sight.atMs - first.atMs >= this.#graceMs ? { first, sinceMs, second: sight } : undefined;
  }

  /** Drops what the present look has not shown, but for groups at which it could not look. */
  keep(seen: ReadonlySet<string>, unseenGroups: ReadonlySet<string>): void {
    for (const [key, entry] of this.#entries) {
      if (seen.has(key)) continue;
      if (unseenGroups.has(entry.group)) this.#entries.set(key, { ...entry, sinceMs: Infinity });
      else this.#entries.delete(key);
    }
  }

  /** Drops what was first seen before `atMs`, when we could not trust what we saw. */
  dropBefore(atMs: number): void {
    for (const [key, { first }] of this.#entries) if (first.atMs < atMs) this.#entries.delete(key);
  }

  drop(key: string): void {
    this.#entries.delete(key);
  }
}

/** A proof in words: when both looks were, and what each of them saw. */
export function describeProof({ first, second }: Proof): string {
  const apartS = Math.round((second.atMs - first.atMs) / 1_000);
  return `found at ${timeOf(first)} among ${first.vms} VMs, before ${first.machines} Machines were read, and at ${timeOf(second)} among ${second.vms}, before ${second.machines}: ${apartS} s apart`;
}

/** The same of a VM that was asked for by itself, because it could not be listed. */
export function describeAnswers({ first, second }: Proof): string {
  const apartS = Math.round((second.atMs - first.atMs) / 1_000);
  return `GetMachineStatus returned NotFound in the checks of ${timeOf(first)} and ${timeOf(second)}: ${apartS} s apart`;
}

export function proofFields({ first, second }: Proof): LogFields {
  const shown = ({ wallMs, vms, machines }: Snapshot) => ({ at: toTimestamp(wallMs), vms, machines });
  return { first: shown(first), second: shown(second), ms: second.atMs - first.atMs };
}

function timeOf({ wallMs }: Snapshot): string {
  return toTimestamp(wallMs).slice(11, 19);
}
