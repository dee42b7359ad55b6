import type { PrintLine } from './terminal.ts';

/** After this time without an answer a person wants to know what is waited for. */
const SILENT_MS = 1_500;

/** Says what a command waits for when that takes longer than a person expects. Without `err` it says nothing. */
export class WaitNotice implements Disposable {
  readonly #err: PrintLine | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(err: PrintLine | undefined) {
    this.#err = err;
  }

  /** From now on it waits for `what`, and no longer for anything else. */
  begin(what: string): void {
    this.end();
    this.#timer = setTimeout(() => this.#err?.(`Waiting for ${what}…`), SILENT_MS).unref();
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  [Symbol.dispose](): void {
    this.end();
  }
}
