import { InvalidSelectorError } from '../apis/label-selector.ts';
import type { Pod, PodDisruptionBudget } from '../apis/wire.ts';
import type { Clock } from '../base/clock/clock.ts';
import { ApiError } from '../kube/client/errors.ts';
import type { Reader } from '../kube/client/client.ts';
import { podDisruptionBudgets } from '../kube/client/resource.ts';
import { budgetOf } from './disruption-budget.ts';

/** How long a list of budgets serves. They only explain a refusal; the server decides. */
const FRESH_MS = 10_000;

interface Listed {
  readonly atMs: number;
  readonly budgets: Promise<readonly PodDisruptionBudget[]>;
}

/**
 * Finds the budget behind a refused eviction. Budgets are listed by namespace when first needed; all drains of a target
 * share one list for a few seconds, so that many refusals cost one request.
 */
export class Budgets {
  readonly #reader: Reader;
  readonly #clock: Clock;
  readonly #byNamespace = new Map<string, Listed>();

  constructor(parts: { reader: Reader; clock: Clock }) {
    this.#reader = parts.reader;
    this.#clock = parts.clock;
  }

  /** The budget that guards this pod; undefined also when the budgets cannot be read now. */
  async find(pod: Pod): Promise<PodDisruptionBudget | undefined> {
    try {
      return budgetOf(pod, await this.#list(pod.metadata.namespace ?? ''));
    } catch (err) {
      if (err instanceof ApiError || err instanceof InvalidSelectorError) return undefined;
      throw err;
    }
  }

  #list(namespace: string): Promise<readonly PodDisruptionBudget[]> {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { atMs }] of this.#byNamespace) if (nowMs - atMs >= FRESH_MS) this.#byNamespace.delete(key);
    const known = this.#byNamespace.get(namespace);
    if (known !== undefined) return known.budgets;
    // Not aborted with the drain that asks first: others wait for the same list.
    const budgets = this.#reader.list(podDisruptionBudgets, { namespace }).then(({ items }) => items);
    this.#byNamespace.set(namespace, { atMs: nowMs, budgets });
    return budgets;
  }
}
