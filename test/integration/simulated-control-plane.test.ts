import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Api, ApiRequest } from '../../hack/control-plane/api.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import { pluralOf } from '../../pkg/worlds/cluster-api/api/contract.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { ContractSimulator } from '../contract-simulator.ts';
import { CRD_FOLDERS } from '../env/crds.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { SimulatedControlPlane } from '../simulation/served/simulated-control-plane.ts';
import { allows, grant } from './shipped-roles.ts';

const MACHINES = '/apis/machine.sapcloud.io/v1alpha1/namespaces/NS/machines';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/NS/leases';
const MACHINE = {
  apiVersion: API_VERSION,
  kind: 'Machine',
  metadata: { name: 'm' },
  spec: { class: { kind: 'MachineClass', name: 'c' } },
};

const TOKEN = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };

/** A server, and who asks it. */
interface Side {
  readonly namespace: string;
  readonly admin: Api;
  /** Bound by the shipped roles, as others are by roles of other tests. */
  readonly machinist: Api;
  /** In a group to which a role is bound. */
  readonly member: Api;
  /** In a group to which a ClusterRole is bound that adds up others. */
  readonly adder: Api;
  readonly stranger: Api;
}

let disposables: AsyncDisposableStack;
let plane: SimulatedControlPlane;
let real: Side;
let simulated: Side;

beforeAll(async () => {
  disposables = new AsyncDisposableStack();
  const connection = connect();
  plane = disposables.use(await SimulatedControlPlane.start(connection, CRD_FOLDERS.own));
  [real, simulated] = [await sideOf(connection), await sideOf(plane.connection)];
});

afterAll(() => disposables[Symbol.asyncDispose]());

async function sideOf(connection: Connection): Promise<Side> {
  const { name } = disposables.use(await namespace(connection));
  const opened = (api: Api): Api => disposables.adopt(api, () => api.close());
  const admin = opened(connection.api());
  const user = `user-${name}`;
  await grant(admin, 'control-machine-controller', name, user);
  await grant(admin, 'target', name, user);
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}`;
  await admin.send('POST', `${rbac}/roles`, {
    metadata: { name: 'one-lease' },
    rules: [
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: ['own'], verbs: ['*'] },
      { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
    ],
  });
  await admin.send('POST', `${rbac}/rolebindings`, {
    metadata: { name: 'one-lease' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'one-lease' },
    subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'holders' }],
  });
  const add = { 'example.com/add-to': name };
  const clusterRoles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
  for (const role of [
    {
      metadata: { name: `part-${name}`, labels: add },
      rules: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list'] }],
    },
    { metadata: { name: `sum-${name}` }, aggregationRule: { clusterRoleSelectors: [{ matchLabels: add }] } },
  ]) {
    await admin.send('POST', clusterRoles, role);
    disposables.defer(() => admin.send('DELETE', `${clusterRoles}/${role.metadata.name}`));
  }
  await admin.send('POST', `${rbac}/rolebindings`, {
    metadata: { name: 'sum' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `sum-${name}` },
    subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'adders' }],
  });
  const list = { group: 'coordination.k8s.io', resource: 'leases', verb: 'list', namespace: name };
  await eventually(() => allows(admin, { user: 'adder', groups: ['adders'], resourceAttributes: list }), {
    describe: 'the sum of roles to be obeyed',
  });
  const asked = { group: 'coordination.k8s.io', resource: 'leases', name: 'own', verb: 'get', namespace: name };
  const review = { user: 'member', groups: ['holders'], resourceAttributes: asked };
  await eventually(() => allows(admin, review), { describe: 'the role of the group to be obeyed' });
  return {
    namespace: name,
    admin,
    machinist: opened(connection.api(await connection.identityFor({ user }))),
    member: opened(connection.api(await connection.identityFor({ user: 'member', groups: ['holders'] }))),
    adder: opened(connection.api(await connection.identityFor({ user: 'adder', groups: ['adders'] }))),
    stranger: opened(connection.api({ token: 'unknown' })),
  };
}

interface Row {
  readonly who: Exclude<keyof Side, 'namespace'>;
  readonly method?: NonNullable<ApiRequest['method']>;
  readonly path: string;
  readonly body?: object;
  readonly code: number;
}

/** In this order. */
const ROWS: readonly Row[] = [
  { who: 'admin', method: 'POST', path: MACHINES, body: MACHINE, code: 201 },
  { who: 'machinist', path: MACHINES, code: 200 },
  { who: 'machinist', path: `${MACHINES}/m`, code: 200 },
  { who: 'machinist', path: `${MACHINES}?watch=true&timeoutSeconds=1`, code: 200 },
  { who: 'machinist', method: 'POST', path: MACHINES, body: MACHINE, code: 403 },
  { who: 'machinist', method: 'PUT', path: `${MACHINES}/m`, body: MACHINE, code: 403 },
  { who: 'machinist', method: 'PATCH', path: `${MACHINES}/m`, body: { metadata: { labels: { a: 'b' } } }, code: 200 },
  { who: 'machinist', method: 'PATCH', path: `${MACHINES}/m/status`, body: { status: { node: 'n' } }, code: 200 },
  { who: 'machinist', path: `${MACHINES}/m/status`, code: 403 },
  { who: 'machinist', path: `${MACHINES}/m/scale`, code: 403 },
  { who: 'machinist', path: '/apis/machine.sapcloud.io/v1alpha1/machines', code: 403 },
  { who: 'machinist', path: '/apis/machine.sapcloud.io/v1alpha1/namespaces/default/machines', code: 403 },
  { who: 'machinist', path: '/api/v1/nodes', code: 200 },
  { who: 'machinist', method: 'POST', path: '/api/v1/nodes', body: { metadata: { name: 'n' } }, code: 403 },
  { who: 'machinist', path: '/api/v1/namespaces/NS/configmaps', code: 403 },
  { who: 'machinist', path: '/api/v1/namespaces/NS/configmaps/none', code: 403 },
  { who: 'machinist', method: 'DELETE', path: MACHINES, code: 403 },
  { who: 'machinist', path: '/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles', code: 403 },
  { who: 'machinist', path: '/apis/machine.sapcloud.io/v1alpha1', code: 200 },
  { who: 'member', method: 'POST', path: LEASES, body: { metadata: { name: 'own' } }, code: 403 },
  { who: 'admin', method: 'POST', path: LEASES, body: { metadata: { name: 'own' } }, code: 201 },
  { who: 'member', path: `${LEASES}/own`, code: 200 },
  { who: 'member', path: `${LEASES}/other`, code: 403 },
  { who: 'member', path: LEASES, code: 403 },
  { who: 'member', path: `${LEASES}?fieldSelector=metadata.name%3Down`, code: 200 },
  { who: 'member', path: `${LEASES}?fieldSelector=metadata.name%3Dother`, code: 403 },
  { who: 'member', method: 'DELETE', path: `${LEASES}/own`, code: 200 },
  { who: 'member', path: MACHINES, code: 403 },
  { who: 'member', path: '/api/v1/namespaces/NS', code: 200 },
  { who: 'member', path: '/api/v1/namespaces/default', code: 403 },
  { who: 'member', method: 'DELETE', path: '/api/v1/namespaces/NS', code: 403 },
  { who: 'member', path: '/api/v1/namespaces', code: 403 },
  { who: 'adder', path: LEASES, code: 200 },
  { who: 'adder', path: `${LEASES}/own`, code: 403 },
  { who: 'stranger', path: MACHINES, code: 401 },
  { who: 'admin', method: 'DELETE', path: `${MACHINES}/m`, code: 200 },
];

async function ask(side: Side, { who, method, path, body }: Row): Promise<{ code: number; why: unknown }> {
  const type = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
  const url = path.replace(/\/NS(?=\/|$)/, `/${side.namespace}`);
  const answer = await side[who].request(url, { ...type, ...(method && { method }), ...(body && { body }) });
  if (answer.status < 400) return { code: answer.status, why: undefined };
  const { reason, message, details } = answer.body as Readonly<Record<string, unknown>>;
  const why = JSON.stringify({ reason, details, message }).replaceAll(side.namespace, 'NS');
  return { code: answer.status, why: JSON.parse(why) };
}

test('a token of a service account gives its rights while the account exists, on both', async () => {
  const isDone = async (connection: Connection, { admin, namespace: name }: Side): Promise<readonly unknown[]> => {
    const accounts = `/api/v1/namespaces/${name}/serviceaccounts`;
    const tokenOf = (account: string) => admin.request(`${accounts}/${account}/token`, { method: 'POST', body: TOKEN });
    await admin.send('POST', accounts, { metadata: { name: 'robot' } });
    await admin.send('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}/rolebindings`, {
      metadata: { name: 'robot' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'one-lease' },
      subjects: [{ kind: 'ServiceAccount', name: 'robot', namespace: name }],
    });
    const made = await tokenOf('robot');
    const { token } = (made.body as { status: { token: string } }).status;
    const robot = connection.api({ token });
    const codes = async (): Promise<readonly number[]> => {
      const paths = [`/api/v1/namespaces/${name}`, '/api/v1/namespaces/default'];
      return await Promise.all(paths.map(async (path) => (await robot.request(path)).status));
    };
    await eventually(async () => expect(await codes()).toEqual([200, 403]));
    const refused = await robot.request(accounts, { method: 'POST', body: { metadata: { name: 'other' } } });
    await admin.send('DELETE', `${accounts}/robot`);
    await eventually(async () => expect(await codes()).toEqual([401, 401]), { timeoutMs: 120_000 });
    await robot.close();
    const why = (refused.body as { message: string }).message.replaceAll(name, 'NS');
    return [made.status, refused.status, why, (await tokenOf('robot')).status];
  };

  const expected = await isDone(connect(), real);

  expect(await isDone(plane.connection, simulated)).toEqual(expected);
  expect(expected).toEqual([201, 403, expect.stringContaining('system:serviceaccount:NS:robot'), 404]);
});

describe('the simulated control plane lets users do what a real one does', () => {
  test.each(ROWS.map((row, i) => ({ ...row, method: row.method ?? 'GET', i })))(
    '$i: $who, $method $path: $code',
    async (row) => {
      const expected = await ask(real, row);

      const answer = await ask(simulated, row);

      expect(answer).toEqual(expected);
      expect(answer.code).toBe(row.code);
    },
  );

  test('and tells a user of the same rules', async () => {
    const rulesOf = async ({ machinist, namespace: name }: Side): Promise<string[]> => {
      const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
      const { status } = await machinist.send<{ status: { resourceRules: { apiGroups: string[] }[] } }>('POST', path, {
        spec: { namespace: name },
      });
      // What everybody may ask about themselves is left out.
      const ofOurs = status.resourceRules.filter(
        ({ apiGroups: [group] }) => !/^auth(entic|oriz)ation\./.test(group ?? ''),
      );
      return ofOurs.map((rule) => JSON.stringify(rule, Object.keys(rule).toSorted()));
    };

    const expected = await rulesOf(real);

    expect(new Set(await rulesOf(simulated))).toEqual(new Set(expected));
    expect(expected).not.toEqual([]);
  });

  test('and takes a namespace away with what is in it, whatever finalizers hold that', async () => {
    const machine = { ...MACHINE, metadata: { name: 'm', finalizers: ['example.com/held'] } };
    const { admin } = simulated;
    const gone = await namespace(plane.connection);
    const path = MACHINES.replace('/NS/', `/${gone.name}/`);
    await admin.send('POST', path, machine);

    await gone[Symbol.asyncDispose]();

    expect(await admin.request(`/api/v1/namespaces/${gone.name}`)).toMatchObject({ status: 404 });
    expect(await admin.request(`${path}/m`)).toMatchObject({ status: 404 });
  });

  test('and serves a kind until its definition is deleted and its last object is gone, which ends watches', async () => {
    const kind = { apiGroup: 'example.com', kind: `Held${randomBytes(3).toString('hex')}` };
    const lifeOn = async ({ admin, namespace: name }: Side): Promise<object> => {
      const objects = new ContractSimulator(admin, name);
      const path = `/apis/${kind.apiGroup}/v1alpha7/namespaces/${name}/${pluralOf(kind.kind)}`;
      await objects.install(kind, undefined);
      await objects.create(kind, 'a', { metadata: { finalizers: ['example.com/held'] } });
      const watch = admin.request(`${path}?watch=true&timeoutSeconds=600`, { timeoutMs: 120_000 });
      await objects.uninstall(kind);
      const held = (await admin.request(`${path}/a`)).status;
      const isEnding = async (): Promise<boolean> => {
        const { body } = await admin.request(`/apis/${kind.apiGroup}/v1alpha7`);
        const { resources } = body as { resources: readonly { name: string; verbs: readonly string[] }[] };
        return resources.some((one) => one.name === pluralOf(kind.kind) && !one.verbs.includes('create'));
      };
      await eventually(isEnding, { describe: 'discovery to say that the kind is ending' });
      const object = { apiVersion: `${kind.apiGroup}/v1alpha7`, kind: kind.kind, metadata: { name: 'late' } };
      const late = (await admin.request(path, { method: 'POST', body: object })).status;
      await objects.set(kind, 'a', { metadata: { finalizers: null } });
      await eventually(async () => (await admin.request(path)).status === 404, { describe: 'the kind to be gone' });
      const events = String((await watch).body).split('\n');
      await objects.install(kind, undefined);
      const again = (await admin.request(path)).status;
      await objects.uninstall(kind);
      return { held, late, again, hasEnded: events.some((event) => event.startsWith('{"type":"DELETED"')) };
    };

    const [expected, shown] = await Promise.all([lifeOn(real), lifeOn(simulated)]);

    expect(shown).toEqual(expected);
    expect(shown).toEqual({ held: 200, late: 403, again: 200, hasEnded: true });
  });
});
