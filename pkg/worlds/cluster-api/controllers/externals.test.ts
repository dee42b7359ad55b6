import { expect, test } from '@jest/globals';

import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { apiVersionOf } from '../../../kube/client/resource.ts';
import { Externals, type ExternalsDeps } from './externals.ts';

const REFERENCE = { apiGroup: 'g.io', kind: 'Sim', name: 'a' };
const holder = named('m');

function named(name: string, metadata: object = {}): KubeObject {
  return {
    metadata: {
      name,
      namespace: 'ns',
      uid: `uid-of-${name}`,
      resourceVersion: '1',
      creationTimestamp: '',
      ...metadata,
    },
  };
}

const definition = (version: string, resourceVersion: string): KubeObject => ({
  metadata: {
    name: 'sims.g.io',
    uid: 'crd',
    resourceVersion,
    creationTimestamp: '',
    labels: { 'cluster.x-k8s.io/v1beta2': version },
  },
});

/** Caches that fill when the test says so. */
class Caches {
  readonly opened: string[] = [];
  readonly closed: string[] = [];
  readonly definitions = new MemoryInformer<KubeObject>([]);
  readonly woken: string[] = [];
  readonly externals: Externals;
  fill: () => Promise<void> = () => Promise.resolve();
  refuse: (err: ApiError) => void = () => undefined;
  cache = new MemoryInformer<KubeObject>([]);

  constructor() {
    const open: ExternalsDeps['open'] = (resource, refused) => {
      const name = apiVersionOf(resource);
      this.opened.push(name);
      this.refuse = refused;
      const cache = new MemoryInformer<KubeObject>([]);
      this.cache = cache;
      const synced = Promise.withResolvers<void>();
      let hasSynced = false;
      this.fill = async () => {
        hasSynced = true;
        synced.resolve();
        await Promise.resolve();
        await Promise.resolve();
      };
      return {
        informer: {
          get: (key) => cache.get(key),
          onChange: (handler) => cache.onChange(handler),
          get hasSynced() {
            return hasSynced;
          },
          waitForSync: () => synced.promise,
        },
        close: () => this.closed.push(name),
      };
    };
    const reader = {
      get: () => Promise.reject(new ApiError(404, 'NotFound', 'no')),
    } as unknown as ExternalsDeps['reader'];
    this.externals = new Externals({ definitions: this.definitions, reader, open });
    this.externals.start((user) => this.woken.push(user));
  }
}

test('a kind is watched from its first user to its last', async () => {
  const caches = new Caches();
  const { externals } = caches;
  caches.definitions.put(definition('v1', '1'));

  externals.use('one', holder, [REFERENCE]);
  externals.use('two', holder, [{ ...REFERENCE, name: 'b' }]);
  expect(externals.find(holder, REFERENCE)).toEqual({ kind: 'reading' });
  await caches.fill();
  expect(caches.woken).toEqual(['one', 'two']);
  expect(externals.find(holder, REFERENCE)).toEqual({ kind: 'absent' });
  caches.cache.put(named('a'));
  caches.cache.put(named('b'));
  expect(caches.woken).toEqual(['one', 'two', 'one', 'two']);
  expect(externals.find(holder, REFERENCE)).toMatchObject({ kind: 'found', contract: 'v1beta2' });

  externals.drop('one');
  expect(caches.closed).toEqual([]);
  externals.use('two', holder, []);
  expect([caches.opened, caches.closed, externals.watched]).toEqual([['g.io/v1'], ['g.io/v1'], []]);
});

test('a definition that is missing, comes, names another version and goes is followed, and its users are woken', async () => {
  const caches = new Caches();
  const { externals, definitions } = caches;
  externals.use('one', holder, [REFERENCE]);
  expect(externals.find(holder, REFERENCE)).toMatchObject({
    problem: expect.stringContaining('sims.g.io does not exist'),
  });

  definitions.put({ metadata: { ...definition('v1', '1').metadata, labels: {} } });
  expect(externals.find(holder, REFERENCE)).toMatchObject({ problem: expect.stringContaining('has no label') });
  definitions.put(definition('v1', '2'));
  definitions.put(definition('v1', '3'));
  definitions.put(definition('v2', '4'));
  expect([caches.opened, caches.closed]).toEqual([['g.io/v1', 'g.io/v2'], ['g.io/v1']]);
  await caches.fill();
  definitions.remove('sims.g.io');

  expect(caches.closed).toEqual(['g.io/v1', 'g.io/v2']);
  expect(externals.find(holder, REFERENCE)).toMatchObject({ kind: 'unknown' });
  expect(await externals.isGone(holder, REFERENCE, new AbortController().signal)).toBe(false);
  expect(new Set(caches.woken)).toEqual(new Set(['one']));
});

test('a kind that may not be read says which rights help, until it may', async () => {
  const caches = new Caches();
  const { externals } = caches;
  caches.definitions.put(definition('v1', '1'));
  externals.use('one', holder, [REFERENCE]);

  caches.refuse(new ApiError(403, 'Forbidden', 'no'));
  expect(externals.find(holder, REFERENCE)).toMatchObject({
    problem: expect.stringContaining('deploy/rbac/cluster-api.yaml'),
  });
  await caches.fill();

  expect(externals.find(holder, REFERENCE)).toEqual({ kind: 'absent' });
  expect(caches.woken).toEqual(['one', 'one']);
  expect(await externals.isGone(holder, REFERENCE, new AbortController().signal)).toBe(true);
});

test('after the end nothing is watched', () => {
  const caches = new Caches();
  caches.definitions.put(definition('v1', '1'));
  caches.externals.use('m', holder, [REFERENCE]);

  caches.externals.stop();
  caches.definitions.put(definition('v2', '2'));

  expect(caches.opened).toEqual(['g.io/v1']);
  expect(caches.closed).toEqual(['g.io/v1']);
  expect(caches.externals.watched).toEqual([]);
});
