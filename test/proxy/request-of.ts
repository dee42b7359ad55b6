/** What a client asked of the API server, read from its URL. */
export interface ApiRequest {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';
  /** Plural, with the subresource after a slash; the path itself outside of the API. */
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly query: URLSearchParams;
  readonly userAgent: string;
}

const WRITES = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' } as const;

/** Reads method and URL as the API server's request info does. */
export function requestOf(method: string, url: string, userAgent = ''): ApiRequest {
  const { pathname, searchParams } = new URL(url, 'https://server');
  const parts = pathname.split('/').filter((part) => part !== '');
  const below = parts[0] === 'api' ? parts.slice(2) : parts[0] === 'apis' ? parts.slice(3) : [];
  const isNamespaced =
    below[0] === 'namespaces' && below.length > 2 && below[2] !== 'status' && below[2] !== 'finalize';
  const [plural, name, ...sub] = isNamespaced ? below.slice(2) : below;

  const write = (WRITES as Record<string, ApiRequest['verb']>)[method];
  const isWatch = ['1', 'true'].includes(searchParams.get('watch') ?? '');
  const read = isWatch ? 'watch' : name === undefined && plural !== undefined ? 'list' : 'get';
  return {
    verb: write ?? read,
    resource: plural === undefined ? pathname : [plural, ...sub].join('/'),
    namespace: isNamespaced ? below[1] : undefined,
    name,
    query: searchParams,
    userAgent,
  };
}
