import { next, requeue } from '../../../../work/reconcile/result.ts';
import { RuntimeError } from '../../runtime/error.ts';
import type { PoolRuntime } from '../../runtime/gated-runtime.ts';
import { UID_LABEL } from './keys.ts';
import type { IronCorePass, IronCoreStep, PassCollaborators } from './machine-pass.ts';
import { firstListOf } from './decision.ts';
import { SOON_MS } from './rechecks.ts';
import { CLAIMED_BY_ANOTHER } from './rivals.ts';
import { listRuntimeMachines, type Shown } from './sightings.ts';
import { holdOff, type WaitDeps } from './waiting.ts';

type Learnt = 'sightings' | 'keptUses' | 'rivals' | 'missing';
type Deps = WaitDeps & Pick<PassCollaborators, 'runtimes' | 'served' | Learnt>;

/**
 * Makes no machine, and ends no deletion, while another pool of this process has a machine of the Machine. A pool is given once; but a cluster
 * that was restored from a backup of before may have given another one, and the machine is still where it was.
 *
 * | the runtime of another pool                              | goes on here                       |
 * |----------------------------------------------------------|------------------------------------|
 * | was not asked yet since it is served                     | not before it was: seconds         |
 * | did not answer, and has shown none of the Machine        | yes: a pool holds up no other pool |
 * | has shown one, and shows it, or does not answer          | no                                 |
 * | has shown one, and another cluster claims its machines   | no: it is said whose it may be     |
 * | has shown one, and shows none by the connection that has | yes: it is gone                    |
 * | has shown one, and shows none after it was started again | no: it may have lost its state     |
 */
export const nowhereElse = (deps: Deps): IronCoreStep => ({
  name: 'nowhere-else',
  async run(pass) {
    const { runtimes, sightings, rivals, missing } = deps;
    const { observed, poolName, existing, runtime: here } = pass;
    if (existing.length > 0) return next;
    // What the runtime has of both pools was shown already.
    const others = [...runtimes].filter(([, { address }]) => address !== here.address);
    const unseen = unseenPool(deps, here);
    if (unseen !== undefined) return requeue(SOON_MS, firstListOf(unseen));
    for (const [pool, runtime] of others) {
      if (!sightings.has(pool, observed.metadata.uid)) continue;
      const why = await whyNot(deps, pass, pool, runtime);
      const doubt = why === undefined ? undefined : missing.elsewhere(observed, poolName, pool, why);
      if (doubt === undefined) continue;
      // Whose machine it is must be said first: another cluster's is not to be deleted there.
      const message = rivals.whyNot(pool);
      return await holdOff(deps, pass, message === undefined ? doubt : { reason: CLAIMED_BY_ANOTHER, message });
    }
    return next;
  },
});

/** A pool at another runtime that was not asked yet what it has since it is served; undefined: none. */
export function unseenPool(
  { runtimes, served, keptUses }: Pick<Deps, 'runtimes' | 'served' | 'keptUses'>,
  here: PoolRuntime,
): string | undefined {
  const unseen = [...runtimes].find(
    ([pool, { address }]) =>
      address !== here.address && served.has(pool) && !keptUses.has(pool) && keptUses.whyNot(pool) === undefined,
  );
  return unseen?.[0];
}

/** What says that the runtime of another pool has a machine of the Machine, which it has shown; undefined: it is gone there. */
async function whyNot(
  { sightings, keptUses, rechecks, uncertainty }: Pick<Deps, 'sightings' | 'keptUses' | 'rechecks' | 'uncertainty'>,
  { observed: { metadata }, signal }: IronCorePass,
  pool: string,
  runtime: PoolRuntime,
): Promise<string | undefined> {
  const { uid } = metadata;
  // One that hangs is not asked once more for each Machine: that would hold up this pool.
  const failure = keptUses.whyNot(pool);
  if (failure !== undefined) return cannotList(failure);
  let shown: Shown;
  try {
    shown = await listRuntimeMachines(runtime, { labels: { [UID_LABEL]: uid } }, signal);
  } catch (err) {
    if (!(err instanceof RuntimeError) || signal.aborted) throw err;
    return cannotList(err.message);
  }
  sightings.saw(pool, shown);
  const [machine] = shown.machines;
  if (machine !== undefined) return `has machine ${machine.metadata.id} of this Machine`;
  if (!sightings.vouchesFor(pool, { uid }, shown.connection))
    return 'has listed a machine of this Machine, and does not list it since it was restarted';
  // One list is not enough: until that is over, the next list of all machines of that runtime may show it again.
  rechecks.release(uid);
  uncertainty.distrusted(uid);
  sightings.left(pool, uid);
  return undefined;
}

function cannotList(why: string): string {
  return `has listed a machine of this Machine, and cannot list its machines now: ${why}`;
}
