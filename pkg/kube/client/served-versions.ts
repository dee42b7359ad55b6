import type { KubeObject } from '../../apis/meta.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { untilAborted } from '../../base/clock/deadline.ts';
import { ApiError } from './errors.ts';
import { apiVersionOf, versionsOf } from './resource.ts';
import type { Resource } from '../../apis/resource.ts';

/** What is known of versions is asked for anew after so long, beside the requests that go on meanwhile. */
const FRESH_MS = 60_000;

interface Discovered {
  readonly resources?: readonly { readonly name?: string }[] | null;
  readonly versions?: readonly { readonly version?: string }[] | null;
}

export interface ServedVersionsOptions {
  readonly clock: Clock;
  /** Reads what the server publishes under a path. Throws ApiError. */
  readonly discover: (path: string) => Promise<unknown>;
}

/**
 * In which version each resource is served, of those that are understood: the newest. Nobody is asked about resources that have but one.
 *
 *   unknown ─▶ asked ─▶ known ─ after a minute ─▶ asked beside, the known one being used meanwhile
 *                ▲        └─ a request finds it not served: asked at once, and the request is sent once more if that has changed
 *                └─ none of them is served: NotServed, and asked again with the next request
 */
export class ServedVersions {
  readonly #options: ServedVersionsOptions;
  readonly #versions = new Map<string, Resource<KubeObject>>();
  readonly #askedAtMs = new Map<string, number>();
  readonly #asking = new Map<string, Promise<Resource<KubeObject>>>();
  readonly #listeners = new Set<(resource: Resource<KubeObject>) => void>();

  constructor(options: ServedVersionsOptions) {
    this.#options = options;
  }

  /** As which the resource was served when that was last found out; the newest before. */
  current<T extends KubeObject>(resource: Resource<T>): Resource<T> {
    return (this.#versions.get(nameOf(resource)) as Resource<T> | undefined) ?? resource;
  }

  /** Adds a listener for resources that turn out to be served in another version than before, until the returned function is called. */
  onChange(listener: (resource: Resource<KubeObject>) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Runs `use` with the resource as it is served; once more when its answer is that this version is not, and another one is. Throws ApiError
   * and whatever `use` throws: NotServed never says that an object does not exist.
   */
  async at<T extends KubeObject, R>(
    resource: Resource<T>,
    signal: AbortSignal | undefined,
    use: (served: Resource<T>) => Promise<R>,
  ): Promise<R> {
    const served = await this.#find(resource, signal);
    try {
      return await use(served);
    } catch (err) {
      if (!ApiError.is(err, 'NotServed')) throw err;
      const other = await this.#wait(resource, signal);
      if (other === served) throw err;
      return await use(other);
    }
  }

  async #find<T extends KubeObject>(resource: Resource<T>, signal: AbortSignal | undefined): Promise<Resource<T>> {
    const known = this.#versions.get(nameOf(resource)) as Resource<T> | undefined;
    if (known === undefined) return await this.#wait(resource, signal);
    const askedAtMs = this.#askedAtMs.get(nameOf(resource)) ?? -Infinity;
    if (this.#options.clock.monotonicMs() - askedAtMs >= FRESH_MS) void this.#renew(resource);
    return known;
  }

  async #wait<T extends KubeObject>(resource: Resource<T>, signal: AbortSignal | undefined): Promise<Resource<T>> {
    const asked = this.#ask(resource);
    return await (signal === undefined ? asked : untilAborted(asked, signal));
  }

  /** Never rejects: whoever uses what was known is told by the answer if it holds no more. */
  async #renew(resource: Resource<KubeObject>): Promise<void> {
    await Promise.allSettled([this.#ask(resource)]);
  }

  /** One question at a time for each resource. */
  async #ask<T extends KubeObject>(resource: Resource<T>): Promise<Resource<T>> {
    const name = nameOf(resource);
    const asking = this.#asking.get(name) ?? this.#check(resource).finally(() => this.#asking.delete(name));
    this.#asking.set(name, asking);
    return (await asking) as Resource<T>;
  }

  async #check(resource: Resource<KubeObject>): Promise<Resource<KubeObject>> {
    this.#askedAtMs.set(nameOf(resource), this.#options.clock.monotonicMs());
    for (let one: Resource<KubeObject> | undefined = resource; one !== undefined; one = one.older) {
      // The next one is asked about only where this one is not served.
      // oxlint-disable-next-line no-await-in-loop
      if (await this.#isServed(one)) return this.#learn(resource, one);
    }
    throw new ApiError(404, 'NotServed', await this.#whyNot(resource));
  }

  async #isServed(one: Resource<KubeObject>): Promise<boolean> {
    try {
      const { resources } = await this.#discover(`/apis/${apiVersionOf(one)}`);
      return resources?.some(({ name }) => name === one.plural) === true;
    } catch (err) {
      // Who may not ask finds out by the answers.
      if (ApiError.is(err, 'Forbidden')) return true;
      if (ApiError.is(err, 'NotServed', 'NotFound')) return false;
      throw err;
    }
  }

  #learn(resource: Resource<KubeObject>, served: Resource<KubeObject>): Resource<KubeObject> {
    const name = nameOf(resource);
    const before = this.#versions.get(name);
    this.#versions.set(name, served);
    if (before !== undefined && before !== served) for (const listener of this.#listeners) listener(resource);
    return served;
  }

  async #whyNot(resource: Resource<KubeObject>): Promise<string> {
    const [found] = await Promise.allSettled([this.#discover(`/apis/${resource.group}`)]);
    const versions = found.status === 'fulfilled' ? (found.value.versions ?? []).map(({ version }) => version) : [];
    const others = versions.length === 0 ? 'none' : versions.join(', ');
    return `${nameOf(resource)} is not served in version ${versionsOf(resource)}; versions of its group: ${others}`;
  }

  async #discover(path: string): Promise<Discovered> {
    return (await this.#options.discover(path)) ?? {};
  }
}

/** Runs `use` with the resource as the server of a transport has it; those of one version are as they are. */
export async function asServed<T extends KubeObject, R>(
  transport: { readonly served: ServedVersions },
  resource: Resource<T>,
  signal: AbortSignal | undefined,
  use: (served: Resource<T>) => Promise<R>,
): Promise<R> {
  return resource.older === undefined ? await use(resource) : await transport.served.at(resource, signal, use);
}

function nameOf({ plural, group }: Resource<KubeObject>): string {
  return `${plural}.${group}`;
}
