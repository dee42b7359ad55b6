export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface AlertRule {
  readonly alert: string;
  readonly after: string;
  readonly runbook: string;
  readonly metric: string;
  /** `named`: what else the process shows, by the name of the metric. */
  readonly holds: (sample: Sample, nowMs: number, named: Named) => boolean;
}

type Named = (metric: string) => readonly Sample[];

const isPositive = ({ value }: Sample): boolean => value > 0;
const PHASES_OF_STUCK: readonly number[] = [-4, -2, -1];
/** Of the last look for orphans, and of the work that has waited longest. */
const LOOK_OVERDUE_S = 7_200;
const QUEUE_TOO_OLD_S = 300;
const CREDENTIALS_TOO_OLD_S = 300;

/** What another alert is about. */
const NOT_HELD: ReadonlySet<string | undefined> = new Set(['driver', 'claim']);

/** Of a process that works: one that stands by, or starts beside others, holds up nothing. */
function isHeldWork({ labels }: Sample, _nowMs: number, named: Named): boolean {
  const { waits_for: waitsFor, of, cell } = labels;
  const leads = named('machinist_leader');
  const standsBy = leads.length > 0 && leads.every(({ value }) => value === 0);
  const hasNoShard = named('machinist_cell_shards').some(({ value }) => value === 0);
  const isRefused = named('machinist_cell_refused').some((one) => one.labels['cell'] === cell);
  const hasOutage = named('machinist_cluster_outage_reason').some(
    (one) => one.value === 1 && one.labels['cluster'] === of && one.labels['cell'] === cell,
  );
  return !(NOT_HELD.has(waitsFor) || standsBy || hasNoShard || isRefused || hasOutage);
}

/** As the rule: its MachineSet may lack nothing because it could be neither created nor scaled up. */
function lacksMachines({ labels, value }: Sample, _nowMs: number, named: Named): boolean {
  const isOwn = ({ labels: its }: Sample): boolean =>
    its['name'] === labels['name'] && its['namespace'] === labels['namespace'] && its['cell'] === labels['cell'];
  const own = (metric: string): number => named(`mcm_machine_deployment_${metric}`).find(isOwn)?.value ?? 0;
  return value > own('status_available_replicas') && own('info_spec_paused') === 0;
}

function rule(
  alert: string,
  after: string,
  runbook: string,
  metric: string,
  holds: AlertRule['holds'] = isPositive,
): AlertRule {
  return { alert, after, runbook, metric, holds };
}

/** The alerts of deploy/monitoring/alerts.yaml, as far as what a process shows at one moment decides them. */
export const ALERTS: readonly AlertRule[] = [
  rule('MachinistClusterOutage', '2m', 'cluster-outage', 'machinist_cluster_outage_reason'),
  rule('MachinistWorkHeld', '5m', 'work-held', 'machinist_work_held', isHeldWork),
  rule(
    'MachinistCredentialsNotLoaded',
    '0s',
    'credentials-not-loaded',
    'machinist_kube_credentials_age_seconds',
    ({ value }) => value > CREDENTIALS_TOO_OLD_S,
  ),
  rule('MachinistCellRefused', '5m', 'cell-refused', 'machinist_cell_refused'),
  rule('MachinistCellRefused', '5m', 'cell-refused', 'machinist_cell_refused_workload_clusters'),
  rule(
    'MachinistReplicasUnavailable',
    '1h',
    'replicas-unavailable',
    'mcm_machine_deployment_status_unavailable_replicas',
  ),
  rule(
    'MachinistReplicasUnavailable',
    '1h',
    'replicas-unavailable',
    'mcm_machine_deployment_info_spec_replicas',
    lacksMachines,
  ),
  rule('MachinistReplicasUnavailable', '1h', 'replicas-unavailable', 'machinist_machine_set_missing_replicas'),
  rule('MachinistMachineStuck', '3h', 'machine-stuck', 'mcm_machine_current_status_phase', ({ value }) =>
    PHASES_OF_STUCK.includes(value),
  ),
  rule('MachinistDrainBlocked', '30m', 'drain-blocked', 'machinist_drains_blocked'),
  rule(
    'MachinistDeletionFailing',
    '20m',
    'deletion-failing',
    'machinist_driver_retries_held',
    ({ value, labels }) => labels['call'] === 'delete' && value > 0,
  ),
  rule('MachinistDriverDown', '5m', 'driver-down', 'machinist_driver_up', ({ value }) => value === 0),
  rule('MachinistZoneStopped', '5m', 'zone-stopped', 'machinist_zone_stopped'),
  rule(
    'MachinistReplacementsHeld',
    '30m',
    'replacements-held',
    'machinist_replacements_held',
    ({ value, labels }) => labels['reason'] !== 'grace' && value > 0,
  ),
  rule('MachinistDeploymentFrozen', '10m', 'deployment-frozen', 'machinist_machine_deployment_frozen'),
  rule('MachinistOrphanVMs', '1h', 'orphan-vms', 'machinist_ownerless_vms'),
  rule('MachinistOrphanVMs', '1h', 'orphan-vms', 'machinist_orphan_vms_held'),
  rule('MachinistOrphanVMs', '1h', 'orphan-vms', 'machinist_ironcore_machines_kept'),
  rule('MachinistMachinesMissing', '10m', 'machines-missing', 'machinist_ironcore_machines_missing'),
  rule('MachinistPoolClaimedByAnother', '1m', 'pool-claimed-by-another', 'machinist_ironcore_pool_claimed_by_another'),
  rule('MachinistClaimsHeld', '30m', 'claims-held', 'machinist_ironcore_claims_held'),
  rule(
    'MachinistOrphanLookOverdue',
    '10m',
    'orphan-look-overdue',
    'machinist_orphan_vms_last_look_timestamp_seconds',
    ({ value }, nowMs) => nowMs / 1_000 - value > LOOK_OVERDUE_S,
  ),
  rule(
    'MachinistQueueTooOld',
    '10m',
    'queue-too-old',
    'machinist_workqueue_oldest_waiting_seconds',
    ({ value }) => value > QUEUE_TOO_OLD_S,
  ),
];

/** What `holds` asks for besides. */
const BESIDE = [
  'machinist_leader',
  'machinist_cell_shards',
  'mcm_machine_deployment_status_available_replicas',
  'mcm_machine_deployment_info_spec_paused',
];

/** All metrics that they are decided by. */
export const ALERT_METRICS: ReadonlySet<string> = new Set([...ALERTS.map(({ metric }) => metric), ...BESIDE]);

/** Alerts that compare with the past, which one look cannot; who leads, and who holds which shard, is seen from the Leases. */
export const NOT_CHECKED = [
  'MachinistNoLeader',
  'MachinistShardsNotHeld',
  'MachinistShardCountsDiffer',
  'MachinistCreationFailing',
  'MachinistLeaseTrouble',
] as const;

export interface PendingAlert {
  readonly alert: string;
  readonly after: string;
  readonly runbook: string;
  /** What it is about, as labels. */
  readonly about: readonly string[];
}

/** The alerts whose conditions hold in what a process shows at `nowMs`. */
export function pendingAlerts(samples: readonly Sample[], nowMs: number): readonly PendingAlert[] {
  const pending = new Map<string, PendingAlert & { about: string[] }>();
  const byName = Map.groupBy(samples, ({ name }) => name);
  const named: Named = (metric) => byName.get(metric) ?? [];
  for (const { alert, after, runbook, metric, holds } of ALERTS) {
    for (const sample of named(metric)) {
      if (!holds(sample, nowMs, named)) continue;
      const one = pending.get(alert) ?? { alert, after, runbook, about: [] };
      const labels = Object.entries(sample.labels).map(([name, value]) => `${name}=${value}`);
      const about = labels.join(',');
      if (about !== '' && !one.about.includes(about)) one.about.push(about);
      pending.set(alert, one);
    }
  }
  return [...pending.values()];
}
