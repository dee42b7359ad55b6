import { optionalMember } from '../apis/optional-member.ts';
import { shortText } from '../apis/short-text.ts';
import { toTimestamp } from '../base/clock/clock.ts';
import type { Sample } from '../fleet/alerts.ts';
import type { ClusterState } from '../kube/gate/outage-detector.ts';
import { describeOutage } from '../kube/gate/outage.ts';
import type { Readiness } from '../health/checks.ts';
import type { LeaseElector } from '../kube/leader/elector.ts';
import type { CheckView, ClusterView, DriverView, LeaderView } from './view.ts';

/** A Lease that the process applies for; without elector, it works as if it held it. */
interface Candidacy {
  readonly lease: string;
  readonly elector: Omit<LeaseElector, 'acquire' | 'release' | 'raiseAbove'> | undefined;
}

export function leaderViews(candidacies: readonly Candidacy[]): readonly LeaderView[] {
  return candidacies.map(({ lease, elector }) => {
    if (elector === undefined) return { lease, state: 'always' };
    const { trouble, ended } = elector;
    return {
      lease,
      state: leaderState(elector),
      ...optionalMember('holder', elector.holder),
      ...optionalMember('since', elector.lease?.spec?.acquireTime),
      ...optionalMember('trouble', ended ?? (trouble && `${trouble.why} (since ${toTimestamp(trouble.sinceMs)})`)),
    };
  });
}

function leaderState({ isLeading, isSuspended, ended }: NonNullable<Candidacy['elector']>): LeaderView['state'] {
  if (ended !== undefined) return 'ended';
  if (isLeading) return 'leading';
  return isSuspended ? 'suspended' : 'standing-by';
}

/** `at` converts a monotonic time. */
export function clusterViews(
  states: readonly ClusterState[],
  at: (monotonicMs: number) => string,
): readonly ClusterView[] {
  return states.map(({ cluster, outage, silentSinceMs, provenMs, lastError }) => {
    if (outage !== undefined) {
      const { sinceMs } = outage;
      return { cluster, state: 'outage', since: toTimestamp(sinceMs), text: shortText(describeOutage(outage)) };
    }
    if (silentSinceMs !== undefined) {
      const text = shortText(lastError ?? 'no answer');
      return { cluster, state: 'failing', since: at(silentSinceMs), text };
    }
    return { cluster, state: provenMs === undefined ? 'not-reached-yet' : 'reachable' };
  });
}

export function driverViews(providers: readonly string[], samples: readonly Sample[]): readonly DriverView[] {
  return providers.map((provider) => {
    const own = samples.filter(({ labels }) => labels['provider'] === provider);
    const up = own.find(({ name }) => name === 'machinist_driver_up')?.value;
    const running = own.filter(({ name }) => name === 'mcm_cloud_api_driver_requests_running');
    return {
      provider,
      state: up === undefined ? 'unknown' : up === 1 ? 'connected' : 'not-connected',
      running: running.reduce((sum, { value }) => sum + value, 0),
    };
  });
}

export function checkViews({ checks }: Readiness): readonly CheckView[] {
  return checks.map(({ name, ok, isDegraded = false, detail }) => ({
    name,
    state: ok ? (isDegraded ? 'degraded' : 'ok') : 'failed',
    ...optionalMember('detail', detail && shortText(detail)),
  }));
}
