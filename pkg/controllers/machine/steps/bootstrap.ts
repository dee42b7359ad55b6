import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { ApiError } from '../../../kube/errors.ts';
import type { MachineContext } from '../context.ts';
import { creationTimeoutMsOf } from '../../machines/settings.ts';
import { isBeingCreated } from '../../machines/status.ts';
import { legacyTokenID } from '../token-id.ts';
import { fillUserData, wantsToken } from '../user-data.ts';

/** Pause before a token that could not be deleted is tried again. */
const RETRY_MS = 5_000;
/** The same for one that we may not delete: an API server that is just starting refuses what it grants a second later. */
const REFUSED_RETRY_MS = 60_000;

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

/**
 * Deletes the machine's bootstrap tokens: it has joined, or never will. Never fails: what could not be deleted is remembered,
 * for steps to try again when its time has come, and no longer than such a token lives.
 */
export async function removeTokens(ctx: MachineContext): Promise<void> {
  const { machine, machines, tokens, memory, clock, signal, log } = ctx;
  const { uid } = machine.metadata;
  const isShared = (id: string): boolean => machines.list().some((other) => needsLegacyToken(other, machine, id));
  try {
    await tokens?.remove(machine, isShared, signal);
    memory.leftTokens.delete(uid);
  } catch (err) {
    const pauseMs = ApiError.is(err, 'Forbidden', 'Unauthorized') ? REFUSED_RETRY_MS : RETRY_MS;
    if (mayHaveToken(ctx)) memory.leftTokens.set(uid, clock.monotonicMs() + pauseMs);
    else memory.leftTokens.delete(uid);
    log.warn({ err }, 'could not delete the bootstrap token of a machine');
  }
}

/** Whether a token of the machine can still be alive: those of machines older than the longest life of one have expired. */
export function mayHaveToken({ machine, settings, clock }: MachineContext): boolean {
  const ageMs = clock.now() - (fromTimestamp(machine.metadata.creationTimestamp) ?? 0);
  return ageMs <= 2 * creationTimeoutMsOf(machine, settings);
}

/** Tries again to delete tokens that are left, if it is time. Milliseconds until the next try; undefined: none are left. */
export async function removeLeftTokens(ctx: MachineContext): Promise<number | undefined> {
  const { machine, memory, clock } = ctx;
  const leftMs = (): number | undefined => {
    const atMs = memory.leftTokens.get(machine.metadata.uid);
    return atMs === undefined ? undefined : Math.max(0, atMs - clock.monotonicMs());
  };
  if (leftMs() === 0) await removeTokens(ctx);
  return leftMs();
}

/** Whether another machine that has not joined yet may have been started with the original's token of that id. */
function needsLegacyToken(other: Machine, machine: Machine, id: string): boolean {
  if (other.metadata.uid === machine.metadata.uid || legacyTokenID(other.metadata.name) !== id) return false;
  return isBeingCreated(other) || phaseOf(other) === 'Pending';
}
