import type { Lease } from '../../apis/wire.ts';
import type { Credentials } from '../client/endpoint.ts';
import type { RequestRecord } from '../client/transport.ts';
import type { LogFields } from '../../base/log/logger.ts';
import type { LeaseResult } from '../../base/metrics/leader.ts';
import type { LeaseElector } from './elector.ts';
import type { LeaseLabels } from './lease.ts';
import type { LeaseThreadOptions } from './lease-thread.ts';

/*
 * What the main thread and the thread of the Leases (lease-thread-main.ts) tell each other. What must be known at once, whether the
 * event loop of the main thread turns or not, is in shared memory instead: the fence, and when that loop last turned.
 */

export interface LeaseThreadData extends Pick<LeaseThreadOptions, 'namespace' | 'identity' | 'userAgent' | 'timing'> {
  readonly url: string;
  /** When the main loop last turned (pulse.ts). */
  readonly pulse: SharedArrayBuffer;
  /** See LeaseThreadOptions. */
  readonly longestStallMs: number;
}

export type ForwardedLevel = 'error' | 'warn' | 'info' | 'debug';

/** What is left of an error on its way to the log of the main thread. */
export interface LoggedError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
}

export type ElectorState = Pick<LeaseElector, 'isLeading' | 'lease' | 'holder' | 'trouble' | 'isSuspended' | 'ended'>;

/** To the thread. `name` is that of the Lease. */
export type LeaseOrder =
  | {
      readonly kind: 'acquire';
      readonly name: string;
      readonly fence: SharedArrayBuffer;
      readonly labels?: LeaseLabels;
    }
  | { readonly kind: 'stop-acquiring'; readonly name: string }
  | { readonly kind: 'release'; readonly name: string }
  | { readonly kind: 'raise'; readonly name: string; readonly above: bigint }
  | { readonly kind: 'credentials'; readonly credentials: Credentials; readonly url: string }
  | { readonly kind: 'no-credentials'; readonly why: string };

/** From the thread, about one Lease. */
export type ElectorReport =
  | { readonly kind: 'state'; readonly name: string; readonly state: ElectorState }
  | { readonly kind: 'acquired'; readonly name: string; readonly isLeading: boolean }
  | { readonly kind: 'released'; readonly name: string }
  | { readonly kind: 'raised'; readonly name: string; readonly above: bigint; readonly why: string | undefined }
  | { readonly kind: 'lost'; readonly name: string; readonly reason: string }
  | { readonly kind: 'announce'; readonly name: string; readonly lease: Lease; readonly message: string }
  | { readonly kind: 'is-leader'; readonly name: string; readonly value: 0 | 1 }
  | { readonly kind: 'renewal'; readonly name: string; readonly result: LeaseResult };

/** From the thread. */
export type LeaseReport =
  | ElectorReport
  | {
      readonly kind: 'log';
      readonly level: ForwardedLevel;
      readonly fields: LogFields;
      readonly err?: LoggedError;
      readonly message: string;
    }
  | { readonly kind: 'request'; readonly record: RequestRecord }
  | { readonly kind: 'credentials-refused' };
