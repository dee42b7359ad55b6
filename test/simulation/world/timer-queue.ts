/** What is due at a moment. */
export interface Timer {
  readonly atMs: number;
  /** Decides among those of one moment. */
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** A binary heap of timers, the next one first. */
export class TimerQueue {
  readonly #heap: Timer[] = [];

  get next(): Timer | undefined {
    while (this.#heap[0]?.isCancelled === true) this.#pop();
    return this.#heap[0];
  }

  push(timer: Timer): void {
    const heap = this.#heap;
    let i = heap.push(timer) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(timer, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = timer;
  }

  /** Takes the next one. */
  pop(): Timer | undefined {
    return this.next === undefined ? undefined : this.#pop();
  }

  #pop(): Timer | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return first;
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
