import type { APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';
import { Failure } from '../api-server/failure.ts';
import { at, isMembers, type Members } from '../api-server/json.ts';
import { builtIn, type Kind } from '../api-server/kinds.ts';
import { labelsSelected } from '../api-server/label-match.ts';
import { type Route, routeOf } from '../api-server/route.ts';
import type { StoredObject } from '../api-server/stored-object.ts';
import { AGE, NAME } from '../api-server/table/column.ts';
import type { User } from './users.ts';

const RBAC = 'rbac.authorization.k8s.io';
const REVIEWS = '/apis/authorization.k8s.io/v1/';

const COLUMNS = [NAME, AGE];

/** Kinds that say who may do what. */
export const RBAC_KINDS: readonly Kind[] = [
  builtIn(`${RBAC}/v1`, 'roles', 'Role', { columns: COLUMNS }),
  builtIn(`${RBAC}/v1`, 'rolebindings', 'RoleBinding', { columns: COLUMNS }),
  builtIn(`${RBAC}/v1`, 'clusterroles', 'ClusterRole', { columns: COLUMNS, namespaced: false }),
  builtIn(`${RBAC}/v1`, 'clusterrolebindings', 'ClusterRoleBinding', { columns: COLUMNS, namespaced: false }),
];

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** A rule that somebody is granted; without a namespace it holds in all, and for what has none. */
interface Grant {
  readonly rule: Rule;
  readonly namespace: string | undefined;
}

interface Binding extends StoredObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

/** What is asked for, as a SubjectAccessReview has it. */
interface Attributes {
  readonly verb?: string;
  readonly group?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly namespace?: string;
}

/** RBAC, over the roles and bindings that a simulated server has. */
export class Authorizer {
  readonly #server: SimulatedAPIServer;
  /** By users and groups, until a role or binding changes. */
  readonly #grants = new Map<string, readonly Grant[]>();

  constructor(server: SimulatedAPIServer) {
    this.#server = server;
    server.objects.onChange(({ group }) => {
      if (group === RBAC) this.#grants.clear();
    });
  }

  /** Answers a review of access; undefined: the request is none. */
  review({ path, body }: APIRequest, user: User): object | undefined {
    if (!path.startsWith(REVIEWS) || !isMembers(body)) return undefined;
    const spec = (body['spec'] ?? {}) as { user?: string; groups?: string[]; resourceAttributes?: Attributes };
    switch (path.slice(REVIEWS.length)) {
      case 'selfsubjectrulesreviews': {
        const { namespace } = spec as { namespace?: string };
        const resourceRules = this.#grantsOf(user)
          .filter((grant) => grant.namespace === undefined || grant.namespace === namespace)
          .map(({ rule }) => rule);
        return { ...body, status: { resourceRules, nonResourceRules: [], incomplete: false } };
      }
      case 'selfsubjectaccessreviews':
        return { ...body, status: { allowed: this.#allows(user, spec.resourceAttributes ?? {}) } };
      case 'subjectaccessreviews': {
        const about = { user: spec.user ?? '', groups: [...(spec.groups ?? [])] };
        return { ...body, status: { allowed: this.#allows(about, spec.resourceAttributes ?? {}) } };
      }
      default:
        return undefined;
    }
  }

  /** Throws a Failure for what the user may not do. */
  require(request: APIRequest, user: User): void {
    const [path = ''] = request.path.split('?', 1);
    const route = this.#routeOf(path);
    if (route === undefined) return; // discovery, or a path that is not served
    const attributes = attributesOf(route, request, new URLSearchParams(request.path.slice(path.length)));
    if (!this.#allows(user, attributes)) throw forbidden(user, attributes);
  }

  #routeOf(path: string): Route | undefined {
    try {
      return routeOf(this.#server.kinds, path);
    } catch (err) {
      if (err instanceof Failure) return undefined;
      throw err;
    }
  }

  #allows(user: User, attributes: Attributes): boolean {
    return this.#grantsOf(user).some(
      ({ rule, namespace }) =>
        (namespace === undefined || namespace === attributes.namespace) && covers(rule, attributes),
    );
  }

  #grantsOf(user: User): readonly Grant[] {
    const key = [user.user, ...user.groups].join('\n');
    const known = this.#grants.get(key);
    if (known !== undefined) return known;
    const grants = this.#find(user);
    this.#grants.set(key, grants);
    return grants;
  }

  #find({ user, groups }: User): Grant[] {
    if (groups.includes('system:masters')) return [{ rule: EVERYTHING, namespace: undefined }];
    const isMeant = ({ subjects = [] }: Binding): boolean =>
      subjects.some(({ kind, name, namespace }) => {
        if (kind === 'Group') return groups.includes(name);
        return user === (kind === 'ServiceAccount' ? `system:serviceaccount:${namespace ?? ''}:${name}` : name);
      });
    const bindings = [...this.#list('rolebindings'), ...this.#list('clusterrolebindings')] as Binding[];
    return bindings.filter(isMeant).flatMap(({ roleRef, metadata: { namespace } }) => {
      const roles = this.#list(roleRef.kind === 'Role' ? 'roles' : 'clusterroles');
      const role = roles.find(
        ({ metadata }) =>
          metadata.name === roleRef.name && (roleRef.kind !== 'Role' || metadata.namespace === namespace),
      );
      return this.#rulesOf(role).map((rule) => ({ rule, namespace }));
    });
  }

  /** Of a role that adds up others, those of the others. */
  #rulesOf(role: StoredObject | undefined): readonly Rule[] {
    const selectors = at(role, ['aggregationRule', 'clusterRoleSelectors']);
    const added = Array.isArray(selectors)
      ? this.#list('clusterroles').filter(({ metadata: { labels = {} } }) =>
          selectors.some((selector) => labelsSelected(selector, labels)),
        )
      : [role];
    return added.flatMap((one) => (one?.['rules'] ?? []) as Rule[]);
  }

  #list(plural: string): readonly StoredObject[] {
    const kind = this.#server.kinds.find((one) => one.group === RBAC && one.plural === plural);
    return kind === undefined ? [] : this.#server.objects.of(kind).list();
  }
}

const EVERYTHING: Rule = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };

function covers({ apiGroups = [], resources = [], resourceNames = [], verbs }: Rule, asked: Attributes): boolean {
  const { verb = '', group = '', resource = '', subresource, name } = asked;
  const whole = subresource === undefined || subresource === '' ? resource : `${resource}/${subresource}`;
  return (
    has(verbs, verb) &&
    has(apiGroups, group) &&
    has(resources, whole) &&
    (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name)))
  );
}

function has(list: readonly string[], item: string): boolean {
  return list.includes('*') || list.includes(item);
}

const VERBS: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch' };

function attributesOf(route: Route, { method }: APIRequest, query: URLSearchParams): Attributes {
  const { kind, subresource } = route;
  // A Namespace is in itself.
  const namespace = kind.group === '' && kind.plural === 'namespaces' ? route.name : route.namespace;
  const isWatch = query.get('watch') === 'true';
  // A list of what has one name is judged by that.
  const name = route.name ?? /^metadata\.name=([^,]+)$/.exec(query.get('fieldSelector') ?? '')?.[1];
  const reading = route.name !== undefined ? 'get' : isWatch ? 'watch' : 'list';
  const deleting = route.name !== undefined ? 'delete' : 'deletecollection';
  return {
    verb: method === 'GET' ? reading : method === 'DELETE' ? deleting : (VERBS[method] ?? method.toLowerCase()),
    group: kind.group,
    resource: kind.plural,
    ...(subresource !== undefined && { subresource }),
    ...(name !== undefined && { name }),
    ...(namespace !== undefined && { namespace }),
  };
}

function forbidden({ user }: User, asked: Attributes): Failure {
  const { verb, group = '', resource = '', subresource, name, namespace } = asked;
  const qualified = group === '' ? resource : `${resource}.${group}`;
  const whole = subresource === undefined ? resource : `${resource}/${subresource}`;
  const where = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  const why = `User "${user}" cannot ${verb} resource "${whole}" in API group "${group}" ${where}`;
  const what = name === undefined ? qualified : `${qualified} "${name}"`;
  const details: Members = { ...(name !== undefined && { name }), ...(group !== '' && { group }), kind: resource };
  return new Failure(403, 'Forbidden', `${what} is forbidden: ${why}`, { details });
}
