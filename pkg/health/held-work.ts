import { toTimestamp, type Clock } from '../base/clock/clock.ts';
import type { Cluster } from '../kube/gate/gate.ts';
import { type Check, DEGRADED } from './checks.ts';

/** What has to be done with a cluster, or with the driver of a provider, before work may begin, or go on. */
export type Prerequisite =
  | 'permissions'
  | 'caches'
  | 'identity'
  | 'catch-up'
  | 'claim'
  | 'others'
  | 'driver'
  | 'obedience';

/** Work that does not begin, or go on, yet. */
export interface HeldBack {
  /** Name of the Lease under which it would be done; `process`: everything. */
  readonly work: string;
  readonly waitsFor: Prerequisite;
  /** Name of the cluster; of the provider, for a driver and its obedience. */
  readonly of: Cluster;
  /** By wall time. */
  readonly sinceMs: number;
  /** What the last attempt ended with; undefined before it ended. */
  readonly why: string | undefined;
}

/** One piece of held work, for anyone who tries to set it free. */
export interface WorkHold {
  /** An attempt failed; the work stays held. */
  failed(err: unknown): void;
  /** The work goes on. */
  release(): void;
}

/** Longest part of an error that is shown. */
const EXCERPT = 300;

const DOING: Readonly<Record<Prerequisite, (of: string) => string>> = {
  permissions: (of) => `checking permissions in the ${of} cluster`,
  caches: (of) => `filling the caches of the ${of} cluster`,
  identity: (of) => `reading the identity of the ${of} cluster`,
  'catch-up': (of) => `reading the ${of} cluster after an outage`,
  claim: (of) => `making sure that the ${of} cluster is that of its Machines`,
  others: () => 'waiting for another manager of the namespace to end',
  driver: (of) => `connecting to the driver of provider ${of}`,
  obedience: (of) => `waiting for the driver of provider ${of} to accept the fencing token`,
};

const OF_DRIVERS: ReadonlySet<Prerequisite> = new Set(['driver', 'obedience']);

/** Everything in this process that waits before it works: anyone who holds work back notes it here, so that it is seen. */
export class HeldWork {
  readonly #clock: Clock;
  readonly #held = new Map<symbol, HeldBack>();

  constructor(parts: { clock: Clock }) {
    this.#clock = parts.clock;
  }

  /** From now on until `release`, `work` is shown as held. */
  hold(what: Pick<HeldBack, 'work' | 'waitsFor' | 'of'>): WorkHold {
    const key = Symbol(what.work);
    this.#held.set(key, { ...what, sinceMs: this.#clock.now(), why: undefined });
    return {
      failed: (err) => {
        const held = this.#held.get(key);
        const why = (err instanceof Error ? err.message : String(err)).slice(0, EXCERPT);
        if (held !== undefined) this.#held.set(key, { ...held, why });
      },
      release: () => void this.#held.delete(key),
    };
  }

  /** Holds `what` from the first error that is passed until undefined is; `began` is called with the first one. */
  whileFailing<E>(
    what: Pick<HeldBack, 'work' | 'waitsFor' | 'of'>,
    began: (err: E) => void,
  ): (err: E | undefined) => void {
    let hold: WorkHold | undefined;
    return (err) => {
      if (err === undefined) {
        hold?.release();
        hold = undefined;
        return;
      }
      if (hold === undefined) began(err);
      hold ??= this.hold(what);
      hold.failed(err);
    };
  }

  list(): readonly HeldBack[] {
    return [...this.#held.values()];
  }
}

/**
 * Whether all work may begin. What waits for a cluster with an outage, or for a driver, which a restart would not fix, does
 * not make the process unready; the detail says so all the same.
 */
export function workBegun(list: () => readonly HeldBack[], hasOutage: (cluster: Cluster) => boolean): Check {
  return {
    name: 'work',
    check() {
      const held = list();
      if (held.length === 0) return { ok: true };
      const passes = held.every(({ waitsFor, of }) => OF_DRIVERS.has(waitsFor) || hasOutage(of));
      return { ...(passes ? DEGRADED : { ok: false }), detail: held.map(describe).join('; ') };
    },
  };
}

/** `machine-controller held since 2026-01-01T00:00:00Z, catching up with the target cluster (nodes is forbidden)`. */
function describe(held: HeldBack): string {
  const { work, sinceMs, why } = held;
  const reason = why === undefined ? '' : ` (${why})`;
  return `${work} held since ${toTimestamp(sinceMs)}, ${doing(held)}${reason}`;
}

function doing({ waitsFor, of }: HeldBack): string {
  return DOING[waitsFor](of);
}

/** Why work is held, without which. */
export function whyHeld(held: HeldBack): string {
  return held.why ?? doing(held);
}
