import type { APIRequest } from '../api-server/api-server.ts';
import { at } from '../api-server/json.ts';

/** What requests of the table are made with. */
export interface Given {
  /** The namespace of the objects. */
  readonly namespace: string;
  /** A prefix that no other run's cluster-scoped objects have. */
  readonly prefix: string;
  /** The latest answer that was saved under a name. */
  saved(name: string): unknown;
}

/** One request that both servers must answer alike. */
export interface Row {
  readonly title: string;
  readonly request: (given: Given) => APIRequest;
  /** Under which its answer is kept for later requests. */
  readonly save?: string;
  /** A difference that is kept: what of the answers is not compared, and why. */
  readonly kept?: { readonly what: 'message' | 'causes' | 'body' | 'all'; readonly why: string };
}

const GROUP = '/apis/machine.sapcloud.io/v1alpha1';
/** Plurals by the root of their paths; all others are those of the project. */
const ROOTS: Readonly<Record<string, string>> = {
  nodes: '/api/v1',
  namespaces: '/api/v1',
  persistentvolumes: '/api/v1',
  pods: '/api/v1',
  secrets: '/api/v1',
  configmaps: '/api/v1',
  events: '/api/v1',
  leases: '/apis/coordination.k8s.io/v1',
  volumeattachments: '/apis/storage.k8s.io/v1',
  poddisruptionbudgets: '/apis/policy/v1',
};
/** Versions of groups that are not `v1alpha1`. */
const VERSIONS: Readonly<Record<string, string>> = { 'cluster.x-k8s.io': 'v1beta2' };
const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  'nodes',
  'namespaces',
  'persistentvolumes',
  'volumeattachments',
  'machineclasses.compute.ironcore.dev',
  'machinepools.compute.ironcore.dev',
]);

/**
 * Path of a collection, an object (`machines/a`) or a subresource (`machines/a/status`), of another group with its name
 * (`machines.compute.ironcore.dev/a`). Names of cluster-scoped ones get the prefix.
 */
export function pathOf({ namespace, prefix }: Given, what: string): string {
  const [resource = '', name, subresource] = what.split('/');
  const [plural = '', ...group] = resource.split('.');
  const isClusterScoped = CLUSTER_SCOPED.has(resource);
  const scope = isClusterScoped ? '' : `/namespaces/${namespace}`;
  const object = name === undefined ? '' : `/${isClusterScoped ? prefix : ''}${name}`;
  const other = group.join('.');
  const root = other === '' ? (ROOTS[plural] ?? GROUP) : `/apis/${other}/${VERSIONS[other] ?? 'v1alpha1'}`;
  return `${root}${scope}/${plural}${object}${subresource === undefined ? '' : `/${subresource}`}`;
}

type Body = object | undefined | ((given: Given) => unknown);
type More = Omit<Row, 'title' | 'request'> & {
  readonly query?: string | ((given: Given) => string);
  readonly accept?: string;
};

function row(
  title: string,
  method: string,
  what: string,
  body: Body,
  { query = '', accept, ...more }: More,
  type?: string,
): Row {
  return {
    title,
    ...more,
    request: (given) => ({
      method,
      path: `${pathOf(given, what)}${typeof query === 'string' ? query : query(given)}`,
      ...(body !== undefined && {
        body: typeof body === 'function' ? (body as (given: Given) => unknown)(given) : body,
      }),
      ...(type !== undefined && { contentType: type }),
      ...(accept !== undefined && { accept }),
    }),
  };
}

export const get = (title: string, what: string, more: More = {}): Row => row(title, 'GET', what, undefined, more);
/** What is no object: a path as it is. */
export const getPath = (title: string, path: string, more: Omit<More, 'query'> = {}): Row => {
  const { accept, ...others } = more;
  return { title, ...others, request: () => ({ method: 'GET', path, ...(accept !== undefined && { accept }) }) };
};
export const post = (title: string, what: string, body: Body, more: More = {}): Row =>
  row(title, 'POST', what, body, more);
export const put = (title: string, what: string, body: Body, more: More = {}): Row =>
  row(title, 'PUT', what, body, more);
export const del = (title: string, what: string, body?: Body, more: More = {}): Row =>
  row(title, 'DELETE', what, body, more);
export const merge = (title: string, what: string, body: Body, more: More = {}): Row =>
  row(title, 'PATCH', what, body, more, 'application/merge-patch+json');
export const strategic = (title: string, what: string, body: Body, more: More = {}): Row =>
  row(title, 'PATCH', what, body, more, 'application/strategic-merge-patch+json');
export const jsonPatch = (title: string, what: string, body: Body, more: More = {}): Row =>
  row(title, 'PATCH', what, body, more, 'application/json-patch+json');

export const apply = (title: string, what: string, body: Body, more: More = {}): Row =>
  row(title, 'PATCH', what, body, more, 'application/apply-patch+yaml');
/** `metadata.resourceVersion` of a saved answer. */
export const rvOf = (given: Given, name: string): string =>
  String(at(given.saved(name), ['metadata', 'resourceVersion']));
/** `metadata.uid` of a saved answer. */
export const uidOf = (given: Given, name: string): string => String(at(given.saved(name), ['metadata', 'uid']));
export const OTHER_UID = '00000000-0000-4000-8000-000000000000';
