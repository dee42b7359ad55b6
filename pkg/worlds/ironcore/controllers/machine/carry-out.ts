import { RuntimeError } from '../../runtime/error.ts';
import type { PoolRuntime } from '../../runtime/gated-runtime.ts';
import type { RuntimeChange } from './decision.ts';

/** Does at the runtime what was decided for machine `id` of the Machine with key `of`. What is so already is done. */
export async function carryOut(
  runtime: PoolRuntime,
  of: string,
  id: string,
  change: RuntimeChange,
  signal: AbortSignal,
): Promise<void> {
  switch (change.kind) {
    case 'detachVolume':
      return await runtime.detachVolume(of, id, change.name, signal).catch(ignoring('NotFound'));
    case 'detachNetworkInterface':
      return await runtime.detachNetworkInterface(of, id, change.name, signal).catch(ignoring('NotFound'));
    case 'attachVolume':
      return await runtime.attachVolume(of, id, change.volume, signal).catch(ignoring('AlreadyExists'));
    case 'updateVolume':
      return await runtime.updateVolume(of, id, change.volume, signal);
    case 'attachNetworkInterface':
      return await runtime
        .attachNetworkInterface(of, id, change.networkInterface, signal)
        .catch(ignoring('AlreadyExists'));
    case 'power':
      return await runtime.setPower(of, id, change.power, signal);
    case 'annotate':
      return await runtime.annotate(of, id, change.annotations, signal);
  }
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

function ignoring(...codes: ('NotFound' | 'AlreadyExists')[]): (err: unknown) => void {
  return (err) => {
    if (!RuntimeError.hasCode(err, ...codes)) throw err;
  };
}
