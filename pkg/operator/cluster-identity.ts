import type { Clock } from '../clock/clock.ts';
import { CONTROL } from '../gate/gate.ts';
import type { HeldWork } from '../health/held-work.ts';
import { isRefusal } from '../kube/errors.ts';
import { namespaces } from '../kube/resource.ts';
import type { Reader } from '../kube/client.ts';
import type { Logger } from '../log/logger.ts';
import { CannotStartError, type Member } from '../process/lifecycle.ts';
import { retryUnlessRefused } from './retry-until-done.ts';

/** What the identity is read with. */
export interface ClusterIdentityOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly held: HeldWork;
  /** Of the control cluster. */
  readonly reader: Reader;
}

/**
 * The identity of the control cluster, under which drivers tag VMs: the UID of Namespace `kube-system`. It is read once, before
 * the process applies for a Lease: one that may not read it must never lead.
 */
export class ClusterIdentity implements Member {
  readonly name = 'identity of the cluster';
  readonly #options: ClusterIdentityOptions;
  #uid: string | undefined;

  constructor(options: ClusterIdentityOptions) {
    this.#options = options;
  }

  /** Throws before it was read. */
  get uid(): string {
    if (this.#uid === undefined) throw new Error('calling a driver before the identity of the cluster is known');
    return this.#uid;
  }

  /** Waits for a server that cannot be asked. Throws CannotStartError when it lastingly refuses. */
  async start(signal: AbortSignal): Promise<void> {
    const { held, reader } = this.#options;
    const hold = held.hold({ work: 'process', waitsFor: 'identity', of: CONTROL });
    try {
      const { metadata } = await retryUnlessRefused(
        { ...this.#options, hold },
        'reading the identity of the cluster',
        (s) => reader.get(namespaces, { name: 'kube-system' }, { signal: s }),
        signal,
      );
      this.#uid = metadata.uid;
    } catch (err) {
      if (!isRefusal(err)) throw err;
      throw new CannotStartError(
        `the control cluster does not let us read Namespace kube-system, whose UID tells its VMs from those of other clusters: ` +
          `apply deploy/rbac/control-identity.yaml (${err.message})`,
        { cause: err },
      );
    }
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }
}
