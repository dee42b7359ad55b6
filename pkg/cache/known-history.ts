import type { KubeObject } from '../apis/meta.ts';
import { SetBackError } from '../gate/outage.ts';
import { isExpired } from '../kube/errors.ts';
import type { Reader } from '../kube/client.ts';
import type { Resource } from '../kube/resource.ts';
import { compareResourceVersions } from './resource-version.ts';

/** The last change of a kind that a watch or list has shown. */
export interface LastChange {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Whether it was the object's deletion. */
  readonly isDeletion: boolean;
}

/** What has been seen of the history of one kind: how far it went, and the last change in it. */
export class KnownHistory {
  #newest: string | undefined;
  #lastChange: LastChange | undefined;

  /** The highest resourceVersion that any list, event, bookmark or write of ours has shown. */
  get newest(): string | undefined {
    return this.#newest;
  }

  get lastChange(): LastChange | undefined {
    return this.#lastChange;
  }

  /** The server was at this resourceVersion. */
  reached(resourceVersion: string): void {
    if (this.#newest === undefined || compareResourceVersions(resourceVersion, this.#newest) > 0) {
      this.#newest = resourceVersion;
    }
  }

  /** A list or watch has shown this change. */
  changed({ metadata }: KubeObject, isDeletion = false): void {
    const { namespace, name, uid, resourceVersion } = metadata;
    this.reached(resourceVersion);
    const last = this.#lastChange?.resourceVersion;
    if (last !== undefined && compareResourceVersions(resourceVersion, last) < 0) return;
    this.#lastChange = { namespace, name, uid, resourceVersion, isDeletion };
  }

  /** All of it did not happen. */
  forget(): void {
    this.#newest = undefined;
    this.#lastChange = undefined;
  }
}

/** A kind whose history can be compared with that of the server. */
export interface HistoricKind {
  readonly resource: Resource<KubeObject>;
  readonly namespace: string | undefined;
  readonly reader: Pick<Reader, 'list'>;
  readonly history: KnownHistory;
}

/** Reads what the server is at, by quorum. Throws SetBackError when it was further already, ApiError when it does not answer. */
export async function requireNotOlder(kind: HistoricKind, signal: AbortSignal): Promise<void> {
  const { resource, namespace, reader, history } = kind;
  // Captured before the request: what arrives meanwhile may be newer than its answer.
  const { newest } = history;
  const { metadata } = await reader.list(resource, { ...scopeOf(namespace), limit: 1, signal });
  const { resourceVersion } = metadata;
  const why = describeSetBack(resource, resourceVersion, newest);
  if (why !== undefined) throw new SetBackError(why);
  history.reached(resourceVersion);
}

/** What a quorum read proves that began when `newest` was known; undefined when it proves nothing. */
export function describeSetBack(
  { plural }: Pick<Resource<KubeObject>, 'plural'>,
  resourceVersion: string,
  newest: string | undefined,
): string | undefined {
  if (newest === undefined || compareResourceVersions(resourceVersion, newest) >= 0) return undefined;
  return `${plural} are at resourceVersion ${resourceVersion}, and were at ${newest} before`;
}

/**
 * Whether the last change that we know of is part of the server's history; `unknown` when there is none, or when the server
 * remembers nothing so old. Throws SetBackError when another history took its place, ApiError when the server does not answer.
 */
export async function compareLastChange(kind: HistoricKind, signal: AbortSignal): Promise<'same' | 'unknown'> {
  const { resource, reader, history } = kind;
  const { lastChange } = history;
  if (lastChange === undefined) return 'unknown';
  const { namespace, name, resourceVersion } = lastChange;
  try {
    const { items } = await reader.list<KubeObject>(resource, {
      ...scopeOf(namespace),
      fieldSelector: `metadata.name=${name}`,
      resourceVersion,
      resourceVersionMatch: 'Exact',
      signal,
    });
    if (isShownBy(lastChange, items)) return 'same';
  } catch (err) {
    if (isExpired(err)) return 'unknown';
    throw err;
  }
  throw new SetBackError(
    `${resource.plural} "${name}" was ${lastChange.isDeletion ? 'deleted' : 'changed'} at resourceVersion ${resourceVersion}, of which the server knows nothing`,
  );
}

/** Whether objects of that name, as they were at the resourceVersion of a change, bear it out. */
export function isShownBy(
  { uid, resourceVersion, isDeletion }: LastChange,
  items: readonly { readonly metadata: { readonly uid: string; readonly resourceVersion: string } }[],
): boolean {
  if (isDeletion) return items.every(({ metadata }) => metadata.uid !== uid);
  return items.some(({ metadata }) => metadata.uid === uid && metadata.resourceVersion === resourceVersion);
}

/**
 * An object that a list shows at an older version than the one that is known, although the list is not older than that: it was
 * set back. Objects that are not listed prove nothing, for they may have been deleted.
 */
export function findSetBack<T extends KubeObject>(
  known: (item: T) => T | undefined,
  list: { readonly items: readonly T[]; readonly resourceVersion: string },
): T | undefined {
  return list.items.find((item) => {
    const before = known(item);
    if (before === undefined || before.metadata.uid !== item.metadata.uid) return false;
    const { resourceVersion } = before.metadata;
    const isCovered = compareResourceVersions(resourceVersion, list.resourceVersion) <= 0;
    return isCovered && compareResourceVersions(item.metadata.resourceVersion, resourceVersion) < 0;
  });
}

function scopeOf(namespace: string | undefined): { namespace?: string } {
  return namespace === undefined || namespace === '' ? {} : { namespace };
}
