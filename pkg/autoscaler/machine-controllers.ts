import { ServerError, Status } from './rpc-error.ts';

import type { Clock } from '../base/clock/clock.ts';
import type { Reader } from '../kube/client/client.ts';
import { isNotFound } from '../kube/client/errors.ts';
import { leases } from '../kube/client/resource.ts';
import { nothingSeen, observe, type Observation } from '../kube/leader/lease.ts';
import { MACHINE_LEASE } from '../kube/leader/names.ts';

export interface MachineControllersOptions {
  /** Live reads of the control cluster. */
  readonly reader: Reader;
  /** Where their Lease is. */
  readonly namespace: string;
  readonly clock: Clock;
}

/**
 * Whether anybody makes Machines into VMs, in whatever process: judged by the renewals of their Lease, as they are seen from here, since
 * the holder's clock may be wrong. Where there is no Lease they run without leader election, and nothing can be said.
 */
export class MachineControllers {
  readonly #options: MachineControllersOptions;
  #seen: Observation = nothingSeen;

  constructor(options: MachineControllersOptions) {
    this.#options = options;
  }

  /** Looks at the Lease. Throws a ServerError when nobody holds it, or its holder renews it no more. */
  async check(signal: AbortSignal): Promise<void> {
    const { reader, namespace, clock } = this.#options;
    const ref = { namespace, name: MACHINE_LEASE };
    try {
      this.#seen = observe(this.#seen, await reader.get(leases, ref, { signal }), clock.monotonicMs());
    } catch (err) {
      if (!isNotFound(err)) throw err;
      this.#seen = nothingSeen;
      return;
    }
    if (clock.monotonicMs() < this.#seen.heldUntilMs) return;
    throw new ServerError(
      Status.UNAVAILABLE,
      `Lease ${namespace}/${MACHINE_LEASE} has no holder, so no machine is created or deleted: start the machine controllers, ` +
        'or, if they run without leader election, delete that Lease',
    );
  }
}
