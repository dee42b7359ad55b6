import type { SimulatedAPIServer } from '../api-server/api-server.ts';
import type { VirtualTime } from './virtual-clock.ts';

/** Which resourceVersion a server had at which time, for those that answer with what was so then. */
export class Past {
  /** In their order. */
  #writes: { readonly rv: number; readonly atMs: number }[] = [];
  /** Before the first of them: of a server that was set back, what it was set back to. */
  #first: number;

  constructor({ objects }: SimulatedAPIServer, time: VirtualTime) {
    this.#first = objects.revisions.current;
    objects.onChange((_kind, { rv }) => this.#writes.push({ rv, atMs: time.elapsedMs }));
    objects.onRestore(() => {
      this.#first = objects.revisions.current;
      this.#writes = [];
    });
  }

  revisionAt(ms: number): number {
    return this.#writes.findLast(({ atMs }) => atMs <= ms)?.rv ?? this.#first;
  }
}
