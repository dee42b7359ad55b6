/** One mutation as an interceptor sees it. */
export interface Mutation {
  /** `POST machines ns/name`, `PATCH nodes name`, … */
  readonly text: string;
}

/**
 * Stands between a mutating method and the wire, in tests: it may fail before `send`, after it (the answer is lost, nothing
 * learns of it), or end the process. Absent in production.
 */
export type Interceptor = <R>(mutation: Mutation, send: () => Promise<R>) => Promise<R>;

/** Where the n-th mutation is hit. */
export type FaultPoint = 'before' | 'after';

/**
 * Counts mutations over everything that shares it, and calls `fault` at one point of the n-th (from 1). What `fault` throws
 * replaces the answer; it may also end the process.
 */
export class MutationCounter {
  readonly #at: { n: number; point: FaultPoint } | undefined;
  readonly #fault: (mutation: Mutation) => void | Promise<void>;
  #count = 0;

  constructor(
    at?: { n: number; point: FaultPoint },
    fault: (mutation: Mutation) => void | Promise<void> = () => undefined,
  ) {
    this.#at = at;
    this.#fault = fault;
  }

  /** Mutations begun so far: the table test of crash points walks n up to this. */
  get count(): number {
    return this.#count;
  }

  readonly intercept: Interceptor = async (mutation, send) => {
    const n = ++this.#count;
    if (this.#at?.n !== n) return send();
    if (this.#at.point === 'before') await this.#fault(mutation);
    const answer = await send();
    if (this.#at.point === 'after') await this.#fault(mutation);
    return answer;
  };
}
