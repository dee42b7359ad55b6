import type { HostClock } from './host-clock.ts';
import type { AnchoredClock } from './server-time.ts';

/** All that a process asks of its clock: SystemClock, or that of a simulation. */
export type ProcessClock = HostClock & AnchoredClock;
