import { CONTRACTS, contractLabel } from '../api/contract.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { customResourceDefinitions } from '../../../kube/client/resource.ts';
import type { Logger } from '../../../base/log/logger.ts';
import { labelled } from '../../../drivers/labelled.ts';
import { kindOfDefinition, type ServedKind } from './kinds.ts';

/** For so long nobody looks again which kinds there are: a class that changes its kind does so among those that are there. */
const KEPT_MS = 60_000;
const DEFINITIONS = 'customresourcedefinitions';

/** What a look has found, and where it could not look. */
interface Looked<T> {
  readonly found: readonly T[];
  /** Plurals with groups that were permitted to be listed once, and are not any more: a role that has shrunk hides what was made. */
  readonly lost: readonly string[];
}

/**
 * All kinds of providers that can be cloned. A class names one now; what was made of another that it named before, and has no Machine which
 * names it, can be found in no other way: nobody has noted it but the object itself.
 */
export class ProviderKinds {
  readonly #parts: { readonly reader: Reader; readonly clock: Clock; readonly log: Logger };
  #served: (Looked<ServedKind> & { readonly atMs: number }) | undefined;
  /** Since when what may not be listed is left out, by namespace and plural with group: roles may differ between namespaces. */
  readonly #refusedMs = new Map<string, number>();
  /** What was listed before, in the same form. */
  readonly #listed = new Set<string>();

  constructor(parts: { readonly reader: Reader; readonly clock: Clock; readonly log: Logger }) {
    this.#parts = parts;
  }

  /**
   * Objects of all of them, but of those that `isLookedAt` says to be looked at anyway. What may never be listed has not been made either.
   * What may not be listed is asked for again after a minute.
   */
  async list(
    namespace: string,
    labelSelector: string,
    isLookedAt: (kind: ServedKind) => boolean,
    signal: AbortSignal,
  ): Promise<Looked<{ readonly kind: ServedKind; readonly object: KubeObject }>> {
    const found: { kind: ServedKind; object: KubeObject }[] = [];
    const kinds = await this.#kinds(signal);
    const lost = [...kinds.lost];
    for (const kind of kinds.found) {
      const { plural, group } = kind.resource;
      const key = `${namespace}/${plural}.${group}`;
      if (isLookedAt(kind)) {
        this.#listed.add(key);
        continue;
      }
      const objects = this.#isLeftOut(key)
        ? undefined
        : await this.#permitted(key, () =>
            labelled(this.#parts.reader, kind.resource, { namespace, labelSelector, signal }),
          );
      if (objects === undefined && this.#listed.has(key)) lost.push(`${plural}.${group}`);
      found.push(...(objects ?? []).map((object) => ({ kind, object })));
    }
    return { found, lost };
  }

  async #kinds(signal: AbortSignal): Promise<Looked<ServedKind>> {
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#served !== undefined && nowMs - this.#served.atMs < KEPT_MS) return this.#served;
    const definitions = new Map<string, KubeObject>();
    let isRefused = false;
    for (const contract of CONTRACTS) {
      const which = { labelSelector: contractLabel(contract), metadataOnly: true, signal } as const;
      const listed = await this.#permitted(DEFINITIONS, () =>
        labelled(this.#parts.reader, customResourceDefinitions, which),
      );
      isRefused ||= listed === undefined;
      for (const one of listed ?? []) definitions.set(one.metadata.name, one);
    }
    const found = [...definitions.values()].map(kindOfDefinition).filter((kind) => kind !== undefined);
    const lost = isRefused && this.#listed.has(DEFINITIONS) ? [DEFINITIONS] : [];
    this.#served = { found, lost, atMs: nowMs };
    return this.#served;
  }

  #isLeftOut(key: string): boolean {
    const refusedMs = this.#refusedMs.get(key);
    return refusedMs !== undefined && this.#parts.clock.monotonicMs() - refusedMs < KEPT_MS;
  }

  /** Undefined: it may not be listed. */
  async #permitted<T>(key: string, list: () => Promise<readonly T[]>): Promise<readonly T[] | undefined> {
    try {
      const listed = await list();
      this.#listed.add(key);
      this.#refusedMs.delete(key);
      return listed;
    } catch (err) {
      // Not of a token that has just expired, or a version that is not served: there may be objects all the same.
      if (!ApiError.is(err, 'Forbidden')) throw err;
      this.#refusedMs.set(key, this.#parts.clock.monotonicMs());
      this.#parts.log.debug({ err, what: key }, 'could not look up the objects of a kind that the class used before');
      return undefined;
    }
  }
}
