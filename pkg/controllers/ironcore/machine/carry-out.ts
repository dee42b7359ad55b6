import { RuntimeError } from '../../../ironcore-runtime/error.ts';
import type { PoolRuntime } from '../../../ironcore-runtime/gated-runtime.ts';
import type { Change } from './decision.ts';

/** Does at the runtime what was decided for machine `id` of the Machine with key `of`. What is so already is done. */
export async function carryOut(
  runtime: PoolRuntime,
  of: string,
  id: string,
  change: Change,
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

/** Tells it to go, unless it is gone. */
export async function removeMachine(runtime: PoolRuntime, of: string, id: string, signal: AbortSignal): Promise<void> {
  await runtime.delete(of, id, signal).catch(ignoring('NotFound'));
}

function ignoring(...codes: ('NotFound' | 'AlreadyExists')[]): (err: unknown) => void {
  return (err) => {
    if (!RuntimeError.hasCode(err, ...codes)) throw err;
  };
}
