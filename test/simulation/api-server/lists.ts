import { badRequest, expired, invalid, tooLarge } from './failure.ts';
import type { Members } from './json.ts';
import { apiVersionOf, type Kind } from './kinds.ts';
import type { Objects } from './objects.ts';
import { fieldSelector, labelSelector, type Selector } from './selectors.ts';
import { keyOf, type StoredObject } from './stored-object.ts';

/** Where the next page of a list begins. */
interface Continuation {
  readonly rv: number;
  readonly after: string;
}

/** Which objects a list or watch means. Throws a Failure. */
export function selectionOf(kind: Kind, namespace: string | undefined, query: URLSearchParams): Selector {
  const byLabel = labelSelector(query.get('labelSelector'));
  const byField = fieldSelector(query.get('fieldSelector'), kind.fields);
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) && byLabel(object) && byField(object);
}

/** GET of a collection; `cachedAt`: how far the cache is, if that is behind. Throws a Failure. */
export function list(
  objects: Objects,
  kind: Kind,
  namespace: string | undefined,
  query: URLSearchParams,
  cachedAt?: number,
): Members {
  const select = selectionOf(kind, namespace, query);
  const { revisions } = objects;
  const limit = Number(query.get('limit') ?? 0);
  const token = query.get('continue');
  const asOf = token === null ? revisionOf(objects, query, cachedAt) : undefined;
  const from = token === null || token === '' ? undefined : continuationOf(token);
  if (from !== undefined && from.rv < revisions.compacted) {
    const continuation = tokenOf({ rv: revisions.current, after: from.after });
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
      { continue: continuation },
    );
  }
  const rv = from?.rv ?? asOf ?? revisions.current;
  const history = objects.of(kind);
  const all = (rv === revisions.current ? history.list() : history.listAt(rv)).filter(select);
  const rest = from === undefined ? all : all.filter(({ metadata }) => keyOf(metadata) > from.after);
  // What comes from the cache comes whole.
  const isPaged = limit > 0 && query.get('resourceVersion') !== '0' && rest.length > limit;
  const items = isPaged ? rest.slice(0, limit) : rest;
  const last = items.at(-1);
  const isSelected = (query.get('labelSelector') ?? query.get('fieldSelector') ?? '') !== '';
  return {
    kind: `${kind.kind}List`,
    apiVersion: apiVersionOf(kind),
    metadata: {
      resourceVersion: String(rv),
      ...(kind.schema !== undefined && { continue: '' }),
      ...(isPaged && last !== undefined && { continue: tokenOf({ rv, after: keyOf(last.metadata) }) }),
      ...(isPaged && !isSelected && { remainingItemCount: rest.length - items.length }),
    },
    items: kind.schema === undefined ? items.map(withoutKind) : items,
  };
}

/** In lists the kind of built-in objects is not repeated. */
function withoutKind({ apiVersion: _apiVersion, kind: _kind, ...object }: StoredObject): Members {
  return object;
}

/** As of which resourceVersion a list is made; undefined: as of now. Throws a Failure. */
function revisionOf({ revisions }: Objects, query: URLSearchParams, cachedAt?: number): number | undefined {
  const text = query.get('resourceVersion') ?? '';
  const match = query.get('resourceVersionMatch') ?? '';
  if (match !== '' && text === '') {
    throw invalidOptions('resourceVersionMatch is forbidden unless resourceVersion is provided');
  }
  if (match === 'Exact' && text === '0') {
    throw invalidOptions('resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
  }
  if (text === '') return undefined;
  if (text === '0') return cachedAt;
  const rv = revisionIn(text);
  if (match === 'Exact') {
    revisions.requireKnown(rv);
    return rv;
  }
  const reached = cachedAt ?? revisions.current;
  if (rv > reached) throw tooLarge(rv, reached);
  return cachedAt;
}

/** A resourceVersion of a query. Throws a Failure. */
export function revisionIn(text: string): number {
  if (!/^\d+$/.test(text))
    throw badRequest(`Invalid value: "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`);
  return Number(text);
}

const LIST_OPTIONS = { group: 'meta.k8s.io', kind: 'ListOptions' };

/** What is wrong with the query of a list or watch. */
export function invalidOptions(why: string, field = 'resourceVersionMatch') {
  return invalid(LIST_OPTIONS, '', [{ reason: 'FieldValueForbidden', message: `Forbidden: ${why}`, field }]);
}

function tokenOf(continuation: Continuation): string {
  return Buffer.from(JSON.stringify(continuation)).toString('base64url');
}

function continuationOf(token: string): Continuation {
  try {
    const { rv, after } = JSON.parse(Buffer.from(token, 'base64url').toString()) as Continuation;
    if (typeof rv === 'number' && typeof after === 'string') return { rv, after };
  } catch {
    // told below
  }
  throw badRequest('continue key is not valid');
}
