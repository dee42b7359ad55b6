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
import { Elector } from '../leader/elector.ts';
import type { Logger } from '../log/logger.ts';
import type { GateMetrics } from '../metrics/gate.ts';
import type { LeaderMetrics } from '../metrics/leader.ts';

/** One leadership: its gate, and the elector that opens it; without elector (--leader-elect=false) it is always open. */
export interface Leadership {
  readonly name: string;
  readonly gate: LeaderGate;
  readonly elector: Elector | undefined;
}

/** How a leadership is made. */
export interface LeadershipOptions {
  /** Name of the Lease. */
  readonly name: string;
  readonly identity: string;
  readonly config: Config;
  readonly transport: Transport;
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
  const elector = new Elector({
    name,
    identity: options.identity,
    leases: new HttpLeaseClient({ transport: options.transport, namespace: config.clusters.namespace }),
    timing: config.leader,
    clock,
    log: options.log,
    metrics: options.leaderMetrics,
    fence,
    lost: options.lost,
    announce: (lease, message) =>
      options
        .recorder()
        .record({ subject: subjectOf(leases, lease), type: 'Normal', reason: 'LeaderElection', message }),
  });
  return { name, gate: new LeaderGate({ ...gateParts, fence }), elector };
}
