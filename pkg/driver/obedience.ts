import { DriverError } from './error.ts';

/** What can be done about a driver that refuses our fencing token, and who is told. */
export interface ObedienceDeps {
  /** Raises our token above another one if the Lease is ours; resolves with why it could not be done. See LeaseElector. */
  readonly raiseAbove: (token: bigint) => Promise<string | undefined>;
  /** What names the present leadership, and no other one of ours; undefined while we do not lead. */
  readonly leadership: () => string | undefined;
  /** Told what keeps a driver from obeying; undefined: it obeys. */
  readonly reported: (why: string | undefined) => void;
}

/**
 * Whether one driver obeys this leadership. One that refuses our fencing token has seen a higher one:
 *
 * | before, under this leadership | what the refusal means                                              | what is done        |
 * |-------------------------------|---------------------------------------------------------------------|---------------------|
 * | it has not obeyed             | we were replaced, or our Lease was set back (restored, or deleted)  | the token is raised |
 * |                               |                                                                     | if the Lease is ours |
 * | it has obeyed                 | somebody who does not hold our Lease acts for the same cluster: two | it is told          |
 * |                               | control clusters, of which one is a copy                            |                     |
 *
 * A token that is raised is above all that the driver has seen, so anyone who led before stays refused. In the second row nothing
 * is raised: two managers would outbid each other, and both act.
 */
export class Obedience {
  readonly #deps: ObedienceDeps;
  /** The last leadership under which it did. */
  #obeyed: string | undefined;

  constructor(deps: ObedienceDeps) {
    this.#deps = deps;
  }

  obeyed(): void {
    this.#obeyed = this.#deps.leadership() ?? this.#obeyed;
    this.#deps.reported(undefined);
  }

  /** Resolves when the refused call may be repeated, under a token above `highest`; else rejects with the refusal and what helps. */
  async restore(refusal: DriverError, highest: bigint): Promise<void> {
    const hasObeyed = this.#obeyed !== undefined && this.#obeyed === this.#deps.leadership();
    const why = hasObeyed ? RIVAL : await this.#raiseAbove(highest);
    if (why === undefined) return;
    this.#deps.reported(`it has seen token ${highest}; ${why}`);
    throw new DriverError(refusal.code, `${refusal.detail}; ${why}`, { highestToken: highest, cause: refusal });
  }

  async #raiseAbove(highest: bigint): Promise<string | undefined> {
    const why = await this.#deps.raiseAbove(highest);
    return why === undefined ? undefined : `leaseTransitions could not be raised above it: ${why}`;
  }
}

const RIVAL =
  'it accepted this process before, so another manager acts for the same cluster without its Lease: stop the other manager ' +
  '(of a copy of the control cluster?), then restart this one';
