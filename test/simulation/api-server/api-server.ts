import { Applies } from './applies.ts';
import { Deletions, goneStatus } from './deletions.ts';
import { discovered } from './discovery.ts';
import { takeDisruption, withDisruption } from './eviction.ts';
import { isDryRun } from './dry-run.ts';
import { badRequest, Failure, forbidden, invalid, notFound, notServed, notSimulated } from './failure.ts';
import { isMembers, type Members } from './json.ts';
import type { Kind } from './kinds.ts';
import { list, selectionOf } from './lists.ts';
import { Objects } from './objects.ts';
import { openAPIOf } from './openapi.ts';
import { patched, patchedValue, SERVER_SIDE_APPLY } from './patch/patched.ts';
import { type Representation, representationFor } from './representation.ts';
import { type Route, routeOf } from './route.ts';
import { scaled, scaleOf } from './scale.ts';
import { unknownFields } from './schema/prepare.ts';
import { keyOf, type StoredObject } from './stored-object.ts';
import { Watch } from './watch.ts';
import { Writes } from './writes.ts';

/** What a server is made of. */
export interface APIServerOptions {
  readonly kinds: readonly Kind[];
  /** Wall time. */
  readonly nowMs: () => number;
  readonly uid: () => string;
  readonly suffix: () => string;
  /** Of its first write. */
  readonly firstRevision?: number;
}

/** A request, decoded. */
export interface APIRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string | undefined;
  readonly accept?: string | undefined;
  /** How far the cache of the server is, which answers what may be old; undefined: it is not behind. */
  readonly cachedAt?: number | undefined;
}

/** What is answered: an object, a text where nothing is served, or a stream of events. */
export type APIAnswer =
  | { readonly code: number; readonly body: object | string }
  | { readonly code: 200; readonly watch: Watch; readonly representation: Representation };

/** Kinds whose DELETE shows the object even when it is gone. */
const SHOWN_WHEN_GONE: ReadonlySet<string> = new Set([
  'pods',
  'persistentvolumes',
  'persistentvolumeclaims',
  'volumeattachments',
]);

/**
 * kube-apiserver in memory, without authentication and admission: what it answers is compared with a real one by
 * test/integration/simulated-api-server.test.ts. A request is answered at once and whole; time, faults and the order of requests are the
 * transport's.
 */
export class SimulatedAPIServer {
  readonly objects: Objects;
  readonly kinds: readonly Kind[];
  readonly #writes: Writes;
  readonly #applies: Applies;
  readonly #deletions: Deletions;
  readonly #nowMs: () => number;
  readonly #timestamp: () => string;

  constructor({ kinds, nowMs, uid, suffix, firstRevision = 1 }: APIServerOptions) {
    this.kinds = kinds;
    this.objects = new Objects(firstRevision);
    this.#nowMs = nowMs;
    this.#timestamp = () => `${new Date(nowMs()).toISOString().slice(0, 19)}Z`;
    const source = { timestamp: this.#timestamp, uid, suffix };
    this.#writes = new Writes(this.objects, source, this.#kind('namespaces'));
    this.#applies = new Applies(this.objects, this.#writes);
    this.#deletions = new Deletions(this.objects, nowMs);
  }

  /** Never throws for what a client may send. */
  handle(request: APIRequest): APIAnswer {
    try {
      return this.#answer(request);
    } catch (err) {
      if (err instanceof Failure) return { code: err.code, body: err.body };
      throw err;
    }
  }

  #answer(request: APIRequest): APIAnswer {
    const [path = ''] = request.path.split('?', 1);
    const query = new URLSearchParams(request.path.slice(path.length));
    if (isDryRun(request, query)) return this.objects.dryRun(() => this.#routed(request, path, query));
    return this.#routed(request, path, query);
  }

  #routed(request: APIRequest, path: string, query: URLSearchParams): APIAnswer {
    const found = discovered(this.kinds, path, this.objects.ending) ?? openAPIOf(this.kinds, path);
    if (found !== undefined) return { code: 200, body: found };
    const review = reviewed(path, request.body);
    if (review !== undefined) return { code: 201, body: review };
    const route = routeOf(this.kinds, path);
    if (route.name === undefined) return this.#collection(route, request, query);
    if (route.subresource === 'scale' && route.kind.scale !== undefined) return this.#scale(route, request);
    if (route.subresource === 'eviction' && route.kind.plural === 'pods') return this.#evict(route, request);
    if (route.subresource === 'finalize' && route.kind.plural === 'namespaces') return this.#finalize(route, request);
    if (isOfKubelet(route)) throw notSimulated(`${route.subresource} of ${route.kind.plural}`);
    if (route.subresource !== undefined && !(route.subresource === 'status' && route.kind.hasStatus)) {
      // Whoever serves definitions finds no such object; of built-in kinds there is no such path.
      throw route.kind.schema === undefined ? notServed() : notFound(route.kind, route.name);
    }
    return this.#object(route, request, query);
  }

  #collection(route: Route, { method, body, accept, cachedAt }: APIRequest, query: URLSearchParams): APIAnswer {
    const { kind, namespace } = route;
    const representation = representationFor(kind, accept, query, this.#nowMs);
    switch (method) {
      case 'POST':
        if (kind.namespaced && namespace === undefined) throw methodNotAllowed();
        if (this.objects.ending.has(kind)) {
          throw forbidden(kind, '', 'create not allowed while custom resource definition is terminating');
        }
        requireKnownFields(kind, body, query);
        return { code: 201, body: this.#writes.create(kind, namespace, body) };
      case 'GET': {
        if (query.get('watch') === 'true') {
          return { code: 200, watch: new Watch(this.objects, kind, namespace, query), representation };
        }
        return { code: 200, body: representation.list(list(this.objects, kind, namespace, query, cachedAt)) };
      }
      case 'DELETE':
        if (kind.namespaced && namespace === undefined) throw methodNotAllowed();
        return { code: 200, body: this.#deleteAll(route, query, body) };
      default:
        throw methodNotAllowed();
    }
  }

  #object(route: Route, request: APIRequest, query: URLSearchParams): APIAnswer {
    const { kind, subresource } = route;
    const { method, body, accept } = request;
    if (method === 'PATCH' && request.contentType?.startsWith(SERVER_SIDE_APPLY) === true) {
      const present = subresource === undefined ? this.#present(route) : this.#find(route);
      const { object, isNew } = this.#applies.apply(route, present, request, query);
      return { code: isNew ? 201 : 200, body: object };
    }
    const mayBeOld = method === 'GET' && query.get('resourceVersion') === '0';
    const old = this.#find(route, mayBeOld ? request.cachedAt : undefined);
    switch (method) {
      case 'GET':
        return { code: 200, body: representationFor(kind, accept, query, this.#nowMs).object(old) };
      case 'PUT':
        requireKnownFields(kind, body, query);
        return { code: 200, body: this.#writes.replace(kind, old, body, subresource) };
      case 'PATCH': {
        const wanted = patched(kind, old, request);
        requireKnownFieldsOf(kind, wanted, query);
        return { code: 200, body: this.#writes.update(kind, old, wanted, subresource) };
      }
      case 'DELETE':
        if (subresource !== undefined) throw methodNotAllowed();
        return { code: 200, body: this.#delete(kind, old, body) };
      default:
        throw methodNotAllowed();
    }
  }

  #delete(kind: Kind, old: StoredObject, options: unknown): object {
    const { object, isGone } = this.#deletions.delete(kind, old, options);
    return isGone && !SHOWN_WHEN_GONE.has(kind.plural) ? goneStatus(kind, object) : object;
  }

  /** The list of what was there. */
  #deleteAll({ kind, namespace }: Route, query: URLSearchParams, options: unknown): object {
    if (kind.plural === 'namespaces') throw methodNotAllowed();
    const listed = list(this.objects, kind, namespace, query);
    const selected = this.objects
      .of(kind)
      .list()
      .filter(selectionOf(kind, namespace, query));
    for (const object of selected) this.#deletions.delete(kind, object, options);
    return listed;
  }

  #scale(route: Route, request: APIRequest): APIAnswer {
    const { kind } = route;
    const old = this.#find(route);
    const shown = scaleOf(kind, old);
    if (request.method === 'GET') return { code: 200, body: shown };
    if (request.method !== 'PATCH' && request.method !== 'PUT') throw methodNotAllowed();
    const wanted = request.method === 'PUT' ? request.body : patchedValue(kind, shown, request);
    const changed = this.#writes.update(kind, old, scaled(kind, old, wanted as Members), undefined);
    return { code: 200, body: scaleOf(kind, changed) };
  }

  #finalize(route: Route, { method, body }: APIRequest): APIAnswer {
    if (method !== 'PUT') throw methodNotAllowed();
    return { code: 200, body: this.#writes.finalize(route.kind, this.#find(route), body) };
  }

  #evict(route: Route, { method, body }: APIRequest): APIAnswer {
    if (method !== 'POST') throw methodNotAllowed();
    const pod = this.#find(route);
    const budgets = this.#kind('poddisruptionbudgets');
    const options = isMembers(body) && isMembers(body['deleteOptions']) ? body['deleteOptions'] : {};
    const { preconditions } = options as { preconditions?: { uid?: string } };
    // Nothing is taken from a budget for a pod that is another one by now.
    const isMeant = preconditions?.uid === undefined || preconditions.uid === pod.metadata.uid;
    if (budgets !== undefined && isMeant && takeDisruption(this.objects, budgets, pod, this.#timestamp())) {
      this.objects.put(route.kind, withDisruption(pod, this.#timestamp()));
    }
    this.#deletions.delete(route.kind, this.#find(route), options);
    return { code: 201, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } };
  }

  #find(route: Route, asOf?: number): StoredObject {
    const found = this.#present(route, asOf);
    if (found === undefined) throw notFound(route.kind, route.name ?? '');
    return found;
  }

  #present({ kind, namespace, name = '' }: Route, asOf?: number): StoredObject | undefined {
    const key = keyOf({ ...(namespace !== undefined && { namespace }), name });
    const history = this.objects.of(kind);
    return asOf === undefined ? history.get(key) : history.listAt(asOf).find(({ metadata }) => keyOf(metadata) === key);
  }

  #kind(plural: string): Kind | undefined {
    return this.kinds.find((kind) => kind.plural === plural);
  }
}

function methodNotAllowed(): Failure {
  return new Failure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {
    details: {},
  });
}

/** Fields that a definition does not know are refused where the client asks for that, as `kubectl` does. */
function requireKnownFields(kind: Kind, body: unknown, query: URLSearchParams): void {
  const why = unknownIn(kind, body, query);
  if (why !== undefined)
    throw badRequest(`${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ${why}`);
}

/** The same of what a patch makes. */
function requireKnownFieldsOf(kind: Kind, wanted: StoredObject, query: URLSearchParams): void {
  const why = unknownIn(kind, wanted, query);
  if (why === undefined) return;
  throw invalid({ kind: '', group: '' }, '', [
    { reason: 'FieldValueInvalid', message: `Invalid value: ${why}`, field: 'patch' },
  ]);
}

function unknownIn({ schema }: Kind, body: unknown, query: URLSearchParams): string | undefined {
  if (query.get('fieldValidation') !== 'Strict' || schema === undefined || !isMembers(body)) return undefined;
  const unknown = unknownFields(body, schema).map((path) => `unknown field "${path}"`);
  return unknown.length === 0 ? undefined : `strict decoding error: ${unknown.join(', ')}`;
}

/** Subresources that a kubelet would answer. */
const OF_KUBELETS: ReadonlySet<string> = new Set([
  'log',
  'exec',
  'attach',
  'portforward',
  'proxy',
  'ephemeralcontainers',
]);

function isOfKubelet({ kind: { plural }, subresource = '' }: Route): boolean {
  return (plural === 'pods' || plural === 'nodes') && OF_KUBELETS.has(subresource);
}

/** Everybody may do everything. */
function reviewed(path: string, body: unknown): object | undefined {
  if (!isMembers(body)) return undefined;
  if (path === '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews') {
    const all = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
    return { ...body, status: { resourceRules: [all], nonResourceRules: [], incomplete: false } };
  }
  if (path === '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews') return { ...body, status: { allowed: true } };
  return undefined;
}
