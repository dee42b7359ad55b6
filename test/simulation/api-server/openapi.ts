import type { Members } from './json.ts';
import { apiVersionOf, type Kind } from './kinds.ts';

/** By which a client learns that the server itself refuses fields that it does not know. */
const FIELD_VALIDATION = { name: 'fieldValidation', in: 'query', schema: { type: 'string' } };
const ROOT = '/openapi/v3';

/**
 * Documents of OpenAPI, as far as `kubectl explain`, `create` and `apply` need them: which kinds there are, the schemas of those that
 * definitions add, and that `fieldValidation` is understood. Undefined for other paths.
 */
export function openAPIOf(kinds: readonly Kind[], path: string): Members | undefined {
  if (!path.startsWith(ROOT)) return undefined;
  const byPath = Map.groupBy(kinds, pathOf);
  if (path === ROOT) {
    const paths = [...byPath.keys()].map((one) => [one, { serverRelativeURL: `${ROOT}/${one}` }]);
    return { paths: Object.fromEntries(paths) as Members };
  }
  const served = byPath.get(path.slice(ROOT.length + 1));
  return path.startsWith(`${ROOT}/`) && served !== undefined ? documentOf(served) : undefined;
}

function pathOf(kind: Kind): string {
  return `${kind.group === '' ? 'api' : 'apis'}/${apiVersionOf(kind)}`;
}

function documentOf(kinds: readonly Kind[]): Members {
  const named = <T>(entries: (kind: Kind) => readonly [string, T][]): Members =>
    Object.fromEntries(kinds.flatMap(entries)) as Members;
  return {
    openapi: '3.0.0',
    info: { title: 'Machinist playground', version: 'simulated' },
    paths: named((kind) => pathsOf(kind)),
    components: { schemas: named((kind) => [[schemaName(kind), schemaOf(kind)]]) },
  };
}

function pathsOf(kind: Kind): [string, Members][] {
  const scope = kind.namespaced ? '/namespaces/{namespace}' : '';
  const collection = `/${pathOf(kind)}${scope}/${kind.plural}`;
  const content = { 'application/json': { schema: { $ref: `#/components/schemas/${schemaName(kind)}` } } };
  const operation = (action: string): Members => ({
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': identityOf(kind),
    parameters: [FIELD_VALIDATION],
    responses: { 200: { description: 'OK', content } },
  });
  return [
    [collection, { get: operation('list'), post: operation('post') }],
    [`${collection}/{name}`, { get: operation('get'), patch: operation('patch'), put: operation('put') }],
  ];
}

const identityOf = ({ group, version, kind }: Kind): Members => ({ group, kind, version });

const schemaName = ({ group, version, kind }: Kind): string => `${group === '' ? 'core' : group}.${version}.${kind}`;

function schemaOf(kind: Kind): Members {
  const schema = (kind.schema ?? {
    type: 'object',
    description: 'A built-in kind, whose fields are not described here.',
  }) as Members;
  return { ...schema, 'x-kubernetes-group-version-kind': [identityOf(kind)] };
}
