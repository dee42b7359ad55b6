import type { IronCoreMachine } from '../../../apis/ironcore/machine.ts';
import type { IronCoreMachinePool } from '../../../apis/ironcore/machine-pool.ts';
import { keyOf } from '../../../apis/meta.ts';
import type { Lister } from '../../../cache/lister.ts';
import type { Clock } from '../../../clock/clock.ts';
import type { ObjectEvents } from '../../../events/event-sink.ts';
import { RuntimeError } from '../../../ironcore-runtime/error.ts';
import type { PoolRuntime } from '../../../ironcore-runtime/gated-runtime.ts';
import type { Event } from '../../../ironcore-runtime/gen/ironcore/event/v1alpha1/event.ts';
import { MachineState, VolumeState } from '../../../ironcore-runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../../ironcore-runtime/runtime.ts';
import type { Reader } from '../../../kube/client.ts';
import { ignoreNotFound } from '../../../kube/errors.ts';
import { ironCoreMachines } from '../../../kube/resource.ts';
import type { Logger } from '../../../log/logger.ts';
import { requeue, stop, type StepResult } from '../../../reconcile/result.ts';
import { MACHINE_FINALIZER, NAME_LABEL, NAMESPACE_LABEL, POOL_LABEL, UID_LABEL } from './keys.ts';

/** What the machines of pools are looked at with. */
export interface RelistDeps {
  readonly runtimes: ReadonlyMap<string, PoolRuntime>;
  /** Index: `pool`. */
  readonly machines: Lister<IronCoreMachine>;
  readonly pools: Lister<IronCoreMachinePool>;
  readonly reader: Pick<Reader, 'get'>;
  readonly recorder: ObjectEvents<IronCoreMachine>;
  readonly clock: Clock;
  readonly log: Logger;
  /** What a Machine is at its runtime has changed. */
  readonly wake: (machineKey: string) => void;
}

/** How often all machines of a runtime are looked at while something is on its way, and at rest. */
const SOON_MS = 1_000;
const REST_MS = 30_000;
/** How soon a runtime that does not answer is asked again. */
const AWAY_MS = 5_000;
/** For so long a machine without a Machine is left alone: two looks, and a watch that may be late. */
const OWNERLESS_MS = 10_000;
/** More at once are no mishap: somebody has lost Machines, and may want them back. */
const MOST_OWNERLESS = 5;
const EVENTS_PERIOD_MS = 10_000;
/** Events that are remembered as told; what is older is not asked for any more. */
const MOST_TOLD = 10_000;

interface Known {
  /** What each machine was like, by id. */
  shapes: ReadonlyMap<string, { readonly shape: string; readonly key: string }>;
  /** Since when each machine has had no Machine, by id. */
  ownerlessSinceMs: Map<string, number>;
  /** Until when it has told its events, and when it was asked for them. */
  eventsAtMs: number | undefined;
  eventsAskedAtMs: number | undefined;
  /** It did not answer the last time. */
  isAway: boolean;
}

/**
 * Looks at all machines of a pool's runtime: wakes those that have changed, deletes those whose Machine has gone without them, and tells
 * what the runtime tells of them.
 */
export class Relist {
  readonly #deps: RelistDeps;
  readonly #known = new Map<string, Known>();
  readonly #told = new Set<string>();
  #keepsOwnerless = false;

  constructor(deps: RelistDeps) {
    this.#deps = deps;
  }

  /** One look at one pool. What it throws is retried with back-off. */
  async reconcile(pool: string, signal: AbortSignal): Promise<StepResult> {
    const runtime = this.#deps.runtimes.get(pool);
    if (runtime === undefined) return stop;
    const known = this.#known.get(pool) ?? {
      shapes: new Map(),
      ownerlessSinceMs: new Map(),
      eventsAtMs: undefined,
      eventsAskedAtMs: undefined,
      isAway: false,
    };
    this.#known.set(pool, known);
    const machines = await runtime.machines({}, signal).catch((err: unknown) => {
      if (!(err instanceof RuntimeError) || signal.aborted) throw err;
    });
    // That it does not answer is what its MachinePool says.
    if (machines === undefined) {
      known.isAway = true;
      return requeue(AWAY_MS, 'the runtime to answer');
    }
    this.#wakeChanged(known, machines);
    // What was tried meanwhile need not wait for its back-off.
    if (known.isAway) for (const machine of this.#deps.machines.byIndex('pool', pool)) this.#deps.wake(keyOf(machine));
    known.isAway = false;
    const isCleaning = await this.#removeOwnerless(pool, known, machines, signal);
    await this.#tellEvents(known, runtime, machines, signal);
    const isBusy = isCleaning || machines.some(isOnItsWay);
    return requeue(isBusy ? SOON_MS : REST_MS, 'the next look at the runtime');
  }

  #wakeChanged(known: Known, machines: readonly RuntimeMachine[]): void {
    const shapes = new Map(machines.map((one) => [one.metadata.id, { shape: shapeOf(one), key: machineKey(one) }]));
    for (const [id, { shape, key }] of shapes) if (known.shapes.get(id)?.shape !== shape) this.#deps.wake(key);
    for (const [id, { key }] of known.shapes) if (!shapes.has(id)) this.#deps.wake(key);
    known.shapes = shapes;
  }

  /** The API server was set back: it may have forgotten Machines whose machines are healthy, and were wanted. */
  keepOwnerless(): void {
    this.#keepsOwnerless = true;
  }

  /** Says whether there are any that are to be looked at again soon. */
  async #removeOwnerless(
    pool: string,
    known: Known,
    machines: readonly RuntimeMachine[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { pools, clock, log } = this.#deps;
    const poolUID = pools.get(pool)?.metadata.uid;
    // Others may use the same runtime, with the same labels.
    const ownerless = machines.filter(
      (one) =>
        poolUID !== undefined &&
        one.metadata.labels[POOL_LABEL] === poolUID &&
        isNamed(one) &&
        one.metadata.deletedAt === 0n &&
        !this.#hasMachine(one),
    );
    const before = known.ownerlessSinceMs;
    const nowMs = clock.monotonicMs();
    known.ownerlessSinceMs = new Map(ownerless.map(({ metadata: { id } }) => [id, before.get(id) ?? nowMs]));
    if (this.#keepsOwnerless || ownerless.length > MOST_OWNERLESS) {
      const isNews = [...known.ownerlessSinceMs.keys()].some((id) => !before.has(id));
      if (isNews) log.warn({ pool, count: ownerless.length }, 'kept machines that have no Machine');
      return false;
    }
    for (const machine of ownerless) {
      const sinceMs = known.ownerlessSinceMs.get(machine.metadata.id) ?? nowMs;
      if (nowMs - sinceMs >= OWNERLESS_MS) await this.#removeIfOwnerless(pool, machine, signal);
    }
    return ownerless.length > 0;
  }

  #hasMachine(machine: RuntimeMachine): boolean {
    const found = this.#deps.machines.get(machineKey(machine));
    return found !== undefined && found.metadata.uid === machine.metadata.labels[UID_LABEL] && isHeld(found);
  }

  /** The cache may be late: the API server is asked before anything is deleted. */
  async #removeIfOwnerless(pool: string, machine: RuntimeMachine, signal: AbortSignal): Promise<void> {
    const { reader, runtimes, log } = this.#deps;
    const { id, labels } = machine.metadata;
    const ref = { namespace: labels[NAMESPACE_LABEL] ?? '', name: labels[NAME_LABEL] ?? '' };
    const live = await reader.get(ironCoreMachines, ref, { signal }).catch(ignoreNotFound);
    if (live?.metadata.uid === labels[UID_LABEL]) return;
    const gone = (err: unknown): void => {
      if (!RuntimeError.hasCode(err, 'NotFound')) throw err;
    };
    await runtimes.get(pool)?.delete(machineKey(machine), id, signal).catch(gone);
    log.warn({ pool, runtimeMachine: id, machine: machineKey(machine) }, 'deleted a machine whose Machine is gone');
  }

  async #tellEvents(
    known: Known,
    runtime: PoolRuntime,
    machines: readonly RuntimeMachine[],
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (known.eventsAskedAtMs !== undefined && nowMs - known.eventsAskedAtMs < EVENTS_PERIOD_MS) return;
    known.eventsAskedAtMs = nowMs;
    const sinceMs = clock.now() - (known.eventsAtMs === undefined ? 0 : nowMs - known.eventsAtMs);
    const events = await runtime.events(sinceMs, signal).catch((err: unknown) => {
      if (!(err instanceof RuntimeError) || signal.aborted) throw err;
      // Not every runtime has them; and one that cannot tell them must not keep its machines from being looked at.
      return RuntimeError.hasCode(err, 'Unimplemented') ? [] : undefined;
    });
    if (events === undefined) return;
    known.eventsAtMs = nowMs;
    for (const event of events) this.#tell(event, machines);
  }

  /** Once: what was told is asked for again, because clocks differ. */
  #tell({ spec }: Event, machines: readonly RuntimeMachine[]): void {
    const { id = '', labels = {} } = spec?.involvedObjectMeta ?? {};
    const about = machines.find(({ metadata }) =>
      id === '' ? metadata.labels[UID_LABEL] === labels[UID_LABEL] : metadata.id === id,
    );
    if (spec === undefined || about === undefined) return;
    const object = this.#deps.machines.get(machineKey(about));
    if (object === undefined || object.metadata.uid !== about.metadata.labels[UID_LABEL]) return;
    const key = JSON.stringify([about.metadata.id, spec.type, spec.reason, spec.message, String(spec.eventTime)]);
    if (this.#told.has(key)) return;
    this.#told.add(key);
    for (const old of this.#told) {
      if (this.#told.size <= MOST_TOLD) break;
      this.#told.delete(old);
    }
    const type = spec.type === 'Warning' ? 'Warning' : 'Normal';
    this.#deps.recorder.event({
      object,
      type,
      reason: spec.reason === '' ? 'RuntimeEvent' : spec.reason,
      message: spec.message,
    });
  }
}

/** Key of the Machine of a machine. */
function machineKey({ metadata }: RuntimeMachine): string {
  const { [NAMESPACE_LABEL]: namespace = '', [NAME_LABEL]: name = '' } = metadata.labels;
  return keyOf({ metadata: { namespace, name } });
}

/** Whether it says of which Machine it is: without that nobody can be asked whether there is one. */
function isNamed({ metadata: { labels } }: RuntimeMachine): boolean {
  return [UID_LABEL, NAMESPACE_LABEL, NAME_LABEL].every((key) => (labels[key] ?? '') !== '');
}

/** One whose finalizer was taken away while it was being deleted goes without its machine. */
function isHeld({ metadata }: IronCoreMachine): boolean {
  return metadata.deletionTimestamp === undefined || metadata.finalizers?.includes(MACHINE_FINALIZER) === true;
}

/** All that a status shows of a machine. */
function shapeOf({ metadata, status }: RuntimeMachine): string {
  const { generation, deletedAt } = metadata;
  const { observedGeneration, state, volumes, networkInterfaces } = status;
  const numbers = [generation, deletedAt, observedGeneration].map(String);
  return JSON.stringify([...numbers, state, volumes, networkInterfaces]);
}

function isOnItsWay({ metadata, status }: RuntimeMachine): boolean {
  const isPending = ({ state }: { readonly state: number }): boolean => state !== VolumeState.VOLUME_ATTACHED;
  return (
    metadata.deletedAt !== 0n ||
    status.state === MachineState.MACHINE_PENDING ||
    status.state === MachineState.MACHINE_TERMINATING ||
    status.observedGeneration < metadata.generation ||
    status.volumes.some(isPending) ||
    status.networkInterfaces.some(isPending)
  );
}
