/** A stream that lines are written to; `writableLength`: what it keeps in memory because nobody takes it. */
export interface LineDestination {
  readonly writableLength?: number;
  write(text: string): unknown;
  on(event: 'drain', listener: () => void): unknown;
}

/** A burst of some 16,000 lines; more of a reader that stands still, such as a stuck pipe, would cost ever more memory. */
const LONGEST_BACKLOG = 4 * 1_048_576;

/**
 * Writes lines to a stream as long as that keeps less than 4 MiB of them in memory; the others are lost, and counted. `recovered` is told how
 * many once the stream has passed on all that it kept. A string is counted by its characters, as streams do.
 */
export class BoundedOutput {
  readonly #destination: LineDestination;
  #lost = 0;
  #lostBefore = 0;

  constructor(destination: LineDestination, recovered: (lost: number) => void) {
    this.#destination = destination;
    destination.on('drain', () => {
      const lost = this.#lost - this.#lostBefore;
      if (lost === 0) return;
      this.#lostBefore = this.#lost;
      recovered(lost);
    });
  }

  /** Lines that were lost since the start. */
  get lost(): number {
    return this.#lost;
  }

  /** For pino. */
  write(line: string): void {
    if ((this.#destination.writableLength ?? 0) >= LONGEST_BACKLOG) this.#lost += 1;
    else this.#destination.write(line);
  }
}
