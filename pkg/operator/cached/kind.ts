import type { KubeObject } from '../../apis/meta.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import type { Resource } from '../../apis/resource.ts';
import type { SettingsOf } from '../config/flag-section.ts';
import { qualified } from '../describe-refusal.ts';
import type { CacheOptions } from '../cluster-caches.ts';

/** Kinds of ours that others read, by the names of their table; `optionalFor` as for a cache. */
export type AlsoRead = Readonly<
  Partial<Record<'classes' | 'labelPolicies' | 'secrets', { readonly optionalFor?: string }>>
>;

/** What a process does, as far as it decides which kinds are cached in it. */
export interface CachingProcess {
  /** That Machines of ours and their owners are in. */
  readonly namespace: string;
  /** That the Leases are in. */
  readonly leaseNamespace: string;
  /** The Leases whose controllers run here. */
  readonly leases: ReadonlySet<string>;
  /** Autoscalers ask what Nodes of a MachineClass would look like. */
  readonly isAutoscaled: boolean;
  /** The controllers that run here. */
  readonly controllers: ReadonlySet<string>;
  /** What the flags of other APIs say. */
  readonly of: SettingsOf;
  /** What other APIs that it serves read of ours. */
  readonly alsoRead: AlsoRead;
}

/** A kind that controllers read from a cache. */
export interface CachedKind<T extends KubeObject> {
  readonly resource: Resource<T>;
  /** How it is cached in such a process; undefined where nobody reads it. */
  readonly how: (process: CachingProcess) => CacheOptions<T> | undefined;
}

/** Where caches are added to: all those of one cluster. */
export interface CacheAdder {
  add<T extends KubeObject>(resource: Resource<T>, options: CacheOptions<T>): Informer<T>;
}

/** Cached kinds by the names under which controllers read them. */
// eslint-disable-next-line typescript/no-explicit-any -- of any types: a row is invariant in its own
export type KindTable = Readonly<Record<string, CachedKind<any>>>;

/** The caches of a table. */
export type Informers<Kinds> = {
  readonly [Name in keyof Kinds]: Kinds[Name] extends CachedKind<infer T> ? Informer<T> : never;
};

/** One row of a table of cached kinds. */
export function cached<T extends KubeObject>(resource: Resource<T>, how: CachedKind<T>['how']): CachedKind<T> {
  return { resource, how };
}

/** Adds those kinds of a table that the process needs to those of a cluster. Reading another one throws. */
export function addKinds<Kinds extends KindTable>(
  kinds: Kinds,
  caches: CacheAdder,
  process: CachingProcess,
): Informers<Kinds> {
  const informers = {};
  for (const [name, { resource, how }] of Object.entries(kinds)) {
    const options = how(process);
    const informer = options && caches.add(resource, options);
    Object.defineProperty(informers, name, {
      get() {
        if (informer !== undefined) return informer;
        throw new Error(`${qualified(resource)} are cached only if a controller needs them`);
      },
    });
  }
  return informers as Informers<Kinds>;
}
