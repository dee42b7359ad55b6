/** What the model tells of itself: what it does each time, what it sees only when that is not what it told last. */
export class ActivityLog {
  readonly #print: (line: string) => void;
  #last = '';

  constructor(say: (line: string) => void) {
    this.#print = say;
  }

  /** Of something that was done: two alike are two. */
  did(line: string): void {
    this.#last = line;
    this.#print(line);
  }

  /** Of something that is so. */
  saw(line: string): void {
    if (line !== this.#last) this.did(line);
  }
}
