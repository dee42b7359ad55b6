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

/**
 * All kinds of providers that can be cloned. A class names one now; what was made of another that it named before, and has no Machine which
 * names it, can be found in no other way: nobody has noted it but the object itself.
 */
export class ProviderKinds {
  readonly #parts: { readonly reader: Reader; readonly clock: Clock; readonly log: Logger };
  #served: { readonly kinds: readonly ServedKind[]; readonly atMs: number } | undefined;
  /** Plurals with groups that may not be listed; asked for again when it is looked anew which kinds there are. */
  readonly #refused = new Set<string>();
  /** What was listed before. */
  readonly #listed = new Set<string>();

  constructor(parts: { readonly reader: Reader; readonly clock: Clock; readonly log: Logger }) {
    this.#parts = parts;
  }

  /** What was permitted to be listed once, and is not any more: a role that has shrunk hides what was made. */
  get lost(): readonly string[] {
    return [...this.#refused].filter((what) => this.#listed.has(what));
  }

  /** Objects of all of them, but of those that `isLookedAt` says to be looked at anyway. What may never be listed has not been made either. */
  async list(
    namespace: string,
    labelSelector: string,
    isLookedAt: (kind: ServedKind) => boolean,
    signal: AbortSignal,
  ): Promise<readonly { readonly kind: ServedKind; readonly object: KubeObject }[]> {
    const found: { kind: ServedKind; object: KubeObject }[] = [];
    for (const kind of await this.#kinds(signal)) {
      const { plural, group } = kind.resource;
      if (isLookedAt(kind) || this.#refused.has(`${plural}.${group}`)) continue;
      const objects = await this.#permitted(`${plural}.${group}`, () =>
        labelled(this.#parts.reader, kind.resource, { namespace, labelSelector, signal }),
      );
      found.push(...objects.map((object) => ({ kind, object })));
    }
    return found;
  }

  async #kinds(signal: AbortSignal): Promise<readonly ServedKind[]> {
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#served !== undefined && nowMs - this.#served.atMs < KEPT_MS) return this.#served.kinds;
    this.#refused.clear();
    const definitions = new Map<string, KubeObject>();
    for (const contract of CONTRACTS) {
      const which = { labelSelector: contractLabel(contract), metadataOnly: true, signal } as const;
      const listed = await this.#permitted('customresourcedefinitions', () =>
        labelled(this.#parts.reader, customResourceDefinitions, which),
      );
      for (const one of listed) definitions.set(one.metadata.name, one);
    }
    const kinds = [...definitions.values()].map(kindOfDefinition).filter((kind) => kind !== undefined);
    this.#served = { kinds, atMs: nowMs };
    return kinds;
  }

  async #permitted<T>(what: string, list: () => Promise<readonly T[]>): Promise<readonly T[]> {
    try {
      const listed = await list();
      this.#listed.add(what);
      return listed;
    } catch (err) {
      // Not of a token that has just expired, or a version that is not served: there may be objects all the same.
      if (!ApiError.is(err, 'Forbidden')) throw err;
      this.#refused.add(what);
      this.#parts.log.debug({ err, what }, 'could not look up the objects of a kind that the class used before');
      return [];
    }
  }
}
