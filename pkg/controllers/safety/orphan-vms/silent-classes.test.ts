import { describe, expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import { SilentClasses } from './silent-classes.ts';

const PERIOD_MS = 15 * MINUTE_MS;
const signal = new AbortController().signal;

/** Machines of one class, of which some are missing; each answer takes a while. */
class World {
  readonly clock = new FakeClock();
  machines: readonly Machine[];
  readonly missing = new Set<string>();
  /** Those under suspicion, as the loop keeps them. */
  suspects: ReadonlySet<string> = new Set();
  answerMs = 0;
  asked: string[] = [];
  /** Classes that were asked for with. */
  readonly classes = new Set<string>();
  /** Those of them that do not fail, whatever the answer is. */
  doubted: string[] = [];
  readonly events: string[] = [];
  /** Most that were asked for at once. */
  most = 0;
  #running = 0;
  readonly #classes: SilentClasses;

  constructor(count: number) {
    this.machines = Array.from({ length: count }, (_, i) =>
      machine((m) => void Object.assign(m.metadata, { name: `m-${i}`, uid: `m-${i}` })),
    );
    this.#classes = new SilentClasses({
      vanished: {
        withoutNode: () => this.machines,
        ask: async ({ key }, { metadata: { uid } }, _sight, _signal, options) => {
          this.classes.add(key);
          this.asked.push(uid);
          if (options?.isDoubted === true) this.doubted.push(uid);
          this.most = Math.max(this.most, (this.#running += 1));
          await Promise.resolve();
          if (this.#running === this.most) this.clock.advance(this.answerMs);
          this.#running -= 1;
          return this.missing.has(uid) ? uid : undefined;
        },
      },
      missingVMs: { has: (uid) => this.suspects.has(uid) },
      recorder: { event: ({ object, reason }) => void this.events.push(`${object.metadata.name} ${reason}`) },
      clock: this.clock,
      periodMs: PERIOD_MS,
    });
  }

  /** Who is asked for in a look after this time. */
  async look(afterMs = 0): Promise<readonly string[]> {
    this.clock.advance(afterMs);
    this.asked = [];
    this.doubted = [];
    const access = { key: 'default/class-1', machineClass: machineClass(), driver: new FakeDriver(), secretData: {} };
    const atMs = this.clock.monotonicMs();
    this.suspects = new Set(await this.#classes.examine([access], { atMs, wallMs: atMs, vms: 0, machines: 0 }, signal));
    return this.asked;
  }
}

describe('machines that neither a list nor a Node tells of', () => {
  test('are each asked for once in a period, however often the loop looks', async () => {
    const world = new World(2);

    expect(await world.look()).toEqual(['m-0', 'm-1']);
    expect([...world.classes]).toEqual(['default/class-1']);
    expect(await world.look(PERIOD_MS - 1)).toEqual([]);
    expect(await world.look(1)).toEqual(['m-0', 'm-1']);
  });

  test('are asked for again with the next look when the provider does not know their VM, and others are not', async () => {
    const world = new World(2);
    world.missing.add('m-1');

    await world.look();

    expect([...world.suspects]).toEqual(['m-1']);
    expect(await world.look(MINUTE_MS)).toEqual(['m-1']);
  });

  test.each([
    { count: 12, missing: 3, doubted: 0 },
    { count: 12, missing: 4, doubted: 4 },
    { count: 60, missing: 6, doubted: 0 },
    { count: 60, missing: 7, doubted: 7 },
  ])('$doubted of them are kept when $missing of $count are missing at once', async ({ count, missing, doubted }) => {
    const world = new World(count);
    for (let i = 0; i < missing; i++) world.missing.add(`m-${i}`);
    await world.look();

    expect(await world.look(MINUTE_MS)).toHaveLength(missing);
    expect(world.doubted).toHaveLength(doubted);
    expect(world.events).toEqual(doubted > 0 ? ['class-1 ManyVMsMissing'] : []);

    world.missing.clear();
    await world.look(MINUTE_MS);
    world.events.length = 0;
    await world.look(PERIOD_MS);
    expect([world.doubted, world.events]).toEqual([[], []]);
  });

  test('are asked for ten at a time', async () => {
    const world = new World(25);

    expect(await world.look()).toHaveLength(25);
    expect(world.most).toBe(10);
  });

  test('do not hold up the loop for much more than a minute; the others come first in the next look', async () => {
    const world = new World(45);
    world.answerMs = MINUTE_MS / 2;

    const first = await world.look();
    const second = await world.look(MINUTE_MS);

    expect([first.length, second.length]).toEqual([20, 20]);
    expect(new Set([...first, ...second])).toHaveProperty('size', 40);
    expect((await world.look(PERIOD_MS)).slice(0, 5)).toEqual(['m-40', 'm-41', 'm-42', 'm-43', 'm-44']);
  });

  test('are asked for in this order: suspects, those that never were, and then by the time when they were', async () => {
    const world = new World(2);
    const [first, second] = world.machines;
    world.machines = world.machines.slice(0, 1);
    await world.look();
    world.machines = [first, second].filter((one) => one !== undefined);
    await world.look(MINUTE_MS);
    world.machines = [...world.machines.toReversed(), ...new World(4).machines.slice(2)];
    world.suspects = new Set(['m-3']);

    expect(await world.look(PERIOD_MS)).toEqual(['m-3', 'm-2', 'm-0', 'm-1']);
  });

  test('are forgotten with their Machine', async () => {
    const world = new World(1);
    const before = world.machines;
    await world.look();
    world.machines = [];
    await world.look();
    world.machines = before;

    expect(await world.look()).toEqual(['m-0']);
  });
});
