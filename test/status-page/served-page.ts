import { Registry } from 'prom-client';

import { phaseOf } from '../../pkg/apis/machine/v1alpha1/defaults.ts';
import type { Clock } from '../../pkg/base/clock/clock.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { TreeObjects } from '../../pkg/fleet/tree.ts';
import { Checks } from '../../pkg/health/checks.ts';
import { HealthServer } from '../../pkg/health/server.ts';
import type { WorkInProgress } from '../../pkg/health/work-in-progress.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { countPhases, type ProcessSections, snapshotOf } from '../../pkg/status-page/snapshot.ts';
import { StatusPage } from '../../pkg/status-page/status-page.ts';
import type { PhaseSample } from '../../pkg/status-page/view.ts';
import { webFiles } from '../../pkg/status-page/web-files.ts';
import { NOW_MS } from './fleet-of-many.ts';

/** What the page shows; a test changes it while the page is open. */
export interface Shown {
  objects: TreeObjects;
  work: WorkInProgress | undefined;
  process: Omit<ProcessSections, 'history'>;
  history: readonly PhaseSample[];
}

/** A leader that is well. */
export const WELL: Shown['process'] = {
  process: {
    identity: 'machinist-6c9d_1f2e3d4c',
    program: 'machinist run',
    version: '0.2.0',
    namespace: 'shoot--prod',
    hasSynced: true,
    readsMachines: true,
  },
  leaders: ['machine-controller-manager', 'machine-controller'].map((lease) => ({
    lease,
    state: 'leading',
    holder: 'machinist-6c9d_1f2e3d4c',
    since: '2026-01-01T08:00:00Z',
  })),
  clusters: ['control', 'target'].map((cluster) => ({ cluster, state: 'reachable' })),
  drivers: [{ provider: 'aws', state: 'connected', running: 3 }],
  checks: [{ name: 'caches', state: 'ok' }],
  alerts: [],
};

/** A page over what a test gives it, on a port of its own, at the time of `fleetOf`. */
export async function servePage(
  shown: Shown,
): Promise<AsyncDisposable & { readonly port: number; readonly url: string; readonly reads: () => number }> {
  const clock = clockFrom(NOW_MS);
  let reads = 0;
  const page = new StatusPage({
    clock,
    log: silentLogger,
    files: webFiles(),
    countMachines: () => countPhases(shown.objects.machines.map((one) => phaseOf(one) || 'New')),
    observe: (sampled) => {
      reads++;
      const history = shown.history.length > 0 ? shown.history : sampled;
      return Promise.resolve(snapshotOf(shown.objects, shown.work, { ...shown.process, history }, clock.now()));
    },
  });
  const [live, checks] = [new Checks(), new Checks()];
  const server = new HealthServer({
    address: '127.0.0.1',
    port: 0,
    live,
    checks,
    registry: new Registry(),
    page,
    log: silentLogger,
  });
  const port = await server.start();
  page.start();
  return {
    port,
    url: `http://127.0.0.1:${port}/ui/`,
    reads: () => reads,
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** A clock that goes on from `startMs`. */
function clockFrom(startMs: number): Clock {
  const system = new SystemClock();
  system.reanchor(startMs);
  return system;
}

/** An hour in which a few machines were replaced. */
export function hourOf(total: number): readonly PhaseSample[] {
  return Array.from({ length: 240 }, (_, i) => {
    const pending = Math.round((total / 20) * Math.max(0, Math.sin(i / 18)));
    const terminating = Math.round((total / 28) * Math.max(0, Math.sin((i - 12) / 18)));
    const unknown = i > 190 ? Math.round(total / 60) : 0;
    const at = `${new Date(NOW_MS - (239 - i) * 15_000).toISOString().slice(0, 19)}Z`;
    return {
      at,
      phases: { Running: total - pending - unknown, Pending: pending, Terminating: terminating, Unknown: unknown },
    };
  });
}
