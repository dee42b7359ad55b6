import { labelMatcher } from '../../apis/label-selector.ts';
import type { KubeObject, List } from '../../apis/meta.ts';
import { parseSelector } from '../../apis/selector-text.ts';
import { ServerAheadError, SetBackError } from '../gate/outage.ts';
import { isExpired, ignoreNotFound } from '../client/errors.ts';
import type { Reader } from '../client/client.ts';
import type { Resource } from '../../apis/resource.ts';
import { compareResourceVersions } from './resource-version.ts';

/** The last change of a kind that a watch or list has shown. */
export interface LastChange {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly isDeletion: boolean;
}

/** What has been seen of the history of one kind: how far it went, and the last change in it. */
export class ObservedHistory {
  #newest: string | undefined;
  #lastChange: LastChange | undefined;
  #era = 0;

  /** The highest resourceVersion that any list, event, bookmark or write of ours has shown. */
  get newest(): string | undefined {
    return this.#newest;
  }

  get lastChange(): LastChange | undefined {
    return this.#lastChange;
  }

  /** Higher each time everything was forgotten: what was asked before proves nothing afterwards. */
  get era(): number {
    return this.#era;
  }

  reached(resourceVersion: string): void {
    if (this.#newest === undefined || compareResourceVersions(resourceVersion, this.#newest) > 0) {
      this.#newest = resourceVersion;
    }
  }

  changed({ metadata }: KubeObject, isDeletion = false): void {
    const { namespace, name, uid, resourceVersion } = metadata;
    this.reached(resourceVersion);
    const last = this.#lastChange?.resourceVersion;
    if (last !== undefined && compareResourceVersions(resourceVersion, last) < 0) return;
    this.#lastChange = { namespace, name, uid, resourceVersion, isDeletion };
  }

  /** A whole list has shown these objects. The last change is an absence, when what it was of has gone unseen since. */
  listed(items: readonly KubeObject[], resourceVersion: string): void {
    const before = this.#lastChange;
    this.reached(resourceVersion);
    for (const item of items) this.changed(item);
    if (before === undefined || before !== this.#lastChange) return;
    if (compareResourceVersions(resourceVersion, before.resourceVersion) < 0) return;
    this.#lastChange = { ...before, resourceVersion, isDeletion: true };
  }

  /** All of it did not happen. */
  forget(): void {
    this.#era += 1;
    this.#newest = undefined;
    this.#lastChange = undefined;
  }
}

/** A kind whose history can be compared with that of the server. */
export interface HistoricKind {
  readonly resource: Resource<KubeObject>;
  readonly namespace: string | undefined;
  /** Of the objects that are watched; others do not exist for those who watch, as objects that were deleted. */
  readonly labelSelector: string | undefined;
  readonly reader: Pick<Reader, 'list' | 'get'>;
  readonly history: ObservedHistory;
}

type KindReader = Pick<HistoricKind, 'resource' | 'reader' | 'labelSelector'>;

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
      ...selectionOf(kind, namespace),
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
    `${resource.plural} "${name}" was ${lastChange.isDeletion ? 'deleted' : 'changed'} at resourceVersion ${resourceVersion}, which the server does not have`,
  );
}

/** Whether objects of that name, as they were at the resourceVersion of a change, bear it out. */
function isShownBy(
  { uid, resourceVersion, isDeletion }: LastChange,
  items: readonly { readonly metadata: { readonly uid: string; readonly resourceVersion: string } }[],
): boolean {
  if (isDeletion) return items.every(({ metadata }) => metadata.uid !== uid);
  return items.some(({ metadata }) => metadata.uid === uid && metadata.resourceVersion === resourceVersion);
}

/** What a GET shows of an object; undefined: it does not exist. */
type Stored = { readonly uid: string; readonly resourceVersion: string } | undefined;

/**
 * What etcd says of a change that a list or a watch has shown before. Lists and watches are answered from the API server's watch cache, which
 * may be ahead of an etcd that was set back while the server ran, and then no watch breaks; a GET is answered by etcd itself.
 *
 * | seen     | stored                                  | then                                                        |
 * |----------|-----------------------------------------|-------------------------------------------------------------|
 * | change   | the same object, the same version       | same: all that was known of the kind before it is there too |
 * | change   | the same object, a higher version       | later: changed since                                        |
 * | change   | the same object, a lower version        | behind                                                      |
 * | change   | another object, at no higher version    | behind: that name was taken then                            |
 * | change   | nothing, or another object made since   | gone: deleted since, or never made                          |
 * | deletion | the same object                         | behind: a UID never comes back                              |
 * | deletion | the same object, a higher version, and  | later: it was not among those that are watched, and is      |
 * |          | not all objects of the kind are watched | again                                                       |
 * | deletion | nothing, or another object              | later: it proves nothing                                    |
 *
 * What is stored and not watched is `nothing`.
 */
export function judgeStored(
  seen: LastChange,
  stored: Stored,
  { isSelective }: { readonly isSelective: boolean },
): 'same' | 'later' | 'gone' | 'behind' {
  if (seen.isDeletion) {
    if (stored?.uid !== seen.uid) return 'later';
    return isSelective && compareResourceVersions(stored.resourceVersion, seen.resourceVersion) > 0
      ? 'later'
      : 'behind';
  }
  if (stored === undefined) return 'gone';
  const order = compareResourceVersions(stored.resourceVersion, seen.resourceVersion);
  if (stored.uid !== seen.uid) return order > 0 ? 'gone' : 'behind';
  if (order === 0) return 'same';
  return order > 0 ? 'later' : 'behind';
}

/**
 * Whether etcd bears out the last change that we know of; `unknown`: there is none, or it was overtaken. Throws SetBackError when etcd
 * is behind it, ApiError when the server does not answer.
 */
export async function requireStored(kind: HistoricKind, signal: AbortSignal): Promise<'same' | 'unknown'> {
  const { resource, history } = kind;
  const { era, lastChange } = history;
  if (lastChange === undefined) return 'unknown';
  const found = await compareStored(kind, lastChange, signal);
  if (found !== 'behind' || history.era !== era) return found === 'same' ? 'same' : 'unknown';
  const { name, resourceVersion, isDeletion } = lastChange;
  throw new SetBackError(
    `${resource.plural} "${name}" was ${isDeletion ? 'deleted' : 'changed'} at resourceVersion ${resourceVersion}, which etcd does not have`,
  );
}

/** Throws ServerAheadError when what a list has just shown is not what etcd holds, ApiError when the server does not answer. */
export async function requireListedIsStored(kind: KindReader, seen: LastChange, signal: AbortSignal): Promise<void> {
  if ((await compareStored(kind, seen, signal)) !== 'behind') return;
  throw new ServerAheadError(`lists show ${kind.resource.plural} "${seen.name}" differently from etcd`);
}

/** As requireListedIsStored, of the object of the last change alone: before everything is listed in vain. */
export async function requireNotAhead(kind: HistoricKind, signal: AbortSignal): Promise<void> {
  const { lastChange } = kind.history;
  if (lastChange === undefined) return;
  const { items, metadata } = await listByName(kind, lastChange, signal);
  await requireListedIsStored(kind, asListed(lastChange, items, metadata.resourceVersion ?? ''), signal);
}

/**
 * What of a list is compared with etcd: the object that was changed last, the one that was made last, and that of the last change that was
 * known before; it is the one that shows a past in which others have written since.
 */
export function samplesOf(
  items: readonly KubeObject[],
  resourceVersion: string,
  before: LastChange | undefined,
): readonly LastChange[] {
  const listed = items.map(({ metadata }) => ({ ...identityOf(metadata), createdAt: metadata.creationTimestamp }));
  const changed = listed.reduce<LastChange | undefined>(
    (a, b) => (a !== undefined && compareResourceVersions(a.resourceVersion, b.resourceVersion) >= 0 ? a : b),
    undefined,
  );
  const made = listed.toSorted((a, b) => (a.createdAt ?? '').localeCompare(b.createdAt ?? '')).at(-1);
  const known = before === undefined ? undefined : asListed(before, items, resourceVersion);
  const byUid = new Map([changed, made, known].flatMap((one) => (one === undefined ? [] : [[one.uid, one] as const])));
  return [...byUid.values()];
}

/** `gone` is told from `behind` by a list that begins later: what is deleted is in none. */
async function compareStored(
  kind: KindReader,
  seen: LastChange,
  signal: AbortSignal,
): Promise<'same' | 'later' | 'behind'> {
  const isSelective = kind.labelSelector !== undefined;
  const found = judgeStored(seen, await getStored(kind, seen, signal), { isSelective });
  if (found !== 'gone') return found;
  const { items } = await listByName(kind, seen, signal);
  return items.some(({ metadata }) => metadata.uid === seen.uid) ? 'behind' : 'later';
}

async function getStored(
  { resource, reader, labelSelector }: KindReader,
  of: LastChange,
  signal: AbortSignal,
): Promise<Stored> {
  const { namespace, name } = of;
  const options = { metadataOnly: true, signal } as const;
  const stored = await reader.get(resource, { ...scopeOf(namespace), name }, options).catch(ignoreNotFound);
  if (labelSelector === undefined || stored === undefined) return stored?.metadata;
  return labelMatcher(parseSelector(labelSelector))(stored.metadata.labels) ? stored.metadata : undefined;
}

function listByName(kind: KindReader, { namespace, name }: LastChange, signal: AbortSignal): Promise<List<KubeObject>> {
  const { resource, reader } = kind;
  return reader.list(resource, { ...selectionOf(kind, namespace), fieldSelector: `metadata.name=${name}`, signal });
}

/** What a list shows of the object that a change was of. */
function asListed(change: LastChange, items: readonly KubeObject[], resourceVersion: string): LastChange {
  const item = items.find(({ metadata }) => metadata.uid === change.uid);
  return item === undefined ? { ...change, resourceVersion, isDeletion: true } : identityOf(item.metadata);
}

function identityOf({ namespace, name, uid, resourceVersion }: KubeObject['metadata']): LastChange {
  return { namespace, name, uid, resourceVersion, isDeletion: false };
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

function selectionOf(
  { labelSelector }: KindReader,
  namespace: string | undefined,
): { namespace?: string; labelSelector?: string } {
  return { ...scopeOf(namespace), ...(labelSelector !== undefined && { labelSelector }) };
}

function scopeOf(namespace: string | undefined): { namespace?: string } {
  return namespace === undefined || namespace === '' ? {} : { namespace };
}
