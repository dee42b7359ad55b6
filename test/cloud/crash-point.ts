import { DriverError } from '../../pkg/driver/error.ts';
import { RuntimeError } from '../../pkg/worlds/ironcore/runtime/error.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import type { Interceptor, Mutation } from '../../pkg/kube/gate/interceptor.ts';

/**
 * What happens at a mutation. before: the process dies before it is sent. after: it dies when the answer has come, before
 * anybody learns of it. lost: the mutation is made, its answer never comes, and the process goes on.
 */
export const POINTS = ['before', 'after', 'lost'] as const;

/** One of the points above. */
export type Point = (typeof POINTS)[number];

/** Events have no consequences, and how many are written depends on the moment: they are no crash points. */
const EVENTS = 'POST events';

/**
 * Stands before all mutations of one incarnation of a manager, API and driver alike, and hits the n-th, from 1; with n = 0
 * none. Dead, it lets no mutation through and no answer of those that are under way: as far as anybody outside can tell, the
 * process has ended.
 */
export class CrashPoint {
  readonly #n: number;
  readonly #point: Point;
  readonly #died = Promise.withResolvers<void>();
  readonly #texts: string[] = [];
  #isDead = false;
  #isHit = false;

  constructor(n: number, point: Point) {
    this.#n = n;
    this.#point = point;
  }

  /** Resolves when the process has died; never at point `lost`. */
  get died(): Promise<void> {
    return this.#died.promise;
  }

  /** Whether the n-th mutation came. */
  get isHit(): boolean {
    return this.#isHit;
  }

  /** Mutations so far, in order. */
  get texts(): readonly string[] {
    return this.#texts;
  }

  /** Ends the process now, wherever it is. */
  die(): void {
    this.#isDead = true;
    this.#died.resolve();
  }

  readonly intercept: Interceptor = async (mutation, send) => {
    if (this.#isDead) throw new DeadError();
    if (mutation.text.startsWith(EVENTS)) return await send();
    const isHit = this.#texts.push(mutation.text) === this.#n;
    if (isHit) this.#isHit = true;
    if (isHit && this.#point === 'before') this.die();
    if (this.#isDead) throw new DeadError();
    try {
      return await send();
    } finally {
      if (isHit && this.#point === 'after') this.die();
      // oxlint-disable-next-line no-unsafe-finally -- takes the place of any answer and any failure
      if (this.#isDead) throw new DeadError();
      // oxlint-disable-next-line no-unsafe-finally -- see above
      if (isHit) throw unanswered(mutation);
    }
  };
}

/** A life of a manager, as far as it concerns its crash point. */
interface Hittable {
  /** The n-th mutation; undefined when there were fewer. */
  readonly hit: string | undefined;
  readonly failure: string | undefined;
  readonly mutations: number;
}

/**
 * Has the n-th mutation of a life hit, or its last: how many there are differs a little from life to life. A life that had fewer, and so came
 * to its end without a fault, is followed by another one.
 */
export async function hitAt<T extends Hittable>(n: number, live: (n: number) => Promise<T>): Promise<T> {
  const life = await live(n);
  const isTooShort = life.hit === undefined && life.failure === undefined && life.mutations < n;
  return isTooShort ? await hitAt(life.mutations, live) : life;
}

/** What the code of a dead process is told, which nobody sees. */
class DeadError extends Error {
  override readonly name = 'DeadError';

  constructor() {
    super('the process has died');
  }
}

/** What a caller sees when the connection breaks after the request was sent. */
function unanswered({ text }: Mutation): Error {
  if (text.startsWith('IRI'))
    return new RuntimeError(text, 'Unavailable', 'the connection broke', { isMutation: true });
  return text.startsWith('DRIVER')
    ? new DriverError('Unavailable', `${text}: the connection broke`, { unanswered: true })
    : new ApiError(0, 'Unreachable', `${text}: the connection broke`);
}
