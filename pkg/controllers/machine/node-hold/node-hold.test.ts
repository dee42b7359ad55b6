import { describe, expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { FORCE_DRAIN_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { ReportedOnce } from '../../../work/reconcile/reported-once.ts';
import { Drains } from '../drain/drains.ts';
import { BrokenNodes } from '../node/broken-nodes.ts';
import { type HoldDeps, type HoldKind, NodeHold } from './node-hold.ts';

const KIND: HoldKind = {
  purpose: 'maintenance',
  barrier: 'cordon',
  annotations: ['since'],
  forceRule: () => 'usual',
  say: () => undefined,
};

/** A kept machine whose Node is drained; the process has run for a while. */
class Scene {
  readonly world = new FakeWorld();
  readonly events: string[] = [];
  readonly node = node();
  one = machine();
  readonly #deps: HoldDeps;

  constructor() {
    const { world } = this;
    world.clock.advance(1_000 * MINUTE);
    this.one.metadata.annotations = { since: toTimestamp(world.clock.now()) };
    world.machines.put(this.one);
    world.nodes.cache.put(this.node);
    const resolveClass = () => Promise.resolve({ problem: 'no class', missing: 'class' as const });
    const shared = { ...world.deps, reportedOnce: new ReportedOnce() };
    const drains = new Drains({ ...shared, resolveClass, brokenNodes: new BrokenNodes(world.deps) });
    this.#deps = { ...shared, drains };
  }

  async empty(): Promise<void> {
    const ctx = this.world.context(this.one);
    await new NodeHold(KIND, this.#deps, ctx, this.node).empty();
    await this.world.settle();
    ctx.pass.complete(({ reason, message }) => void this.events.push(`${reason}: ${message}`));
  }
}

describe('the drain of a machine that is kept', () => {
  test.each([
    { label: undefined, says: 'Drained: The Node was drained in 90 s; the machine is kept.' },
    { label: 'True', says: 'Drained: The Node was drained by force in 90 s; the machine is kept.' },
  ])('says how long it took, and whether by force (label $label)', async ({ label, says }) => {
    const scene = new Scene();
    const { metadata } = scene.one;
    const labels = label === undefined ? {} : { [FORCE_DRAIN_LABEL]: label };
    scene.one = { ...scene.one, metadata: { ...metadata, labels: { ...metadata.labels, ...labels } } };
    await scene.empty();
    scene.world.clock.advance(90 * SECOND);
    scene.world.drains.end({ kind: 'drained' });
    await scene.world.settle();
    await scene.empty();

    expect(scene.events.at(-1)).toBe(says);
  });

  test.each([
    { deletionTimestamp: undefined, forced: true },
    { deletionTimestamp: 'now', forced: false },
  ])(
    'is forced by a broken Node only while a live look shows a Machine that stays ($deletionTimestamp): $forced',
    async ({ deletionTimestamp, forced }) => {
      const scene = new Scene();
      const { metadata } = scene.one;
      const live = { ...scene.one, metadata: { ...metadata, ...(deletionTimestamp && { deletionTimestamp }) } };
      scene.world.liveMachines.set('default/m-1', live);
      Object.assign(scene.node, {
        status: { conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: '2020-01-01T00:00:00Z' }] },
      });
      scene.world.nodes.cache.put(scene.node);

      await scene.empty();

      expect(scene.world.drains.requests.map(({ force }) => force)).toEqual([forced]);
    },
  );
});
