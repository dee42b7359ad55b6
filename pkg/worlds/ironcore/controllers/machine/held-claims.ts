import type { IronCoreMachinePool } from '../../api/machine-pool.ts';
import { GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import { keyOf, type KubeObject } from '../../../../apis/meta.ts';
import { conditionOf } from '../../../../work/reconcile/conditions.ts';
import { giveUpHint, releaseOf, type Annotated } from '../../../../controllers/vms/orphan-release.ts';
import { markPoolNotServed, hasCondition, writePoolCondition, type PoolConditionValue } from './pool-condition.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';

type Deps = Pick<IronCoreCollaborators, 'writer' | 'poolRecorder' | 'clock' | 'log'>;

/** Type of the condition of a MachinePool, and reason of the Event about it. */
const HELD = 'ClaimsHeld';
const REASON = 'MachineNotSeenGone';
/** So many are named. */
const NAMED = 10;
const WHY =
  'Machines were removed without releasing their claims. The runtime does not list their machines, but their deletion was not observed: the ' +
  'runtime may have lost its state, or another runtime may answer, while they still use the claims';

/** A Volume or a NetworkInterface that stays claimed. */
export interface HeldClaim {
  readonly kind: 'Volume' | 'NetworkInterface';
  readonly object: Pick<KubeObject, 'metadata'>;
  readonly machine: string;
}

const RESOURCES = {
  Volume: 'volumes.storage.ironcore.dev',
  NetworkInterface: 'networkinterfaces.networking.ironcore.dev',
} as const satisfies Record<HeldClaim['kind'], Annotated['kind']>;

/** Tells of Volumes and NetworkInterfaces that stay claimed by Machines that are gone: condition and Event of the MachinePool, log. */
export class HeldClaims {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Writes what has changed. Throws ApiError. */
  async report(pool: IronCoreMachinePool, held: readonly HeldClaim[], signal: AbortSignal): Promise<void> {
    const { writer, poolRecorder, clock, log } = this.#deps;
    const isHeld = held.length > 0;
    if (!isHeld && conditionOf(pool.status?.conditions, HELD) === undefined) return;
    const nowMs = clock.now();
    const release = releaseOf(pool, nowMs, GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION);
    const { name } = pool.metadata;
    const hint =
      release === 'given'
        ? ''
        : ` ${giveUpHint(release, { kind: 'machinepools.compute.ironcore.dev', metadata: { name } })}`;
    const more = held.length > NAMED ? ` and ${held.length - NAMED} more` : '';
    // Equal ones in whatever order are one message.
    const sorted = held.toSorted((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
    const named = sorted.slice(0, NAMED).map(textOf);
    const single = sorted.slice(0, 1).map((one) => singleHint(one, nowMs));
    const said: PoolConditionValue = isHeld
      ? {
          type: HELD,
          status: 'True',
          reason: REASON,
          message: [`${WHY}. Held (${held.length}): ${named.join(', ')}${more}.${hint}`, ...single].join(' '),
        }
      : { type: HELD, status: 'False', reason: 'NoneHeld', message: 'No removed Machine has claims left' };
    if (hasCondition(pool, said)) return;
    if (isHeld) {
      log.warn({ pool: name, count: held.length, named }, 'kept claims of deleted machines');
      // Without numbers and names, so that equal ones are one Event.
      const message = `${WHY}. The condition of the same name lists them, and shows how to give up a single one.${hint}`;
      poolRecorder.event({ object: pool, type: 'Warning', reason: HELD, message });
    }
    await writePoolCondition(writer, pool, said, nowMs, signal);
  }

  /** Nothing is known of its runtime any more: somebody else serves the pool. Throws ApiError. */
  async leave(pool: IronCoreMachinePool, signal: AbortSignal): Promise<void> {
    const { writer, clock } = this.#deps;
    await markPoolNotServed(writer, pool, { type: HELD, what: 'claims were held' }, clock.now(), signal);
  }
}

function textOf({ kind, object, machine }: HeldClaim): string {
  return `${kind} ${keyOf(object)} (of Machine ${machine})`;
}

function singleHint({ kind, object }: HeldClaim, nowMs: number): string {
  const release = releaseOf(object, nowMs, GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION);
  const { name, namespace } = object.metadata;
  const metadata = { name, ...(namespace !== undefined && { namespace }) };
  // One with a permission is not held any more by the time anybody reads this.
  const hint = giveUpHint(release === 'given' ? 'none' : release, { kind: RESOURCES[kind], metadata });
  return `For ${kind} ${keyOf(object)} alone (others likewise): ${hint}`;
}
