import type { IronCoreMachinePool } from '../../api/machine-pool.ts';
import { keyOf } from '../../../../apis/meta.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { conditionOf } from '../../../../work/reconcile/conditions.ts';
import { releaseHint, type Release } from '../../../../controllers/vms/orphan-release.ts';
import { NAME_LABEL, MACHINE_NAMESPACE_LABEL } from './keys.ts';
import { formerPoolHint } from './former-pools.ts';
import type { KeptWhy, OwnerlessVerdict } from './ownerless.ts';
import { markPoolNotServed, hasCondition, writePoolCondition, type PoolConditionValue } from './pool-condition.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';
import { namedUpTo } from '../../../../apis/short-text.ts';

type Deps = Pick<IronCoreCollaborators, 'writer' | 'poolRecorder' | 'metrics' | 'clock' | 'log'>;

/** Type of the condition of a MachinePool, and reason of the Event about it. */
const KEPT = 'MachinesKept';
/** So many are named. */
const NAMED = 10;

export interface Kept extends Pick<OwnerlessVerdict, 'kept' | 'why'> {
  /** Besides: those that were made for MachinePools that are not there. */
  readonly former: readonly RuntimeMachine[];
}

const WHY: Readonly<Record<KeptWhy | 'FormerPool', string>> = {
  FormerPool: 'Machines at the runtime have no Machine, and were created for a MachinePool that does not exist',
  DeletionNotSeen:
    'Machines at the runtime have no Machine, and no deletion of it was observed: the API server may have been restored from a backup taken before they were created',
  TooManyAtOnce: 'Too many machines at the runtime lost their Machines at once',
};

/** Tells of machines at the runtimes of pools that are kept although they have no Machine: condition and Event of the MachinePool, gauge, log. */
export class KeptMachines {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Writes what has changed. Throws ApiError. */
  async report(pool: IronCoreMachinePool, verdict: Kept, release: Release, signal: AbortSignal): Promise<void> {
    const { writer, poolRecorder, metrics, clock, log } = this.#deps;
    const { name } = pool.metadata;
    const former = verdict.former.toSorted(byName);
    const kept = [...verdict.kept, ...former].toSorted(byName);
    const why = verdict.why ?? (former.length > 0 ? 'FormerPool' : undefined);
    metrics.kept.set({ pool: name }, kept.length);
    if (why === undefined && conditionOf(pool.status?.conditions, KEPT) === undefined) return;
    const hints = [
      ...(former.length > 0 ? [formerPoolHint(pool, former)] : []),
      ...(release === 'given'
        ? []
        : [releaseHint(release, { kind: 'machinepools.compute.ironcore.dev', metadata: { name } })]),
    ];
    const hint = hints.join('. ');
    const said = keptCondition(kept, why, hint);
    if (hasCondition(pool, said)) return;
    if (why !== undefined) {
      const named = kept.slice(0, NAMED).map(nameOf);
      log.warn({ pool: name, count: kept.length, why, named }, 'kept machines that have no Machine');
      // Without numbers and names, so that equal ones are one Event.
      const message = `${WHY[why]}. They are kept; the condition of the same name lists them. ${hint}`;
      poolRecorder.event({ object: pool, type: 'Warning', reason: KEPT, message });
    }
    await writePoolCondition(writer, pool, said, clock.now(), signal);
  }

  /** Nothing is known of its runtime any more: somebody else serves the pool. Throws ApiError. */
  async leave(pool: IronCoreMachinePool, signal: AbortSignal): Promise<void> {
    const { writer, clock } = this.#deps;
    await markPoolNotServed(writer, pool, { type: KEPT, what: 'machines were kept' }, clock.now(), signal);
  }
}

function keptCondition(
  kept: readonly RuntimeMachine[],
  why: keyof typeof WHY | undefined,
  hint: string,
): PoolConditionValue {
  const status = why === undefined ? 'False' : 'True';
  const message =
    why === undefined
      ? 'Every machine at the runtime has its Machine'
      : `${WHY[why]}. Kept (${kept.length}): ${namedUpTo(NAMED, kept.map(nameOf))}. ${hint}`;
  return { type: KEPT, status, reason: why ?? 'NoneKept', message };
}

/** Runtimes may show them in another order each time. */
function byName(a: RuntimeMachine, b: RuntimeMachine): number {
  return nameOf(a) < nameOf(b) ? -1 : 1;
}

/** `ns/name (id)`: its Machine as it was, and how the runtime calls it. */
function nameOf({ metadata: { id, labels } }: RuntimeMachine): string {
  const { [MACHINE_NAMESPACE_LABEL]: namespace = '', [NAME_LABEL]: name = '' } = labels;
  return `${keyOf({ metadata: { namespace, name } })} (${id})`;
}
