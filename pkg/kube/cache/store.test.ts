import { describe, expect, test } from '@jest/globals';

import type { KubeObject } from '../../apis/meta.ts';
import { Store } from './store.ts';

function object(name: string, version: number, options: { uid?: string; group?: string } = {}): KubeObject {
  const { uid = `uid-${name}`, group } = options;
  const labels = group === undefined ? {} : { labels: { group } };
  return {
    metadata: { name, namespace: 'ns', uid, resourceVersion: String(version), creationTimestamp: '', ...labels },
  };
}

const byGroup = { group: ({ metadata }: KubeObject) => (metadata.labels?.['group'] ? [metadata.labels['group']] : []) };

describe('Store', () => {
  test('reports an addition, an update and a deletion', () => {
    const store = new Store<KubeObject>();
    const first = object('a', 1);
    const second = object('a', 2);

    expect(store.put(first)).toEqual([{ old: undefined, current: first }]);
    expect(store.put(second)).toEqual([{ old: first, current: second }]);
    expect(store.remove('ns/a')).toEqual([{ old: second, current: undefined }]);
  });

  test('reports another UID under the same key as a deletion and an addition', () => {
    const store = new Store<KubeObject>();
    const old = object('a', 1, { uid: 'old' });
    const young = object('a', 5, { uid: 'young' });
    store.put(old);

    expect(store.put(young)).toEqual([
      { old, current: undefined },
      { old: undefined, current: young },
    ]);
  });

  test('reports nothing for a version it has already', () => {
    const store = new Store<KubeObject>();
    store.put(object('a', 1));

    expect(store.put(object('a', 1))).toEqual([]);
    expect(store.remove('ns/b')).toEqual([]);
  });

  test('moves an object between index values and forgets it when it is removed', () => {
    const store = new Store<KubeObject>(byGroup);
    store.put(object('a', 1, { group: 'red' }));
    store.put(object('b', 2, { group: 'red' }));
    store.put(object('a', 3, { group: 'blue' }));
    store.remove('ns/b');

    expect(store.byIndex('group', 'red')).toEqual([]);
    expect(store.byIndex('group', 'blue').map(({ metadata }) => metadata.name)).toEqual(['a']);
  });

  test('refuses an index that is not declared', () => {
    expect(() => new Store<KubeObject>().byIndex('group', 'red')).toThrow('not declared');
  });

  test('gives the same objects of a value as the same array, until one of them changes', () => {
    const groupOf = ({ metadata }: KubeObject): string[] => [metadata.labels?.['group'] ?? ''];
    const store = new Store<KubeObject>({ group: groupOf });
    const of = (name: string, group: string, resourceVersion = '1'): KubeObject => ({
      metadata: { name, uid: name, resourceVersion, creationTimestamp: '', labels: { group } },
    });
    store.put(of('a', 'red'));
    store.put(of('b', 'blue'));
    const red = store.byIndex('group', 'red');

    store.put(of('b', 'blue', '2'));
    expect(store.byIndex('group', 'red')).toBe(red);
    store.put(of('a', 'red', '2'));
    expect(store.byIndex('group', 'red')).toEqual([of('a', 'red', '2')]);
    store.put(of('b', 'red', '3'));
    expect(store.byIndex('group', 'red')).toHaveLength(2);
    store.remove('a');

    expect(store.byIndex('group', 'red')).toEqual([of('b', 'red', '3')]);
    expect(red).toEqual([of('a', 'red')]);
  });

  test('lists the same array until something changes', () => {
    const store = new Store<KubeObject>();
    store.put(object('a', 1));
    const before = store.list();

    expect(store.list()).toBe(before);
    store.put(object('b', 2));
    expect(store.list()).toHaveLength(2);
    expect(before).toHaveLength(1);
  });
});
