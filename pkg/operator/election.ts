import type { Lease } from '../apis/wire.ts';
import type { ProcessClock } from '../base/clock/process-clock.ts';
import { subjectOf } from '../kube/events/event-object.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import { type Fence, LeaseFence, OpenFence } from '../kube/gate/fence.ts';
import { LeaderGate, type LeaderGateDeps } from '../kube/gate/leader-gate.ts';
import { HttpLeaseClient } from '../kube/client/lease-client.ts';
import { leases } from '../kube/client/resource.ts';
import { Elector, type ElectorDeps, type LeaseElector } from '../kube/leader/elector.ts';
import type { ManagerProcess } from './manager-process.ts';

/** What decides whether we lead: a gate, and the elector that opens it; without elector (--leader-elect=false) it is always open. */
export interface Election {
  readonly gate: LeaderGate;
  readonly elector: LeaseElector | undefined;
  readonly fence: Fence;
}

type GateOptions = Omit<LeaderGateDeps, 'fence'> & { readonly clock: ProcessClock };

/** The gate of what only reports: it needs no leadership, so that also the end of one can be told. */
export function reportingGate(options: GateOptions): LeaderGate {
  return new LeaderGate({ ...options, fence: new OpenFence(options) });
}

/**
 * Makes the candidacy of a process for Lease `name`, announced by `recorder`; nothing is acquired yet. A leadership that is lost ends the
 * process.
 */
export function createElection(
  name: string,
  recorder: Recorder,
  process: ManagerProcess,
  { labels, metrics = process.metrics.leader }: Partial<Pick<ElectorDeps, 'labels' | 'metrics'>> = {},
): Election {
  const { outages, random, thread, options } = process;
  const { clock, log, identity, config } = options;
  const { leader, safety } = config;
  const how = { clock, outages, metrics: process.metrics.gate, graceMs: safety.graceMs };
  if (!leader.enabled) {
    const open = new OpenFence(how);
    return { gate: gateBehind(open, how), elector: undefined, fence: open };
  }
  const fence = new LeaseFence({ clock, renewDeadlineMs: leader.renewDeadlineMs });
  const announce = (lease: Lease, message: string): void =>
    recorder.record({ subject: subjectOf(leases, lease), type: 'Normal', reason: 'LeaderElection', message });
  const lost = (reason: string): void => process.lifecycle.fatal(reason);
  const own = { name, labels, fence, announce, metrics, lost };
  const elector =
    thread?.elector(own) ??
    new Elector({ ...own, identity, clock, random, log, leases: leaseClientOf(process), timing: leader });
  return { gate: gateBehind(fence, how), elector, fence };
}

/** The gate of one of several who work under the same Lease, each by what it knows of its clusters. */
export function gateBehind(fence: Fence, options: GateOptions): LeaderGate {
  return new LeaderGate({ ...options, fence });
}

/** Leases of the namespace of leaderships, past the gate. */
export function leaseClientOf({ clusters, options }: ManagerProcess): HttpLeaseClient {
  const { namespace } = options.config.leader;
  return new HttpLeaseClient({ transport: clusters.control.transport, namespace });
}
