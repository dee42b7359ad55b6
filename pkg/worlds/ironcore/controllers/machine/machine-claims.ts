import { RuntimeError } from '../../runtime/error.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { claimText, isForgottenSoon } from '../pool-claims.ts';
import { CLAIM } from './keys.ts';
import { machineKey } from './owner-of.ts';
import type { RelistDeps } from './relist.ts';
import { poolClaimOf } from './rivals.ts';

/** How often the oldest machine of a pool is claimed anew: a backup that is older than that is told by it. */
const CLAIM_MS = 60_000;
/** So many are claimed at one look. */
const CLAIMS_AT_ONCE = 20;

/** Claims of this process on machines of pools: by these it shows whether somebody else looks after them, too. */
export class MachineClaims {
  readonly #deps: Pick<RelistDeps, 'claims' | 'runtimes' | 'clock' | 'log'>;
  /** By pool, the machine that was claimed last, so that its claim shows whether somebody else does, and when. */
  readonly #witnesses = new Map<string, { readonly id: string; readonly atMs: number } | undefined>();

  constructor(deps: Pick<RelistDeps, 'claims' | 'runtimes' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /**
   * Lets machines of the pool say that this process looks after them: the oldest, from time to time, and those whose claim would be
   * forgotten, or was somebody else's. One that cannot be claimed holds up nothing. Says whether more are due.
   */
  async renew(poolName: string, ours: readonly RuntimeMachine[], signal: AbortSignal): Promise<boolean> {
    const { claims, runtimes, clock } = this.#deps;
    const [own, all, runtime] = [claims.ownOf(poolName), claims.of(poolName), runtimes.get(poolName)];
    if (own === undefined || all === undefined || runtime === undefined) return false;
    const left = ours.filter(({ metadata }) => metadata.deletedAt === 0n).toSorted(byAge);
    const [oldest] = left;
    const nowMs = clock.monotonicMs();
    const witness = this.#witnesses.get(poolName);
    const isSame = witness?.id === oldest?.metadata.id;
    const isWitnessDue = !isSame || nowMs - (witness?.atMs ?? nowMs) >= CLAIM_MS;
    if (isWitnessDue) this.#witnesses.set(poolName, oldest && { id: oldest.metadata.id, atMs: nowMs });
    const due = left.filter((one) => {
      const claim = poolClaimOf(one);
      return (one === oldest && isWitnessDue) || (claim !== undefined && isForgottenSoon(all, claim));
    });
    let isRefused = false;
    for (const machine of due.slice(0, CLAIMS_AT_ONCE)) {
      const { id, annotations } = machine.metadata;
      const claimed = { ...annotations, [CLAIM]: claimText(own) };
      await runtime
        .change(machineKey(machine), id, { kind: 'annotate', annotations: claimed }, signal)
        .catch((err: unknown) => {
          if (!(err instanceof RuntimeError)) throw err;
          isRefused = true;
          this.#deps.log.debug({ pool: poolName, runtimeMachine: id, err: err.message }, 'a machine was not claimed');
        });
    }
    return due.length > CLAIMS_AT_ONCE && !isRefused;
  }

  forget(poolName: string): void {
    this.#witnesses.delete(poolName);
  }
}

/** The oldest first: whoever has forgotten those that are younger agrees on it. */
function byAge({ metadata: a }: RuntimeMachine, { metadata: b }: RuntimeMachine): number {
  return Number(a.createdAt - b.createdAt) || (a.id < b.id ? -1 : 1);
}
