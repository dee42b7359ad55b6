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
export const KEPT = 'MachinesKept';
/** So many are named. */
const NAMED = 10;

const WHY: Readonly<Record<KeptWhy, string>> = {
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
  async tell(
    pool: IronCoreMachinePool,
    { kept, why }: Pick<OwnerlessVerdict, 'kept' | 'why'>,
    release: Release,
    signal: AbortSignal,
  ): Promise<void> {
    const { writer, recorder, metrics, clock, log } = this.#deps;
    const { name } = pool.metadata;
    metrics.kept.set({ pool: name }, kept.length);
    const conditions = pool.status?.conditions ?? [];
    const before = conditions.find(({ type }) => type === KEPT);
    if (why === undefined && before === undefined) return;
    const hint =
      release === 'given'
        ? ''
        : releaseHint(release, { kind: 'machinepools.compute.ironcore.dev', metadata: { name } });
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
    const status: IronCoreMachinePoolStatus = {
      conditions: [...conditions.filter(({ type }) => type !== KEPT), after],
    };
    await writer
      .patch('change', ironCoreMachinePools, refOf(pool), statusPatch(pool, status), { signal })
      .catch(ignoreNotFound);
  }
}

function keptCondition(
  { kept, why, hint }: Pick<OwnerlessVerdict, 'kept' | 'why'> & { readonly hint: string },
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
