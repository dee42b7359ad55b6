import { describe, expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import type { DrainOutcome } from '../../../drain/drain.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ReportedOnce } from '../../../work/reconcile/reported-once.ts';
import type { DrainPlan } from './plan.ts';
import { BrokenNodes } from '../node/broken-nodes.ts';
import { Drains } from './drains.ts';
import { ApiError } from '../../../kube/client/errors.ts';

const TIMEOUT = 10 * MINUTE;
const LEFT: DrainOutcome = {
  kind: 'incomplete',
  progress: { remainingPods: 1, blocked: [{ pod: 'ns/a', reason: 'disruption-budget', detail: 'b' }] },
};

/** One machine whose Node is drained; the process has run for a while. */
class Session {
  readonly world = new FakeWorld();
  readonly drains: Drains;
  readonly brokenNodes = new BrokenNodes(this.world.deps);
  readonly events: string[] = [];
  one: Machine = machine();
  readonly node = node();
  #startMs: number;

  constructor() {
    const { world } = this;
    world.clock.advance(1_000 * MINUTE);
    world.settings.drainTimeoutMs = TIMEOUT;
    this.#startMs = world.clock.now();
    world.machines.put(this.one);
    world.nodes.cache.put(this.node);
    const resolveClass = () => Promise.resolve({ problem: 'no class', missing: 'class' as const });
    const reportedOnce = new ReportedOnce();
    this.drains = new Drains({ ...world.deps, resolveClass, reportedOnce, brokenNodes: this.brokenNodes });
  }

  /** One pass for a deletion, or as `plan` says. */
  async advance(plan: Partial<DrainPlan> = {}) {
    return await this.#passing((ctx) => this.drains.advance(ctx, { ...this.#plan(), ...plan }));
  }

  get context() {
    return this.world.context(this.one);
  }

  get forced(): readonly boolean[] {
    return this.world.drains.requests.map(({ force }) => force);
  }

  async end(outcome: DrainOutcome | Error): Promise<void> {
    if (outcome instanceof Error) this.world.drains.fail(outcome);
    else this.world.drains.end(outcome);
    await this.world.settle();
  }

  #plan(): DrainPlan {
    return {
      purpose: 'deletion',
      nodes: this.world.nodes,
      node: this.node,
      barrier: 'cordon',
      startMs: this.#startMs,
      forcedBy: undefined,
      forceRule: 'usual',
      isWanted: () => true,
      onForcedFailure: 'go-on',
    };
  }

  async #passing<T>(run: (ctx: ReturnType<FakeWorld['context']>) => Promise<T>) {
    const ctx = this.context;
    const state = await run(ctx);
    await this.world.settle();
    ctx.pass.complete(({ reason, message }) => void this.events.push(`${reason}: ${message}`));
    const result = ctx.pass.resultOf({ kind: 'stop' });
    return { ...state, afterMs: result.kind === 'requeue' ? result.afterMs : undefined };
  }
}

const LABEL = { forcedBy: 'the label' };
const RETRY = { ...LABEL, onForcedFailure: 'retry' } as const;

describe('a drain', () => {
  test('that is forced once is forced when it is tried again, and is told of once', async () => {
    const session = new Session();
    await session.advance(RETRY);
    await session.end(LEFT);
    expect(await session.advance(RETRY)).toMatchObject({ kind: 'failed', afterMs: 5 * SECOND });

    session.world.clock.advance(5 * SECOND);
    await session.advance(RETRY);

    expect(session.forced).toEqual([true, true]);
    expect(session.events).toEqual(['DrainForced: Deleting pods instead of evicting them: the label.']);
  });

  test.each<{ what: string; end: DrainOutcome | Error }>([
    { what: 'leaves pods', end: LEFT },
    { what: 'met a closed gate', end: new GateClosedError('fenced', undefined, 'leadership may have been lost') },
  ])('that was forced because its Node was broken, and $what, is not when the Node is well again', async ({ end }) => {
    const session = new Session();
    const shows = (status: string, sinceMs: number): void => {
      const condition = { type: 'Ready', status, lastTransitionTime: toTimestamp(sinceMs) };
      Object.assign(session.node, { status: { conditions: [condition] } });
      session.world.nodes.cache.put(session.node);
    };
    const { clock } = session.world;
    session.world.liveMachines.set('default/m-1', session.one);
    shows('Unknown', clock.now() - 6 * MINUTE);
    const kept = { onForcedFailure: 'retry', forceRule: 'broken-node', isWanted: () => true } as const;
    await session.advance(kept);
    await session.end(end);
    await session.advance(kept);

    clock.advance(40 * MINUTE);
    shows('True', clock.now() - 30 * MINUTE);
    await session.advance(kept);

    expect(session.forced).toEqual([true, false]);
  });

  test.each([
    { what: 'that broke before our eyes is forced 5 min after that', isSeen: true, want: [false, true] },
    { what: 'that broke unseen is forced 5 min after the time in its condition', isSeen: false, want: [true, true] },
  ])('of a Node $what', async ({ isSeen, want }) => {
    const session = new Session();
    const { clock } = session.world;
    const saidMs = clock.now() - 6 * MINUTE;
    const shown = (status: string): Node => {
      const condition = { type: 'Ready', status, lastTransitionTime: toTimestamp(saidMs) };
      return Object.assign(structuredClone(session.node), { status: { conditions: [condition] } });
    };
    const [well, broken] = [shown('True'), shown('False')];
    session.world.liveMachines.set('default/m-1', session.one);
    if (isSeen) session.brokenNodes.noteDelivered(well, broken, () => [session.one]);
    Object.assign(session.node, broken);
    session.world.nodes.cache.put(session.node);

    await session.advance();
    clock.advance(5 * MINUTE - 1);
    await session.advance();
    const before = session.forced.at(-1);
    clock.advance(1);
    await session.advance();
    await session.end(LEFT);
    await session.advance();

    expect([before, session.forced.at(-1)]).toEqual(want);
  });

  test('that was forced by a label waits its time all the same, and is not forced when the label is gone', async () => {
    const session = new Session();
    await session.advance(RETRY);
    await session.end(LEFT);
    await session.advance(RETRY);
    session.world.clock.advance(5 * SECOND - 1);
    await session.advance({ onForcedFailure: 'retry' });
    expect(session.forced).toEqual([true]);

    session.world.clock.advance(1);
    await session.advance({ onForcedFailure: 'retry' });

    expect(session.forced).toEqual([true, false]);
  });

  test.each([
    { what: 'a forced one', plan: RETRY, next: RETRY, requests: 1 },
    { what: 'one that is forced from now on', plan: {}, next: LABEL, requests: 2 },
  ])('that has failed waits before it is tried again, but for $what: $requests', async ({ plan, next, requests }) => {
    const session = new Session();
    await session.advance(plan);
    await session.end(LEFT);
    await session.advance(plan);

    session.world.clock.advance(5 * SECOND - 1);
    await session.advance(next);

    expect(session.forced).toHaveLength(requests);
  });

  test.each([
    { after: 'go-on', kind: 'left-pods' },
    { after: 'retry', kind: 'failed' },
  ] as const)('that is forced and leaves pods is $kind where it is to $after', async ({ after, kind }) => {
    const session = new Session();
    const plan = { ...LABEL, onForcedFailure: after };
    await session.advance(plan);
    await session.end(LEFT);

    expect(await session.advance(plan)).toMatchObject({ kind });
  });

  test('that is not forced and leaves pods is tried again, whatever follows a forced one', async () => {
    const session = new Session();
    await session.advance();
    await session.end(LEFT);

    expect(await session.advance()).toMatchObject({ kind: 'failed', afterMs: 5 * SECOND });
  });

  test('that is forced and fails past the timeout waits as any before it is tried again', async () => {
    const session = new Session();
    session.world.clock.advance(TIMEOUT);
    await session.advance({ onForcedFailure: 'retry' });
    await session.end(new Error('no rules'));

    expect(await session.advance({ onForcedFailure: 'retry' })).toMatchObject({
      text: 'Drain failed. no rules.',
      afterMs: 5 * SECOND,
    });
  });

  test('that the API server does not answer says what to check', async () => {
    const session = new Session();
    await session.advance();
    await session.end(new ApiError(0, 'DeadlineExceeded', 'GET /api/v1/pods: no response within 60000 ms'));

    expect(await session.advance()).toMatchObject({
      text: 'Drain failed. GET /api/v1/pods: no response within 60000 ms. The drain is retried; if this persists, check that the API server of the target cluster can be reached.',
    });
  });

  test('gives way to a forced one, and is awaited as what it is', async () => {
    const session = new Session();
    await session.advance();

    expect(await session.advance(LABEL)).toMatchObject({ kind: 'running', waitingFor: 'the normal drain to end' });
    expect(await session.advance(LABEL)).toMatchObject({ waitingFor: 'the pods to leave' });

    expect(session.forced).toEqual([false, true]);
  });

  test('that gives way at its timeout is not late: pods are deleted from then on', async () => {
    const session = new Session();
    await session.advance();
    session.world.clock.advance(TIMEOUT);

    expect(await session.advance()).toMatchObject({ waitingFor: 'the normal drain to end', isLate: false });
  });

  test('that leaves pods past its timeout is tried again at once', async () => {
    const session = new Session();
    await session.advance();
    session.world.clock.advance(TIMEOUT + SECOND);
    await session.end(LEFT);

    expect(await session.advance()).toMatchObject({ kind: 'failed', afterMs: 0 });
  });

  test('that leaves pods before an outage has failed', async () => {
    const session = new Session();
    await session.advance();
    await session.end(LEFT);
    session.world.clock.advance(10 * SECOND);
    session.world.trustedForMs = () => SECOND;

    expect(await session.advance()).toMatchObject({ kind: 'failed' });
  });

  test('took as long as all of its attempts', async () => {
    const session = new Session();
    await session.advance();
    session.world.clock.advance(MINUTE);
    await session.end(LEFT);
    await session.advance();
    session.world.clock.advance(5 * SECOND);
    await session.advance();
    session.world.clock.advance(MINUTE);
    await session.end({ kind: 'drained' });

    expect(await session.advance()).toMatchObject({
      kind: 'drained',
      isForced: false,
      tookMs: 2 * MINUTE + 5 * SECOND,
    });
  });

  test('that met a closed gate is tried again after 5 s, and not before', async () => {
    const session = new Session();
    await session.advance();
    await session.end(new GateClosedError('outage', 'target', 'closed'));

    expect(await session.advance()).toMatchObject({ kind: 'running', afterMs: 5 * SECOND });
    session.world.clock.advance(5 * SECOND - 1);
    await session.advance();
    expect(session.forced).toHaveLength(1);
    session.world.clock.advance(1);
    await session.advance();
    expect(session.forced).toHaveLength(2);
  });

  test('before an outage is repeated at once', async () => {
    const session = new Session();
    await session.advance();
    await session.end({ kind: 'drained' });
    session.world.clock.advance(10 * SECOND);
    session.world.trustedForMs = () => SECOND;

    expect(await session.advance()).toMatchObject({ kind: 'running', afterMs: 0 });
    expect(await session.advance()).toMatchObject({ kind: 'running' });
    expect(session.forced).toHaveLength(2);
  });

  test('of another Node of the machine is ended first, and does not count', async () => {
    const session = new Session();
    await session.advance();
    await session.end({ kind: 'drained' });
    const other = node((n) => void (n.metadata.uid = 'another'));

    expect(await session.advance({ node: other })).toMatchObject({ kind: 'running' });
    expect(session.forced).toHaveLength(2);
  });

  test('that was ended, and is asked for again before it has, is another one', async () => {
    const session = new Session();
    await session.advance();
    session.drains.end(session.context);

    expect(await session.advance()).toMatchObject({ waitingFor: 'the normal drain to end' });
    await session.advance();

    expect(session.forced).toHaveLength(2);
    expect(session.events).toEqual([]);
  });

  test('for another purpose is ended first', async () => {
    const session = new Session();
    await session.advance({ purpose: 'maintenance' });
    session.world.clock.advance(MINUTE);

    expect(await session.advance()).toMatchObject({ kind: 'running', waitingFor: 'another drain to end' });
    await session.advance();
    session.world.clock.advance(MINUTE);
    // The one that has given way is the first that this ends.
    await session.end({ kind: 'drained' });
    await session.end({ kind: 'drained' });

    expect(await session.advance()).toMatchObject({ kind: 'drained', tookMs: MINUTE });
  });

  test('is blocked until it ends or its Machine is gone', async () => {
    const session = new Session();
    await session.advance();
    session.world.drains.report(LEFT.progress);
    expect(session.drains.blocked()).toMatchObject([{ reason: 'disruption-budget' }]);

    session.drains.forget(session.one.metadata.uid);

    expect(session.drains.blocked()).toEqual([]);
  });

  test('runs for its purpose alone, and while it has not ended', async () => {
    const session = new Session();
    await session.advance();
    const isRunning = () =>
      (['deletion', 'maintenance'] as const).map((purpose) => session.drains.isRunning(session.context, purpose));
    expect(isRunning()).toEqual([true, false]);

    await session.end({ kind: 'drained' });

    expect(isRunning()).toEqual([false, false]);
  });
});

describe('a drain whose timeout passed in an outage', () => {
  /** Evicting since it was asked; then a cluster is out of reach until the timeout is over. */
  async function afterOutage(): Promise<Session> {
    const session = new Session();
    const { clock } = session.world;
    await session.advance();
    clock.advance(TIMEOUT + MINUTE);
    await session.end(LEFT);
    const openMs = clock.monotonicMs();
    session.world.trustedForMs = () => clock.monotonicMs() - openMs;
    session.world.graceLeftMs = 2 * MINUTE;
    return session;
  }

  test('evicts in the grace after it, and is forced then', async () => {
    const session = await afterOutage();
    await session.advance();
    session.world.clock.advance(5 * SECOND);
    expect(await session.advance()).toMatchObject({ kind: 'running' });
    expect(session.forced).toEqual([false, false]);
    expect(session.world.drains.requests.at(-1)?.deadlineMs).toBe(session.world.clock.now() + 2 * MINUTE);

    session.world.clock.advance(2 * MINUTE);
    session.world.graceLeftMs = 0;
    await session.advance();
    await session.advance();

    expect(session.forced).toEqual([false, false, true]);
  });

  test('has that grace again after a later one', async () => {
    const session = await afterOutage();
    await session.advance();
    session.drains.end(session.context);
    await session.end(LEFT);
    session.world.clock.advance(60 * MINUTE);
    session.world.trustedForMs = () => SECOND;

    await session.advance();
    await session.advance();

    expect(session.forced.at(-1)).toBe(false);
  });

  test.each([
    { what: 'of which the end alone is seen', passes: [] },
    { what: 'in which passes go on', passes: [...Array(60).keys()] },
    { what: 'that ends for a moment', passes: [...Array(60).keys()], isBroken: true },
  ])('has that grace after one $what, however long it was', async ({ passes, isBroken }) => {
    const session = await afterOutage();
    const { world } = session;
    let openMs: number | undefined;
    world.trustedForMs = () => (openMs === undefined ? 0 : world.clock.monotonicMs() - openMs);
    for (const half of passes) {
      openMs = isBroken === true && half === 5 ? world.clock.monotonicMs() - SECOND : undefined;
      await session.advance();
      world.clock.advance(MINUTE / 2);
    }
    openMs = world.clock.monotonicMs();
    await session.advance();
    await session.advance();
    world.clock.advance(MINUTE);
    await session.advance();
    await session.advance();

    expect(session.forced).not.toContain(true);
  });

  test('is forced although one outage follows another, once pods could be asked for 10 min', async () => {
    const session = await afterOutage();
    session.world.trustedForMs = () => MINUTE / 2;
    const forcedAfter: number[] = [];

    for (let minutes = 0; minutes <= 22; minutes++) {
      await session.advance();
      await session.advance();
      if (session.forced.at(-1) === true) forcedAfter.push(minutes);
      session.world.clock.advance(MINUTE);
    }

    expect(forcedAfter[0]).toBe(20);
  });

  test('that began after it is forced at its timeout', async () => {
    const session = new Session();
    const { clock } = session.world;
    session.world.trustedForMs = () => TIMEOUT + SECOND;
    session.world.graceLeftMs = 20 * MINUTE;
    clock.advance(TIMEOUT);

    await session.advance();

    expect(session.forced).toEqual([true]);
  });
});

describe('a drain that nothing forces', () => {
  const UNFORCED = { forceRule: 'request' } as const;

  test('is late from its timeout on, and looked at then', async () => {
    const session = new Session();
    await session.advance(UNFORCED);
    session.world.clock.advance(TIMEOUT - SECOND);
    expect(await session.advance(UNFORCED)).toMatchObject({ isLate: false, afterMs: SECOND });

    session.world.clock.advance(SECOND);

    expect(await session.advance(UNFORCED)).toMatchObject({ isLate: true, afterMs: 30 * SECOND });
    expect(session.forced).toEqual([false]);
  });

  test('is not late once somebody forces it', async () => {
    const session = new Session();
    session.world.clock.advance(TIMEOUT);

    expect(await session.advance({ ...UNFORCED, ...LABEL })).toMatchObject({ isLate: false });
  });
});
