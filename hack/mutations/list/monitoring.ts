import type { Mutation } from '../mutation.ts';

/** What metrics say: a figure that is wrong misleads more than one that is missing. */
export const MONITORING: readonly Mutation[] = [
  {
    file: 'pkg/metrics/exposition.ts',
    from: "wanted > 0 && wanted >= (weights.get('text/plain') ?? 0)",
    to: 'wanted > 0',
    why: 'A reader that prefers plain text gets another format.',
    tests: ['pkg/metrics/exposition.test.ts'],
  },
  {
    file: 'pkg/metrics/exposition.ts',
    from: "isCounter && family === name ? 'unknown' : rest",
    to: 'rest',
    why: "Strict readers of OpenMetrics refuse a whole scrape because of one of the original's counters.",
    tests: ['pkg/metrics/exposition.test.ts'],
  },
  {
    file: 'pkg/controllers/machine-deployment/rollout-metrics.ts',
    from: 'Math.max(madeMs, restedMs)',
    to: 'madeMs',
    why: 'A rollout back to an earlier MachineSet seems to have lasted for weeks.',
    tests: ['pkg/controllers/machine-deployment/rollout-metrics.test.ts'],
  },
  {
    file: 'pkg/controllers/machine-deployment/rollout-metrics.ts',
    from: '(isBack ? this.#besideSinceMs(newest, earlier, nowMs) : madeMs)',
    to: 'madeMs',
    why: 'The same, after a restart.',
    tests: ['pkg/controllers/machine-deployment/rollout-metrics.test.ts'],
  },
  {
    file: 'pkg/metrics/exposition.ts',
    from: 'failures.failed(name, err); return [];',
    to: 'failures.failed(name, err); throw err;',
    why: 'One metric that cannot be read fails the whole scrape.',
    tests: ['pkg/metrics/exposition.test.ts'],
  },
  {
    file: 'pkg/controllers/safety/orphan-vms/controller.ts',
    from: 'if (unseen.size === 0) metrics.lastLook',
    to: 'metrics.lastLook',
    why: 'Nobody is alerted when the VMs of a class cannot be listed, and what is left over there is never found.',
    tests: ['pkg/controllers/safety/orphan-vms/controller.test.ts'],
  },
  {
    file: 'pkg/controllers/machine/drain/session.ts',
    from: 'forceAtMs: force === undefined ? forceAtMs : undefined',
    to: 'forceAtMs',
    why: 'A drain whose pods are deleted already is shown as one that waits until then.',
    tests: ['pkg/controllers/machine/deletion/deletion.test.ts'],
  },
  {
    file: 'pkg/controllers/machine/calls/retries.ts',
    from: 'failures > 0 && notBeforeMs > nowMs',
    to: 'failures > 0',
    why: 'Calls that may be repeated count as held for as long as their machine lives.',
    tests: ['pkg/controllers/machine/calls/retries.test.ts'],
  },
];
