import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import type { Pod, PodDisruptionBudget } from '../apis/wire.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { Waiters } from '../base/clock/waiters.ts';
import { type BlockedPod, effectiveEvictRetries } from './drain.ts';
import { Evictor } from './evictor.ts';
import type { PodFeed } from './node-pods.ts';
import type { PodActions, PodAnswer } from './pod-actions.ts';
import { DrainTracker } from './drain-tracker.ts';

const never = new AbortController().signal;
const accepted: PodAnswer = { kind: 'accepted' };
const refused: PodAnswer = { kind: 'refused', message: 'budget' };
const failed: PodAnswer = { kind: 'failed', message: 'no answer' };

function podNamed(name: string, graceSeconds = 30): Pod {
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { containers: [], terminationGracePeriodSeconds: graceSeconds },
  };
}

function budgetThat(allows: 'nothing ever' | 'nothing now'): PodDisruptionBudget {
  const status = { observedGeneration: 1, expectedPods: 2, desiredHealthy: 2, disruptionsAllowed: 0 };
  return {
    metadata: {
      name: 'pdb',
      namespace: 'default',
      uid: 'pdb',
      resourceVersion: '1',
      creationTimestamp: '',
      generation: 1,
    },
    status: { ...status, currentHealthy: allows === 'nothing ever' ? 2 : 1 },
  };
}

/** A node whose pods answer as scripted, and end `endsAfterMs` after an accepted eviction (undefined: never). */
class ScriptedNode implements PodFeed, PodActions {
  readonly clock = new FakeClock();
  readonly #changes = new Waiters(this.clock);
  readonly #pods = new Map<string, Pod>();
  readonly asked: { what: 'evict' | 'kill'; pod: string; atMs: number }[] = [];
  answer: (pod: Pod, what: 'evict' | 'kill') => PodAnswer = () => accepted;
  endsAfterMs: number | undefined = 1_000;

  constructor(pods: readonly Pod[]) {
    for (const pod of pods) this.#pods.set(pod.metadata.uid, pod);
  }

  all(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  get(uid: string): Pod | undefined {
    return this.#pods.get(uid);
  }

  until(holds: () => boolean, signal: AbortSignal, timeoutMs?: number): Promise<boolean> {
    return this.#changes.until(holds, signal, timeoutMs);
  }

  evict(pod: Pod): Promise<PodAnswer> {
    return this.#ask(pod, 'evict');
  }

  kill(pod: Pod): Promise<PodAnswer> {
    return this.#ask(pod, 'kill');
  }

  terminate(pod: Pod): void {
    const { uid } = pod.metadata;
    this.#pods.set(uid, { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    this.#changes.notify();
    if (this.endsAfterMs !== undefined) this.clock.schedule(this.endsAfterMs, () => this.remove(pod));
  }

  show(pod: Pod): void {
    this.#pods.set(pod.metadata.uid, pod);
    this.#changes.notify();
  }

  remove(pod: Pod): void {
    this.#pods.delete(pod.metadata.uid);
    this.#changes.notify();
  }

  #ask(pod: Pod, what: 'evict' | 'kill'): Promise<PodAnswer> {
    this.asked.push({ what, pod: pod.metadata.name, atMs: this.clock.monotonicMs() });
    const verdict = this.answer(pod, what);
    if (verdict.kind === 'accepted') this.terminate(pod);
    if (verdict.kind === 'gone') this.remove(pod);
    return Promise.resolve(verdict);
  }
}

function evictorFor(
  node: ScriptedNode,
  options: {
    maxEvictRetries?: number;
    budget?: PodDisruptionBudget;
    isNodeSilent?: boolean;
    random?: () => number;
  } = {},
): { evictor: Evictor; progress: DrainTracker; reports: (readonly BlockedPod[])[] } {
  const reports: (readonly BlockedPod[])[] = [];
  const progress = new DrainTracker(({ blocked }) => reports.push(blocked));
  progress.expect(node.all());
  const evictor = new Evictor({
    actions: node,
    feed: node,
    progress,
    findBudget: () => Promise.resolve(options.budget),
    maxEvictRetries: options.maxEvictRetries ?? 360,
    random: options.random ?? (() => 0),
    ...(options.isNodeSilent === true && { silentNode: node.clock }),
  });
  return { evictor, progress, reports };
}

describe('Evictor.sendAway', () => {
  test('evicts once and waits until the pod is gone', async () => {
    const pod = podNamed('web');
    const node = new ScriptedNode([pod]);
    const { evictor, progress } = evictorFor(node);

    const leaving = evictor.sendAway(pod, never);
    await node.clock.advanceAsync(999);
    const before = progress.snapshot().remainingPods;
    await node.clock.advanceAsync(1);
    await leaving;

    expect(before).toBe(1);
    expect(progress.snapshot()).toEqual({ remainingPods: 0, blocked: [] });
    expect(node.asked).toEqual([{ what: 'evict', pod: 'web', atMs: 0 }]);
  });

  test('evicts again every 20 s while a budget refuses, and names the budget', async () => {
    const pod = podNamed('web');
    const node = new ScriptedNode([pod]);
    node.answer = () => (node.asked.length < 3 ? refused : accepted);
    const { evictor, reports } = evictorFor(node, { budget: budgetThat('nothing now') });

    const leaving = evictor.sendAway(pod, never);
    await node.clock.advanceAsync(60_000);
    await leaving;

    expect(node.asked.map(({ atMs }) => atMs)).toEqual([0, 20_000, 40_000]);
    expect(reports).toContainEqual([{ pod: 'default/web', reason: 'disruption-budget', detail: 'pdb' }]);
  });

  test('deletes the pod with grace 0 after the last refused eviction', async () => {
    const pod = podNamed('web');
    const node = new ScriptedNode([pod]);
    node.answer = (_pod, what) => (what === 'evict' ? refused : accepted);
    const { evictor } = evictorFor(node, { maxEvictRetries: 2 });

    const leaving = evictor.sendAway(pod, never);
    await node.clock.advanceAsync(60_000);
    await leaving;

    expect(node.asked.map(({ what }) => what)).toEqual(['evict', 'evict', 'kill']);
  });

  test.each([accepted, refused])('evicts each pod once at least, also when no retry is allowed: %o', async (answer) => {
    const pod = podNamed('web');
    const node = new ScriptedNode([pod]);
    node.answer = (_pod, what) => (what === 'evict' ? answer : accepted);
    const { evictor } = evictorFor(node, { maxEvictRetries: 0 });

    const leaving = evictor.sendAway(pod, never);
    await node.clock.advanceAsync(60_000);
    await leaving;

    expect(node.asked.map(({ what }) => what)).toEqual(answer === accepted ? ['evict'] : ['evict', 'kill']);
  });

  test.each([0, 0.5, 0.999])(
    'deletes no pod before the drain timeout, into which its retries fit, however they are spread (%s)',
    async (drawn) => {
      const timeoutMs = 300_000;
      const pod = podNamed('web');
      const node = new ScriptedNode([pod]);
      node.answer = (_pod, what) => (what === 'evict' ? refused : accepted);
      const maxEvictRetries = effectiveEvictRetries(360, timeoutMs);
      const { evictor } = evictorFor(node, { maxEvictRetries, random: () => drawn });

      const leaving = evictor.sendAway(pod, never);
      await node.clock.advanceAsync(timeoutMs * 1.2);
      await leaving;

      const atMs = node.asked.find(({ what }) => what === 'kill')?.atMs;
      expect(atMs).toBeGreaterThanOrEqual(timeoutMs);
      expect(atMs).toBeLessThanOrEqual(timeoutMs * 1.1);
    },
  );

  // The original would delete such a pod only when the whole drain is forced.
  test('never deletes a pod because a misconfigured budget refuses', async () => {
    const pod = podNamed('web');
    const node = new ScriptedNode([pod]);
    node.answer = () => refused;
    const abort = new AbortController();
    const { evictor, progress } = evictorFor(node, { maxEvictRetries: 1, budget: budgetThat('nothing ever') });

    const leaving = evictor.sendAway(pod, abort.signal);
    await node.clock.advanceAsync(200_000);

    expect(new Set(node.asked.map(({ what }) => what))).toEqual(new Set(['evict']));
    expect(progress.snapshot().blocked).toEqual([
      { pod: 'default/web', reason: 'misconfigured-disruption-budget', detail: 'default/pdb' },
    ]);
    abort.abort(new Error('over'));
    await expect(leaving).rejects.toThrow('over');
  });

  test('asks again after an error, not before the server wants to be asked', async () => {
    const pod = podNamed('web');
    const node = new ScriptedNode([pod]);
    const answers: PodAnswer[] = [failed, { ...failed, retryAfterMs: 30_000 }, accepted];
    node.answer = () => answers[node.asked.length - 1] ?? accepted;
    const { evictor } = evictorFor(node);

    const leaving = evictor.sendAway(pod, never);
    await node.clock.advanceAsync(60_000);
    await leaving;

    expect(node.asked.map(({ atMs }) => atMs)).toEqual([0, 5_000, 35_000]);
  });

  test('does not ask for a pod that is already leaving', async () => {
    const pod = podNamed('web');
    const node = new ScriptedNode([pod]);
    node.terminate(pod);
    const { evictor } = evictorFor(node);

    const leaving = evictor.sendAway(pod, never);
    await node.clock.advanceAsync(1_000);
    await leaving;

    expect(node.asked).toEqual([]);
  });

  test('stops asking as soon as somebody else has deleted the pod', async () => {
    const pod = podNamed('web');
    const node = new ScriptedNode([pod]);
    node.answer = () => refused;
    const { evictor } = evictorFor(node);

    const leaving = evictor.sendAway(pod, never);
    await node.clock.advanceAsync(5_000);
    node.remove(pod);
    await leaving;

    expect(node.asked).toHaveLength(1);
  });

  test('reports a pod that is still there 30 s after its grace, and goes on waiting', async () => {
    const pod = podNamed('web', 10);
    const node = new ScriptedNode([pod]);
    node.endsAfterMs = undefined;
    const { evictor, progress } = evictorFor(node);

    const leaving = evictor.sendAway(pod, never);
    await node.clock.advanceAsync(39_000);
    const before = progress.snapshot().blocked;
    await node.clock.advanceAsync(2_000);
    const after = progress.snapshot().blocked;
    node.remove(pod);
    await leaving;

    expect(before).toMatchObject([{ pod: 'default/web', reason: 'ending', detail: '2026-01-01T00:00:00Z' }]);
    expect(after).toMatchObject([{ pod: 'default/web', reason: 'terminating' }]);
  });
});

describe('on a Node whose kubelet does not answer', () => {
  const GRACE_ENDS = '2026-01-01T00:00:30Z';

  /** A pod that somebody has asked to end, and that nobody ends. */
  function lost(): { node: ScriptedNode; pod: Pod } {
    const pod = podNamed('web');
    const node = new ScriptedNode([]);
    node.show({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: GRACE_ENDS } });
    return { node, pod };
  }

  test.each([
    { isNodeSilent: true, left: [1, 0] },
    { isNodeSilent: false, left: [1, 1] },
  ])('a pod counts as gone 2 s after its grace: $isNodeSilent', async ({ isNodeSilent, left }) => {
    const { node, pod } = lost();
    const { evictor, progress } = evictorFor(node, { isNodeSilent });
    const end = new AbortController();

    const leaving = Promise.allSettled([evictor.sendAway(pod, end.signal)]);
    await node.clock.advanceAsync(31_999);
    const before = progress.snapshot().remainingPods;
    await node.clock.advanceAsync(1);
    const after = progress.snapshot().remainingPods;
    end.abort();
    await leaving;

    expect([before, after]).toEqual(left);
  });

  test('a pod whose grace is made shorter counts as gone when that is over', async () => {
    const { node, pod } = lost();
    const { evictor, progress } = evictorFor(node, { isNodeSilent: true });

    const leaving = evictor.sendAway(pod, never);
    await node.clock.advanceAsync(1_000);
    node.show({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:01Z' } });
    await node.clock.advanceAsync(2_000);
    await leaving;

    expect(progress.snapshot().remainingPods).toBe(0);
  });

  test('a pod that is waited for until it completes counts as gone, too, once somebody ends it', async () => {
    const pod = podNamed('job');
    const node = new ScriptedNode([pod]);
    const { evictor, progress } = evictorFor(node, { isNodeSilent: true });

    const leaving = evictor.untilCompleted(pod, '', never);
    await node.clock.advanceAsync(600_000);
    const before = progress.snapshot().remainingPods;
    node.show({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:10:01Z' } });
    await node.clock.advanceAsync(3_000);
    await leaving;

    expect([before, progress.snapshot().remainingPods]).toEqual([1, 0]);
  });
});

describe('Evictor.kill', () => {
  test('is content when the server has accepted, and tries again when it did not answer', async () => {
    const pod = podNamed('web');
    const node = new ScriptedNode([pod]);
    node.endsAfterMs = undefined;
    node.answer = () => (node.asked.length === 1 ? failed : accepted);
    const { evictor, progress } = evictorFor(node);

    const killing = evictor.kill(pod, never);
    await node.clock.advanceAsync(5_000);
    await killing;

    expect(node.asked.map(({ what }) => what)).toEqual(['kill', 'kill']);
    expect(progress.snapshot().remainingPods).toBe(0);
  });
});

test('whatever the answers are, each pod ends gone or left behind, and nothing goes on after the end', async () => {
  const verdicts = fc.constantFrom<PodAnswer>(
    accepted,
    refused,
    failed,
    { kind: 'gone' },
    { kind: 'unclear', message: '' },
  );
  const scripts = fc.array(fc.array(verdicts, { maxLength: 8 }), { minLength: 1, maxLength: 5 });
  const endsAfterMs = fc.option(fc.integer({ min: 0, max: 100_000 }), { nil: undefined });

  await fc.assert(
    fc.asyncProperty(scripts, endsAfterMs, fc.integer({ min: 0, max: 3 }), async (answers, ends, maxEvictRetries) => {
      const pods = answers.map((_, i) => podNamed(`p${i}`));
      const node = new ScriptedNode(pods);
      node.endsAfterMs = ends;
      const tries = new Map<string, number>();
      node.answer = ({ metadata: { name } }) => {
        const n = tries.get(name) ?? 0;
        tries.set(name, n + 1);
        return answers[Number(name.slice(1))]?.[n] ?? refused;
      };
      const { evictor, progress } = evictorFor(node, { maxEvictRetries });
      const end = new AbortController();
      const settled = Promise.allSettled(pods.map((pod) => evictor.sendAway(pod, end.signal)));

      await node.clock.advanceAsync(90_000);
      end.abort(new Error('deadline'));
      const outcomes = await settled;
      const asked = node.asked.length;
      await node.clock.advanceAsync(90_000);

      const gone = outcomes.filter(({ status }) => status === 'fulfilled').length;
      expect(gone).toBe(pods.length - progress.snapshot().remainingPods);
      expect(node.asked).toHaveLength(asked);
      for (const pod of pods) {
        const kinds = node.asked.filter((a) => a.pod === pod.metadata.name).map(({ what }) => what);
        const evictions = kinds.lastIndexOf('evict') + 1;
        expect(kinds.slice(0, evictions)).not.toContain('kill');
      }
    }),
    { numRuns: 60 },
  );
});
