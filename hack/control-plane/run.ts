import { join } from 'node:path';

import { number, readOptions } from '../options.ts';
import { applyManifests, readManifests } from './apply.ts';
import { startControlPlane } from './control-plane.ts';
import { ControlPlaneError } from './error.ts';
import { SHARED_VARIABLE } from './shared.ts';

const say = (line: string): void => console.error(`control plane: ${line}`);

/**
 * Command: runs a control plane with Machinist's CRDs until Ctrl-C. Standard output has two lines for another shell: KUBECONFIG
 * for kubectl, and the variable with which the tests use this control plane instead of one of their own.
 */
async function main(): Promise<number> {
  const { apiserverPort: apiserver } = readOptions('Runs a control plane with the CRDs until Ctrl-C.', {
    apiserverPort: number('port of the API server; a free one otherwise'),
  });
  const stop = new AbortController();
  const stopped = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`ended by ${name}`)));
  const keepAlive = setInterval(() => undefined, 60_000);
  try {
    await using plane = await startControlPlane({
      log: say,
      signal: stop.signal,
      programs: ['kubectl', 'kubemark'],
      ...(apiserver === undefined ? {} : { ports: { apiserver } }),
    });
    const api = plane.connection.api();
    await applyManifests(api, readManifests(join(import.meta.dirname, '../../crds')));
    await api.close();
    console.log(`export KUBECONFIG=${plane.kubeconfig}\nexport ${SHARED_VARIABLE}=${plane.directory}`);
    say(`${plane.url} is ready; Ctrl-C ends it`);
    await stopped;
    return 0;
  } catch (err) {
    if (!(err instanceof ControlPlaneError) && !stop.signal.aborted) throw err;
    say((err as Error).message);
    return 1;
  } finally {
    clearInterval(keepAlive);
  }
}

process.exitCode = await main();
