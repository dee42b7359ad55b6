import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { growNewSet, shrinkOldSets } from './rolling.ts';
import { EMPTY_SET, type SetFacts } from '../sets/set-facts.ts';

const limits = { replicas: 10, surge: 3, unavailable: 2 };
const facts = (name: string, size: number, available = size, existing = size, createdMs = 0): SetFacts => ({
  ...EMPTY_SET,
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
      title: 'gives up machines that are missing before those that are not available, of whatever set',
      now: facts('new', 0),
      old: [facts('a', 7, 6, 7, 1), { ...facts('b', 3, 0, 0, 2), missing: 3 }],
      sizes: { b: 1 },
    },
    {
      title: 'gives up machines that are not available when too few are missing',
      now: facts('new', 0),
      old: [{ ...facts('b', 3, 1, 2, 2), missing: 1 }, facts('a', 7, 6, 7, 1)],
      sizes: { a: 6, b: 2 },
    },
    {
      title: 'counts machines that are missing once',
      now: facts('new', 0),
      old: [{ ...facts('b', 3, 2, 2, 2), missing: 1 }, facts('a', 7, 7, 7, 1)],
      sizes: { a: 6, b: 2 },
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
      title: 'takes a failed machine that is preserved when it is the last of its set',
      now: facts('new', 3, 3),
      old: [{ ...facts('a', 1, 0), free: 0, freePreserved: 1 }, facts('b', 7, 7, 7, 2)],
      sizes: { a: 0, b: 5 },
    },
    {
      title: 'gives up no available machine for new ones that have failed and are preserved',
      now: { ...facts('new', 3, 0), preservedFailed: 3 },
      old: [facts('a', 8)],
      sizes: {},
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
  const MAX_TEMPLATES = 4;
  const scenario = fc.record({
    replicas: fc.integer({ min: 1, max: 10 }),
    surge: fc.integer({ min: 0, max: 10 }),
    unavailable: fc.integer({ min: 0, max: 10 }),
    olds: fc.array(fc.nat(12), { minLength: 1, maxLength: 3 }),
    /** How many of all old Machines have failed and are preserved. */
    kept: fc.nat(3),
    /** In which order things happen: each number picks one of what can happen next. */
    choices: fc.array(fc.nat(), { maxLength: 300, size: 'max' }),
  });

  test('machines never exceed replicas plus surge, never fewer are available than allowed, and it ends', () => {
    fc.assert(
      fc.property(scenario, ({ choices, ...start }) => {
        const rollout = new Rollout(start);
        for (const choice of choices) rollout.happen(choice);
        rollout.finish();

        expect(rollout.sizes()).toEqual([start.replicas, ...start.olds.map(() => 0)]);
      }),
      { numRuns: 100 },
    );
  });

  test.each(['some', 'all'] as const)(
    'available never falls below what is allowed through new machines %s of which fail and are preserved',
    (fails) => {
      fc.assert(
        fc.property(scenario, ({ choices, ...start }) => {
          const rollout = new Rollout({ ...start, fails });
          for (const choice of choices) rollout.happen(choice);
        }),
        { numRuns: 100 },
      );
    },
  );

  interface Set {
    readonly name: string;
    size: number;
    /** Living machines: available, not yet, and failed but preserved. */
    ready: number;
    starting: number;
    kept: number;
    going: number;
  }

  interface Start {
    readonly replicas: number;
    readonly surge: number;
    readonly unavailable: number;
    readonly olds: readonly number[];
    readonly kept: number;
    /** Which new Machines fail and are preserved; when all do, the template may change at any time. */
    readonly fails?: 'some' | 'all';
  }

  /** Sets that obey their size with delay, deleting what is not available first; and a pass between any two events. */
  class Rollout {
    readonly #limits: { replicas: number; surge: number; unavailable: number };
    readonly #fails: Start['fails'];
    /** Newest first. */
    readonly #sets: Set[];
    /** How many must stay available. */
    readonly #least: number;
    #templates = 0;

    constructor({ replicas, surge, unavailable, olds, kept, fails }: Start) {
      const isStill = surge === 0 && unavailable === 0;
      this.#limits = { replicas, surge, unavailable: Math.min(replicas, isStill ? 1 : unavailable) };
      this.#fails = fails;
      let left = replicas;
      let toKeep = kept;
      const old = olds.map((wanted, i): Set => {
        const size = i === olds.length - 1 ? left : Math.min(wanted, left);
        left -= size;
        const keptHere = Math.min(toKeep, size);
        toKeep -= keptHere;
        return { name: `old-${i}`, size, ready: size - keptHere, starting: 0, kept: keptHere, going: 0 };
      });
      const before = old.reduce((sum, { ready }) => sum + ready, 0);
      const missed = old.reduce((sum, set) => sum + (set.ready > 0 ? set.kept : 0), 0);
      this.#least = Math.min(before, replicas - this.#limits.unavailable - missed);
      this.#sets = old;
      this.#changeTemplate();
    }

    sizes(): number[] {
      return this.#sets.map(({ size }) => size);
    }

    happen(choice: number): void {
      const events = [() => this.#pass(), ...this.#sets.flatMap((set) => this.#eventsOf(set))];
      if (this.#fails === 'all' && this.#templates < MAX_TEMPLATES) events.push(() => this.#changeTemplate());
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

    #changeTemplate(): void {
      this.#sets.unshift({ name: `new-${this.#templates++}`, size: 0, ready: 0, starting: 0, kept: 0, going: 0 });
    }

    #eventsOf(set: Set): (() => void)[] {
      const living = (): number => set.ready + set.starting + set.kept;
      const events: (() => void)[] = [];
      if (living() < set.size) events.push(() => (set.starting += 1));
      const starts = (as: 'ready' | 'kept'): void => {
        if (set.starting === 0) return;
        set.starting -= 1;
        set[as] += 1;
      };
      if (set.starting > 0 && this.#fails !== 'all') events.push(() => starts('ready'));
      if (set.starting > 0 && this.#fails !== undefined) events.push(() => starts('kept'));
      if (living() > set.size) {
        events.push(() => {
          if (living() <= set.size) return;
          if (set.starting > 0) set.starting -= 1;
          else if (set.ready > 0) set.ready -= 1;
          else set.kept -= 1;
          set.going += 1;
        });
      }
      if (set.going > 0) events.push(() => (set.going -= 1));
      return events;
    }

    #pass(): void {
      const [now, ...old] = this.#sets.map((set, i) => factsOfSet(set, this.#sets.length - i)) as [
        SetFacts,
        ...SetFacts[],
      ];
      const grown = growNewSet(now, old, this.#limits, false);
      const sizes = grown.size > 0 ? grown : shrinkOldSets(now, old, this.#limits);
      for (const set of this.#sets) set.size = sizes.get(set.name) ?? set.size;
    }

    #check(): void {
      const { replicas, surge } = this.#limits;
      const total = this.#sets.reduce((sum, set) => sum + set.ready + set.starting + set.kept + set.going, 0);
      const available = this.#sets.reduce((sum, { ready }) => sum + ready, 0);
      must(total <= replicas + surge, `${total} machines of ${replicas}+${surge}`);
      must(available >= this.#least, `${available} available of at least ${this.#least}`);
    }
  }

  /** As set-facts.ts sees it: what is above the size goes next, in that order. */
  function factsOfSet({ name, size, ready, starting, kept, going }: Set, createdMs: number): SetFacts {
    const staysKept = Math.min(kept, size);
    const available = Math.min(ready, size - staysKept);
    const preservedFailed = available > 0 ? staysKept : 0;
    return {
      ...facts(name, size, available, ready + starting + kept + going, createdMs),
      missing: Math.max(0, size - ready - starting - kept),
      free: size - available - staysKept,
      freePreserved: staysKept - preservedFailed,
      preservedFailed,
    };
  }
});

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`violated: ${what}`);
}
