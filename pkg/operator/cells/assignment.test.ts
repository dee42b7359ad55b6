import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { replicaFor, shardOf } from './assignment.ts';

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
