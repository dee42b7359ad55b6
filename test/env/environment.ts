import { randomBytes } from 'node:crypto';

import type { Api } from '../../hack/control-plane/api.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import {
  startControlPlane,
  type ControlPlane,
  type ControlPlaneOptions,
} from '../../hack/control-plane/control-plane.ts';
import { shared, SHARED_VARIABLE } from '../../hack/control-plane/shared.ts';
import type { ObjectMeta } from '../../pkg/apis/meta.ts';
import { eventually } from '../expect/eventually.ts';
import { applyCrds, type CrdSet } from './crds.ts';

/**
 * The control plane that all test files of this run share: CRDs applied, kube-controller-manager running. Namespaces keep the
 * files apart; cluster-scoped objects (Nodes) need unique names. A test that stops, slows or floods the server, or whose
 * controllers act on all Nodes, takes a private one.
 */
export function connect(): Connection {
  const connection = shared();
  if (connection === undefined) {
    throw new Error(`no control plane: run this test by its jest project, or set ${SHARED_VARIABLE}`);
  }
  return connection;
}

/** For tests whose Nodes have no kubelet: after 16 s without a heartbeat, kube-controller-manager would have them NotReady. */
export const WITHOUT_KUBELETS = {
  extraArguments: { 'kube-controller-manager': ['--controllers=-node-lifecycle-controller'] },
} as const satisfies ControlPlaneOptions;

/** A control plane for one test, with the CRDs in it: `await using plane = await privateControlPlane()`. Takes about 4 s. */
export async function privateControlPlane(
  options: ControlPlaneOptions & { readonly crds?: CrdSet } = {},
): Promise<ControlPlane> {
  const plane = await startControlPlane(options);
  try {
    await applyCrds(plane.connection, options.crds);
    return plane;
  } catch (err) {
    await plane.stop();
    throw err;
  }
}

/** A namespace that belongs to one test; disposing asks for its deletion and does not wait. */
export interface TestNamespace extends AsyncDisposable {
  readonly name: string;
}

/** Creates a namespace with a unique name, in which pods can be created (its service account is there). */
export async function namespace(connection: Connection = connect()): Promise<TestNamespace> {
  const name = `t-${randomBytes(5).toString('hex')}`;
  const api = connection.api();
  await expectStatus(api, 201, 'POST', '/api/v1/namespaces', { metadata: { name } });
  const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
  await eventually(() => expectStatus(api, 200, 'GET', account), { describe: `service account in ${name}` });
  return {
    name,
    async [Symbol.asyncDispose]() {
      await expectStatus(api, 200, 'DELETE', `/api/v1/namespaces/${name}`);
      await letGo(api, name);
      await api.close();
    },
  };
}

/** Kinds whose objects a manager holds by finalizers: with their collections, where `*` is a namespace. */
const HELD: readonly string[] = [
  ...['machines', 'machinesets', 'machinedeployments', 'machineclasses'].map(
    (plural) => `/apis/machine.sapcloud.io/v1alpha1/namespaces/*/${plural}`,
  ),
  '/api/v1/namespaces/*/secrets',
];

/**
 * Takes away the finalizers of a test's manager, which is gone: else kube-controller-manager empties the namespace every few seconds anew, by
 * some seventy requests, until the run ends.
 */
async function letGo(api: Api, namespaceName: string): Promise<void> {
  for (const held of HELD) {
    const collection = held.replace('*', namespaceName);
    const { body } = await api.request(collection);
    const { items = [] } = body as { items?: readonly { metadata: ObjectMeta }[] }; // none where the kind is not there
    for (const { metadata } of items) {
      if (metadata.finalizers === undefined) continue;
      await api.request(`${collection}/${metadata.name}`, {
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { metadata: { finalizers: null } },
      });
    }
  }
}

async function expectStatus(
  api: Api,
  expected: number,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: unknown,
): Promise<void> {
  const answer = await api.request(path, { method, ...(body === undefined ? {} : { body }) });
  if (answer.status === expected) return;
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}
