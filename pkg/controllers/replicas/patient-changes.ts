import type { KubeObject } from '../../apis/meta.ts';
import { isDenial } from '../../kube/client/errors.ts';
import { isWorthReporting } from '../machine-facts/node-refusal.ts';
import { atOnce } from './at-once.ts';
import { describeRefusedChange } from './refused-change.ts';
import { Refusals } from './refusals.ts';

const CHANGES_AT_ONCE = 20;

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
    const due = objects.filter(({ metadata }) => this.#refusals.isDue(metadata.uid));
    await atOnce(CHANGES_AT_ONCE, due, async (object) => {
      const { uid } = object.metadata;
      try {
        await change(object);
        this.#refusals.delete(uid);
      } catch (err) {
        if (!isWorthReporting(err)) throw err;
        // What fails once, as in a change of etcd's leader, is no refusal.
        const isTold = isDenial(err) || this.#refusals.has(uid);
        this.#refusals.add(owner, uid, isTold ? describeRefusedChange(err) : undefined);
      }
    });
    return this.among(objects);
  }

  /** Those of `objects` that have refused, without trying any. */
  among<T extends KubeObject>(objects: readonly T[]): Unchanged<T> {
    const refusing = objects.filter(({ metadata }) => this.#refusals.has(metadata.uid));
    const [text] = refusing.flatMap(({ metadata }) => this.#refusals.textOf(metadata.uid) ?? []);
    return { objects: refusing, text };
  }

  /** After how many milliseconds the first that refused is tried again; undefined when none waits. */
  dueInMs(owner: string): number | undefined {
    return this.#refusals.dueInMs(owner);
  }
}
