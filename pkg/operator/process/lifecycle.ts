import type { EventEmitter } from 'node:events';

import type { Clock } from '../../base/clock/clock.ts';
import { withDeadline } from '../../base/clock/deadline.ts';
import type { Logger } from '../../base/log/logger.ts';

/** A part of the process that is started and stopped. */
export interface Member {
  readonly name: string;
  /** Resolves when it runs; rejects when it cannot. `signal` is aborted when the process is to stop before that. */
  start(signal: AbortSignal): Promise<void>;
  /**
   * Starts nothing more, lets what runs go on for at most `graceMs`, aborts it, and resolves when it has ended. Also called
   * when `start` failed or was aborted half-way.
   */
  stop(graceMs: number): Promise<void>;
}

/** What a lifecycle needs of the operating system's process; `process` itself, outside tests. */
export interface HostProcess extends Pick<EventEmitter, 'on' | 'off'> {
  exit(code: number): void;
  /** Keeps the host from ending until the returned function is called; in place of a timer. */
  keepAlive?(): () => void;
}

/** Why a member cannot start, told to the person who can fix it: the message says it all, so it is logged without a stack. */
export class CannotStartError extends Error {
  override readonly name = 'CannotStartError';
}

export interface LifecycleDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly host: HostProcess;
  /** What running calls get after SIGTERM before they are aborted; 20 s unless told otherwise. */
  readonly graceMs?: number;
}

interface StopRequest {
  readonly reason: string;
  readonly graceMs: number;
}

interface Started {
  readonly member: Member;
  /** Settles when `start` has; never rejects. */
  readonly settled: Promise<unknown>;
}

const GRACE_MS = 20_000;
/** What a member gets after the grace, to end what was aborted and to say goodbye. */
const END_MS = 10_000;
const SIGNALS = { SIGTERM: 15, SIGINT: 2 } as const;
const KEEP_ALIVE_MS = 3_600_000;

/**
 * Starts the stages of a process in order and stops them in reverse; the members of a stage start and stop together.
 *
 * | event                                  | what happens                                                        |
 * |----------------------------------------|---------------------------------------------------------------------|
 * | SIGTERM, SIGINT                        | stop with grace, exit code 0                                        |
 * | a second signal                        | exit at once, code 128 + signal                                     |
 * | `fatal`, a start that fails            | stop without grace, exit code 1                                     |
 * | one that somebody has to mend first    | as before; that it is told is the last line from info on            |
 * | uncaught exception, unhandled rejection| logged, with stack from --v=4 on, then as `fatal`                   |
 * | a stop that does not end in time       | logged, the stages below are stopped all the same, exit code 1      |
 *
 * A Lease is released inside the stop of the member whose mutations it guards (leadership.ts), so a stop that hangs leaves
 * it to run out.
 */
export class Lifecycle {
  readonly #deps: LifecycleDeps;
  readonly #stages: (readonly Member[])[] = [];
  readonly #starting = new AbortController();
  readonly #requested = Promise.withResolvers<StopRequest>();
  #isStopping = false;
  #signals = 0;
  #exitCode = 0;
  /** That it could not start is told: whoever reads the end of the log finds the remedy there. */
  #couldNotStart = false;

  constructor(deps: LifecycleDeps) {
    this.#deps = deps;
  }

  /** Adds members that start after all those added before, and stop before them. Only before `run`. */
  add(...members: readonly Member[]): void {
    this.#stages.push(members);
  }

  /** Ends the process: it cannot do its work any more. Returns at once; may be called at any time, also from timers. */
  fatal(reason: string, err?: unknown): void {
    const { log } = this.#deps;
    this.#exitCode = 1;
    if (err instanceof CannotStartError) {
      this.#couldNotStart = true;
      log.error({ err: err.message }, 'could not start');
    } else log.error(err === undefined ? { reason } : { reason, err }, 'exiting');
    this.#request({ reason, graceMs: 0 });
  }

  /** Runs the process to its end and resolves with the exit code. Never rejects. May be called once. */
  async run(): Promise<number> {
    const { log } = this.#deps;
    const release = this.#listen();
    const letEnd = this.#deps.host.keepAlive?.() ?? keepAlive();
    const started: Started[][] = [];
    const starting = this.#startAll(started);
    const { reason, graceMs } = await this.#requested.promise;
    const level = this.#couldNotStart ? 'debug' : 'info';
    log[level]({ reason, graceMs }, 'stopping');
    this.#starting.abort(new Error(`the process is stopping: ${reason}`));
    for (const stage of started.toReversed()) await this.#stopStage(stage, graceMs);
    await starting;
    letEnd();
    release();
    log[level]({ code: this.#exitCode }, 'stopped');
    return this.#exitCode;
  }

  /** Never rejects: a failure is fatal. */
  async #startAll(started: Started[][]): Promise<void> {
    for (const members of this.#stages) {
      if (this.#isStopping) return;
      const starts = members.map((member) => ({ member, settled: this.#start(member) }));
      started.push(starts);
      await Promise.all(starts.map(({ settled }) => settled));
    }
  }

  async #start(member: Member): Promise<void> {
    try {
      await member.start(this.#starting.signal);
      this.#deps.log.debug({ member: member.name }, 'started');
    } catch (err) {
      if (!this.#isStopping) this.fatal(`starting ${member.name}`, err);
    }
  }

  async #stopStage(stage: readonly Started[], graceMs: number): Promise<void> {
    const { clock, log } = this.#deps;
    const stops = stage.map(async ({ member, settled }) => {
      const what = `stopping ${member.name}`;
      try {
        await withDeadline(clock, graceMs + END_MS, what, async () => {
          await settled;
          await member.stop(graceMs);
        });
        log.debug({ member: member.name }, 'ended');
      } catch (err) {
        this.#exitCode = 1;
        log.error({ member: member.name, err }, 'did not exit in time');
      }
    });
    await Promise.all(stops);
  }

  #request(request: StopRequest): void {
    this.#isStopping = true;
    this.#requested.resolve(request); // the first one counts
  }

  /** Returns what takes the listeners away again. */
  #listen(): () => void {
    const { graceMs = GRACE_MS, host, log } = this.#deps;
    const onSignal = (signal: keyof typeof SIGNALS): void => {
      this.#signals += 1;
      if (this.#signals > 1) {
        log.warn({ reason: signal }, 'exiting immediately: second signal');
        return host.exit(128 + SIGNALS[signal]);
      }
      this.#request({ reason: signal, graceMs });
    };
    const listeners = {
      SIGTERM: () => onSignal('SIGTERM'),
      SIGINT: () => onSignal('SIGINT'),
      uncaughtException: (err: unknown) => this.fatal('uncaught exception', err),
      unhandledRejection: (err: unknown) => this.fatal('unhandled rejection', err),
    };
    for (const [event, listener] of Object.entries(listeners)) host.on(event, listener);
    return () => {
      for (const [event, listener] of Object.entries(listeners)) host.off(event, listener);
    };
  }
}

/** The clock's timers keep no process alive. */
function keepAlive(): () => void {
  const timer = setInterval(() => undefined, KEEP_ALIVE_MS);
  return () => clearInterval(timer);
}
