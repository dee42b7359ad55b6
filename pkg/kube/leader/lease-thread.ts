import path from 'node:path';
import { Worker } from 'node:worker_threads';

import type { Clock } from '../../base/clock/clock.ts';
import type { Credentials, Endpoint } from '../client/endpoint.ts';
import type { RequestRecord } from '../client/transport.ts';
import type { LogFields, Logger } from '../../base/log/logger.ts';
import type { LeaseTiming } from './lease.ts';
import type { LeaseOrder, LeaseReport, LeaseThreadData, LoggedError } from './lease-messages.ts';
import { Pulse } from './pulse.ts';
import { ThreadedElector, type ThreadedElectorDeps } from './threaded-elector.ts';

export interface LeaseThreadOptions {
  /** Of the cluster that keeps the Leases. Its credentials are loaded in this thread. */
  readonly endpoint: Endpoint;
  readonly namespace: string;
  readonly identity: string;
  readonly userAgent: string;
  readonly timing: LeaseTiming;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of every request for a Lease. Must not throw. */
  readonly onRequest?: ((record: RequestRecord) => void) | undefined;
  /** After so long without a turn of this thread's event loop the Leases are no longer renewed; a minute unless told otherwise. */
  readonly longestStallMs?: number;
}

const LONGEST_STALL_MS = 60_000;
/** How soon the thread has those that were loaded, and knows that there are none any more. */
const CHECK_CREDENTIALS_MS = 2_000;
const FILE = path.join(import.meta.dirname, `lease-thread-main${path.extname(import.meta.filename)}`);
/** It needs a few megabytes; more would be a leak. */
const LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

/**
 * The electors of a process, in a thread of their own: the operating system gives it the CPU as it does a small process, however
 * much this thread's event loop has to do. It is started with the first `acquire`, and ended by `close`.
 */
export class LeaseThread {
  readonly #options: LeaseThreadOptions;
  readonly #electors = new Map<string, ThreadedElector>();
  #worker: Worker | undefined;
  #pulse: Pulse | undefined;
  #stopSending: () => void = () => undefined;
  /** What the thread was told last: credentials, or why there are none. */
  #sent: Credentials | string | undefined;
  #sentURL: string | undefined;
  #isClosed = false;

  constructor(options: LeaseThreadOptions) {
    this.#options = options;
  }

  /** An elector of another Lease. */
  elector(deps: ThreadedElectorDeps): ThreadedElector {
    const elector = new ThreadedElector(deps, {
      start: () => void (this.#worker ??= this.#start()),
      send: (order) => this.#send(order),
    });
    this.#electors.set(deps.name, elector);
    return elector;
  }

  /** Ends the thread; nobody must need a Lease any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pulse?.stop();
    this.#stopSending();
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const {
      clock,
      endpoint,
      namespace,
      identity,
      userAgent,
      timing,
      longestStallMs = LONGEST_STALL_MS,
    } = this.#options;
    this.#pulse = new Pulse(clock);
    const { memory: pulse } = this.#pulse;
    const workerData: LeaseThreadData = {
      url: endpoint.url,
      namespace,
      identity,
      userAgent,
      timing,
      pulse,
      longestStallMs,
    };
    const worker = new Worker(FILE, { name: 'leases', workerData, execArgv: [], resourceLimits: LIMITS });
    worker.on('message', (report: LeaseReport) => this.#onMessage(report));
    worker.on('error', (err) => this.#ended(`the Lease thread failed: ${String(err)}`));
    worker.on('exit', () => this.#ended('the Lease thread exited'));
    worker.unref();
    void this.#keepSending({ areAwaited: true });
    return worker;
  }

  #send(order: LeaseOrder): void {
    this.#worker?.postMessage(order);
  }

  #onMessage(report: LeaseReport): void {
    switch (report.kind) {
      case 'log':
        this.#options.log[report.level]({ ...report.fields, ...errorOf(report.err) }, report.message);
        break;
      case 'request':
        this.#options.onRequest?.(report.record);
        break;
      case 'credentials-refused':
        this.#options.endpoint.refused();
        void this.#keepSending({ areAwaited: true });
        break;
      default:
        this.#electors.get(report.name)?.onMessage(report);
    }
  }

  /** Never rejects. */
  async #keepSending({ areAwaited }: { areAwaited: boolean }): Promise<void> {
    this.#stopSending();
    await this.#sendCredentials(areAwaited);
    this.#stopSending();
    if (this.#isClosed) return;
    const again = (): void => void this.#keepSending({ areAwaited: false });
    this.#stopSending = this.#options.clock.schedule(CHECK_CREDENTIALS_MS, again);
  }

  /**
   * Tells what has changed, or all when it is awaited. The thread goes on with what it has only as long as this one has something: it must not
   * keep a leadership under which nothing can be sent.
   */
  async #sendCredentials(areAwaited: boolean): Promise<void> {
    const { endpoint, log } = this.#options;
    try {
      const credentials = await endpoint.credentials();
      const { url } = endpoint;
      if (!areAwaited && this.#sent === credentials && this.#sentURL === url) return;
      [this.#sent, this.#sentURL] = [credentials, url];
      this.#send({ kind: 'credentials', credentials, url });
    } catch (err) {
      const why = err instanceof Error ? err.message : String(err);
      if (!areAwaited && this.#sent === why) return;
      this.#sent = why;
      log.debug({ err }, 'could not load the credentials for the Leases');
      this.#send({ kind: 'no-credentials', why });
    }
  }

  #ended(why: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pulse?.stop();
    this.#stopSending();
    for (const elector of this.#electors.values()) elector.threadEnded(why);
  }
}

/** Without a prototype the logger takes the name for that of the error's class. */
function errorOf(err: LoggedError | undefined): LogFields {
  return err === undefined ? {} : { err: Object.assign(Object.create(null) as object, err) };
}
