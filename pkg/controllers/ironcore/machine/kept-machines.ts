import type { IronCoreMachinePool, IronCoreMachinePoolStatus } from '../../../apis/ironcore/machine-pool.ts';
import type { Condition } from '../../../apis/ironcore/reference.ts';
import { keyOf, refOf } from '../../../apis/meta.ts';
import { toTimestamp, type Clock } from '../../../clock/clock.ts';
import type { ObjectEvents } from '../../../events/event-sink.ts';
import type { RuntimeMachine } from '../../../ironcore-runtime/runtime.ts';
import type { Writer } from '../../../kube/client.ts';
import { ignoreNotFound } from '../../../kube/errors.ts';
import { statusPatch } from '../../../kube/patch.ts';
import { ironCoreMachinePools } from '../../../kube/resource.ts';
import type { Logger } from '../../../log/logger.ts';
import type { IronCoreMetrics } from '../../../metrics/ironcore.ts';
import { releaseHint, type Release } from '../../vms/orphan-release.ts';
import { NAME_LABEL, NAMESPACE_LABEL } from './keys.ts';
import { formerPoolHint } from './former-pools.ts';
import type { KeptWhy, OwnerlessVerdict } from './ownerless.ts';

/** What is told of kept machines with. */
export interface KeptMachinesDeps {
  readonly writer: Pick<Writer, 'patch'>;
  readonly recorder: ObjectEvents<IronCoreMachinePool>;
  readonly metrics: Pick<IronCoreMetrics, 'kept'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Type of the condition of a MachinePool, and reason of the Event about it. */
const KEPT = 'MachinesKept';
/** So many are named. */
const NAMED = 10;

/** What is kept, and why. */
export interface Kept extends Pick<OwnerlessVerdict, 'kept' | 'why'> {
  /** Besides: those that were made for MachinePools that are not there. */
  readonly former: readonly RuntimeMachine[];
}

const WHY: Readonly<Record<KeptWhy | 'FormerPool', string>> = {
  FormerPool: 'Machines at the runtime have no Machine, and were made for a MachinePool that is not there',
  DeletionNotSeen:
    'Machines at the runtime have no Machine, and nobody has seen that it was to be deleted: the API server may have been restored from a backup that is older than they are',
  TooManyAtOnce: 'Too many machines at the runtime lost their Machines at once',
};

/** Tells of machines at the runtimes of pools that are kept although they have no Machine: condition and Event of the MachinePool, gauge, log. */
export class KeptMachines {
  readonly #deps: KeptMachinesDeps;

  constructor(deps: KeptMachinesDeps) {
    this.#deps = deps;
  }

  /** Writes what has changed. Throws ApiError. */
  async tell(pool: IronCoreMachinePool, verdict: Kept, release: Release, signal: AbortSignal): Promise<void> {
    const { recorder, metrics, clock, log } = this.#deps;
    const { name } = pool.metadata;
    const { former } = verdict;
    const kept = [...verdict.kept, ...former];
    const why = verdict.why ?? (former.length > 0 ? 'FormerPool' : undefined);
    metrics.kept.set({ pool: name }, kept.length);
    const conditions = pool.status?.conditions ?? [];
    const before = conditions.find(({ type }) => type === KEPT);
    if (why === undefined && before === undefined) return;
    const hints = [
      ...(former.length > 0 ? [formerPoolHint(pool, former)] : []),
      ...(release === 'given'
        ? []
        : [releaseHint(release, { kind: 'machinepools.compute.ironcore.dev', metadata: { name } })]),
    ];
    const hint = hints.join('. ');
    const after = keptCondition({ kept, why, hint }, before, clock.now());
    if (isSame(before, after)) return;
    if (why !== undefined) {
      const named = kept.slice(0, NAMED).map(nameOf);
      log.warn({ pool: name, count: kept.length, why, named }, 'kept machines that have no Machine');
      // Without numbers and names, so that equal ones are one Event.
      recorder.event({
        object: pool,
        type: 'Warning',
        reason: KEPT,
        message: `${WHY[why]}. They are kept; the condition of that name lists them. ${hint}`,
      });
    }
    await this.#write(pool, after, signal);
  }

  /** Nothing is known of its runtime any more: somebody else serves the pool. Throws ApiError. */
  async leave(pool: IronCoreMachinePool, signal: AbortSignal): Promise<void> {
    const before = pool.status?.conditions?.find(({ type }) => type === KEPT);
    if (before?.status !== 'True') return;
    const message = `The pool is not served here any more, where machines were kept. ${before.message ?? ''}`;
    const lastTransitionTime = toTimestamp(this.#deps.clock.now());
    await this.#write(
      pool,
      { type: KEPT, status: 'Unknown', reason: 'NotServed', message, lastTransitionTime },
      signal,
    );
  }

  async #write(pool: IronCoreMachinePool, after: Condition, signal: AbortSignal): Promise<void> {
    const others = (pool.status?.conditions ?? []).filter(({ type }) => type !== KEPT);
    const status: IronCoreMachinePoolStatus = { conditions: [...others, after] };
    await this.#deps.writer
      .patch('change', ironCoreMachinePools, refOf(pool), statusPatch(pool, status), { signal })
      .catch(ignoreNotFound);
  }
}

function keptCondition(
  {
    kept,
    why,
    hint,
  }: { readonly kept: readonly RuntimeMachine[]; readonly why: keyof typeof WHY | undefined; readonly hint: string },
  before: Condition | undefined,
  nowMs: number,
): Condition {
  const status = why === undefined ? 'False' : 'True';
  const more = kept.length > NAMED ? ` and ${kept.length - NAMED} more` : '';
  const message =
    why === undefined
      ? 'Every machine at the runtime has its Machine'
      : `${WHY[why]}. Kept (${kept.length}): ${kept.slice(0, NAMED).map(nameOf).join(', ')}${more}. ${hint}`;
  const since = before?.status === status ? before.lastTransitionTime : undefined;
  return { type: KEPT, status, reason: why ?? 'NoneKept', message, lastTransitionTime: since ?? toTimestamp(nowMs) };
}

function isSame(before: Condition | undefined, after: Condition): boolean {
  return before?.status === after.status && before.reason === after.reason && before.message === after.message;
}

/** `ns/name (id)`: its Machine as it was, and how the runtime calls it. */
function nameOf({ metadata: { id, labels } }: RuntimeMachine): string {
  const { [NAMESPACE_LABEL]: namespace = '', [NAME_LABEL]: name = '' } = labels;
  return `${keyOf({ metadata: { namespace, name } })} (${id})`;
}
