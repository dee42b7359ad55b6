import { createInterface } from 'node:readline';

/** Lines that a person types. The terminal is left as it is, so that Ctrl-C still is a signal. */
export class Keys implements Disposable {
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Asks until the answer is one of these; `q` at the end of the input. Rejects with the signal's reason. */
  async ask<Answer extends string>(question: string, answers: readonly Answer[]): Promise<Answer | 'q'> {
    for (;;) {
      const answer = await this.#answer(question);
      const known = answers.find((one) => one === answer);
      if (known !== undefined || answer === 'q') return known ?? 'q';
    }
  }

  #answer(question: string): Promise<string> {
    process.stdout.write(question);
    // Only while it asks: another program may read from the terminal otherwise.
    const lines = createInterface({ input: process.stdin, terminal: false });
    return new Promise<string>((resolve, reject) => {
      const onAbort = (): void => {
        reject(this.#signal.reason as Error);
      };
      const answer = (line: string): void => {
        this.#signal.removeEventListener('abort', onAbort);
        lines.removeAllListeners();
        lines.close();
        resolve(line.trim().toLowerCase());
      };
      this.#signal.addEventListener('abort', onAbort, { once: true });
      lines.once('line', answer).once('close', () => answer('q'));
    });
  }

  [Symbol.dispose](): void {
    process.stdin.pause();
  }
}
