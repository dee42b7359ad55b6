import { RuntimeError } from '../../runtime/error.ts';
import type { PoolRuntime } from '../../runtime/gated-runtime.ts';
import type { RuntimeChange } from '../../runtime/runtime.ts';

/** What the runtime says when it is so already. */
const DONE: Partial<Record<RuntimeChange['kind'], 'NotFound' | 'AlreadyExists'>> = {
  detachVolume: 'NotFound',
  detachNetworkInterface: 'NotFound',
  attachVolume: 'AlreadyExists',
  attachNetworkInterface: 'AlreadyExists',
};

/** Does at the runtime what was decided for machine `id` of the Machine with key `of`. What is so already is done. */
export async function carryOut(
  runtime: Pick<PoolRuntime, 'change'>,
  of: string,
  id: string,
  change: RuntimeChange,
  signal: AbortSignal,
): Promise<void> {
  await runtime.change(of, id, change, signal).catch(ignoring(DONE[change.kind]));
}

/**
 * Tells a machine to go. False: the runtime says that it has none, which it also does if it was started without its state since it has shown
 * it, so that this is no more than that it does not show it.
 */
export async function deleteRuntimeMachine(
  runtime: Pick<PoolRuntime, 'delete'>,
  of: string,
  id: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await runtime.delete(of, id, signal);
    return true;
  } catch (err) {
    ignoring('NotFound')(err);
    return false;
  }
}

function ignoring(code: 'NotFound' | 'AlreadyExists' | undefined): (err: unknown) => void {
  return (err) => {
    if (code === undefined || !RuntimeError.hasCode(err, code)) throw err;
  };
}
