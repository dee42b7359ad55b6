import { randomBytes } from 'node:crypto';

import type { Connection } from '../../hack/control-plane/connection.ts';
import {
  startControlPlane,
  type ControlPlane,
  type ControlPlaneOptions,
} from '../../hack/control-plane/control-plane.ts';
import { shared, SHARED_VARIABLE } from '../../hack/control-plane/shared.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { eventually } from '../expect/eventually.ts';
import { applyCrds, type CrdSet } from './crds.ts';
import { erase } from './erase.ts';

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

/** A namespace that belongs to one test; disposing removes it with all that is in it, whatever finalizers hold that. */
export interface TestNamespace extends AsyncDisposable {
  readonly name: string;
}

/** Creates a namespace with a unique name, in which pods can be created (its service account is there). */
export async function namespace(connection: Connection = connect()): Promise<TestNamespace> {
  const name = `t-${randomBytes(5).toString('hex')}`;
  const api = connection.api();
  const { metadata } = await api.send<KubeObject>('POST', '/api/v1/namespaces', { metadata: { name } });
  const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
  await eventually(() => api.send('GET', account), { describe: `service account in ${name}` });
  return {
    name,
    async [Symbol.asyncDispose]() {
      await api.send('DELETE', `/api/v1/namespaces/${name}`);
      await erase(connection, { name, createdAt: metadata.resourceVersion });
      await api.close();
    },
  };
}
