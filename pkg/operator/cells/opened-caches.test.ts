import { expect, test } from '@jest/globals';

import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { providerResource } from '../../kube/client/resource.ts';
import { indexesByNamespace } from '../../kube/cache/namespace-views.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import type { ClusterCaches } from '../cluster-caches.ts';
import { OpenedCaches } from './opened-caches.ts';

const KIND = { group: 'infrastructure.cluster.x-k8s.io', plural: 'simmachines', kind: 'SimMachine' };
const kind = (version = 'v1'): Resource<KubeObject> => providerResource({ ...KIND, version });

function object(namespace: string, name: string): KubeObject {
  return { metadata: { namespace, name, uid: `${namespace}-${name}`, resourceVersion: '1', creationTimestamp: '' } };
}

/** A cache that is filled when it is told. */
class LateInformer extends MemoryInformer<KubeObject> {
  override hasSynced = false;
  readonly waiting: AbortSignal[] = [];

  constructor() {
    super([], indexesByNamespace());
  }

  async waitForSync(signal: AbortSignal): Promise<void> {
    this.waiting.push(signal);
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  }
}

interface Opened {
  readonly version: string;
  readonly namespace: string | undefined;
  readonly informer: LateInformer;
  readonly refused: (err: ApiError) => void;
  isClosed: boolean;
}

function start() {
  const opened: Opened[] = [];
  const open: unknown = (
    { version }: Resource<KubeObject>,
    { namespace, refused }: { readonly namespace?: string; readonly refused: Opened['refused'] },
  ) => {
    const one: Opened = { version, namespace, informer: new LateInformer(), refused, isClosed: false };
    opened.push(one);
    return { informer: one.informer, close: () => void (one.isClosed = true) };
  };
  const caches = new OpenedCaches({ open: open as ClusterCaches['open'] }, () => undefined);
  return { opened, caches };
}

const none = (): void => undefined;

test('a kind is read once for all namespaces, from its first reader to its last, and each sees its own', () => {
  const { opened, caches } = start();
  const one = caches.open(kind(), 'a', none);
  const other = caches.open(kind(), 'b', none);
  const heard: string[] = [];
  for (const [reader, { informer }] of Object.entries({ one, other }))
    informer.onChange((_old, current) => void heard.push(`${reader} ${current?.metadata.namespace}`));

  expect(opened.map(({ version, namespace }) => [version, namespace])).toEqual([['v1', undefined]]);
  opened[0]?.informer.put(object('a', 'm'));
  opened[0]?.informer.put(object('b', 'm'));
  expect(heard).toEqual(['one a', 'other b']);
  expect(one.informer.get('b/m')).toBeUndefined();
  expect(one.informer.list().map(({ metadata }) => metadata.uid)).toEqual(['a-m']);

  one.close();
  one.close();
  expect(opened[0]?.isClosed).toBe(false);
  other.close();
  expect(opened[0]?.isClosed).toBe(true);
  caches.open(kind(), 'a', none);
  expect(opened).toHaveLength(2);
});

test('another version of a kind is another cache', () => {
  const { opened, caches } = start();
  caches.open(kind('v1'), 'a', none);
  caches.open(kind('v2'), 'a', none);

  expect(opened.map(({ version }) => version)).toEqual(['v1', 'v2']);
});

test('what a namespace has left open is closed when it ends, and nobody waits for it any more', async () => {
  const { opened, caches } = start();
  const left = caches.open(kind(), 'a', none);
  caches.open(kind('v2'), 'a', none);
  caches.open(kind('v2'), 'b', none);
  const waits = left.informer.waitForSync(new AbortController().signal);

  caches.forget('a');

  expect(opened.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  await expect(waits).rejects.toThrow('no longer needed');
});

test('that a kind may not be read is told to each reader, also to one that comes later', () => {
  const { opened, caches } = start();
  const told: string[] = [];
  const telling = (reader: string) => (err: ApiError) => void told.push(`${reader} ${err.message}`);
  const first = caches.open(kind(), 'a', telling('a'));

  opened[0]?.refused(new ApiError(403, 'Forbidden', 'no'));
  caches.open(kind(), 'b', telling('b'));
  first.close();
  opened[0]?.refused(new ApiError(403, 'Forbidden', 'still not'));
  for (const one of opened) one.informer.hasSynced = true;
  caches.open(kind(), 'c', telling('c'));

  expect(told).toEqual(['a no', 'b no', 'b still not']);
});
