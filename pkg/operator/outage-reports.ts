import type { Lease } from '../apis/wire.ts';
import type { Clock } from '../base/clock/clock.ts';
import type { EventSubject } from '../kube/events/correlator.ts';
import { subjectOf } from '../kube/events/event-object.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import type { Outages } from '../kube/gate/outages.ts';
import {
  describeBlockingOutages,
  describeLength,
  describeOutage,
  type OutageChange,
  type Outage,
} from '../kube/gate/outage.ts';
import { leases } from '../kube/client/resource.ts';

/** An outage of the control cluster ends leadership, too: who leads next reports it unless it is older than this. */
const RECENT_MS = 5 * 60_000;
const MAX_RECENT = 10;

/** A leadership on whose Lease outages are reported. */
interface Subject {
  /** The Lease while it is held. */
  readonly elector: { readonly lease: Lease | undefined; readonly isSuspended: boolean } | undefined;
  readonly recorder: Recorder;
  /** What they are reported on in place of the Lease. */
  readonly subject: EventSubject | undefined;
  /** Leadership that is suspended has no Lease to show, and goes on after the outage: the last one is reported on, once that can be written. */
  last: Lease | undefined;
}

interface Ended extends OutageChange {
  readonly endedAtMs: number;
}

/**
 * Reports outages by Events on the Leases that this process holds: those of a target when they begin and end, those of the
 * control cluster, which keeps the Events, when they end; of a cluster that was set back both. Without leader election there is no Lease to report on.
 */
export class OutageReports {
  readonly #clock: Clock;
  readonly #outages: Pick<Outages, 'current'>;
  readonly #subject: EventSubject | undefined;
  readonly #listeners: Subject[] = [];
  #ended: readonly Ended[] = [];

  /** `subject`: what outages are reported on in place of the Leases. */
  constructor(options: {
    clock: Clock;
    outages: Pick<Outages, 'current' | 'onChange'>;
    subject?: EventSubject | undefined;
  }) {
    this.#clock = options.clock;
    this.#outages = options.outages;
    this.#subject = options.subject;
    options.outages.onChange((change) => this.#changed(change));
  }

  /** Reports outages on the Lease of a leadership from now on, and those that others could not report. */
  subscribe({ elector, recorder }: Pick<Subject, 'elector' | 'recorder'>): void {
    // Of several leaderships, one reports on what is not their Lease.
    if (this.#subject !== undefined && this.#listeners.length > 0) return;
    const subject = { elector, recorder, subject: this.#subject, last: elector?.lease };
    this.#listeners.push(subject);
    const nowMs = this.#clock.monotonicMs();
    for (const ended of this.#ended) if (nowMs - ended.endedAtMs < RECENT_MS) reportEnd(subject, ended);
    for (const outage of this.#outages.current()) reportBeginning(subject, outage);
  }

  #changed(change: OutageChange): void {
    if (change.isOver) {
      this.#ended = [...this.#ended, { ...change, endedAtMs: this.#clock.monotonicMs() }].slice(-MAX_RECENT);
    }
    for (const listener of this.#listeners) (change.isOver ? reportEnd : reportBeginning)(listener, change);
  }
}

function reportBeginning(listener: Subject, outage: Outage): void {
  const message = describeBlockingOutages([outage]);
  if (outage.isSetBack) return report(listener, 'Warning', 'ClusterSetBack', message);
  if (outage.cluster === CONTROL) return;
  report(listener, 'Warning', 'APIServerUnreachable', message);
}

function reportEnd(listener: Subject, change: OutageChange): void {
  if (change.isSetBack) {
    const again = `The cluster was read completely after ${describeLength(change.lastedMs)}; ${describeOutage(change)}.`;
    return report(listener, 'Normal', 'ClusterReadAgain', again);
  }
  const message = `API server responds again after ${describeLength(change.lastedMs)}; ${describeOutage(change)}.`;
  report(listener, 'Normal', 'APIServerReachable', message);
}

function report(subject: Subject, type: 'Normal' | 'Warning', reason: string, message: string): void {
  const { elector, recorder } = subject;
  if (subject.subject !== undefined) return recorder.record({ subject: subject.subject, type, reason, message });
  subject.last = elector?.lease ?? (elector?.isSuspended === true ? subject.last : undefined);
  if (subject.last === undefined) return;
  recorder.record({ subject: subjectOf(leases, subject.last), type, reason, message });
}
