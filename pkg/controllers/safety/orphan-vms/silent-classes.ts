import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { accountOfList, isTooMany } from './blind-accounts.ts';
import type { Collaborators } from './collaborators.ts';
import { manyMissingVMs } from './events.ts';
import type { Evidence, Snapshot } from './evidence.ts';
import type { ClassAccess } from './survey.ts';
import type { VanishedVMs } from './vanished-vms.ts';

interface Deps extends Pick<Collaborators, 'recorder' | 'clock' | 'periodMs'> {
  readonly vanished: Pick<VanishedVMs, 'ask' | 'withoutNode'>;
  /** Shared with `vanished`. */
  readonly missingVMs: Pick<Evidence, 'has'>;
}

/** So many Machines are asked for at once. */
const AT_ONCE = 10;
/** Before any time: of suspects, and of those that were never asked for. */
const FIRST = -Number.MAX_SAFE_INTEGER;
const NEVER = FIRST / 2;
/** Once a look has asked for so long it asks for no more: VMs without a Machine wait for the next one. */
const MOST_MS = 60_000;

/**
 * Machines of which nothing but GetMachineStatus tells that their VM is gone: their driver cannot list VMs, and without a target cluster
 * they have no Node. Each is asked for once in a period; again, a grace later, when the provider does not know its VM. While more than 3 and 10 % of an account are missing at once none of them fails. Those
 * that a look has no time for come first in the next one that is due, by when they were asked for.
 */
export class SilentClasses {
  readonly #deps: Deps;
  /** When each was asked for, by UID. */
  readonly #askedMs = new Map<string, number>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Asks for those that are due. Returns who is under suspicion. */
  async examine(classes: readonly ClassAccess[], sight: Snapshot, signal: AbortSignal): Promise<readonly string[]> {
    const { vanished, clock } = this.#deps;
    const untilMs = clock.monotonicMs() + MOST_MS;
    const due = [...this.#dueOf(classes, sight.atMs)];
    const doubted = this.#doubted(classes);
    const suspects: string[] = [];
    while (due.length > 0 && clock.monotonicMs() < untilMs) {
      const asked = due.splice(0, AT_ONCE);
      for (const { machine } of asked) this.#askedMs.set(machine.metadata.uid, sight.atMs);
      const answers = asked.map(({ access, machine }) =>
        vanished.ask(access, machine, sight, signal, { isDoubted: doubted.has(accountOfList(access)) }),
      );
      suspects.push(...(await Promise.all(answers)).filter((uid) => uid !== undefined));
    }
    return suspects;
  }

  /** Accounts of which so many VMs were missing that the provider may be blind: nothing else could tell. Reported at each look. */
  #doubted(classes: readonly ClassAccess[]): ReadonlySet<string> {
    const { vanished, missingVMs, recorder } = this.#deps;
    const doubted = new Set<string>();
    for (const [account, ofAccount] of Map.groupBy(classes, accountOfList)) {
      const missing = ofAccount.map(({ key, machineClass }) => {
        const all = vanished.withoutNode(key);
        const machines = all.filter(({ metadata }) => missingVMs.has(metadata.uid));
        return { machineClass, machines, expected: all.length };
      });
      if (!isTooMany(missing)) continue;
      doubted.add(account);
      for (const { machineClass, machines } of missing)
        if (machines.length > 0) recorder.event(manyMissingVMs(machineClass));
    }
    return doubted;
  }

  /** Suspects first, then those that were never asked for, then by the time when they were. */
  #dueOf(classes: readonly ClassAccess[], nowMs: number): readonly Asked[] {
    const { vanished, missingVMs, periodMs } = this.#deps;
    const all = classes.flatMap((access) => vanished.withoutNode(access.key).map((machine) => ({ access, machine })));
    const living = new Set(all.map(({ machine }) => machine.metadata.uid));
    for (const uid of this.#askedMs.keys()) if (!living.has(uid)) this.#askedMs.delete(uid);
    return all
      .map((one) => {
        const { uid } = one.machine.metadata;
        return { ...one, askedMs: missingVMs.has(uid) ? FIRST : (this.#askedMs.get(uid) ?? NEVER) };
      })
      .filter(({ askedMs }) => nowMs - askedMs >= periodMs)
      .toSorted((a, b) => a.askedMs - b.askedMs);
  }
}

interface Asked {
  readonly access: ClassAccess;
  readonly machine: Machine;
}
