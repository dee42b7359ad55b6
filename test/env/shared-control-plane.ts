import { startControlPlane, type ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { onEnd } from '../../hack/control-plane/on-end.ts';
import { share, shared, unshare } from '../../hack/control-plane/shared.ts';
import { applyCrds } from './crds.ts';

let own: ControlPlane | undefined;
/** Ctrl-C during a test run: no teardown is called then. */
let listening: Disposable | undefined;

/** Starts the control plane of a test run, or takes the one that MACHINIST_CONTROL_PLANE names, and applies the CRDs. */
export async function startShared(): Promise<void> {
  const given = shared();
  if (given !== undefined) return applyCrds(given);
  own = await startControlPlane({
    programs: ['kubemark', 'kubectl'],
    log: (line) => process.stderr.write(`${line}\n`),
  });
  listening = onEnd(() => own?.run.endNow());
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
  listening?.[Symbol.dispose]();
  await own?.stop();
  own = undefined;
  unshare();
}
