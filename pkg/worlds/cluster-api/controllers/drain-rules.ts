import type { MachineDrainRule } from '../api/drain-rule.ts';
import { DRAIN_RULES_DEFINITION } from '../api/keys.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Pod } from '../../../apis/wire.ts';
import type { Informer } from '../../../kube/cache/lister.ts';
import type { PodRule } from '../../../drain/drain.ts';
import type { Reader } from '../../../kube/client/client.ts';
import type { ApiError } from '../../../kube/client/errors.ts';
import { namespaces, versionsOf } from '../../../kube/client/resource.ts';
import type { Resource } from '../../../apis/resource.ts';
import { machineDrainRules } from '../api/resources.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import type { DrainedMachine, PodRules } from '../../../controllers/machine-facts/pod-rules.ts';
import { DrainRuleError, podRulesOf } from './read-drain-rules.ts';

/** A cache that can be given up. */
interface Cache {
  readonly informer: Pick<Informer<KubeObject>, 'list' | 'hasSynced' | 'onChange'> & {
    waitForSync(signal: AbortSignal): Promise<void>;
  };
  close(): void;
}

export interface DrainRulesDeps {
  /** CustomResourceDefinitions, of which the metadata is enough. */
  readonly definitions: Informer<KubeObject>;
  readonly open: (resource: Resource<KubeObject>, refused: (err: ApiError) => void) => Cache;
}

/** The MachineDrainRules of the namespaces that are looked after, for as long as their kind is served. While they cannot be read nothing is drained. */
export class DrainRules implements PodRules {
  readonly #deps: DrainRulesDeps;
  readonly #changed = new Set<() => void>();
  #cache: Cache | undefined;
  #refusal: ApiError | undefined;
  /** Ends what waits for the cache. */
  #closing = new AbortController();

  constructor(deps: DrainRulesDeps) {
    this.#deps = deps;
    deps.definitions.onChange((old, current) => {
      if ((current ?? old)?.metadata.name === DRAIN_RULES_DEFINITION) this.#follow();
    });
  }

  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => void this.#changed.delete(listener);
  }

  /** What a drain does about each pod. Throws DrainRuleError, or ApiError when namespaces have to be read and may not. */
  async of(
    machine: DrainedMachine,
    target: Pick<Target, 'reader'>,
    signal: AbortSignal,
  ): Promise<(pod: Pod) => PodRule> {
    const { needsNamespaces, ruleOf } = podRulesOf(this.#rules(), machine);
    const labels = needsNamespaces ? await namespaceLabels(target.reader, signal) : undefined;
    return (pod) => ruleOf(pod, labels?.get(pod.metadata.namespace ?? ''));
  }

  #rules(): readonly MachineDrainRule[] {
    if (this.#cache === undefined) return [];
    const { informer } = this.#cache;
    if (informer.hasSynced) return informer.list();
    const why = this.#refusal === undefined ? 'loading is still in progress' : refusedProblem(this.#refusal);
    throw new DrainRuleError(`MachineDrainRules are unknown: ${why}`);
  }

  #follow(): void {
    const isServed = this.#deps.definitions.get(DRAIN_RULES_DEFINITION) !== undefined;
    if (isServed === (this.#cache !== undefined)) return;
    this.#closing.abort(new Error('MachineDrainRules are no longer served'));
    this.#closing = new AbortController();
    this.#cache?.close();
    this.#refusal = undefined;
    this.#cache = isServed ? this.#open() : undefined;
    this.#report();
  }

  #open(): Cache {
    const cache = this.#deps.open(machineDrainRules, (err) => {
      this.#refusal = err;
      this.#report();
    });
    cache.informer.onChange(() => {
      if (cache.informer.hasSynced) this.#report();
    });
    void this.#reportWhenFilled(cache);
    return cache;
  }

  /** Never rejects. */
  async #reportWhenFilled({ informer }: Cache): Promise<void> {
    const [filled] = await Promise.allSettled([informer.waitForSync(this.#closing.signal)]);
    if (filled.status === 'fulfilled') this.#report();
  }

  #report(): void {
    for (const listener of this.#changed) listener();
  }
}

function refusedProblem({ reason, message }: ApiError): string {
  return reason === 'NotServed'
    ? `the CustomResourceDefinition serves no supported version (${versionsOf(machineDrainRules)}): upgrade it (${message})`
    : `apply deploy/rbac/cluster-api.yaml (${message})`;
}

async function namespaceLabels(
  reader: Reader,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>> {
  const { items } = await reader.list(namespaces, { signal });
  return new Map(items.map(({ metadata }) => [metadata.name, metadata.labels ?? {}]));
}
