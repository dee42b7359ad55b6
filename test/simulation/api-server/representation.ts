import { isMembers, type Members } from './json.ts';
import type { Kind } from './kinds.ts';
import { tableOf } from './table/table.ts';
import type { WatchEvent } from './watch.ts';

/** How a client is shown objects, lists of them and events of watches. */
export interface Representation {
  object(object: Members): Members;
  list(list: Members): Members;
  event(event: WatchEvent): WatchEvent;
}

const WHOLE: Representation = {
  object: (object) => object,
  list: (list) => list,
  event: (event) => event,
};

const METADATA_ONLY: Representation = {
  object: metadataOf,
  list: metadataOfList,
  event: (event) => withObject(event, metadataOf),
};

/** As the Accept header asks, by its first part that is served. */
export function representationFor(
  kind: Kind,
  accept: string | undefined,
  query: URLSearchParams,
  nowMs: () => number,
): Representation {
  for (const part of (accept ?? '').split(',')) {
    const parameters = new Map(part.split(';').map((one) => one.trim().split('=') as [string, string]));
    if (parameters.get('g') === 'meta.k8s.io' && parameters.get('v') === 'v1') {
      const as = parameters.get('as') ?? '';
      if (as === 'Table') return asTable(kind, query, nowMs);
      if (as.startsWith('PartialObjectMetadata')) return METADATA_ONLY;
    } else if (!parameters.has('as')) return WHOLE;
  }
  return WHOLE;
}

function asTable(kind: Kind, query: URLSearchParams, nowMs: () => number): Representation {
  const includes = query.get('includeObject');
  const objectOf = (object: Members): Members | null =>
    includes === 'None' ? null : includes === 'Object' ? object : metadataOf(object);
  const table = (items: readonly Members[], metadata: Members): Members =>
    tableOf({ kind, items, metadata, objectOf, nowMs: nowMs() });
  const ofOne = (object: Members): Members => {
    const { resourceVersion } = object['metadata'] as Members;
    return table([object], { resourceVersion });
  };
  let isFirst = true;
  return {
    object: ofOne,
    list: ({ metadata, items }) => {
      const { continue: token, ...others } = metadata as Members;
      const more = token === undefined || token === '' ? {} : { continue: token };
      return table(items as readonly Members[], { ...others, ...more });
    },
    // Columns are defined once in a watch.
    event: (event) =>
      withObject(event, (object) => {
        const shown = ofOne(object);
        const definitions = isFirst ? shown['columnDefinitions'] : null;
        isFirst = false;
        return { ...shown, columnDefinitions: definitions };
      }),
  };
}

/** Bookmarks and errors are shown as they are. */
function withObject(event: WatchEvent, show: (object: Members) => Members): WatchEvent {
  return event.type === 'BOOKMARK' || event.type === 'ERROR' ? event : { ...event, object: show(event.object) };
}

function metadataOf({ metadata }: Members): Members {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}

function metadataOfList({ metadata: all, items }: Members): Members {
  const { continue: token, ...others } = isMembers(all) ? all : {};
  const isEmpty = (items as readonly unknown[]).length === 0;
  const metadata = { ...others, ...(token !== undefined && token !== '' && { continue: token }) };
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    // As kube-apiserver writes it, unlike a list of whole objects.
    items: isEmpty ? null : (items as Members[]).map(metadataOf),
  };
}
