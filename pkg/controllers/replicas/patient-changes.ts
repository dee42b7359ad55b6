import type { KubeObject } from '../../apis/meta.ts';
import { Refusals } from './refusals.ts';

export interface Unchanged<T> {
  /** Those that refuse, also those that were not tried again yet. */
  readonly objects: readonly T[];
  /** What is told of the first of which something is. */
  readonly text: string | undefined;
}

/**
 * Changes objects one by one. One that may not be changed (a policy, a webhook, a rule of its kind) stops neither the others nor what comes after
 * them: it is left alone for a while, and tried again. Any other error is thrown when all were tried.
 */
export class PatientChanges {
  readonly #refusals: Refusals;

  constructor(deps: ConstructorParameters<typeof Refusals>[0]) {
    this.#refusals = new Refusals(deps);
  }

  async each<T extends KubeObject>(
    owner: string,
    objects: readonly T[],
    change: (object: T) => Promise<unknown>,
  ): Promise<Unchanged<T>> {
    const nameOf = ({ metadata }: T): string => metadata.name;
    await this.#refusals.changeEach(objects, { owner, idOf: (object) => idOf(owner, object), nameOf, change });
    return this.among(owner, objects);
  }

  /** Those of `objects` that have refused the changes for `owner`, without trying any. */
  among<T extends KubeObject>(owner: string, objects: readonly T[]): Unchanged<T> {
    const refusing = objects.filter((object) => this.#refusals.has(idOf(owner, object)));
    const [text] = refusing.flatMap((object) => this.#refusals.textOf(idOf(owner, object)) ?? []);
    return { objects: refusing, text };
  }

  /** After how many milliseconds the first that refused is tried again; undefined when none waits. */
  dueInMs(owner: string): number | undefined {
    return this.#refusals.dueInMs(owner);
  }
}

/** Two owners may want the same object: each tries it, and comes back for it. */
function idOf(owner: string, { metadata }: KubeObject): string {
  return `${owner}/${metadata.uid}`;
}
