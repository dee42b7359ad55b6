import { startControlPlane, type ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { share, shared, unshare } from '../../hack/control-plane/shared.ts';
import { applyCrds } from './crds.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

let own: ControlPlane | undefined;

/** Starts the control plane of a test run, or takes the one that MACHINIST_CONTROL_PLANE names, and applies the CRDs. */
export async function startShared(): Promise<void> {
  const given = shared();
  if (given !== undefined) return applyCrds(given);
  own = await startControlPlane({
    programs: ['kubemark', 'kubectl'],
    log: (line) => process.stderr.write(`${line}\n`),
  });
  for (const signal of SIGNALS) process.prependOnceListener(signal, endNow);
  try {
    await applyCrds(own.connection);
  } catch (err) {
    await stopShared();
    throw err;
  }
  share(own.directory);
}

/** Ends what startShared has started. */
export async function stopShared(): Promise<void> {
  for (const signal of SIGNALS) process.off(signal, endNow);
  await own?.stop();
  own = undefined;
  unshare();
}

/** Ctrl-C during a test run: no teardown is called then. The signal goes its way afterwards. */
function endNow(signal: NodeJS.Signals): void {
  own?.run.endNow();
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
}
