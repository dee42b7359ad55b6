import { expect, test } from '@jest/globals';

import type { KubeObject } from '../../apis/meta.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { indexesByNamespace, NamespaceViews } from './namespace-views.ts';

function object(namespace: string, name: string, colour: string, version = 1): KubeObject {
  const metadata = {
    namespace,
    name,
    uid: `${namespace}-${name}`,
    resourceVersion: String(version),
    creationTimestamp: '',
  };
  return { metadata: { ...metadata, labels: { colour } } };
}

const INDEXES = { colour: ({ metadata }: KubeObject) => [metadata.labels?.['colour'] ?? ''] };

function start() {
  const informer = new MemoryInformer<KubeObject>(
    [object('a', 'one', 'red'), object('a', 'two', 'blue'), object('b', 'one', 'red')],
    indexesByNamespace(INDEXES),
  );
  const failed: unknown[] = [];
  const views = new NamespaceViews(informer, (err) => void failed.push(err));
  const heard: string[] = [];
  const listen = (namespace: string): void =>
    views.of(namespace).onChange((old, current) => {
      const { name = '' } = (current ?? old)?.metadata ?? {};
      heard.push(`${namespace} ${current === undefined ? 'lost' : old === undefined ? 'got' : 'changed'} ${name}`);
    });
  return { informer, views, heard, listen, failed };
}

const names = (objects: readonly KubeObject[]): string[] => objects.map(({ metadata }) => metadata.name).toSorted();

test('a view finds what is in its namespace, by key, in lists and by index, and nothing else', () => {
  const { views } = start();
  const a = views.of('a');

  expect(names(a.list())).toEqual(['one', 'two']);
  expect(names(a.byIndex('colour', 'red'))).toEqual(['one']);
  expect(a.get('a/one')?.metadata.uid).toBe('a-one');
  expect(a.get('b/one')).toBeUndefined();
  expect(names(views.of('b').byIndex('colour', 'blue'))).toEqual([]);
  expect(views.of('c').list()).toEqual([]);
  expect(a.list()).toBe(a.list());
  expect(() => a.byIndex('size', 'small')).toThrow('index size is not declared');
});

test('a view of a namespace hears of what is there, of changes in it, and of nothing once it is forgotten', () => {
  const { informer, views, heard, listen } = start();

  listen('a');
  listen('b');
  informer.put(object('a', 'one', 'green', 2));
  informer.put(object('b', 'three', 'red'));
  informer.remove('a/two');
  views.forget('a');
  informer.put(object('a', 'one', 'red', 3));
  informer.put(object('b', 'one', 'blue', 2));

  expect(heard).toEqual([
    'a got one',
    'a got two',
    'b got one',
    'a changed one',
    'b got three',
    'a lost two',
    'b changed one',
  ]);
  expect(names(views.of('a').byIndex('colour', 'red'))).toEqual(['one']);
});

test('a view hears of what the watch delivers in its namespace, until it ends, and not of what we write', () => {
  const { informer, views } = start();
  const heard: string[] = [];
  const ending = views.open('a');
  for (const [reader, view] of [['a', views.of('a')] as const, ['ending', ending.informer] as const])
    view.onDelivered((old, current) => void heard.push(`${reader} ${(current ?? old)?.metadata.name}`));

  informer.wrote(object('a', 'one', 'green', 2));
  informer.put(object('a', 'one', 'green', 3));
  informer.put(object('b', 'three', 'red'));
  ending.close();
  informer.remove('a/two');
  views.forget('a');
  informer.remove('a/one');

  expect(heard).toEqual(['a one', 'ending one', 'a two']);
});

test('a handler that throws keeps no other from hearing', () => {
  const { informer, views, heard, listen, failed } = start();
  const err = new Error('bug');

  views.of('a').onChange(() => {
    throw err;
  });
  listen('a');
  informer.put(object('a', 'one', 'green', 2));

  expect(heard).toEqual(['a got one', 'a got two', 'a changed one']);
  expect(failed).toEqual([err, err, err]);
});

test('a namespace whose name begins with that of another is another', () => {
  const { informer, views } = start();
  informer.put(object('a-b', 'one', 'red'));

  expect(views.of('a').get('a-b/one')).toBeUndefined();
  expect(names(views.of('a').byIndex('colour', 'red'))).toEqual(['one']);
});

test('a reader that ends hears of nothing any more, and another one of its namespace does', () => {
  const { informer, views, heard, listen } = start();
  const ending = views.open('a');
  ending.informer.onChange(() => void heard.push('heard by the other reader'));
  heard.length = 0;

  listen('a');
  ending.close();
  informer.put(object('a', 'one', 'green', 2));

  expect(heard).toEqual(['a got one', 'a got two', 'a changed one']);
});

test('a view finds what is in all namespaces by an index that reaches across them, and hears of its own alone', () => {
  const across = new Set(['colour']);
  const informer = new MemoryInformer<KubeObject>(
    [object('a', 'one', 'red'), object('b', 'two', 'red')],
    indexesByNamespace({ ...INDEXES, name: ({ metadata }: KubeObject) => [metadata.name] }, across),
  );
  const a = new NamespaceViews(informer, () => undefined, across).of('a');
  const heard: string[] = [];
  a.onChange((_old, current) => void heard.push(current?.metadata.name ?? ''));

  expect(names(a.byIndex('colour', 'red'))).toEqual(['one', 'two']);
  expect([a.reachesAcross, new NamespaceViews(informer, () => undefined).of('a').reachesAcross]).toEqual([true, false]);
  expect(names(a.byIndex('name', 'two'))).toEqual([]);
  expect(names(a.list())).toEqual(['one']);
  expect(a.get('b/two')).toBeUndefined();
  informer.put(object('b', 'two', 'blue', 2));
  expect(names(a.byIndex('colour', 'red'))).toEqual(['one']);
  expect(heard).toEqual(['one']);
});
