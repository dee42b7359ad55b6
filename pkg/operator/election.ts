import type { Lease } from '../apis/wire.ts';
import type { ProcessClock } from '../base/clock/process-clock.ts';
import { subjectOf } from '../kube/events/event-object.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import { type Fence, LeaseFence, OpenFence } from '../kube/gate/fence.ts';
import { LeaderGate, type LeaderGateDeps } from '../kube/gate/leader-gate.ts';
import { HttpLeaseClient } from '../kube/client/lease-client.ts';
import { leases } from '../kube/client/resource.ts';
import type { Transport } from '../kube/client/transport.ts';
import { Elector, type ElectorDeps, type LeaseElector } from '../kube/leader/elector.ts';
import type { LeaseLabels, LeaseTiming } from '../kube/leader/lease.ts';
import type { LeaseThread } from '../kube/leader/lease-thread.ts';

/** What decides whether we lead: a gate, and the elector that opens it; without elector (--leader-elect=false) it is always open. */
export interface Election {
  readonly gate: LeaderGate;
  readonly elector: LeaseElector | undefined;
  readonly fence: Fence;
}

export type GateOptions = Omit<LeaderGateDeps, 'fence'> & { readonly clock: ProcessClock };

/** How leaderships are fought for. */
export interface ElectionOptions {
  /** Of the electors that run in this thread. */
  readonly elector: Pick<ElectorDeps, 'identity' | 'clock' | 'random' | 'log' | 'metrics' | 'lost'>;
  readonly transport: Transport;
  readonly namespace: string;
  readonly leader: LeaseTiming & { readonly enabled: boolean };
  /** Where electors run; undefined = in this thread. */
  readonly thread: LeaseThread | undefined;
  readonly gate: GateOptions;
}

/** The gate of what only reports: it needs no leadership, so that also the end of one can be told. */
export function reportingGate(options: GateOptions): LeaderGate {
  return new LeaderGate({ ...options, fence: new OpenFence(options) });
}

/** Makes the candidacy for Lease `name`, announced by `recorder`; nothing is acquired yet. */
export function createElection(
  name: string,
  recorder: Recorder,
  options: ElectionOptions & { readonly labels?: LeaseLabels },
): Election {
  const { leader, thread, elector: common, transport, namespace, labels } = options;
  if (!leader.enabled) {
    const open = new OpenFence(options.gate);
    return { gate: gateBehind(open, options.gate), elector: undefined, fence: open };
  }
  const { clock } = common;
  const fence = new LeaseFence({ clock, renewDeadlineMs: leader.renewDeadlineMs });
  const announce = (lease: Lease, message: string): void =>
    recorder.record({ subject: subjectOf(leases, lease), type: 'Normal', reason: 'LeaderElection', message });
  const own = { name, labels, fence, announce, metrics: common.metrics, lost: common.lost };
  const elector =
    thread?.elector(own) ??
    new Elector({ ...common, ...own, leases: new HttpLeaseClient({ transport, namespace }), timing: leader });
  return { gate: gateBehind(fence, options.gate), elector, fence };
}

/** The gate of one of several who work under the same Lease, each by what it knows of its clusters. */
export function gateBehind(fence: Fence, options: GateOptions): LeaderGate {
  return new LeaderGate({ ...options, fence });
}

/** Leases of the namespace of leaderships, past the gate. */
export function leaseClientOf({
  transport,
  namespace,
}: Pick<ElectionOptions, 'transport' | 'namespace'>): HttpLeaseClient {
  return new HttpLeaseClient({ transport, namespace });
}
