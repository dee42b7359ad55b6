import { randomBytes } from 'node:crypto';

import { formatDuration } from '../../apis/duration.ts';
import { DeadlineError } from '../../base/clock/deadline.ts';
import type { Capabilities } from '../driver.ts';
import { messageOf } from '../errno.ts';
import { CONTRACT_VERSION, fromCapabilities } from '../grpc/messages.ts';
import { withoutSecrets } from '../without-secrets.ts';
import { Conversation, NoAnswer } from './conversation.ts';
import type { VerifyOptions } from './options.ts';
import { startLine, waitingLine } from './report.ts';
import { lackOf, type Rule } from './rule.ts';
import { RULES } from './rules/index.ts';
import { Scene } from './scene.ts';
import { UnexpectedAnswer, Violation } from './violation.ts';

const DEFAULT_RULE_MS = 600_000;
const DEFAULT_TELL_MS = 5_000;
/** How long a driver that has ended is waited for: somebody may start it again. */
const DEFAULT_RETURN_MS = 10_000;
const RETURN_PAUSE_MS = 250;

export interface RuleResult {
  readonly rule: Rule;
  readonly outcome: 'passed' | 'failed' | 'not applicable';
  /** What the driver did instead, or why the rule does not apply. */
  readonly reason?: string;
  readonly ms: number;
  /** What the rule made and could not remove, one line for each VM. */
  readonly left: readonly string[];
}

/** A driver that cannot be tried: it does not answer, or speaks another contract. */
export class UnusableDriver extends Error {
  override readonly name = 'UnusableDriver';
}

/** A driver that is being tried. Rules may be run in any order; each makes its own machines and removes them. */
export class Verification implements Disposable {
  readonly capabilities: Capabilities;
  readonly #options: VerifyOptions;
  readonly #conversation: Conversation;
  readonly #run = randomBytes(4).toString('hex');
  #scenes = 0;
  #end: string | undefined;

  private constructor(options: VerifyOptions, conversation: Conversation, capabilities: Capabilities) {
    this.#options = options;
    this.#conversation = conversation;
    this.capabilities = capabilities;
  }

  static async begin(options: VerifyOptions, signal: AbortSignal): Promise<Verification> {
    const conversation = new Conversation(options);
    try {
      return new Verification(options, conversation, await greet(conversation, signal));
    } catch (err) {
      conversation.close();
      throw err;
    }
  }

  /** Why no further rule can be tried: the driver does not answer any more. Undefined: it does. */
  get end(): string | undefined {
    return this.#end;
  }

  /** Tries one rule. `signal` ends it early; whatever happens, what it made is removed first. Rejects only when `signal` was aborted and nothing is left. */
  async try(rule: Rule, signal: AbortSignal): Promise<RuleResult> {
    const { clock, ruleMs = DEFAULT_RULE_MS } = this.#options;
    const startedMs = clock.monotonicMs();
    const end = new AbortController();
    const cancel = clock.schedule(ruleMs, () => end.abort(new DeadlineError('the rule', ruleMs)));
    const scene = this.#scene(AbortSignal.any([signal, end.signal]));
    const lack = lackOf(rule, scene);
    if (lack !== undefined) {
      cancel();
      return { rule, outcome: 'not applicable', reason: lack, ms: 0, left: [] };
    }
    this.#options.report?.(startLine(rule));
    this.#conversation.forget();
    let reason: string | undefined;
    try {
      await this.#reporting(false, ruleMs, () => rule.run(scene, scene.machine('a')));
    } catch (err) {
      // Whatever it is, it came from what the driver did.
      reason = err === end.signal.reason ? this.#endOf(ruleMs) : messageOf(err);
    }
    cancel();
    // What it has made can be removed only by a driver that answers.
    if (reason !== undefined) this.#end = await this.#awaitDriver(signal);
    const left = await this.#reporting(true, ruleMs, () => this.#cleanUp(scene, ruleMs));
    // What is left must be told all the same.
    if (left.length === 0) signal.throwIfAborted();
    const ms = Math.round(clock.monotonicMs() - startedMs);
    return {
      rule,
      outcome: reason === undefined ? 'passed' : 'failed',
      ms,
      left,
      ...(reason === undefined ? {} : { reason }),
    };
  }

  /** Undefined as soon as the driver answers; why it does not after some time. */
  async #awaitDriver(signal: AbortSignal): Promise<string | undefined> {
    const { clock, returnMs = DEFAULT_RETURN_MS } = this.#options;
    const untilMs = clock.monotonicMs() + returnMs;
    for (;;) {
      try {
        await this.#conversation.capabilities(signal);
        return undefined;
      } catch (err) {
        if (signal.aborted || clock.monotonicMs() >= untilMs) return messageOf(err);
        await clock.sleep(RETURN_PAUSE_MS, signal).catch(() => undefined);
      }
    }
  }

  [Symbol.dispose](): void {
    this.#conversation.close();
  }

  /** Of a rule that had no more time: it is known what it waited for. */
  #endOf(ruleMs: number): string {
    const { message } = new Violation(
      `the rule did not finish within ${formatDuration(ruleMs)} (--rule-timeout): ${this.#conversation.end}`,
      'the rule to finish',
    );
    return withoutSecrets(message, this.#options.secretData);
  }

  #scene(signal: AbortSignal): Scene {
    const prefix = `verify-${this.#run}-${++this.#scenes}`;
    const { capabilities } = this;
    return new Scene({ options: this.#options, conversation: this.#conversation, capabilities, prefix, signal });
  }

  /** Does a part of a rule's work, and tells what it waits for while it takes long. */
  async #reporting<T>(isRemoving: boolean, withinMs: number, work: () => Promise<T>): Promise<T> {
    const { clock, report, reportMs = DEFAULT_TELL_MS, secretData } = this.#options;
    const { name: driver } = this.capabilities;
    const startedMs = clock.monotonicMs();
    const tellAfter = (delayMs: number): (() => void) =>
      clock.schedule(delayMs, () => {
        const ageMs = clock.monotonicMs() - startedMs;
        const latest = withoutSecrets(this.#conversation.latest, secretData);
        report?.(waitingLine({ driver, latest, isRemoving, leftMs: withinMs - ageMs }));
        cancel = tellAfter(ageMs);
      });
    let cancel = tellAfter(reportMs);
    try {
      return await work();
    } finally {
      cancel();
    }
  }

  async #cleanUp(scene: Scene, withinMs: number): Promise<readonly string[]> {
    const end = new AbortController();
    const cancel = this.#options.clock.schedule(withinMs, () => end.abort(new DeadlineError('cleaning up', withinMs)));
    try {
      return await scene.cleanUp(end.signal);
    } finally {
      cancel();
    }
  }
}

/** Tries all rules, or those of these names, one after another, as long as the driver answers. */
export async function* verify(
  verification: Verification,
  signal: AbortSignal,
  names: readonly string[] = [],
): AsyncGenerator<RuleResult> {
  for (const rule of RULES) {
    if (names.length > 0 && !names.includes(rule.name)) continue;
    yield await verification.try(rule, signal);
    if (verification.end !== undefined || signal.aborted) return;
  }
}

async function greet(conversation: Conversation, signal: AbortSignal): Promise<Capabilities> {
  try {
    const answer = await conversation.capabilities(signal);
    if (answer.failure !== undefined) throw new UnexpectedAnswer('GetCapabilities', answer.failure, 'success');
    if (answer.contractVersion !== CONTRACT_VERSION) {
      throw new Violation(
        `the driver uses contract version ${JSON.stringify(answer.contractVersion)}`,
        `"${CONTRACT_VERSION}"`,
      );
    }
    return fromCapabilities(answer);
  } catch (err) {
    if (!(err instanceof Violation)) throw err;
    throw new UnusableDriver(err instanceof NoAnswer ? `the driver does not respond: ${err.message}` : err.message, {
      cause: err,
    });
  }
}
