import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { growNewSet, shrinkOldSets } from './rolling.ts';
import { UNBORN } from './set-facts.ts';
import type { SetFacts } from './set-facts.ts';

const limits = { replicas: 10, surge: 3, unavailable: 2 };
const facts = (name: string, size: number, available = size, existing = size, createdMs = 0): SetFacts => ({
  ...UNBORN,
  name,
  createdMs,
  size,
  existing,
  available,
  free: size - available,
});

describe('growing the new set', () => {
  test.each([
    { title: 'grows by the size rule', now: facts('new', 3), old: facts('old', 8), sizes: { new: 5 } },
    { title: 'shrinks it to the replicas', now: facts('new', 12), old: facts('old', 0), sizes: { new: 10 } },
    { title: 'leaves it alone without room', now: facts('new', 3), old: facts('old', 10), sizes: {} },
  ])('$title', ({ now, old, sizes }) => {
    expect(Object.fromEntries(growNewSet(now, [old], limits, false))).toEqual(sizes);
  });

  test('a frozen deployment shrinks but never raises it', () => {
    expect(growNewSet(facts('new', 3), [facts('old', 8)], limits, true).size).toBe(0);
    expect(growNewSet(facts('new', 12), [], limits, true).get('new')).toBe(10);
  });
});

describe('shrinking old sets', () => {
  test.each([
    {
      title: 'gives up what may be unavailable at once',
      now: facts('new', 3, 0),
      old: [facts('a', 10)],
      sizes: { a: 8 },
    },
    { title: 'waits while new machines are not available', now: facts('new', 3, 0), old: [facts('a', 8)], sizes: {} },
    { title: 'follows the new machines', now: facts('new', 5, 3), old: [facts('a', 8)], sizes: { a: 5 } },
    {
      title: 'gives up unavailable machines first, of the oldest set first',
      now: facts('new', 3, 0),
      old: [facts('b', 5, 4, 5, 2), facts('a', 5, 4, 5, 1)],
      sizes: { a: 4, b: 4 },
    },
    {
      title: 'gives up no available machine when too few are',
      now: facts('new', 3, 0),
      old: [facts('a', 10, 5)],
      sizes: { a: 8 },
    },
    {
      title: 'does not wait for a failed machine that is preserved',
      now: facts('new', 3, 3),
      old: [{ ...facts('a', 10, 7), free: 0, preservedFailed: 1 }],
      sizes: { a: 7 },
    },
    {
      title: 'empties the oldest set first',
      now: facts('new', 10, 10),
      old: [facts('b', 2, 2, 2, 2), facts('a', 1, 1, 1, 1)],
      sizes: { a: 0, b: 0 },
    },
  ])('$title', ({ now, old, sizes }) => {
    expect(Object.fromEntries(shrinkOldSets(now, old, limits))).toEqual(sizes);
  });
});

describe('over any rollout', () => {
  const scenario = fc.record({
    replicas: fc.integer({ min: 1, max: 10 }),
    surge: fc.integer({ min: 0, max: 10 }),
    unavailable: fc.integer({ min: 0, max: 10 }),
    olds: fc.array(fc.nat(12), { minLength: 1, maxLength: 3 }),
    /** In which order things happen: each number picks one of what can happen next. */
    choices: fc.array(fc.nat(), { maxLength: 300, size: 'max' }),
  });

  test('machines never exceed replicas plus surge, never fewer are available than allowed, and it ends', () => {
    fc.assert(
      fc.property(scenario, ({ replicas, surge, unavailable, olds, choices }) => {
        const zero = surge === 0 && unavailable === 0;
        const rollout = new Rollout(replicas, surge, Math.min(replicas, zero ? 1 : unavailable), olds);
        for (const choice of choices) rollout.happen(choice);
        rollout.finish();

        expect(rollout.sizes()).toEqual([replicas, ...olds.map(() => 0)]);
      }),
      { numRuns: 100 },
    );
  });

  interface Set {
    readonly name: string;
    size: number;
    /** Living machines: available, and not yet. */
    ready: number;
    starting: number;
    going: number;
  }

  /** Sets that obey their size with delay, deleting what is not available first; and a pass between any two events. */
  class Rollout {
    readonly #limits: { replicas: number; surge: number; unavailable: number };
    readonly #sets: Set[];

    constructor(replicas: number, surge: number, unavailable: number, olds: readonly number[]) {
      this.#limits = { replicas, surge, unavailable };
      let left = replicas;
      const old = olds.map((wanted, i): Set => {
        const size = i === olds.length - 1 ? left : Math.min(wanted, left);
        left -= size;
        return { name: `old-${i}`, size, ready: size, starting: 0, going: 0 };
      });
      this.#sets = [{ name: 'new', size: 0, ready: 0, starting: 0, going: 0 }, ...old];
    }

    sizes(): number[] {
      return this.#sets.map(({ size }) => size);
    }

    happen(choice: number): void {
      const events = [() => this.#pass(), ...this.#sets.flatMap((set) => this.#eventsOf(set))];
      events[choice % events.length]?.();
      this.#check();
    }

    finish(): void {
      for (let i = 0; i < 120; i++) {
        this.#pass();
        for (const set of this.#sets) for (const event of this.#eventsOf(set)) event();
        this.#check();
      }
    }

    #eventsOf(set: Set): (() => void)[] {
      const events: (() => void)[] = [];
      if (set.ready + set.starting < set.size) events.push(() => (set.starting += 1));
      if (set.starting > 0) {
        events.push(() => {
          if (set.starting === 0) return;
          set.starting -= 1;
          set.ready += 1;
        });
      }
      if (set.ready + set.starting > set.size) {
        events.push(() => {
          if (set.ready + set.starting <= set.size) return;
          if (set.starting > 0) set.starting -= 1;
          else set.ready -= 1;
          set.going += 1;
        });
      }
      if (set.going > 0) events.push(() => (set.going -= 1));
      return events;
    }

    #pass(): void {
      const [now, ...old] = this.#sets.map(({ name, size, ready, starting, going }, i) =>
        facts(name, size, Math.min(ready, size), ready + starting + going, i),
      ) as [SetFacts, ...SetFacts[]];
      const grown = growNewSet(now, old, this.#limits, false);
      const sizes = grown.size > 0 ? grown : shrinkOldSets(now, old, this.#limits);
      for (const set of this.#sets) set.size = sizes.get(set.name) ?? set.size;
    }

    #check(): void {
      const { replicas, surge, unavailable } = this.#limits;
      const total = this.#sets.reduce((sum, { ready, starting, going }) => sum + ready + starting + going, 0);
      const available = this.#sets.reduce((sum, { ready }) => sum + ready, 0);
      must(total <= replicas + surge, `${total} machines of ${replicas}+${surge}`);
      must(available >= replicas - unavailable, `${available} available of ${replicas}-${unavailable}`);
    }
  }
});

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`violated: ${what}`);
}
