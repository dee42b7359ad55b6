import type { Clock } from '../base/clock/clock.ts';
import type { Logger } from '../base/log/logger.ts';
import type { HeldWork } from '../health/held-work.ts';
import { ApiError } from '../kube/client/errors.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import type { OtherManager, OtherManagers } from './cells/other-managers.ts';
import type { Member } from './process/lifecycle.ts';

export interface AloneInNamespaceOptions {
  readonly others: Pick<OtherManagers, 'look'>;
  /** That of the Machines, in which this process has no Leases. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly held: HeldWork;
  /** Ends the process. */
  readonly lost: (reason: string) => void;
}

/** When to look again if nobody has answered. */
const RETRY_MS = 5_000;

/**
 * Keeps a process whose Leases are in another namespace than its Machines from working beside a manager that leads in theirs, the original or ours:
 * they would undo each other's work. It waits before it applies for its Leases, and ends when it sees one later; started again, it waits. See
 * OtherManagers for what is seen; nobody who does not answer ends it.
 */
export class AloneInNamespace implements Member {
  readonly name = 'other managers';
  readonly #options: AloneInNamespaceOptions;
  readonly #stopping = new AbortController();
  #following: Promise<void> | undefined;

  constructor(options: AloneInNamespaceOptions) {
    this.#options = options;
  }

  async start(signal: AbortSignal): Promise<void> {
    const afterMs = await this.#untilAlone(AbortSignal.any([signal, this.#stopping.signal]));
    this.#following = this.#follow(afterMs);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the process is stopping'));
    await this.#following;
  }

  /** Resolves with the time until the next look. Rejects with the signal's reason. */
  async #untilAlone(signal: AbortSignal): Promise<number> {
    const { clock, log, held, namespace } = this.#options;
    const hold = held.hold({ work: 'process', waitsFor: 'others', of: CONTROL });
    let told = '';
    for (;;) {
      const other = await this.#look(signal);
      if (other?.kind === 'none') {
        hold.release();
        return other.againMs;
      }
      if (other !== undefined) {
        hold.failed(new Error(other.text));
        if (other.text !== told)
          log.warn(
            { namespace, err: other.text },
            'waits until no other manager leads in the namespace of the Machines',
          );
        told = other.text;
      }
      await clock.sleep(other?.againMs ?? RETRY_MS, signal);
    }
  }

  /** Never rejects. */
  async #follow(afterMs: number): Promise<void> {
    const { clock, namespace, lost } = this.#options;
    const { signal } = this.#stopping;
    try {
      for (let pauseMs = afterMs; ;) {
        await clock.sleep(pauseMs, signal);
        const other = await this.#look(signal);
        if (other?.kind === 'runs') return lost(`another manager is running in namespace ${namespace}: ${other.text}`);
        pauseMs = other?.againMs ?? RETRY_MS;
      }
    } catch (err) {
      if (!signal.aborted) lost(`looking for other managers: ${String(err)}`);
    }
  }

  /** Undefined: nobody has answered. */
  async #look(signal: AbortSignal): Promise<OtherManager | undefined> {
    const { others, namespace, log } = this.#options;
    try {
      return await others.look(namespace, signal);
    } catch (err) {
      signal.throwIfAborted();
      if (!(err instanceof ApiError)) throw err;
      log.debug({ namespace, err }, 'could not look for other managers');
      return undefined;
    }
  }
}
