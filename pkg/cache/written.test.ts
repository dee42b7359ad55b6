import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { keyOf } from '../apis/meta.ts';
import type { KubeObject } from '../apis/meta.ts';
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
interface Log {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

describe('WrittenStore under any interleaving of writes, watch and lists', () => {
  const names = ['a', 'b', 'c'];
  const action = fc.record({
    kind: fc.constantFrom('own', 'foreign', 'own-delete', 'foreign-delete', 'answer', 'deliver', 'bookmark', 'list'),
    name: fc.constantFrom(...names),
    back: fc.nat({ max: 4 }),
  });

  test('shows our own writes at once, never an ended life again, and the truth in the end', () => {
    fc.assert(fc.property(fc.array(action, { maxLength: 80 }), interleave), { numRuns: 1_000 });
  });

  function interleave(actions: readonly { kind: string; name: string; back: number }[]): void {
    const log: Log[] = [];
    const live = new Map<string, KubeObject>();
    const answers: (() => void)[] = [];
    const ended = new Set<string>();
    const floors = new Map<string, string>();
    const store = new WrittenStore<KubeObject>();
    let delivered = 0;
    store.replace([], '0');

    const mutate = (name: string, deletes: boolean): Log | undefined => {
      const key = `ns/${name}`;
      const old = live.get(key);
      if (deletes && old === undefined) return undefined;
      const version = log.length + 1;
      const next = object(name, version, old?.metadata.uid ?? `uid-${version}`);
      if (deletes) live.delete(key);
      else live.set(key, next);
      const entry: Log = { type: deletes ? 'DELETED' : old === undefined ? 'ADDED' : 'MODIFIED', object: next };
      log.push(entry);
      return entry;
    };
    const deliverTo = (end: number): void => {
      for (; delivered < end; delivered++) {
        const entry = log[delivered] as Log;
        store.deliver(entry.type, structuredClone(entry.object));
        if (entry.type === 'DELETED') ended.add(entry.object.metadata.uid);
      }
    };
    const check = (): void => {
      for (const { metadata } of store.view.list()) expect(ended.has(metadata.uid)).toBe(false);
      for (const [key, version] of floors) {
        const seen = store.view.get(key);
        if (seen !== undefined) {
          expect(compareResourceVersions(seen.metadata.resourceVersion, version)).toBeGreaterThanOrEqual(0);
        }
      }
    };

    for (const { kind, name, back } of actions) {
      if (kind === 'foreign') mutate(name, false);
      if (kind === 'foreign-delete') mutate(name, true);
      if (kind === 'own' || kind === 'own-delete') {
        const entry = mutate(name, kind === 'own-delete');
        if (entry !== undefined) answers.push(() => answer(entry));
      }
      if (kind === 'answer') answers.splice(back % Math.max(answers.length, 1), 1)[0]?.();
      if (kind === 'deliver') deliverTo(Math.min(delivered + 1 + back, log.length));
      if (kind === 'bookmark') store.reach(String(delivered));
      if (kind === 'list') relist(Math.max(delivered, log.length - back));
      check();
    }

    for (const answer of answers) answer();
    deliverTo(log.length);
    const seen = [...store.view.list()].toSorted((x, y) => keyOf(x).localeCompare(keyOf(y)));
    const truth = [...live.values()].toSorted((x, y) => keyOf(x).localeCompare(keyOf(y)));
    expect(seen).toEqual(truth);

    function answer({ type, object: written }: Log): void {
      if (type === 'DELETED') {
        store.delete(written);
        ended.add(written.metadata.uid);
        return;
      }
      store.write(structuredClone(written));
      if (!ended.has(written.metadata.uid)) floors.set(keyOf(written), written.metadata.resourceVersion);
    }

    function relist(end: number): void {
      const then = new Map<string, KubeObject>();
      for (const entry of log.slice(0, end)) {
        if (entry.type === 'DELETED') then.delete(keyOf(entry.object));
        else then.set(keyOf(entry.object), entry.object);
        if (entry.type === 'DELETED') ended.add(entry.object.metadata.uid);
      }
      store.replace(structuredClone([...then.values()]), String(end));
      delivered = end;
    }
  }
});
