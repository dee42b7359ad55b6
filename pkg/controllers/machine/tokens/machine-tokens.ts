import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { creationTimeoutMsOf } from '../../machine-facts/settings.ts';
import { isBeingCreated } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { legacyTokenID } from './token-id.ts';
import { fillUserData, requiresToken } from './user-data.ts';
import { next } from '../../../work/reconcile/result.ts';

/** Pause before a token that could not be deleted is tried again. */
const RETRY_MS = 5_000;
/** The same for one that we may not delete: an API server that is just starting refuses what it grants a second later. */
const REFUSED_RETRY_MS = 60_000;

/** Key of the user data in the class's Secret. */
export const USER_DATA = 'userData';

type Data = Readonly<Record<string, Uint8Array>>;

export type MachineTokensDeps = Pick<Collaborators, 'clock' | 'settings' | 'machines' | 'bootstrapTokens'>;

/** The bootstrap token in the life of a machine: in its user data, until it has joined. Remembers which could not be deleted. */
export class MachineTokens {
  readonly #deps: MachineTokensDeps;
  /** Tokens that could not be deleted: when to try again (monotonic), by the UID of their Machine. */
  readonly #left = new Map<string, number>();

  constructor(deps: MachineTokensDeps) {
    this.#deps = deps;
  }

  /**
   * The Secret data with which a VM starts: its user data knows the machine's name and, where it has a place for it, a bootstrap
   * token. `made`: whether the VM is about to be made, or was started before (then with a token that is kept). Without target
   * cluster there are no tokens.
   */
  async startingData(
    { machine, nodes }: Pick<MachineContext, 'machine' | 'nodes'>,
    secretData: Data,
    made: 'now' | 'before',
    signal: AbortSignal,
  ): Promise<Data> {
    const userData = secretData[USER_DATA];
    const tokens = nodes && this.#deps.bootstrapTokens.of(nodes.target);
    const isWanted = userData !== undefined && requiresToken(userData);
    if (!isWanted && made === 'now') tokens?.forgo(machine);
    if (userData === undefined) return secretData;
    const values: { machineName: string; token?: string } = { machineName: machine.metadata.name };
    if (isWanted && tokens !== undefined) {
      const lifetimeMs = creationTimeoutMsOf(machine, this.#deps.settings);
      values.token = await tokens[made === 'now' ? 'ensure' : 'find'](machine, lifetimeMs, signal);
    }
    return { ...secretData, [USER_DATA]: fillUserData(userData, values) };
  }

  /**
   * Deletes the machine's bootstrap tokens: it has joined, or never will. Never fails: what could not be deleted is remembered,
   * for steps to try again when its time has come, and no longer than such a token lives.
   */
  async remove({ machine, nodes, signal, log }: MachineContext): Promise<void> {
    const { bootstrapTokens, machines, clock } = this.#deps;
    const { uid } = machine.metadata;
    const isShared = (id: string): boolean =>
      [...machines.list(), ...machines.byIndex('name', machine.metadata.name)].some((other) =>
        needsLegacyToken(other, machine, id),
      );
    try {
      if (nodes !== undefined) await bootstrapTokens.of(nodes.target).remove(machine, isShared, signal);
      this.#left.delete(uid);
    } catch (err) {
      const pauseMs = ApiError.is(err, 'Forbidden', 'Unauthorized') ? REFUSED_RETRY_MS : RETRY_MS;
      if (this.mayHave(machine)) this.#left.set(uid, clock.monotonicMs() + pauseMs);
      else this.#left.delete(uid);
      log.warn({ err }, 'could not delete the bootstrap token of a machine');
    }
  }

  /** Whether a token of the machine can still be alive: those of machines older than the longest life of one have expired. */
  mayHave(machine: Machine): boolean {
    const ageMs = this.#deps.clock.now() - (fromTimestamp(machine.metadata.creationTimestamp) ?? 0);
    return ageMs <= 2 * creationTimeoutMsOf(machine, this.#deps.settings);
  }

  /** Whether tokens of the machine could not be deleted. */
  isLeft({ metadata: { uid } }: Machine): boolean {
    return this.#left.has(uid);
  }

  /** Tries again to delete tokens that are left, if it is time. Milliseconds until the next try; undefined: none are left. */
  async removeLeft(ctx: MachineContext): Promise<number | undefined> {
    if (this.#leftMs(ctx.machine) === 0) await this.remove(ctx);
    return this.#leftMs(ctx.machine);
  }

  forget(uid: string): void {
    this.#left.delete(uid);
    this.#deps.bootstrapTokens.forget(uid);
  }

  #leftMs({ metadata: { uid } }: Machine): number | undefined {
    const atMs = this.#left.get(uid);
    return atMs === undefined ? undefined : Math.max(0, atMs - this.#deps.clock.monotonicMs());
  }
}

/** Whether another machine that has not joined yet may have been started with the original's token of that id. */
function needsLegacyToken(other: Machine, machine: Machine, id: string): boolean {
  if (other.metadata.uid === machine.metadata.uid || legacyTokenID(other.metadata.name) !== id) return false;
  return isBeingCreated(other) || phaseOf(other) === 'Pending';
}

/** A bootstrap token that could not be deleted when its machine joined is deleted later. Never ends the pass. */
export const retryTokenRevocation = ({ tokens }: { readonly tokens: MachineTokens }): MachineStep => ({
  name: 'left-token',

  async run(ctx) {
    const againMs = await tokens.removeLeft(ctx);
    if (againMs !== undefined) ctx.pass.alsoAfter(againMs, 'its bootstrap token to be deleted');
    return next;
  },
});
