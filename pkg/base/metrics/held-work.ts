import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

interface Held {
  readonly work: string;
  readonly waitsFor: string;
  readonly of: string;
  readonly sinceMs: number;
}

const LABELS = ['work', 'waits_for', 'of'] as const;

/** Declares the metrics of held work in `registry`; `list` is asked at each scrape. */
export function heldWorkMetrics(registry: Registry, list: () => readonly Held[]): void {
  const { series } = declaring(registry);
  const each = (valueOf: (held: Held) => number) => () =>
    list().map((held) => [{ work: held.work, waits_for: held.waitsFor, of: held.of }, valueOf(held)] as const);
  series(
    'machinist_work_held',
    '1 for work that cannot start or continue: its Lease (or process), and what it waits for (permissions, caches, identity, catch-up, claim, others, driver, obedience), with the cluster or provider; no value otherwise.',
    LABELS,
    each(() => 1),
  );
  series(
    'machinist_work_held_since_timestamp_seconds',
    'Time since which work is held, in seconds since the epoch; no value if no work is held. For the cause, see the log and /readyz?verbose.',
    LABELS,
    each(({ sinceMs }) => sinceMs / 1_000),
  );
}
