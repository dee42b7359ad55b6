import { keyOf } from '../../../../apis/meta.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import { RuntimeError } from '../../runtime/error.ts';
import { MachineState, VolumeState } from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { requeue, stop, waitFor, type StepResult } from '../../../../work/reconcile/result.ts';
import type { KeptMachines } from './kept-machines.ts';
import { leavingOf } from './kept-uses.ts';
import type { LeftClaims } from './left-claims.ts';
import { isHeldAsMissing } from './missing-machines.ts';
import { OWNERS, wokenBy, type ByID } from './owner-of.ts';
import { OwnerlessMachines } from './ownerless-machines.ts';
import { runtimeIDOf } from './runtime-id.ts';
import type { RuntimeEvents } from './runtime-events.ts';
import { listRuntimeMachines } from './sightings.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';

type Shared = 'machines' | 'pools' | 'poolUIDs' | 'runtimes' | 'served' | 'reader' | 'metrics' | 'clock' | 'log';
type Learnt = 'claims' | 'rivals' | 'departures' | 'keptUses' | 'sightings';

export interface RelistDeps extends Pick<IronCoreCollaborators, Shared | Learnt> {
  readonly kept: Pick<KeptMachines, 'report' | 'leave'>;
  readonly leftClaims: Pick<LeftClaims, 'release' | 'leave'>;
  readonly events: Pick<RuntimeEvents, 'report'>;
  /** What a Machine is at its runtime has changed. */
  readonly wake: (machineKey: string) => void;
}

/** How often all machines of a runtime are looked at while something is on its way, and at rest: one that goes is seen going then. */
const SOON_MS = 1_000;
const REST_MS = 5_000;
/** How soon a runtime that does not answer is asked again. */
const AWAY_MS = 5_000;

interface RecordedPool {
  /** What each machine was like, by id. */
  shapes: ReadonlyMap<string, { readonly shape: string; readonly key: string }>;
  /** Ids that Machines have and the last list did not show. */
  missing: ReadonlySet<string>;
  /** It did not answer the last time. */
  isAway: boolean;
  /** Somebody else claimed machines the last time. */
  isContested: boolean;
}

/**
 * Looks at all machines of a pool's runtime: wakes those that have changed, and Machines whose machine is missing, deletes those whose Machine went without them, and has told
 * what the runtime tells of them, and which are kept without a Machine.
 */
export class Relist {
  readonly #deps: RelistDeps;
  readonly #ownerless: OwnerlessMachines;
  readonly #recorded = new Map<string, RecordedPool>();

  constructor(deps: RelistDeps) {
    this.#deps = deps;
    this.#ownerless = new OwnerlessMachines(deps);
  }

  async reconcile(pool: string, signal: AbortSignal): Promise<StepResult> {
    const runtime = this.#deps.runtimes.get(pool);
    if (runtime === undefined) return stop;
    if (!this.#deps.served.has(pool)) {
      // What it has seen is another's doing by the time it serves the pool again.
      if (this.#recorded.has(pool)) await this.#leave(pool, signal);
      return waitFor('the pool to be served by this process');
    }
    // Without it nobody could tell whether somebody else claims what is there.
    if (this.#deps.claims.of(pool) === undefined) return requeue(SOON_MS, 'the Lease of the pool to be renewed');
    const known = this.#recorded.get(pool) ?? newlyKnown();
    this.#recorded.set(pool, known);
    // Before the list: what is made meanwhile is not missing there.
    const recorded = this.#deps.machines.byIndex('pool', pool).filter((machine) => runtimeIDOf(machine) !== '');
    const shown = await listRuntimeMachines(runtime, {}, signal).catch((err: unknown) => {
      if (!(err instanceof RuntimeError) || signal.aborted) throw err;
      if (!known.isAway) this.#deps.log.warn({ pool, err: err.message }, 'a runtime cannot list its machines');
      this.#deps.keptUses.failed(pool, err.message);
    });
    // That it does not answer at all is what its MachinePool says.
    if (shown === undefined) {
      known.isAway = true;
      return requeue(AWAY_MS, 'the runtime to answer');
    }
    this.#deps.sightings.saw(pool, shown);
    const { machines } = shown;
    const inPool = this.#deps.machines.byIndex('pool', pool);
    this.#deps.metrics.missing.set({ pool }, inPool.filter(isHeldAsMissing).length);
    const byID = new Map(inPool.map((machine) => [runtimeIDOf(machine), machine]));
    this.#wakeChanged(known, machines, byID);
    this.#wakeMissing(known, recorded);
    // What was tried meanwhile need not wait for its back-off.
    if (known.isAway) for (const machine of inPool) this.#deps.wake(keyOf(machine));
    known.isAway = false;
    const { isCleaning, refusal, isContested } = await this.#ownerless.clean(pool, machines, byID, signal);
    if (known.isContested && !isContested) for (const machine of inPool) this.#deps.wake(keyOf(machine));
    known.isContested = isContested;
    await this.#deps.events.report(pool, runtime, machines, signal);
    if (isContested) return requeue(REST_MS, 'no other process to claim the pool');
    const isBusy = isCleaning || machines.some(isOnItsWay);
    const leftClaimsMs = await this.#deps.leftClaims.release(pool, shown, signal);
    if (refusal !== undefined) throw refusal;
    return requeue(isBusy ? SOON_MS : Math.min(REST_MS, leftClaimsMs), 'the next list of the machines of the runtime');
  }

  /** Nothing is known of it any more, and nothing that was said of it stays. */
  async #leave(poolName: string, signal: AbortSignal): Promise<void> {
    const { keptUses, sightings, rivals, leftClaims, metrics, pools, kept } = this.#deps;
    keptUses.forget(poolName);
    sightings.forget(poolName);
    rivals.forget(poolName);
    metrics.contested.remove({ pool: poolName });
    for (const owner of OWNERS) metrics.machines.remove({ pool: poolName, owner });
    metrics.kept.remove({ pool: poolName });
    metrics.missing.remove({ pool: poolName });
    const pool = pools.get(poolName);
    if (pool !== undefined) await kept.leave(pool, signal);
    await leftClaims.leave(poolName, signal);
    this.#recorded.delete(poolName);
    this.#ownerless.forget(poolName);
  }

  #wakeChanged(known: RecordedPool, machines: readonly RuntimeMachine[], byID: ByID): void {
    const shapes = new Map(
      machines.map((one) => {
        return [one.metadata.id, { shape: shapeOf(one), key: wokenBy(one, byID) }];
      }),
    );
    for (const [id, { shape, key }] of shapes) if (known.shapes.get(id)?.shape !== shape) this.#deps.wake(key);
    for (const [id, { key }] of known.shapes) if (!shapes.has(id)) this.#deps.wake(key);
    known.shapes = shapes;
  }

  /** A machine that has come and gone between two lists is in neither of them: only its Machine knows of it. */
  #wakeMissing(known: RecordedPool, recorded: readonly IronCoreMachine[]): void {
    const missing = recorded.filter((machine) => !known.shapes.has(runtimeIDOf(machine)));
    for (const machine of missing) if (!known.missing.has(runtimeIDOf(machine))) this.#deps.wake(keyOf(machine));
    known.missing = new Set(missing.map(runtimeIDOf));
  }
}

function newlyKnown(): RecordedPool {
  return {
    shapes: new Map(),
    missing: new Set(),
    isAway: false,
    isContested: false,
  };
}

function shapeOf({ metadata, status }: RuntimeMachine): string {
  const { generation, deletedAt } = metadata;
  const { observedGeneration, state, volumes, networkInterfaces } = status;
  const numbers = [generation, deletedAt, observedGeneration].map(String);
  return JSON.stringify([...numbers, state, volumes, networkInterfaces]);
}

function isOnItsWay(machine: RuntimeMachine): boolean {
  const { metadata, status } = machine;
  const isPending = ({ state }: { readonly state: number }): boolean => state !== VolumeState.VOLUME_ATTACHED;
  return (
    metadata.deletedAt !== 0n ||
    status.state === MachineState.MACHINE_PENDING ||
    status.state === MachineState.MACHINE_TERMINATING ||
    status.observedGeneration < metadata.generation ||
    leavingOf(machine, 'volumes').length + leavingOf(machine, 'networkInterfaces').length > 0 ||
    status.volumes.some(isPending) ||
    status.networkInterfaces.some(isPending)
  );
}
