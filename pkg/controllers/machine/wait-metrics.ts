import type { Registry } from 'prom-client';

import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { declaring } from '../../base/metrics/declaring.ts';
import type { HeldRetry } from './calls/retries.ts';
import type { MachineSteps } from './steps.ts';

export interface WaitSource {
  readonly steps: {
    readonly drains: Pick<MachineSteps['drains'], 'blocked'>;
    readonly retries: Pick<MachineSteps['retries'], 'isExhausted'> & {
      readonly held: () => readonly Pick<HeldRetry, 'call' | 'classUID'>[];
    };
  };
  readonly classes: Pick<Lister<MachineClass>, 'list'>;
  readonly clock: Pick<Clock, 'now'>;
}

const CLASS = ['namespace', 'machine_class'] as const;

/** Declares in `registry` what machines wait for that somebody may have to do something about: blocked drains, and failed calls. */
export function waitMetrics(registry: Registry, { steps, classes, clock }: WaitSource): void {
  const { counted, series } = declaring(registry);
  counted(
    'machinist_drains_blocked',
    'Drains that do not progress without intervention, by their most important reason: misconfigured-disruption-budget, disruption-budget, error, terminating.',
    ['reason'],
    () => steps.drains.blocked().map(({ reason }) => ({ reason })),
  );
  series(
    'machinist_drains_blocked_next_force_seconds',
    'Time until the pods of the first blocked drain are deleted instead of evicted, by reason; no value if they are not deleted.',
    ['reason'],
    () => {
      const next = new Map<string, number>();
      for (const { reason, forceAtMs } of steps.drains.blocked()) {
        if (forceAtMs !== undefined) next.set(reason, Math.min(forceAtMs, next.get(reason) ?? Infinity));
      }
      return [...next].map(([reason, atMs]) => [{ reason }, Math.max(0, atMs - clock.now()) / 1_000]);
    },
  );
  counted(
    'machinist_driver_retries_held',
    'Failed driver calls that wait for their retry, by MachineClass and call (create, initialize, status, status-of-deleted, delete).',
    [...CLASS, 'call'],
    () => {
      const byUID = new Map(classes.list().map((one) => [one.metadata.uid, labelsOf(one)]));
      return steps.retries.held().flatMap(({ classUID, call }) => {
        const labels = byUID.get(classUID);
        return labels === undefined ? [] : [{ ...labels, call }];
      });
    },
  );
  series(
    'machinist_machine_class_exhausted',
    'Whether the provider of a MachineClass has insufficient resources (ResourceExhausted), so that its machines are created only after one creation succeeds (1) or not (0).',
    CLASS,
    () => classes.list().map((one) => [labelsOf(one), steps.retries.isExhausted(one.metadata.uid) ? 1 : 0]),
  );
}

function labelsOf({ metadata }: MachineClass): Record<(typeof CLASS)[number], string> {
  return { namespace: metadata.namespace ?? '', machine_class: metadata.name };
}
