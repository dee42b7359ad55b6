import { contractOf, definitionNameOf, pluralOf, type Contract, type ContractReference } from '../api/contract.ts';
import { keyBeside, type KubeObject } from '../../../apis/meta.ts';
import type { Informer } from '../../../kube/cache/lister.ts';
import { type ApiError, ignoreNotFound } from '../../../kube/client/errors.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { providerResource } from '../../../kube/client/resource.ts';
import type { Resource } from '../../../apis/resource.ts';

/** An object of a provider, as its definition says it has to be read. */
export interface External {
  readonly object: KubeObject;
  readonly resource: Resource<KubeObject>;
  readonly contract: Contract['contract'];
}

/** What is known of an object of a provider. unknown: whether there is one cannot be told; `problem` says why, and what would help. */
export type ExternalLookup =
  | ({ readonly kind: 'found' } & External)
  | { readonly kind: 'absent' }
  | { readonly kind: 'reading' }
  | { readonly kind: 'unknown'; readonly problem: string };

/** A cache of a kind, as the operator opens it. */
interface Cache {
  readonly informer: Pick<Informer<KubeObject>, 'get' | 'hasSynced' | 'onChange'> & {
    waitForSync(signal: AbortSignal): Promise<void>;
  };
  close(): void;
}

export interface ExternalsDeps {
  /** CustomResourceDefinitions, of which the metadata is enough. */
  readonly definitions: Informer<KubeObject>;
  readonly reader: Reader;
  readonly open: (resource: Resource<KubeObject>, refused: (err: ApiError) => void) => Cache;
}

interface WatchedKind {
  readonly reference: Omit<ContractReference, 'name'>;
  /** Those who name it, and the key of the object that they name. */
  readonly users: Map<string, string>;
  open: { readonly contract: Contract; readonly resource: Resource<KubeObject>; readonly cache: Cache } | undefined;
  /** Ends what waits for the cache. */
  closing: AbortController;
  refusal: ApiError | undefined;
}

/**
 * The objects of infrastructure and bootstrap providers. Their kinds are known only from those who name them: a kind is watched from its
 * first user to its last, in the version that the labels of its definition name, and anew when these change.
 *
 *   no definition, or none with a label that is understood ─ unknown ◀─┐
 *   definition ─▶ cache opened ─ reading ─▶ filled ─ found, absent     ├─ the users are told of each change
 *                      └─ refused ─ unknown, tried again by itself ────┘
 */
export class Externals {
  readonly #deps: ExternalsDeps;
  readonly #kinds = new Map<string, WatchedKind>();
  readonly #namedBy = new Map<string, readonly string[]>();
  #wake: (user: string) => void = () => undefined;

  constructor(deps: ExternalsDeps) {
    this.#deps = deps;
  }

  /** From now on `wake` is called for each user of whose objects something may have changed; once only. */
  start(wake: (user: string) => void): void {
    this.#wake = wake;
    this.#deps.definitions.onChange((old, current) => {
      const definition = current ?? old;
      const kind = definition && this.#kinds.get(definition.metadata.name);
      if (kind === undefined) return;
      this.#follow(kind);
      this.#wakeAll(kind);
    });
  }

  /** What a user names from now on; kinds that nobody names any more are given up. */
  use(user: string, holder: KubeObject, references: readonly ContractReference[]): void {
    const before = this.#namedBy.get(user) ?? [];
    const names = references.map((reference) => definitionNameOf(reference));
    for (const [i, reference] of references.entries()) {
      const name = names[i] ?? '';
      const known = this.#kinds.get(name);
      const kind = known ?? this.#begin(name, reference);
      kind.users.set(user, keyBeside(holder, reference.name));
    }
    if (names.length === 0) this.#namedBy.delete(user);
    else this.#namedBy.set(user, names);
    for (const name of before) if (!names.includes(name)) this.#release(name, user);
  }

  drop(user: string): void {
    this.use(user, { metadata: { name: '', uid: '', resourceVersion: '', creationTimestamp: '' } }, []);
  }

  /** Nobody names anything any more. */
  stop(): void {
    for (const kind of this.#kinds.values()) this.#close(kind);
    this.#kinds.clear();
    this.#namedBy.clear();
  }

  /** Names of the definitions of the kinds that are watched. */
  get watched(): readonly string[] {
    return [...this.#kinds.keys()];
  }

  find(holder: KubeObject, reference: ContractReference): ExternalLookup {
    const name = definitionNameOf(reference);
    const kind = this.#kinds.get(name);
    if (kind?.open === undefined) return { kind: 'unknown', problem: this.#whyNot(name) };
    const { cache, resource, contract } = kind.open;
    if (!cache.informer.hasSynced) {
      return kind.refusal === undefined
        ? { kind: 'reading' }
        : { kind: 'unknown', problem: refusedProblem(name, kind.refusal) };
    }
    const object = cache.informer.get(keyBeside(holder, reference.name));
    return object === undefined ? { kind: 'absent' } : { kind: 'found', object, resource, contract: contract.contract };
  }

  /**
   * Whether an object is gone, by a live read: a cache may be late, and a kind that is not served says nothing about its objects. Throws
   * ApiError.
   */
  async isGone(holder: KubeObject, reference: ContractReference, signal: AbortSignal): Promise<boolean> {
    const open = this.#kinds.get(definitionNameOf(reference))?.open;
    if (open === undefined) return false;
    const place = { namespace: holder.metadata.namespace ?? '', name: reference.name };
    const object = await this.#deps.reader
      .get(open.resource, place, { signal, metadataOnly: true })
      .catch(ignoreNotFound);
    return object === undefined;
  }

  #begin(name: string, { apiGroup, kind: kindName }: ContractReference): WatchedKind {
    const kind: WatchedKind = {
      reference: { apiGroup, kind: kindName },
      users: new Map(),
      open: undefined,
      closing: new AbortController(),
      refusal: undefined,
    };
    this.#kinds.set(name, kind);
    this.#follow(kind);
    return kind;
  }

  #release(name: string, user: string): void {
    const kind = this.#kinds.get(name);
    kind?.users.delete(user);
    if (kind === undefined || kind.users.size > 0) return;
    this.#close(kind);
    this.#kinds.delete(name);
  }

  /** Watches a kind as its definition says now. */
  #follow(kind: WatchedKind): void {
    const { apiGroup: group, kind: name } = kind.reference;
    const definition = this.#deps.definitions.get(definitionNameOf(kind.reference));
    const contract = contractOf(definition?.metadata.labels);
    const known = kind.open?.contract;
    if (known !== undefined && known.version === contract?.version && known.contract === contract.contract) return;
    this.#close(kind);
    if (contract === undefined) return;
    const resource = providerResource({ group, version: contract.version, plural: pluralOf(name), kind: name });
    const cache = this.#deps.open(resource, (err) => {
      kind.refusal = err;
      this.#wakeAll(kind);
    });
    kind.open = { contract, resource, cache };
    cache.informer.onChange((old, current) => {
      const changed = current ?? old;
      if (changed === undefined || kind.open?.cache !== cache) return;
      const key = keyBeside(changed, changed.metadata.name);
      for (const [user, named] of kind.users) if (named === key) this.#wake(user);
    });
    void this.#reportWhenFilled(kind, cache);
  }

  /** Those whose object is absent are told by nothing else. Never rejects. */
  async #reportWhenFilled(kind: WatchedKind, { informer }: Cache): Promise<void> {
    const [filled] = await Promise.allSettled([informer.waitForSync(kind.closing.signal)]);
    if (filled.status === 'rejected') return;
    kind.refusal = undefined;
    this.#wakeAll(kind);
  }

  #close(kind: WatchedKind): void {
    kind.closing.abort(new Error('the kind is no longer watched'));
    kind.closing = new AbortController();
    kind.open?.cache.close();
    kind.open = undefined;
    kind.refusal = undefined;
  }

  #wakeAll(kind: WatchedKind): void {
    for (const user of kind.users.keys()) this.#wake(user);
  }

  #whyNot(name: string): string {
    if (this.#deps.definitions.get(name) === undefined) {
      return `CustomResourceDefinition ${name} does not exist: install the provider, or correct the reference`;
    }
    return (
      `CustomResourceDefinition ${name} has no label cluster.x-k8s.io/v1beta2 or cluster.x-k8s.io/v1beta1 with its versions: ` +
      'install a provider that follows one of these contracts'
    );
  }
}

function refusedProblem(name: string, err: ApiError): string {
  if (err.reason === 'NotServed') return `${name} is not served in the version of its labels: ${err.message}`;
  return `${name} cannot be read: apply deploy/rbac/cluster-api.yaml, with a rule for its group (${err.message})`;
}
