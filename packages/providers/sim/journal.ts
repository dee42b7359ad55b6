import { closeSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs';

import type { SimVM } from './vm.ts';

/** One change of the simulated cloud. */
export type JournalEntry =
  | { readonly op: 'put'; readonly vm: SimVM }
  | { readonly op: 'remove'; readonly providerID: string; readonly atMs: number };

/**
 * The cloud's memory: a file of JSON lines, appended to before a change takes effect. Written synchronously and not synced:
 * it outlives the process, killed or not, but not the host.
 */
export class Journal {
  readonly entries: readonly JournalEntry[];
  readonly #file: number;

  private constructor(entries: readonly JournalEntry[], file: number) {
    this.entries = entries;
    this.#file = file;
  }

  /** Opens or makes the file. A last line that was cut off is dropped: its change never took effect. */
  static open(path: string): Journal {
    const file = openSync(path, 'a+', 0o600);
    const text = readFileSync(path, 'utf8');
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    if (whole.length < text.length) truncateSync(path, Buffer.byteLength(whole));
    const lines = whole.split('\n').filter((line) => line !== '');
    // Only ever written by `append`.
    return new Journal(
      lines.map((line) => JSON.parse(line) as JournalEntry),
      file,
    );
  }

  append(entry: JournalEntry): void {
    writeSync(this.#file, `${JSON.stringify(entry)}\n`);
  }

  close(): void {
    closeSync(this.#file);
  }
}
