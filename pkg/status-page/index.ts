import { phaseOf } from '../apis/machine/v1alpha1/defaults.ts';
import { toTimestamp } from '../base/clock/clock.ts';
import type { TreeObjects } from '../fleet/tree.ts';
import { pendingAlerts } from '../fleet/alerts.ts';
import type { Checks } from '../health/checks.ts';
import { servesOwnKinds } from '../kube/leader/names.ts';
import type { Operator } from '../operator/operator.ts';
import { AlertSamples } from './alert-samples.ts';
import { rememberingNodes } from './known-machines.ts';
import { checkViews, clusterViews, driverViews, leaderViews } from './process-views.ts';
import { countPhases, snapshotOf } from './snapshot.ts';
import { StatusPage } from './status-page.ts';
import { webFiles } from './web-files.ts';

const NO_OBJECTS: TreeObjects = { deployments: [], sets: [], machines: [] };

/** Has the operator serve the status page, if flag `--status-page` is set. */
export function statusPage(operator: Operator): void {
  if (!operator.config.server.statusPage) return;
  operator.showPage((checks) => pageOf(operator, checks));
}

function pageOf(operator: Operator, checks: Checks): StatusPage {
  const { caches, clock, config, log, registry } = operator;
  const isOwner = servesOwnKinds(config.leases);
  const informers = isOwner ? [caches.machineDeployments, caches.machineSets, caches.machines] : [];
  const objects = (): TreeObjects =>
    isOwner
      ? {
          deployments: caches.machineDeployments.list(),
          sets: caches.machineSets.list(),
          machines: caches.machines.list(),
        }
      : NO_OBJECTS;
  const nodeOf = rememberingNodes();
  const samples = new AlertSamples({ registry, clock });
  return new StatusPage({
    clock,
    log,
    files: webFiles(),
    countMachines: () =>
      isOwner && caches.machines.hasSynced
        ? countPhases(caches.machines.list().map((one) => phaseOf(one) || 'New'))
        : undefined,
    observe: async (history) => {
      const nowMs = clock.now();
      const values = await samples.read();
      return snapshotOf(
        objects(),
        operator.workInProgress,
        {
          process: {
            identity: operator.identity,
            program: config.program,
            version: operator.version,
            namespace: config.clusters.namespace,
            hasSynced: informers.every(({ hasSynced }) => hasSynced),
            readsMachines: isOwner,
          },
          leaders: leaderViews(operator.leaderships),
          clusters: clusterViews(operator.clusterStates, (monotonicMs) =>
            toTimestamp(nowMs - clock.monotonicMs() + monotonicMs),
          ),
          drivers: driverViews(
            config.drivers.map(({ provider }) => provider),
            values,
          ),
          checks: checkViews(checks.run()),
          alerts: pendingAlerts(values, nowMs).map(({ about, ...rest }) => ({ ...rest, about: about.slice(0, SHOWN) })),
          history,
        },
        nowMs,
        nodeOf,
      );
    },
  });
}

/** How many objects of an alert are named. */
const SHOWN = 5;
