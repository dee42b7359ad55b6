import type { Random } from '../../../pkg/base/random/random.ts';
import type { SimulatedAPIServer } from '../api-server/api-server.ts';
import { apiVersionOf, type Kind } from '../api-server/kinds.ts';
import { finalizersOf, keyOf, type StoredObject } from '../api-server/stored-object.ts';
import type { VirtualTime } from './virtual-clock.ts';

/** So long it waits after a deletion, for all API servers to know of it. */
const BEGIN_MS = 5_000;
/** What finalizers hold is looked at again so often. */
const AGAIN_MS = 8_000;
/** What a request takes at most: one kind comes after the other. */
const KIND_MS = 40;
const CONTENT = 'kubernetes';
const BACKGROUND = { propagationPolicy: 'Background' };

/**
 * Runs the namespace controller of kube-controller-manager: deletes all that a Namespace contains, kind by kind in any order, again and again
 * until nothing is left, and then lets the Namespace go.
 */
export function emptyNamespaces(server: SimulatedAPIServer, time: Pick<VirtualTime, 'schedule'>, random: Random): void {
  const namespaces = server.kinds.find(({ group, plural }) => group === '' && plural === 'namespaces');
  if (namespaces !== undefined) new NamespaceController(server, time, random, namespaces).follow();
}

class NamespaceController {
  readonly #server: SimulatedAPIServer;
  readonly #time: Pick<VirtualTime, 'schedule'>;
  readonly #random: Random;
  readonly #namespaces: Kind;
  /** Those that are worked on. */
  readonly #busy = new Set<string>();

  constructor(server: SimulatedAPIServer, time: Pick<VirtualTime, 'schedule'>, random: Random, namespaces: Kind) {
    this.#server = server;
    this.#time = time;
    this.#random = random;
    this.#namespaces = namespaces;
  }

  follow(): void {
    const { objects } = this.#server;
    objects.onChange((kind, { type, object }) => {
      if (kind === this.#namespaces && type !== 'DELETED') this.#begin(object);
    });
    objects.onRestore(() => {
      for (const namespace of objects.of(this.#namespaces).list()) this.#begin(namespace);
    });
  }

  #begin(namespace: StoredObject): void {
    const { name } = namespace.metadata;
    if (!isTerminating(namespace) || this.#busy.has(name)) return;
    this.#busy.add(name);
    this.#time.schedule(BEGIN_MS, () => this.#pass(name));
  }

  /** Deletes what there is. */
  #pass(name: string): void {
    const kinds = shuffled(this.#kinds, this.#random).filter((kind) => this.#in(name, kind).length > 0);
    const next = (): void => {
      const namespace = this.#server.objects.of(this.#namespaces).get(keyOf({ name }));
      if (namespace === undefined || !isTerminating(namespace)) return void this.#busy.delete(name);
      const kind = kinds.shift();
      if (kind === undefined) return this.#end(namespace);
      const path = `${rootOf(kind)}/namespaces/${name}/${kind.plural}`;
      this.#server.handle({ method: 'DELETE', path, body: BACKGROUND });
      this.#time.schedule(this.#random() * KIND_MS, next);
    };
    next();
  }

  #end(namespace: StoredObject): void {
    const { name } = namespace.metadata;
    if (this.#kinds.some((kind) => this.#in(name, kind).length > 0)) {
      this.#time.schedule(AGAIN_MS, () => this.#pass(name));
      return;
    }
    this.#busy.delete(name);
    const body = { ...namespace, spec: { finalizers: finalizersOf(namespace).filter((one) => one !== CONTENT) } };
    this.#server.handle({ method: 'PUT', path: `/api/v1/namespaces/${name}/finalize`, body });
  }

  get #kinds(): readonly Kind[] {
    return this.#server.kinds.filter(({ namespaced }) => namespaced);
  }

  #in(namespace: string, kind: Kind): readonly StoredObject[] {
    const all = this.#server.objects.of(kind).list();
    return all.filter(({ metadata }) => metadata.namespace === namespace);
  }
}

function isTerminating(namespace: StoredObject): boolean {
  return namespace.metadata.deletionTimestamp !== undefined && finalizersOf(namespace).includes(CONTENT);
}

function rootOf(kind: Kind): string {
  return kind.group === '' ? `/api/${kind.version}` : `/apis/${apiVersionOf(kind)}`;
}

function shuffled<T>(all: readonly T[], random: Random): T[] {
  return all
    .map((one) => ({ one, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ one }) => one);
}
