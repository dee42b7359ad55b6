import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { applicantsAmong, isMixed, judgeOf, replicaFor, shardOf } from './assignment.ts';

const SHARDS = Array.from({ length: 16 }, (_, i) => i);
const identities = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,4}_[0-9a-f]{8}$/), { minLength: 2, maxLength: 8 });
const assigned = (replicas: readonly string[]) => SHARDS.map((shard) => replicaFor(shard, replicas));

describe('shards', () => {
  test('are given to nobody where nobody lives, and all to the only one', () => {
    expect(replicaFor(0, [])).toBeUndefined();
    expect(new Set(assigned(['only']))).toEqual(new Set(['only']));
  });

  test('are given to the same replicas by whoever asks, in whatever order they are known', () => {
    fc.assert(
      fc.property(identities, (replicas) => {
        expect(assigned(replicas.toReversed())).toEqual(assigned(replicas));
      }),
    );
  });

  test('of a replica that goes are divided among the others, and no other shard moves', () => {
    fc.assert(
      fc.property(identities, ([gone = '', ...others]) => {
        const before = assigned([gone, ...others]);
        const after = assigned(others);
        expect(after.filter((_owner, i) => before[i] !== gone)).toEqual(before.filter((owner) => owner !== gone));
      }),
    );
  });

  test('move to a replica that comes, and between others none', () => {
    fc.assert(
      fc.property(identities, ([newcomer = '', ...others]) => {
        const before = assigned(others);
        const after = assigned([newcomer, ...others]);
        expect(before.filter((_owner, i) => after[i] !== newcomer)).toEqual(
          after.filter((owner) => owner !== newcomer),
        );
      }),
    );
  });

  test('of many replicas and shards are shared about evenly', () => {
    const replicas = ['a', 'b', 'c', 'd'];
    const counts = new Map<string, number>();
    for (let shard = 0; shard < 256; shard++) {
      const owner = replicaFor(shard, replicas) ?? '';
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }

    expect([...counts.keys()].toSorted()).toEqual(replicas);
    for (const count of counts.values()) expect(Math.abs(count - 64)).toBeLessThan(32);
  });
});

test('a namespace is always in the same of so many shards', () => {
  const shards = ['shoot--a--b', 'shoot--a--c', 'default', 'x'].map((namespace) => shardOf(namespace, 16));

  expect(shards).toEqual(['shoot--a--b', 'shoot--a--c', 'default', 'x'].map((namespace) => shardOf(namespace, 16)));
  expect(new Set(shards).size).toBeGreaterThan(1);
  expect(shardOf('default', 1)).toBe(0);
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1, max: 256 }), (namespace, count) => {
      const shard = shardOf(namespace, count);
      expect(Number.isInteger(shard) && shard >= 0 && shard < count).toBe(true);
    }),
  );
});

/** Replicas and who holds which shard, by the rules of Shards; each step is over before the next one. */
class Model {
  readonly moves = SHARDS.map(() => 0);
  live: readonly { readonly identity: string; readonly revision: string; readonly since: string }[] = [];
  #holders: readonly (string | undefined)[] = SHARDS.map(() => undefined);
  #came = 0;

  get holders(): readonly (string | undefined)[] {
    return this.#holders;
  }

  come(identity: string, revision: string): void {
    this.#came += 1;
    this.live = [...this.live, { identity, revision, since: String(this.#came).padStart(6, '0') }];
    this.#take();
  }

  go(identity: string): void {
    this.live = this.live.filter((replica) => replica.identity !== identity);
    this.#holders = this.#holders.map((holder) => (holder === identity ? undefined : holder));
    this.#take();
  }

  /** Nobody has come or gone for a while. */
  settle(): void {
    if (isMixed(this.live)) return;
    const names = this.live.map(({ identity }) => identity);
    this.#holders = this.#holders.map((holder, shard) =>
      holder !== undefined && replicaFor(shard, names) !== holder ? undefined : holder,
    );
    this.#take();
  }

  #take(): void {
    const applicants = applicantsAmong(this.live);
    this.#holders = this.#holders.map((holder, shard) => {
      if (holder !== undefined) return holder;
      this.moves[shard]! += 1;
      return replicaFor(shard, applicants);
    });
  }
}

test('a rolling upgrade moves each shard once or twice, however long each step takes, and all of them are shared in the end', () => {
  const steps = fc.array(fc.boolean(), { minLength: 16, maxLength: 16 });
  fc.assert(
    fc.property(identities, fc.integer({ min: 1, max: 3 }), steps, (names, surge, pauses) => {
      const model = new Model();
      for (const name of names) model.come(name, 'old');
      model.settle();
      model.moves.fill(0);
      const upgraded = names.map((name) => `new-${name}`);
      for (let i = 0; i < names.length; i += surge) {
        for (const name of upgraded.slice(i, i + surge)) model.come(name, 'new');
        if (pauses[2 * i] === true) model.settle();
        for (const name of names.slice(i, i + surge)) model.go(name);
        if (pauses[2 * i + 1] === true) model.settle();
      }
      model.settle();

      for (const moves of model.moves) expect([1, 2]).toContain(moves);
      expect(model.holders).toEqual(SHARDS.map((shard) => replicaFor(shard, upgraded)));
    }),
  );
});

test('while an upgrade waits, a replica of the former revision that comes or goes moves no shard but its own', () => {
  const model = new Model();
  for (const name of ['a', 'b', 'c']) model.come(name, 'old');
  model.settle();
  model.come('d', 'new');
  model.settle();
  const before = model.holders;
  model.go('a');
  const after = model.holders;

  expect(after).toEqual(before.map((holder) => (holder === 'a' ? 'd' : holder)));
  model.come('e', 'old');
  expect(model.holders).toEqual(after);
});

test('of cells with one target one decides about a Node, whoever asks; one that comes or goes changes that for no other', () => {
  const cells = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,6}$/), { minLength: 2, maxLength: 8 });
  fc.assert(
    fc.property(fc.string(), cells, (node, [gone = '', ...others]) => {
      const all = [gone, ...others];
      const before = judgeOf(node, all);
      expect(all).toContain(before);
      expect(judgeOf(node, all.toReversed())).toBe(before);
      expect(judgeOf(node, before === gone ? all : others)).toBe(before);
    }),
  );
  expect(judgeOf('node', [])).toBeUndefined();
});
