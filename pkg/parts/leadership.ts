import type { Lease } from '../apis/wire.ts';
import type { SystemClock } from '../clock/system-clock.ts';
import type { Config } from '../config/config.ts';
import type { Recorder } from '../events/recorder.ts';
import { subjectOf } from '../events/event-object.ts';
import type { Freezes } from '../gate/freeze.ts';
import { LeaseFence, OpenFence } from '../gate/fence.ts';
import { LeaderGate } from '../gate/leader-gate.ts';
import { HttpLeaseClient } from '../kube/lease-client.ts';
import { leases } from '../kube/resource.ts';
import type { Transport } from '../kube/transport.ts';
import { Elector, type ElectorParts, type LeaseElector } from '../leader/elector.ts';
import { LeaseThread } from '../leader/lease-thread.ts';
import type { Logger } from '../log/logger.ts';
import type { GateMetrics } from '../metrics/gate.ts';
import type { LeaderMetrics } from '../metrics/leader.ts';
import type { Base } from './base.ts';

/** One leadership: its gate, and the elector that opens it; without elector (--leader-elect=false) it is always open. */
export interface Leadership {
  readonly name: string;
  readonly gate: LeaderGate;
  readonly elector: LeaseElector | undefined;
}

/** How a leadership is made. */
export interface LeadershipOptions {
  /** Name of the Lease. */
  readonly name: string;
  readonly identity: string;
  readonly config: Config;
  readonly transport: Transport;
  /** Where electors run; undefined = in this thread. */
  readonly thread: LeaseThread | undefined;
  readonly freezes: Freezes;
  readonly clock: SystemClock;
  readonly log: Logger;
  readonly gateMetrics: GateMetrics;
  readonly leaderMetrics: LeaderMetrics;
  /** Of this leadership's source component; made later than the gate that its writer needs. */
  readonly recorder: () => Recorder;
  readonly lost: (reason: string) => void;
}

/** Makes a leadership; nothing is acquired yet. */
export function makeLeadership(options: LeadershipOptions): Leadership {
  const { name, config, clock, freezes, gateMetrics } = options;
  const gateParts = { clock, freezes, metrics: gateMetrics, graceMs: config.safety.graceMs };
  if (!config.leader.enabled) {
    return { name, gate: new LeaderGate({ ...gateParts, fence: new OpenFence({ clock }) }), elector: undefined };
  }
  const fence = new LeaseFence({ clock, renewDeadlineMs: config.leader.renewDeadlineMs });
  const parts = {
    name,
    metrics: options.leaderMetrics,
    fence,
    lost: options.lost,
    announce: (lease: Lease, message: string): void =>
      options
        .recorder()
        .record({ subject: subjectOf(leases, lease), type: 'Normal', reason: 'LeaderElection', message }),
  };
  const elector = options.thread?.elector(parts) ?? inThisThread(options, parts);
  return { name, gate: new LeaderGate({ ...gateParts, fence }), elector };
}

function inThisThread(
  { identity, transport, config, clock, log }: LeadershipOptions,
  parts: Pick<ElectorParts, 'name' | 'metrics' | 'fence' | 'lost' | 'announce'>,
): Elector {
  const client = new HttpLeaseClient({ transport, namespace: config.clusters.namespace });
  return new Elector({ ...parts, identity, leases: client, timing: config.leader, clock, log });
}

/** The thread in which the electors of a process run; undefined without leader election, and where tests move the clock. */
export function makeLeaseThread({
  config,
  identity,
  hooks,
  control,
  userAgent,
  clock,
  log,
}: Base): LeaseThread | undefined {
  if (!config.leader.enabled || hooks?.leasesInMainThread === true) return undefined;
  const { endpoint, transport } = control;
  return new LeaseThread({
    endpoint,
    namespace: config.clusters.namespace,
    identity,
    userAgent,
    timing: config.leader,
    clock,
    log,
    onRequest: (record) => transport.note(record),
  });
}
