import type { Member } from './process/lifecycle.ts';

/** What a process serves besides health and metrics: it listens from before it leads, and answers once the work of its leadership has begun. */
export interface Service extends Member {
  /** Name of the Lease under which it answers. */
  readonly lease: string;
  /** Called once, when the caches of the leadership are up to date. */
  begin(): void;
  /** Changes nothing any more: resolves when the last change has ended. Also called when `begin` was not. */
  end(graceMs: number): Promise<void>;
}
