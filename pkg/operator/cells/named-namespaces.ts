import type { KubeObject } from '../../apis/meta.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { Reader } from '../../kube/client/client.ts';
import { ApiError, isForbiddenOrNotServed, isNotFound, REFUSAL_PATIENCE_MS } from '../../kube/client/errors.ts';
import { namespaces } from '../../kube/client/resource.ts';
import { describeMissing } from '../preflight/missing-grants.ts';
import type { Permission } from '../preflight/permissions.ts';
import { refusedOf } from '../preflight/refused.ts';
import type { CellNamespaces, LookedAt } from './cell-namespaces.ts';

export interface NamedNamespacesOptions {
  readonly names: readonly string[];
  /** Of the control cluster. */
  readonly reader: Pick<Reader, 'get'>;
  readonly reviewer: Parameters<typeof refusedOf>[0];
  /** What a process needs to be allowed in one of them. */
  readonly permissionsIn: (namespace: string) => readonly Permission[];
  readonly clock: Clock;
  readonly log: Logger;
}

/** What the last look at a namespace has found. */
interface Seen {
  readonly namespace?: KubeObject;
  readonly trouble?: string;
  /** Since when it is refused that was granted before; monotonic. */
  readonly refusedSinceMs?: number;
  /** What is missing and not needed, as it was told. */
  readonly lost?: string;
}

/** A Namespace cannot be watched under a role that holds in it alone: its settings are found by looking. */
const AGAIN_MS = 10_000;
/** A server that is just starting refuses for a moment what it grants then. */
const DOUBTED_AGAIN_MS = 2_000;
const TIMEOUT_MS = 10_000;

/**
 * Namespaces that are named, in each of which roles permit what is needed, and nothing outside of them. What is missing in one of them
 * concerns it alone.
 */
export class NamedNamespaces implements CellNamespaces, LookedAt {
  readonly #options: NamedNamespacesOptions;
  readonly #seen = new Map<string, Seen>();

  constructor(options: NamedNamespacesOptions) {
    this.#options = options;
  }

  get looked(): LookedAt {
    return this;
  }

  get(name: string): KubeObject | undefined {
    return this.#seen.get(name)?.namespace;
  }

  names(): readonly string[] {
    return this.#options.names;
  }

  onChange(): void {
    // Nobody tells.
  }

  troubleOf(name: string): string | undefined {
    return this.#seen.get(name)?.trouble;
  }

  againMs(name: string): number {
    return this.#seen.get(name)?.refusedSinceMs === undefined ? AGAIN_MS : DOUBTED_AGAIN_MS;
  }

  async look(name: string, signal: AbortSignal): Promise<void> {
    const { reader } = this.#options;
    const options = { metadataOnly: true, signal, timeoutMs: TIMEOUT_MS } as const;
    try {
      const namespace = await reader.get(namespaces, { name }, options);
      await this.#judge(name, namespace, signal);
    } catch (err) {
      if (isNotFound(err)) {
        this.#seen.set(name, { trouble: `Namespace ${name} does not exist; ${remedyFor(name)}` });
      } else if (ApiError.is(err, 'Forbidden')) {
        // Without the namespace there is nothing that could grant this.
        this.#refuse(
          name,
          undefined,
          `Namespace ${name} does not exist, or its RoleBinding is missing; ${remedyFor(name)} (${err.message})`,
        );
      } else throw err;
    }
  }

  /** Takes what is granted in a namespace that is there. Throws ApiError. */
  async #judge(name: string, namespace: KubeObject, signal: AbortSignal): Promise<void> {
    const { permissionsIn, log } = this.#options;
    const refused = await this.#refusedOf(permissionsIn(name), signal);
    const needed = refused.filter((one) => one.lost === undefined);
    if (needed.length > 0) return this.#refuse(name, namespace, describeMissing(needed));
    const lost = refused.length === 0 ? '' : describeMissing(refused);
    const told = this.#seen.get(name)?.lost ?? '';
    if (lost !== told && lost !== '') log.warn({ cell: name, err: lost }, 'permissions are missing');
    if (lost !== told && lost === '') log.info({ cell: name }, 'permissions were granted');
    this.#seen.set(name, { namespace, lost });
  }

  /** A server that cannot be asked for permissions refuses them when they are used. Throws ApiError. */
  async #refusedOf(permissions: readonly Permission[], signal: AbortSignal): Promise<readonly Permission[]> {
    try {
      return await refusedOf(this.#options.reviewer, permissions, { signal, timeoutMs: TIMEOUT_MS });
    } catch (err) {
      if (isForbiddenOrNotServed(err)) return [];
      throw err;
    }
  }

  #refuse(name: string, namespace: KubeObject | undefined, trouble: string): void {
    const { clock } = this.#options;
    const before = this.#seen.get(name);
    const refusedSinceMs = before?.refusedSinceMs ?? clock.monotonicMs();
    const isMeant = clock.monotonicMs() - refusedSinceMs >= REFUSAL_PATIENCE_MS;
    if (before?.namespace !== undefined && before.trouble === undefined && !isMeant) {
      this.#seen.set(name, { ...before, refusedSinceMs });
    } else this.#seen.set(name, namespace === undefined ? { trouble } : { namespace, trouble });
  }
}

function remedyFor(name: string): string {
  return `apply deploy/rbac/cell.yaml, and deploy/cell-namespace.yaml for ${name}`;
}
