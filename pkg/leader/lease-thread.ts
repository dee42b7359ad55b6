import path from 'node:path';
import { Worker } from 'node:worker_threads';

import type { Clock } from '../clock/clock.ts';
import type { Endpoint } from '../kube/endpoint.ts';
import type { RequestRecord } from '../kube/transport.ts';
import type { LogFields, Logger } from '../log/logger.ts';
import type { LeaseTiming } from './lease.ts';
import type { LeaseOrder, LeaseReport, LeaseThreadData, LoggedError } from './lease-messages.ts';
import { Pulse } from './pulse.ts';
import { ThreadedElector, type ThreadedElectorDeps } from './threaded-elector.ts';

/** What the thread of the Leases is made of. */
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
/** Credentials are kept for a minute where they are loaded; so the thread has them for no more than 80 s. */
const TELL_CREDENTIALS_MS = 20_000;
const LOAD_AGAIN_MS = 1_000;
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
    worker.on('message', (report: LeaseReport) => this.#heard(report));
    worker.on('error', (err) => this.#ended(`the thread of the Leases failed: ${String(err)}`));
    worker.on('exit', () => this.#ended('the thread of the Leases ended'));
    worker.unref();
    void this.#sendCredentials({ areAwaited: true });
    return worker;
  }

  #send(order: LeaseOrder): void {
    this.#worker?.postMessage(order);
  }

  #heard(report: LeaseReport): void {
    switch (report.kind) {
      case 'log':
        this.#options.log[report.level]({ ...report.fields, ...errorOf(report.err) }, report.message);
        break;
      case 'request':
        this.#options.onRequest?.(report.record);
        break;
      case 'credentials-refused':
        this.#options.endpoint.refused();
        void this.#sendCredentials({ areAwaited: true });
        break;
      default:
        this.#electors.get(report.name)?.heard(report);
    }
  }

  /** Tells them now, and again after a while. When they cannot be loaded, the thread goes on with those that it has. */
  async #sendCredentials({ areAwaited }: { areAwaited: boolean }): Promise<void> {
    const { clock, endpoint, log } = this.#options;
    this.#stopSending();
    let againInMs = TELL_CREDENTIALS_MS;
    try {
      this.#send({ kind: 'credentials', credentials: await endpoint.credentials() });
    } catch (err) {
      log.debug({ err }, 'could not load the credentials for the Leases');
      if (areAwaited) this.#send({ kind: 'no-credentials', why: err instanceof Error ? err.message : String(err) });
      againInMs = LOAD_AGAIN_MS;
    }
    this.#stopSending();
    if (this.#isClosed) return;
    this.#stopSending = clock.schedule(againInMs, () => void this.#sendCredentials({ areAwaited: false }));
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
