import type { Clock } from '../base/clock/clock.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import type { HeldWork } from '../health/held-work.ts';
import { isForbiddenOrNotServed } from '../kube/client/errors.ts';
import { DriverError } from '../driver/error.ts';
import type { Reader } from '../kube/client/client.ts';
import type { Endpoint } from '../kube/client/endpoint.ts';
import type { Logger } from '../base/log/logger.ts';
import { readClusterUID } from './cluster-uid.ts';
import { CannotStartError, type Member } from './process/lifecycle.ts';
import { retryUnlessRefused } from './retry-until-done.ts';
import type { Random } from '../base/random/random.ts';

export interface ClusterIdentityOptions {
  readonly clock: Clock;
  readonly random?: Random | undefined;
  readonly log: Logger;
  readonly held: HeldWork;
  /** Of the control cluster. */
  readonly reader: Reader;
  /** Where that is; a kubeconfig may come to name another server. */
  readonly endpoint: Pick<Endpoint, 'url'>;
  /** Told when the server is one of another cluster now, or does not say of which: the process must end. */
  readonly lost: (reason: string, err?: unknown) => void;
}

/**
 * The identity of the control cluster, under which drivers tag VMs: the UID of Namespace `kube-system`. It is read before the process
 * applies for a Lease: one that may not read it must never lead. It is read again when the server is another one. A process that went on with
 * another cluster would take all VMs of the former one for nobody's, and tag new ones as if they were of that.
 */
export class ClusterIdentity implements Member {
  readonly name = 'identity of the cluster';
  readonly #options: ClusterIdentityOptions;
  #uid: string | undefined;
  /** The server that the identity was read from. */
  #url: string | undefined;
  readonly #ending = new AbortController();
  #checking: Promise<void> | undefined;

  constructor(options: ClusterIdentityOptions) {
    this.#options = options;
  }

  /** Throws before it was read; throws DriverError while it is read again. */
  get uid(): string {
    if (this.#uid === undefined) throw new Error('calling a driver before the identity of the cluster is known');
    if (this.#options.endpoint.url === this.#url) return this.#uid;
    this.check();
    throw new DriverError(
      'Unavailable',
      'the control cluster has another server, and it is not yet confirmed that it is the same cluster',
    );
  }

  /** Waits for a server that cannot be asked. Throws CannotStartError when it lastingly refuses. */
  async start(signal: AbortSignal): Promise<void> {
    [this.#uid, this.#url] = await this.#read(signal);
  }

  /** Finds out whether the server is still one of the same cluster, if it is another server by now. */
  check(): void {
    if (this.#uid === undefined || this.#options.endpoint.url === this.#url) return;
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
  }

  async stop(): Promise<void> {
    this.#ending.abort(new Error('the process is stopping'));
    await this.#checking;
  }

  /** Never rejects. */
  async #check(): Promise<void> {
    const { lost } = this.#options;
    const { signal } = this.#ending;
    try {
      const [uid, url] = await this.#read(signal);
      if (uid === this.#uid) this.#url = url;
      else lost('the kubeconfig of the control cluster refers to another cluster now');
    } catch (err) {
      if (!signal.aborted) lost('reading the identity of the cluster again', err);
    }
  }

  /** The identity, and the server that has told it. */
  async #read(signal: AbortSignal): Promise<readonly [uid: string, url: string]> {
    const { held, reader, endpoint } = this.#options;
    const hold = held.hold({ work: 'process', waitsFor: 'identity', of: CONTROL });
    try {
      for (;;) {
        const { url } = endpoint;
        const uid = await retryUnlessRefused(
          { ...this.#options, hold },
          'reading the identity of the cluster',
          (s) => readClusterUID(reader, s),
          signal,
        );
        // Else nobody knows which of the two has answered.
        if (endpoint.url === url) return [uid, url];
      }
    } catch (err) {
      if (!isForbiddenOrNotServed(err)) throw err;
      throw new CannotStartError(
        'missing permissions in the control cluster: get Namespace kube-system, whose UID distinguishes VMs of this cluster from those of others: ' +
          `apply deploy/rbac/control-identity.yaml (${err.message})`,
        { cause: err },
      );
    } finally {
      hold.release();
    }
  }
}
