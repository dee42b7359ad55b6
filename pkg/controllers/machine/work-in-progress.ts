import type { ActivityRegistry } from '../../work/activity/registry.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { type Clock, toTimestamp } from '../../base/clock/clock.ts';
import { describeProgress, isBlocked } from '../../drain/progress-text.ts';
import type { NodeAccess } from '../machine-facts/node-access.ts';
import type { FailureDeadline, OpenDrain, WaitingRetry, WorkInProgress } from '../../health/work-in-progress.ts';
import type { HeldRetry } from './calls/retries.ts';
import type { ActivityResults } from './calls/results.ts';
import type { DrainRecord } from './drain/plan.ts';
import type { MachineSteps } from './steps.ts';

export interface WorkSource {
  readonly steps: Pick<MachineSteps, 'drains' | 'retries' | 'timeToFailure'>;
  readonly activities: Pick<ActivityRegistry<ActivityResults>, 'open'>;
  readonly machines: Pick<Lister<Machine>, 'list'>;
  readonly classes: Pick<Lister<MachineClass>, 'list'>;
  readonly clock: Pick<Clock, 'now' | 'monotonicMs'>;
  readonly nodesOf: (machine: Machine) => NodeAccess | undefined;
}

/** What the machine controller of this process is doing, and waits for, with times of the wall. */
export function workInProgress(source: WorkSource): WorkInProgress {
  const { steps, activities, machines, classes, clock } = source;
  const { drains, retries } = steps;
  const aheadMs = clock.now() - clock.monotonicMs();
  const at: At = (monotonicMs) => toTimestamp(monotonicMs + aheadMs);
  const keys = new Map([...machines.list(), ...classes.list()].map((one) => [one.metadata.uid, keyOf(one)]));
  /** None of those whose object is gone. */
  const named = <T, R>(items: Iterable<readonly [uid: string, item: T]>, show: (key: string, item: T) => R): R[] =>
    [...items].flatMap(([uid, item]) => {
      const key = keys.get(uid);
      return key === undefined ? [] : [show(key, item)];
    });
  return {
    activities: activities
      .open()
      .map(({ key, kind, sinceMs, isQueued }) => ({ machine: key, activity: kind, since: at(sinceMs), isQueued })),
    retries: named(
      retries.held().map((one) => [one.machineUID, one]),
      (machine, one) => retryOf(machine, one, at),
    ),
    exhausted: named(
      retries.heldClasses().map((one) => [one.classUID, one]),
      (machineClass, { failures, error, notBeforeMs }) => ({
        machineClass,
        message: error.detail,
        failures,
        nextAttempt: at(notBeforeMs),
      }),
    ),
    drains: named(drains.open(), (machine, record) => drainOf(machine, record, at)),
    deadlines: machines.list().flatMap((machine) => deadlineOf(machine, source)),
  };
}

function deadlineOf(machine: Machine, { steps, clock, nodesOf }: WorkSource): FailureDeadline[] {
  const time = steps.timeToFailure(machine, nodesOf(machine));
  if (time === undefined) return [];
  return [{ machine: keyOf(machine), timeout: time.timeout, failsAt: toTimestamp(clock.now() + time.leftMs) }];
}

/** The time of the wall at a monotonic one. */
type At = (monotonicMs: number) => string;

function retryOf(machine: string, { call, failures, error, sinceMs, notBeforeMs }: HeldRetry, at: At): WaitingRetry {
  const failure = error === undefined ? {} : { code: error.code, message: error.detail };
  return { machine, call, ...failure, failures, since: at(sinceMs), nextAttempt: at(notBeforeMs) };
}

function drainOf(machine: string, record: DrainRecord, at: At): OpenDrain {
  const { purpose, startedMs, progress, force, forceAtMs, retryAtMs, failures } = record;
  return {
    machine,
    purpose,
    since: at(startedMs),
    failures,
    isBlocked: progress !== undefined && isBlocked(progress),
    ...(progress !== undefined && { remainingPods: progress.remainingPods, message: describeProgress(progress) }),
    ...(force === undefined
      ? forceAtMs !== undefined && { podsDeletedAt: toTimestamp(forceAtMs) }
      : { forcedBy: force }),
    ...(retryAtMs !== undefined && { nextAttempt: at(retryAtMs) }),
  };
}
