import type { Intent } from '../../../kube/gate/gate.ts';
import { requeue, type StepResult } from '../result.ts';

/** What a note needs to be true: the status that the pass writes, or also its record, which is what it changed outside of the status. */
type Needs = 'status' | 'record';

/** What the steps of one pass note down for its end: Events and metrics count only once the object was written. */
export class PassNotes<Event> {
  #timer: { readonly afterMs: number; readonly waitingFor: string } | undefined;
  #events: { readonly event: Event; readonly needs: Needs }[] = [];
  #afterWrite: { readonly run: () => void; readonly needs: Needs }[] = [];
  readonly #undo: (() => void)[] = [];
  readonly #afterwards: (() => Promise<void>)[] = [];
  readonly #held: Disposable[] = [];
  steps = 0;
  /** What the write of the status means; `destroy` where others act on it, such as phase Failed of a Machine. */
  intent: Intent = 'change';

  /** Run again after `afterMs` at the latest, whatever ends this pass. The soonest wins. */
  alsoAfter(afterMs: number, waitingFor: string): void {
    if (this.#timer === undefined || afterMs < this.#timer.afterMs) this.#timer = { afterMs, waitingFor };
  }

  /** An Event to record when the object was written. */
  record(event: Event, needs: Needs = 'status'): void {
    this.#events.push({ event, needs });
  }

  /** Something to do when the object was written; it must not throw. */
  afterWrite(run: () => void, needs: Needs = 'status'): void {
    this.#afterWrite.push({ run, needs });
  }

  /** How to take something back from the copy's status that must not be written without the record. */
  undoUnlessRecorded(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** The API server refuses the record: what needs it is taken back, the last first, since each puts back what it found. */
  unrecorded(): void {
    for (const undo of this.#undo.toReversed()) undo();
    this.#events = this.#events.filter(({ needs }) => needs === 'status');
    this.#afterWrite = this.#afterWrite.filter(({ needs }) => needs === 'status');
  }

  /** What is awaited when the object was written, because it must not stand before that. What it throws ends the pass with that error. */
  afterwards(run: () => Promise<void>): void {
    this.#afterwards.push(run);
  }

  /** Does the work that follows the write. */
  async runAfterwards(): Promise<void> {
    for (const run of this.#afterwards) await run();
  }

  /** Something to give back when the pass is over, whether it was written or not. */
  hold(held: Disposable): void {
    this.#held.push(held);
  }

  [Symbol.dispose](): void {
    for (const held of this.#held) held[Symbol.dispose]();
  }

  /** The object was written, or needed no write. */
  complete(report: (event: Event) => void): void {
    for (const { run } of this.#afterWrite) run();
    for (const { event } of this.#events) report(event);
  }

  /** The result of the pass, with the soonest timer. */
  resultOf(result: StepResult): StepResult {
    const timer = this.#timer;
    if (timer === undefined || (result.kind === 'requeue' && result.afterMs <= timer.afterMs)) return result;
    const waitingFor = result.kind === 'stop' ? (result.waitingFor ?? timer.waitingFor) : timer.waitingFor;
    return requeue(timer.afterMs, waitingFor);
  }
}
