import { isBeingDeleted } from '../../../apis/meta.ts';
import type { MachineContext } from '../context.ts';
import type { MachineAccess } from '../machine-access.ts';

/**
 * Whether the very Machine that this pass looks at still exists and is still being deleted, by a live read. Asked before what
 * cannot be undone and is done by name: a Machine that was re-created under the same name has a life of its own. Throws ApiError.
 */
export async function isStillOurs(
  { readMachine }: Pick<MachineAccess, 'readMachine'>,
  { observed }: Pick<MachineContext, 'observed'>,
  signal: AbortSignal,
): Promise<boolean> {
  const live = await readMachine(observed, signal);
  return live?.metadata.uid === observed.metadata.uid && isBeingDeleted(live);
}
