import { expect } from '@jest/globals';

import type { Connection } from '../../hack/control-plane/connection.ts';
import { choiceOf, isInSample } from '../../hack/test/sample.ts';
import { SimulatedControlPlane, type SimulatedOptions } from '../simulation/served/simulated-control-plane.ts';
import { CRD_FOLDERS, type CrdSet } from './crds.ts';
import { connect, privateControlPlane } from './environment.ts';

/** Of the tests that may run on either, one in so many runs on kube-apiserver. */
const ONE_IN = 8;

/** An API server for a while. */
export interface TestServer extends AsyncDisposable {
  readonly connection: Connection;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A simulated API server for a test that is about what controllers do; it is compared with kube-apiserver by
 * test/integration/simulated-api-server.test.ts. Undefined: the test belongs to the sample that needs a real one. The commit decides that by
 * the name of the test, or by the file outside tests; with `--all-rows`, all tests do.
 */
export async function simulatedServer(
  crds: CrdSet = 'own',
  options: SimulatedOptions = {},
): Promise<SimulatedControlPlane | undefined> {
  const { currentTestName, testPath = '' } = expect.getState();
  const name = currentTestName ?? testPath.replace(/^.*\/test\//, 'test/');
  if (!isInSample(name, ONE_IN, choiceOf(process.env))) {
    return await SimulatedControlPlane.start(connect(), CRD_FOLDERS[crds], options);
  }
  process.stdout.write(`on kube-apiserver: ${name}\n`);
  return undefined;
}

/** The one that is given, or else a simulated one where the test may have that, or else the shared control plane. */
export async function apiServer(given?: Connection): Promise<TestServer> {
  return given === undefined ? ((await simulatedServer()) ?? lasting(connect())) : lasting(given);
}

/** The same for a test that needs one for itself: a simulated one, or a private control plane. */
export async function privateApiServer({ endsNamespaces, ...options }: PrivateOptions = {}): Promise<TestServer> {
  return (await simulatedServer(options.crds, { endsNamespaces })) ?? (await privateControlPlane(options));
}

/** Options of a private control plane, and of a simulated one, where a real one needs a controller manager for the same. */
export type PrivateOptions = NonNullable<Parameters<typeof privateControlPlane>[0]> & SimulatedOptions;

/** One that others end. */
function lasting(connection: Connection): TestServer {
  return { connection, [Symbol.asyncDispose]: () => Promise.resolve() };
}
