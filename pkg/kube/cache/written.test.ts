import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import { keyOf, type KubeObject } from '../../apis/meta.ts';
import { compareResourceVersions } from './resource-version.ts';
import { WrittenStore } from './written.ts';

function object(name: string, version: number, uid = `uid-${name}`): KubeObject {
  return { metadata: { name, namespace: 'ns', uid, resourceVersion: String(version), creationTimestamp: '' } };
}

/** A store whose watch has delivered `a` at version 5 and everything else up to 10. */
function synced(): WrittenStore<KubeObject> {
  const store = new WrittenStore<KubeObject>();
  store.replace([object('a', 5)], '10');
  return store;
}

const versionOf = (store: WrittenStore<KubeObject>, key = 'ns/a'): string | undefined =>
  store.view.get(key)?.metadata.resourceVersion;

describe('WrittenStore', () => {
  test('shows the answer of a write before the watch delivers it, and tells once', () => {
    const store = synced();

    const written = store.write(object('a', 12));
    const delivered = store.deliver('MODIFIED', object('a', 12));

    expect(written).toHaveLength(1);
    expect(delivered).toEqual([]);
    expect(versionOf(store)).toBe('12');
  });

  test('does not go back to an event that is older than our write', () => {
    const store = synced();
    store.write(object('a', 12));

    expect(store.deliver('MODIFIED', object('a', 11))).toEqual([]);
    expect(versionOf(store)).toBe('12');
  });

  test('takes a later change of somebody else over our write', () => {
    const store = synced();
    store.write(object('a', 12));

    expect(store.deliver('MODIFIED', object('a', 13))).toHaveLength(1);
    expect(versionOf(store)).toBe('13');
  });

  test('does not bring back an object whose deletion was delivered before our answer arrived', () => {
    const store = synced();
    store.deliver('MODIFIED', object('a', 11));
    store.deliver('DELETED', object('a', 12));

    expect(store.write(object('a', 11))).toEqual([]);
    expect(store.view.get('ns/a')).toBeUndefined();
  });

  test('hides a deleted object from events that are still under way until its deletion arrives', () => {
    const store = synced();

    expect(store.delete(object('a', 5))).toHaveLength(1);
    expect(store.deliver('MODIFIED', object('a', 11))).toEqual([]);
    expect(store.reach('20')).toEqual([]);
    expect(store.view.get('ns/a')).toBeUndefined();
    expect(store.deliver('DELETED', object('a', 21))).toEqual([]);
    expect(store.deliver('ADDED', object('a', 22, 'next'))).toHaveLength(1);
  });

  test('hides a deleted object from a cached list that still has it, not its successor', () => {
    const store = synced();
    store.delete(object('a', 5));

    expect(store.replace([object('a', 5)], '11')).toEqual([]);
    expect(store.view.get('ns/a')).toBeUndefined();
    expect(store.replace([object('a', 13, 'next')], '14')).toHaveLength(1);
    expect(store.view.get('ns/a')?.metadata.uid).toBe('next');
  });

  test('ignores an answer to a write that was sent before the deletion', () => {
    const store = synced();
    store.delete(object('a', 5));

    expect(store.write(object('a', 12))).toEqual([]);
    expect(store.view.get('ns/a')).toBeUndefined();
  });

  test('does not show an earlier owner of the name after the later one, which we made and deleted', () => {
    const store = synced();
    store.write(object('b', 13, 'later'));
    store.delete(object('b', 13, 'later'));

    expect(store.deliver('ADDED', object('b', 11, 'earlier'))).toEqual([]);
    expect(store.write(object('b', 11, 'earlier'))).toEqual([]);
    expect(store.deliver('DELETED', object('b', 12, 'earlier'))).toEqual([]);
    expect(store.deliver('ADDED', object('b', 13, 'later'))).toEqual([]);
    expect(store.view.get('ns/b')).toBeUndefined();
    expect(store.deliver('DELETED', object('b', 14, 'later'))).toEqual([]);
    expect(store.deliver('ADDED', object('b', 15, 'next'))).toHaveLength(1);
  });

  test.each<{ what: string; meanwhile: (store: WrittenStore<KubeObject>) => void }>([
    { what: 'no event', meanwhile: () => undefined },
    { what: 'an event of it', meanwhile: (store) => void store.deliver('MODIFIED', object('a', 11)) },
    { what: 'an older list with it', meanwhile: (store) => void store.replace([object('a', 5)], '11') },
  ])('does not bring back the former owner of a name that we took, after $what', ({ meanwhile }) => {
    const store = synced();
    store.write(object('a', 12, 'next'));

    meanwhile(store);
    expect(store.view.get('ns/a')?.metadata.uid).toBe('next');

    // The watch has nothing to deliver of what we wrote: it is not selected.
    store.reach('12');
    expect(store.view.get('ns/a')).toBeUndefined();
  });

  test('does not bring back what was delivered before a write when we deleted that since', () => {
    const store = synced();
    store.write(object('a', 12));
    store.delete(object('a', 12));

    expect(store.reach('12')).toEqual([]);
    expect(store.view.get('ns/a')).toBeUndefined();
  });

  test('leaves the successor alone when the old UID is deleted', () => {
    const store = synced();
    store.deliver('DELETED', object('a', 11));
    store.deliver('ADDED', object('a', 12, 'next'));

    expect(store.delete(object('a', 5))).toEqual([]);
    expect(store.view.get('ns/a')?.metadata.uid).toBe('next');
  });

  test('keeps a new object through a list that is older than it', () => {
    const store = synced();
    store.write(object('b', 15));

    expect(store.replace([object('a', 5)], '14')).toEqual([]);
    expect(versionOf(store, 'ns/b')).toBe('15');
    expect(store.replace([object('a', 5)], '16')).toHaveLength(1);
    expect(store.view.get('ns/b')).toBeUndefined();
  });

  test('forgets a written object that the watch passed without delivering it: it is not selected', () => {
    const store = synced();
    store.write(object('b', 15));

    expect(store.deliver('MODIFIED', object('a', 14))).toHaveLength(1);
    expect(store.view.get('ns/b')).toBeDefined();
    expect(store.reach('15')).toEqual([{ old: object('b', 15), current: undefined }]);
  });

  test('forgets our writes when the server was set back', () => {
    const store = synced();
    store.write(object('a', 99));

    store.replace([object('a', 3)], '4');

    expect(versionOf(store)).toBe('3');
  });
});

/** What a server did: versions count up, and a watch delivers these in order. */
interface Entry {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

/** A server, its watch, answers under way to our own writes, and what readers may rightly expect. */
class World {
  readonly store = new WrittenStore<KubeObject>();
  readonly #log: Entry[] = [];
  readonly #live = new Map<string, KubeObject>();
  readonly #answers: Entry[] = [];
  /** UIDs of which readers have been told the end. */
  readonly #ended = new Set<string>();
  /** Versions below which readers must not see a key. */
  readonly #floors = new Map<string, string>();
  #delivered = 0;

  constructor() {
    this.store.replace([], '0');
  }

  mutate(name: string, { deletes, isOurs }: { deletes: boolean; isOurs: boolean }): void {
    const key = `ns/${name}`;
    const old = this.#live.get(key);
    if (deletes && old === undefined) return;
    const version = this.#log.length + 1;
    const next = object(name, version, old?.metadata.uid ?? `uid-${version}`);
    if (deletes) this.#live.delete(key);
    else this.#live.set(key, next);
    const change = old === undefined ? 'ADDED' : 'MODIFIED';
    const entry: Entry = { type: deletes ? 'DELETED' : change, object: next };
    this.#log.push(entry);
    if (isOurs) this.#answers.push(entry);
  }

  /** One of the answers under way arrives, in any order. */
  answer(which: number): void {
    const [entry] = this.#answers.splice(which % Math.max(this.#answers.length, 1), 1);
    if (entry === undefined) return;
    const { uid, resourceVersion } = entry.object.metadata;
    if (entry.type === 'DELETED') {
      this.store.delete(entry.object);
      this.#ended.add(uid);
    } else {
      this.store.write(structuredClone(entry.object));
      if (!this.#ended.has(uid)) this.#floors.set(keyOf(entry.object), resourceVersion);
    }
  }

  deliver(count: number): void {
    const end = Math.min(this.#delivered + count, this.#log.length);
    for (const { type, object: delivered } of this.#log.slice(this.#delivered, end)) {
      this.store.deliver(type, structuredClone(delivered));
      if (type === 'DELETED') this.#ended.add(delivered.metadata.uid);
    }
    this.#delivered = end;
  }

  bookmark(): void {
    this.store.reach(String(this.#delivered));
  }

  /** A list that is `behind` the present, but not behind the watch. */
  list(behind: number): void {
    const end = Math.max(this.#delivered, this.#log.length - behind);
    const listed = new Map<string, KubeObject>();
    for (const { type, object: changed } of this.#log.slice(0, end)) {
      if (type === 'DELETED') this.#ended.add(changed.metadata.uid);
      if (type === 'DELETED') listed.delete(keyOf(changed));
      else listed.set(keyOf(changed), changed);
    }
    this.store.replace(structuredClone([...listed.values()]), String(end));
    this.#delivered = end;
  }

  settle(): void {
    while (this.#answers.length > 0) this.answer(0);
    this.deliver(this.#log.length);
  }

  get truth(): KubeObject[] {
    return sorted([...this.#live.values()]);
  }

  /** Objects that readers see although they were told that they had ended, or older than our own write of them. */
  get wronglySeen(): KubeObject[] {
    return this.store.view.list().filter((seen) => {
      const { uid, resourceVersion } = seen.metadata;
      return this.#ended.has(uid) || compareResourceVersions(resourceVersion, this.#floors.get(keyOf(seen)) ?? '0') < 0;
    });
  }
}

function sorted(objects: readonly KubeObject[]): KubeObject[] {
  return objects.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b)));
}

const name = fc.constantFrom('a', 'b', 'c');
const mutation = fc.record({ name, deletes: fc.boolean(), isOurs: fc.boolean() });
const action: fc.Arbitrary<(world: World) => void> = fc.oneof(
  { weight: 5, arbitrary: mutation.map((m) => (world: World) => world.mutate(m.name, m)) },
  { weight: 3, arbitrary: fc.nat({ max: 4 }).map((which) => (world: World) => world.answer(which)) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 4 }).map((count) => (world: World) => world.deliver(count)) },
  { weight: 1, arbitrary: fc.constant((world: World) => world.bookmark()) },
  { weight: 1, arbitrary: fc.nat({ max: 4 }).map((behind) => (world: World) => world.list(behind)) },
);

describe('WrittenStore under any interleaving of writes, watch and lists', () => {
  test('shows our own writes at once, never an ended life again, and the truth in the end', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 80, size: 'max' }), (actions) => {
        const world = new World();
        for (const act of actions) {
          act(world);
          expect(world.wronglySeen).toEqual([]);
        }

        world.settle();

        expect(sorted(world.store.view.list())).toEqual(world.truth);
      }),
      { numRuns: 500 },
    );
  });
});
