import type { Drivers } from '../driver/drivers.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import type { Gate } from '../kube/gate/gate.ts';
import type { Trust } from '../kube/gate/leader-gate.ts';
import type { Writer } from '../kube/client/client.ts';
import type { Interceptor } from '../kube/gate/interceptor.ts';
import type { LeaseElector } from '../kube/leader/elector.ts';
import { type Targets, singleTarget } from '../kube/targets/targets.ts';
import type { Cell } from './cell.ts';
import { writerTo } from './clusters.ts';
import { type DriversOptions, type OpenedDrivers, openDrivers } from './drivers.ts';

/** What the controllers of one Lease act with: whatever it changes passes its gate. */
export interface Leadership {
  readonly gate: Gate & Trust;
  /** To the control cluster. */
  readonly writer: Writer;
  readonly targets: Targets;
  /** Connected to when first asked for. */
  readonly drivers: Drivers;
  /** Closes what acts behind the gate when the leadership has ended, and its work with it. */
  keep<T extends Kept>(opened: T): T;
}

/** What is open for as long as a leadership lasts. */
interface Kept {
  /** What waits for its turn at a provider is given up. */
  endTurns?(): Promise<void>;
  /** Ends the connections. */
  close(): Promise<void> | void;
}

/** A leadership, and what its process has to do with it. */
export interface OwnLeadership extends Leadership {
  readonly lease: string;
  readonly elector: LeaseElector | undefined;
  readonly recorder: Recorder;
  endTurns(): Promise<void>;
  close(): Promise<void>;
}

/** Makes the leadership of a Lease, announced by `recorder`; nothing is acquired and no driver called yet. */
export function createLeadership(
  lease: string,
  recorder: Recorder,
  { control, ofControl, target, elect }: Pick<Cell, 'control' | 'ofControl' | 'target' | 'elect'>,
  options: {
    readonly drivers: Omit<DriversOptions, 'work' | 'gate' | 'elector' | 'target'>;
    readonly intercept: Interceptor | undefined;
    /** In place of the gate, in tests. */
    readonly gate: (Gate & Trust) | undefined;
  },
): OwnLeadership {
  const { intercept } = options;
  const { elector, gate: own } = elect(lease, recorder);
  const gate = options.gate ?? own;
  const kept: Kept[] = [];
  const keep = <T extends Kept>(opened: T): T => {
    kept.push(opened);
    return opened;
  };
  let opened: OpenedDrivers | undefined;
  return {
    lease,
    elector,
    recorder,
    gate,
    writer: writerTo(control, { gate, observer: ofControl.ownWrites, intercept }),
    targets: singleTarget(target?.behind(gate, intercept)),
    get drivers() {
      opened ??= keep(openDrivers({ ...options.drivers, work: lease, gate, elector, target: target?.access.cluster }));
      return opened.drivers;
    },
    keep,
    async endTurns() {
      await Promise.all(kept.map(async (one) => await one.endTurns?.()));
    },
    async close() {
      await Promise.all(kept.map(async (one) => await one.close()));
    },
  };
}
