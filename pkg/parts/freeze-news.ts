import type { Lease } from '../apis/wire.ts';
import type { Clock } from '../clock/clock.ts';
import { subjectOf } from '../events/event-object.ts';
import type { Recorder } from '../events/recorder.ts';
import { CONTROL } from '../gate/gate.ts';
import type { Freezes } from '../gate/freeze.ts';
import { describeHeldUp, describeLength, describeOutage } from '../gate/outage.ts';
import type { FreezeChange, Outage } from '../gate/outage.ts';
import { leases } from '../kube/resource.ts';
import type { Led } from '../process/leadership.ts';

/** A leadership whose Lease is what outages are told about. */
export interface Newsreader {
  /** The Lease while it is held. */
  readonly elector: { readonly lease: Lease | undefined } | undefined;
  readonly recorder: Recorder;
}

/** An outage of the control cluster ends leadership, too: who leads next tells of it unless it is older than this. */
const RECENT_MS = 5 * 60_000;
const MOST_RECENT = 10;

interface Ended extends FreezeChange {
  readonly endedAtMs: number;
}

/**
 * Tells of outages by Events on the Leases that this process holds: those of a target when they begin and end, those of the
 * control cluster, which keeps the Events, when they end; of a cluster that was set back both. Without leader election there is no Lease to tell about.
 */
export class FreezeNews {
  readonly #clock: Clock;
  readonly #freezes: Pick<Freezes, 'outages'>;
  readonly #readers: Newsreader[] = [];
  #ended: readonly Ended[] = [];

  constructor(parts: { clock: Clock; freezes: Pick<Freezes, 'outages' | 'onChange'> }) {
    this.#clock = parts.clock;
    this.#freezes = parts.freezes;
    parts.freezes.onChange((change) => this.#changed(change));
  }

  /** `led`, which from its beginning on tells of outages, also of those that others could not tell of. */
  readBy(reader: Newsreader, led: Led): Led {
    return {
      begin: async (signal) => {
        this.#begin(reader);
        await led.begin(signal);
      },
      end: (graceMs) => led.end(graceMs),
    };
  }

  #begin(reader: Newsreader): void {
    this.#readers.push(reader);
    const nowMs = this.#clock.monotonicMs();
    for (const ended of this.#ended) if (nowMs - ended.endedAtMs < RECENT_MS) tellOfEnd(reader, ended);
    for (const outage of this.#freezes.outages()) tellOfBeginning(reader, outage);
  }

  #changed(change: FreezeChange): void {
    if (!change.frozen) {
      this.#ended = [...this.#ended, { ...change, endedAtMs: this.#clock.monotonicMs() }].slice(-MOST_RECENT);
    }
    for (const reader of this.#readers) (change.frozen ? tellOfBeginning : tellOfEnd)(reader, change);
  }
}

function tellOfBeginning(reader: Newsreader, outage: Outage): void {
  const message = describeHeldUp([outage]);
  if (outage.isSetBack) return tell(reader, 'Warning', 'ClusterSetBack', message);
  if (outage.cluster === CONTROL) return;
  tell(reader, 'Warning', 'APIServerUnreachable', message);
}

function tellOfEnd(reader: Newsreader, change: FreezeChange): void {
  if (change.isSetBack) {
    const again = `All of it was read again after ${describeLength(change.lastedMs)}; ${describeOutage(change)}.`;
    return tell(reader, 'Normal', 'ClusterReadAgain', again);
  }
  const message = `API server answers again after ${describeLength(change.lastedMs)}; ${describeOutage(change)}.`;
  tell(reader, 'Normal', 'APIServerReachable', message);
}

function tell({ elector, recorder }: Newsreader, type: 'Normal' | 'Warning', reason: string, message: string): void {
  if (elector?.lease === undefined) return;
  recorder.record({ subject: subjectOf(leases, elector.lease), type, reason, message });
}
