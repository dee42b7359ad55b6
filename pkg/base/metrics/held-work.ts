import { Gauge, type Registry } from 'prom-client';

interface Held {
  readonly work: string;
  readonly waitsFor: string;
  readonly of: string;
  readonly sinceMs: number;
}

const LABELS = ['work', 'waits_for', 'of'] as const;

/** Declares the metrics of held work in `registry`; `list` is asked at each scrape. */
export function heldWorkMetrics(registry: Registry, list: () => readonly Held[]): void {
  const show = (gauge: Gauge<(typeof LABELS)[number]>, valueOf: (held: Held) => number): void => {
    gauge.reset();
    for (const held of list()) {
      const { work, waitsFor, of } = held;
      gauge.set({ work, waits_for: waitsFor, of }, valueOf(held));
    }
  };
  void new Gauge({
    name: 'machinist_work_held',
    help: '1 for work that cannot start or continue: its Lease (or process), and what it waits for (permissions, caches, identity, catch-up, driver, obedience), with the cluster or provider; no value otherwise.',
    labelNames: LABELS,
    registers: [registry],
    collect() {
      show(this, () => 1);
    },
  });
  void new Gauge({
    name: 'machinist_work_held_since_timestamp_seconds',
    help: 'Time since which work is held, in seconds since the epoch; no value if no work is held. For the cause, see the log and /readyz?verbose.',
    labelNames: LABELS,
    registers: [registry],
    collect() {
      show(this, ({ sinceMs }) => sinceMs / 1_000);
    },
  });
}
