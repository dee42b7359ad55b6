import { isDeepStrictEqual } from 'node:util';

import type { IronCoreMachine } from '../api/machine.ts';
import { readyCondition, type IronCoreMachinePool } from '../api/machine-pool.ts';
import { isBeingDeleted, keyOf, refOf } from '../../../apis/meta.ts';
import { ANY_CLASS } from './indexes.ts';
import {
  ApiError,
  ignoreNotFound,
  isConflict,
  isDenial,
  isTooManyRequests,
  mayHaveHappened,
} from '../../../kube/client/errors.ts';
import { mergePatchIfUnchanged, statusPatch } from '../../../kube/client/patch.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ironCoreMachines } from '../api/resources.ts';
import { requeue, stop, type StepResult } from '../../../work/reconcile/result.ts';
import type { Queue } from '../../../work/workqueue/queue.ts';
import { place } from './place.ts';
import { PlacesTaken } from './places-taken.ts';
import {
  astray,
  placed,
  refused,
  scheduledCondition,
  waiting,
  withScheduled,
  type ScheduledConditionValue,
} from './scheduled-condition.ts';
import type { IronCoreCollaborators } from './collaborators.ts';

type Deps = Pick<IronCoreCollaborators, 'machines' | 'pools' | 'writer' | 'recorder' | 'clock'>;

/** A Machine that waits is looked at again at the latest after this. */
const RECHECK_MS = 60_000;

/**
 * Gives Machines of IronCore that have no pool one. A place counts as taken from the moment it is decided on, and nothing is awaited
 * between the look at the places and that: however many passes write at once, each decides on what all before it have decided.
 *
 * | the write of the pool     | the place                                                                                    |
 * |---------------------------|----------------------------------------------------------------------------------------------|
 * | succeeds                  | stays taken until the Machine is gone                                                        |
 * | is refused                | is free again                                                                                |
 * | was not sent (the gate)   | is free again, unless an earlier write had no answer: the pools may be others by then        |
 * | has no answer, or is late | stays taken; the same pool is written again until the Machine shows it, or a later version   |
 *
 * A Machine that had a pool, and has none any more, gets the same again, whether or not that would take another one. While that is gone, too, it waits.
 */
export class Scheduler {
  readonly #deps: Deps;
  readonly #taken = new PlacesTaken();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Takes note of all places that are taken, and fills the queue with Machines that wait whenever one of them could be placed. */
  watch(queue: Queue): void {
    const { machines, pools } = this.#deps;
    const wake = (machineClass: string): void => {
      for (const machine of machines.byIndex('unplaced', machineClass)) queue.add(keyOf(machine));
    };
    machines.onChange((old, current) => {
      if (current === undefined) {
        if (old !== undefined && this.#taken.free(old.metadata.uid)) wake(old.spec.machineClassRef.name);
        return;
      }
      this.#taken.seen(current);
      // A change of the status is mostly what was said here.
      if (!isDeepStrictEqual(current.spec, old?.spec)) {
        queue.add(keyOf(current), machines.hasSynced ? 'normal' : 'low');
      }
    });
    pools.onChange((old, current) => {
      if (!isDeepStrictEqual(looksOf(old), looksOf(current))) wake(ANY_CLASS);
      if (old !== undefined && current !== undefined) return;
      const name = (current ?? old)?.metadata.name ?? '';
      for (const machine of machines.byIndex('pool', name)) queue.add(keyOf(machine));
    });
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { machines, pools } = this.#deps;
    const machine = machines.get(key);
    if (machine === undefined || isBeingDeleted(machine)) return stop;
    const { machinePoolRef } = machine.spec;
    if (machinePoolRef !== undefined) {
      const { name } = machinePoolRef;
      if (pools.get(name) === undefined) await this.#reportProblem(machine, astray(name), signal);
      // One that has never waited says nothing: its conditions are those of its pool.
      else if (scheduledCondition(machine)?.status === 'False') await this.#report(machine, placed(name), signal);
      return stop;
    }
    const before = this.#taken.before(machine);
    if (before !== undefined) {
      // The place is taken still. The pool may be lost, too: in another one the Machine would have a machine too many.
      if (pools.get(before) === undefined) {
        const said = astray(before);
        await this.#reportProblem(machine, said, signal);
        return requeue(RECHECK_MS, said.message);
      }
      await this.#bind(machine, before, signal);
      return stop;
    }
    const decided = this.#taken.decided(machine);
    if (decided === undefined) this.#taken.free(machine.metadata.uid);
    const placement = decided === undefined ? place(machine, pools.list(), this.#taken) : { pool: decided };
    if ('why' in placement) {
      await this.#reportProblem(machine, waiting(placement.why), signal);
      return requeue(RECHECK_MS, placement.why);
    }
    this.#taken.take(machine, placement.pool);
    await this.#bind(machine, placement.pool, signal, decided === undefined);
    return stop;
  }

  async #bind(machine: IronCoreMachine, pool: string, signal: AbortSignal, isFirst = false): Promise<void> {
    const patch = mergePatchIfUnchanged(machine, { spec: { machinePoolRef: { name: pool } } });
    try {
      await this.#deps.writer.patch('change', ironCoreMachines, refOf(machine), patch, { signal });
    } catch (err) {
      const isUnwritten = isRefused(err) || (isFirst && err instanceof GateClosedError);
      // Those that wait find it at their own look: to wake them could have two that are refused wake each other forever.
      if (isUnwritten && this.#taken.before(machine) === undefined) this.#taken.free(machine.metadata.uid);
      if (isDenial(err)) await this.#reportProblem(machine, refused(pool, err.message), signal);
      ignoreNotFound(err);
    }
  }

  async #reportProblem(machine: IronCoreMachine, said: ScheduledConditionValue, signal: AbortSignal): Promise<void> {
    const isNews = await this.#report(machine, said, signal);
    const { reason, message } = said;
    if (isNews) this.#deps.recorder.event({ object: machine, type: 'Warning', reason, message });
  }

  /** Says whether it had not been said yet. */
  async #report(machine: IronCoreMachine, said: ScheduledConditionValue, signal: AbortSignal): Promise<boolean> {
    const { clock, writer } = this.#deps;
    const conditions = withScheduled(machine, said, clock.now());
    if (conditions === undefined) return false;
    // IronCore calls one so that has no pool yet; whoever serves its pool says the rest.
    const state = (machine.status?.state ?? '') === '' ? { state: 'Pending' } : {};
    const patch = statusPatch(machine, { ...state, conditions });
    await writer.patch('change', ironCoreMachines, refOf(machine), patch, { signal }).catch(ignoreNotFound);
    return true;
  }
}

/** Whether a write was looked at and turned down, so that it can happen no more. A conflict may be one with itself. */
function isRefused(err: unknown): boolean {
  return err instanceof ApiError && !mayHaveHappened(err) && !isConflict(err) && !isTooManyRequests(err);
}

/** What decides about a pool: it tells that it lives more often than that changes. */
function looksOf(pool: IronCoreMachinePool | undefined): unknown {
  if (pool === undefined) return undefined;
  const { metadata, spec, status } = pool;
  return [metadata.labels, spec?.taints, status?.capacity, readyCondition(pool)?.status, isBeingDeleted(pool)];
}
