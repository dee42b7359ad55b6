import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineContext } from '../context.ts';
import { creationTimeoutMsOf } from '../settings.ts';
import { isBeingCreated, phaseOf } from '../status.ts';
import { legacyTokenID } from '../token-id.ts';
import { fillUserData, wantsToken } from '../user-data.ts';

/** Key of the user data in the class's Secret. */
export const USER_DATA = 'userData';

type Data = Readonly<Record<string, Uint8Array>>;

/**
 * The Secret data with which a VM starts: its user data knows the machine's name and, where it has a place for it, a bootstrap
 * token. `made`: whether the VM is about to be made, or was started before (then with a token that is kept). Without target
 * cluster there are no tokens.
 */
export async function startingData(
  { machine, tokens, settings }: Pick<MachineContext, 'machine' | 'tokens' | 'settings'>,
  secretData: Data,
  made: 'now' | 'before',
  signal: AbortSignal,
): Promise<Data> {
  const userData = secretData[USER_DATA];
  if (userData === undefined) return secretData;
  const values: { machineName: string; token?: string } = { machineName: machine.metadata.name };
  if (tokens !== undefined && wantsToken(userData)) {
    const lifetimeMs = creationTimeoutMsOf(machine, settings);
    values.token = await tokens[made === 'now' ? 'ensure' : 'find'](machine, lifetimeMs, signal);
  }
  return { ...secretData, [USER_DATA]: fillUserData(userData, values) };
}

/** Deletes the machine's bootstrap tokens: it has joined, or never will. */
export async function removeTokens({ machine, machines, tokens, signal }: MachineContext): Promise<void> {
  const isShared = (id: string): boolean => machines.list().some((other) => needsLegacyToken(other, machine, id));
  await tokens?.remove(machine, isShared, signal);
}

/** Whether another machine that has not joined yet may have been started with the original's token of that id. */
function needsLegacyToken(other: Machine, machine: Machine, id: string): boolean {
  if (other.metadata.uid === machine.metadata.uid || legacyTokenID(other.metadata.name) !== id) return false;
  return isBeingCreated(other) || phaseOf(other) === 'Pending';
}
