import type { DrainOutcome, DrainProgress, DrainRequest } from '../../pkg/drain/drain.ts';

/** A drain that a test ends. */
export class FakeDrain {
  readonly requests: DrainRequest[] = [];
  #ends: { resolve: (outcome: DrainOutcome) => void; reject: (err: unknown) => void }[] = [];
  report: (progress: DrainProgress) => void = () => undefined;

  readonly run = (
    request: DrainRequest,
    signal: AbortSignal,
    report: (progress: DrainProgress) => void = () => undefined,
  ): Promise<DrainOutcome> => {
    this.requests.push(request);
    this.report = report;
    return new Promise((resolve, reject) => {
      this.#ends.push({ resolve, reject });
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  };

  end(outcome: DrainOutcome): void {
    this.#ends.shift()?.resolve(outcome);
  }

  fail(err: unknown): void {
    this.#ends.shift()?.reject(err);
  }
}
