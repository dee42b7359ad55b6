import { fromTimestamp, type Clock } from '../base/clock/clock.ts';
import { DeadlineError, untilAborted } from '../base/clock/deadline.ts';
import type { Pod } from '../apis/wire.ts';
import type { Logger } from '../base/log/logger.ts';
import { isDenial } from '../kube/client/errors.ts';
import type { Target } from '../kube/targets/targets.ts';
import { announce, raiseBarrier } from './cordon.ts';
import { Budgets } from './budgets.ts';
import type { Drain, DrainOutcome, DrainRequest, PodRule } from './drain.ts';
import { Evictor } from './evictor.ts';
import type { DrainLimits } from './limits.ts';
import { cachedNode, readNode } from './node.ts';
import { NodePods, type PodSource } from './node-pods.ts';
import { createPodActions } from './pod-actions.ts';
import { planDrain, toleratesBarrier, turnsOf, type PodTurn } from './pods.ts';
import { DrainTracker } from './drain-tracker.ts';
import { SerialDrain } from './serial-drain.ts';
import { VolumeLookup } from './volumes.ts';
import { type Random, secureRandom } from '../base/random/random.ts';
import { Waiters } from '../base/clock/waiters.ts';

/** Time that a drain has when its deadline is past or near: enough to look, and to find nothing to do. */
const SHORTEST_DRAIN_MS = 15_000;
/** A pod made so long after the barrier can no longer be a mistake of a scheduler that had not seen it. */
const SCHEDULER_LAG_MS = 10_000;
/** With 0 the API server would take a pod away at once, whoever still runs it. */
const SHORTEST_GRACE = { gracePeriodSeconds: 1 };
/** Time between two live reads of a Node that the cache says is gone and the server says is there. */
const NODE_RETRY_MS = 5_000;

export interface DrainerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: DrainLimits;
  readonly podsOf: (target: Target, nodeName: string) => PodSource;
  readonly random?: Random | undefined;
}

/**
 * Makes the drain of a process:
 *
 *   announce (Node condition) → barrier (cordon or taint) → list pods → send away, turn by turn: parallel and, by volume, serial
 *        │                          │                          → wait until gone → look for late ones → drained
 *        └──── Node not found, or another UID, at any time ────▶ node-gone
 *   deadline, at any time ────▶ incomplete          signal, at any time ────▶ throws its reason
 *
 * A forced drain deletes all pods with grace 0 and ends when the server has accepted that.
 */
export function createDrainer(deps: DrainerDeps): Drain {
  const targetChanges = new TargetChanges(deps.clock);
  const budgets = new WeakMap<Target, Budgets>();
  return async (request, signal, report = () => undefined) => {
    const { target } = request;
    const isNodeSilent = request.isNodeSilent !== undefined && (await request.isNodeSilent(signal));
    const known = budgets.get(target) ?? new Budgets({ reader: target.reader, clock: deps.clock });
    budgets.set(target, known);
    const progress = new DrainTracker(report);
    const run = new DrainRun({ ...deps, request, isNodeSilent, targetChanges, budgets: known, progress });
    return await run.run(signal);
  };
}

interface RunDeps extends DrainerDeps {
  readonly request: DrainRequest;
  readonly isNodeSilent: boolean;
  readonly targetChanges: TargetChanges;
  readonly budgets: Budgets;
  readonly progress: DrainTracker;
}

class DrainRun {
  readonly #deps: RunDeps;
  readonly #log: Logger;
  readonly #pods: NodePods;
  readonly #evictor: Evictor;
  /** Aborted when the drain must stop although its caller did not say so; the reason is the outcome. */
  readonly #end = new AbortController();
  /** Whether it is known which pods there are. */
  #hasChecked = false;

  constructor(deps: RunDeps) {
    const { request, isNodeSilent, limits, clock, progress, budgets } = deps;
    this.#deps = deps;
    this.#log = deps.log.child({ node: request.nodeName, cluster: request.target.cluster });
    this.#pods = new NodePods({
      source: deps.podsOf(request.target, request.nodeName),
      limits,
      clock,
      log: this.#log,
    });
    this.#evictor = new Evictor({
      actions: createPodActions(request.target, limits, isNodeSilent ? SHORTEST_GRACE : {}),
      feed: this.#pods,
      progress,
      findBudget: (pod) => budgets.find(pod),
      maxEvictRetries: request.maxEvictRetries,
      random: deps.random ?? secureRandom,
      silentNode: isNodeSilent ? clock : undefined,
    });
  }

  async run(caller: AbortSignal): Promise<DrainOutcome> {
    const { clock, request } = this.#deps;
    const end = this.#end;
    const signal = AbortSignal.any([caller, end.signal]);
    const leftMs = Math.max(request.deadlineMs - clock.now(), SHORTEST_DRAIN_MS);
    const cancel = clock.schedule(leftMs, () => end.abort(new StoppedError('incomplete')));
    const background: Promise<void>[] = [];
    try {
      return await untilAborted(this.#run(background, signal), signal);
    } catch (err) {
      caller.throwIfAborted();
      if (!(end.signal.reason instanceof StoppedError)) throw err;
      if (end.signal.reason.why === 'node-gone') return { kind: 'node-gone' };
      if (!this.#hasChecked) throw new DeadlineError(`reading node ${request.nodeName}`, leftMs);
      return { kind: 'incomplete', progress: this.#deps.progress.snapshot() };
    } finally {
      cancel();
      end.abort(new StoppedError('over'));
      await Promise.all(background);
    }
  }

  /** `background` gets what must have ended before the drain has. */
  async #run(background: Promise<void>[], signal: AbortSignal): Promise<DrainOutcome> {
    const { clock } = this.#deps;
    if (!(await this.#prepareNode(signal))) return { kind: 'node-gone' };

    const barrier = { wallMs: clock.now(), monotonicMs: clock.monotonicMs() };
    await this.#pods.refresh(signal);
    this.#hasChecked = true;
    const { request, progress } = this.#deps;
    const ruleOf = await this.#rules(signal);
    let turns = turnsOf(this.#pods.all(), ruleOf);
    if (turns.length === 0) return { kind: 'drained' };

    if (request.force) {
      await this.#killAll(turns.flatMap(podsIn), signal);
      return { kind: 'drained' };
    }
    background.push(this.#pods.follow(signal), this.#watchNode(signal));
    const seen = new Set<string>();
    while (turns.length > 0) {
      const pods = turns.flatMap(podsIn);
      for (const pod of pods) seen.add(pod.metadata.uid);
      progress.expect(pods);
      const by = (pod: Pod): string => ruleOf?.(pod).by ?? '';
      for (const pod of turns.slice(1).flatMap(podsIn)) progress.block(pod, 'order', by(pod));
      for (const turn of turns) await this.#take(turn, by, signal);
      const late = this.#pods.all().filter((pod) => !seen.has(pod.metadata.uid) && this.#isLate(pod, barrier));
      turns = turnsOf(late, ruleOf);
    }
    return { kind: 'drained' };
  }

  async #rules(signal: AbortSignal): Promise<((pod: Pod) => PodRule) | undefined> {
    const { request } = this.#deps;
    try {
      return await request.rules?.(signal);
    } catch (err) {
      if (signal.aborted || !request.force) throw err;
      this.#log.warn({ err }, 'continued a forced drain without pod rules');
      return undefined;
    }
  }

  /** Sends the pods of one turn away and waits for the others of it. */
  async #take(turn: PodTurn, by: (pod: Pod) => string, signal: AbortSignal): Promise<void> {
    for (const pod of podsIn(turn)) this.#deps.progress.unblock(pod);
    await Promise.all([
      this.#sendAway(turn.leaving, signal),
      ...turn.completing.map((pod) => this.#evictor.untilCompleted(pod, by(pod), signal)),
    ]);
  }

  /**
   * Whether the scheduler bound this pod before it knew of the barrier. Others come in spite of it, and may come back. The clock of the server may
   * be ahead of ours, and what we see may be late: either one tells.
   */
  #isLate(pod: Pod, { wallMs, monotonicMs }: { readonly wallMs: number; readonly monotonicMs: number }): boolean {
    const createdMs = fromTimestamp(pod.metadata.creationTimestamp) ?? Number.POSITIVE_INFINITY;
    const isEarly =
      createdMs < wallMs + SCHEDULER_LAG_MS || this.#pods.firstSeenMs(pod) < monotonicMs + SCHEDULER_LAG_MS;
    return isEarly && !toleratesBarrier(pod, this.#deps.request.barrier);
  }

  /** False when the Node is gone. A forced drain does not depend on a Node that cannot be written, nor any on a condition that is refused. */
  async #prepareNode(signal: AbortSignal): Promise<boolean> {
    const { request, clock } = this.#deps;
    let node = cachedNode(request) ?? (await readNode(request, signal));
    for (const write of [announce, raiseBarrier]) {
      if (node === undefined) return false;
      try {
        node = await write(request, node, clock, signal);
      } catch (err) {
        const isNeeded = !request.force && !(write === announce && isDenial(err));
        if (signal.aborted || isNeeded) throw err;
        this.#log.warn({ err }, 'continued a drain without marking the node');
      }
    }
    return node !== undefined;
  }

  async #sendAway(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { request, progress, targetChanges, clock } = this.#deps;
    const { parallel, serial } = planDrain(pods, request);
    const serialDrain = new SerialDrain({
      request,
      evictor: this.#evictor,
      feed: this.#pods,
      progress,
      volumes: new VolumeLookup({
        reader: request.target.reader,
        clock,
        log: this.#log,
        volumeIDOf: request.volumeIDOf,
      }),
      targetChanges: targetChanges.of(request.target),
      log: this.#log,
    });
    await Promise.all([serialDrain.run(serial, signal), ...parallel.map((pod) => this.#evictor.sendAway(pod, signal))]);
  }

  async #killAll(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    this.#deps.progress.expect(pods);
    await Promise.all(pods.map((pod) => this.#evictor.kill(pod, signal)));
  }

  /** Ends the drain when its Node vanishes or is replaced. Never rejects. */
  async #watchNode(signal: AbortSignal): Promise<void> {
    const { request, targetChanges, clock } = this.#deps;
    while (!signal.aborted) {
      try {
        await targetChanges.of(request.target).until(() => cachedNode(request) === undefined, signal);
        if ((await readNode(request, signal)) === undefined) return this.#end.abort(new StoppedError('node-gone'));
        await clock.sleep(NODE_RETRY_MS, signal);
      } catch (err) {
        if (signal.aborted) return;
        this.#log.debug({ err }, 'could not read the node to drain');
        await clock.sleep(NODE_RETRY_MS, signal).catch(() => undefined);
      }
    }
  }
}

/** Why a drain stopped by itself; never leaves this file. */
class StoppedError extends Error {
  override readonly name = 'StoppedError';
  readonly why: 'incomplete' | 'node-gone' | 'over';

  constructor(why: StoppedError['why']) {
    super(`the drain was stopped: ${why}`);
    this.why = why;
  }
}

function podsIn({ leaving, completing }: PodTurn): readonly Pod[] {
  return [...leaving, ...completing];
}

/**
 * Tells drains of changes in a target's caches. Handlers of an informer cannot be taken back, so that there is one for
 * all drains of a target, made when the first begins.
 */
class TargetChanges {
  readonly #clock: Clock;
  readonly #byTarget = new WeakMap<Target, Waiters>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notified after every change of a Node or VolumeAttachment of `target`. */
  of(target: Target): Waiters {
    const known = this.#byTarget.get(target);
    if (known !== undefined) return known;
    const changes = new Waiters(this.#clock);
    this.#byTarget.set(target, changes);
    target.nodes.onChange(() => changes.notify());
    target.volumeAttachments.onChange(() => changes.notify());
    return changes;
  }
}
