import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { keyOf } from '../../pkg/apis/meta.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Secret } from '../../pkg/apis/wire.ts';
import { reachPresent } from '../../pkg/kube/cache/reach-present.ts';
import { listAll } from '../../pkg/kube/cache/pager.ts';
import type { ReflectedInformer } from '../../pkg/kube/cache/reflected-informer.ts';
import { compareResourceVersions } from '../../pkg/kube/cache/resource-version.ts';
import type { New } from '../../pkg/kube/client/client.ts';
import { HttpListWatch } from '../../pkg/kube/client/list-watch.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { machines, secrets } from '../../pkg/kube/client/resource.ts';
import { kubeMetrics } from '../../pkg/base/metrics/kube.ts';
import { connect, namespace } from '../env/environment.ts';
import type { TestNamespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';
import { httpProxyFor, KubeSession } from './kube-session.ts';

/** Changes the objects; its requests do not pass any proxy. */
let admin: KubeSession;
let ns: TestNamespace;
beforeAll(async () => {
  admin = new KubeSession(connect());
  ns = await namespace();
});
afterAll(async () => {
  await ns[Symbol.asyncDispose]();
  await admin[Symbol.asyncDispose]();
});

let made = 0;
const uniqueName = (): string => `c-${process.pid}-${++made}`;

function secret(labels: Record<string, string> = {}, name = uniqueName()): New<Secret> {
  return { metadata: { name, namespace: ns.name, labels }, stringData: { word: 'hidden' } };
}

const put = (object: New<Secret>, by = admin): Promise<Secret> => by.writer.create('create', secrets, object);
const relabel = (object: Secret, labels: Record<string, string>, by = admin): Promise<Secret> =>
  by.writer.patch('change', secrets, refOf(object), mergePatch(object, { metadata: { labels } }));
const remove = (object: Secret, by = admin): Promise<Secret | undefined> =>
  by.writer.delete('destroy', secrets, refOf(object), { uid: object.metadata.uid });
const refOf = ({ metadata }: KubeObject) => ({ namespace: metadata.namespace ?? '', name: metadata.name });

/** Key and version of everything, in order. */
const versions = (objects: readonly KubeObject[]): string[] =>
  objects.map((o) => `${keyOf(o)} ${o.metadata.uid} ${o.metadata.resourceVersion}`).toSorted();

/** Waits until the cache equals a live list. */
async function expectEqualToLive(informer: ReflectedInformer<Secret>, labelSelector: string): Promise<void> {
  await eventually(
    async () => {
      const live = await admin.reader.list(secrets, { namespace: ns.name, labelSelector });
      expect(versions(informer.list())).toEqual(versions(live.items));
    },
    { timeoutMs: 120_000 },
  );
}

const lists = (session: KubeSession): number => session.count('list', 'secrets');
const watches = (session: KubeSession): number => session.count('watch', 'secrets');

describe.each([{ streamLists: true }, { streamLists: false }])(
  'an informer with WatchList $streamLists',
  ({ streamLists }) => {
    test('fills from what exists and follows additions, updates and deletions', async () => {
      await using kube = new KubeSession(connect());
      const batch = uniqueName();
      const first = await put(secret({ batch }));
      const informer = kube.informer(secrets, { namespace: ns.name, labelSelector: `batch=${batch}` }, { streamLists });
      const told: string[] = [];
      informer.onChange((old, current) =>
        told.push(`${old?.metadata.resourceVersion} ${current?.metadata.resourceVersion}`),
      );
      await informer.waitForSync(kube.signal);

      expect(versions(informer.list())).toEqual(versions([first]));
      const second = await relabel(first, { batch, step: '2' });
      await eventually(() => told.length === 2);
      await remove(second);
      await eventually(() => informer.list().length === 0);

      const [v1, v2] = [first, second].map(({ metadata }) => metadata.resourceVersion);
      expect(told).toEqual([`undefined ${v1}`, `${v1} ${v2}`, `${v2} undefined`]);
      expect(lists(kube)).toBe(streamLists ? 0 : 1);
    });

    test('works for custom resources and leaves managedFields out', async () => {
      await using kube = new KubeSession(connect());
      const name = uniqueName();
      const machine = await admin.writer.create('create', machines, {
        metadata: { name, namespace: ns.name },
        spec: { class: { kind: 'MachineClass', name: 'c' } },
      });
      const informer = kube.informer(machines, { namespace: ns.name }, { streamLists });
      await informer.waitForSync(kube.signal);

      const cached = informer.get(`${ns.name}/${name}`);
      expect(cached?.metadata.uid).toBe(machine.metadata.uid);
      expect(cached?.metadata).not.toHaveProperty('managedFields');
      expect(Object.isFrozen(cached?.metadata)).toBe(true);
    });

    test('holds nothing but metadata when that is all that is wanted', async () => {
      await using kube = new KubeSession(connect());
      const batch = uniqueName();
      const before = await put(secret({ batch }));
      const selection = { namespace: ns.name, labelSelector: `batch=${batch}`, metadataOnly: true };
      const informer = kube.informer(secrets, selection, { streamLists });
      await informer.waitForSync(kube.signal);
      const after = await put(secret({ batch }), kube);

      expect(
        informer
          .list()
          .map(({ metadata }) => metadata.name)
          .toSorted(),
      ).toEqual([before, after].map(({ metadata }) => metadata.name).toSorted());
      for (const object of informer.list()) expect(Object.keys(object)).toEqual(['metadata']);
    });
  },
);

describe('an informer', () => {
  test('goes on when a handler throws, and counts it', async () => {
    const metrics = kubeMetrics(new Registry());
    await using kube = new KubeSession(connect());
    const batch = uniqueName();
    const informer = kube.informer(secrets, { namespace: ns.name, labelSelector: `batch=${batch}` }, { metrics });
    const told: string[] = [];
    informer.onChange(() => {
      throw new Error('handler');
    });
    informer.onChange((_, current) => told.push(current?.metadata.name ?? 'gone'));
    await informer.waitForSync(kube.signal);

    const { metadata } = await put(secret({ batch }));
    await eventually(() => told.includes(metadata.name));

    expect((await metrics.handlerErrors.get()).values[0]?.value).toBe(1);
  });

  test('shows our own writes at once although the watch is stalled, and tells handlers once', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    await using kube = new KubeSession(connect(), { url: proxy.url });
    await using direct = new KubeSession(connect(), { writer: { observer: kube.informers } });
    const batch = uniqueName();
    const byStep = { step: ({ metadata }: Secret) => (metadata.labels?.['step'] ? [metadata.labels['step']] : []) };
    const selection = { namespace: ns.name, labelSelector: `batch=${batch}` };
    const informer = kube.informer(secrets, selection, { indexes: byStep });
    await informer.waitForSync(kube.signal);
    const told: string[] = [];
    informer.onChange((old, current) =>
      told.push(`${old?.metadata.labels?.['step']} ${current?.metadata.labels?.['step']}`),
    );
    proxy.set('stall');

    const one = await put(secret({ batch, step: '1' }), direct);
    expect(informer.get(keyOf(one))?.metadata.resourceVersion).toBe(one.metadata.resourceVersion);
    const two = await relabel(one, { step: '2' }, direct);
    expect(informer.byIndex('step', '1')).toEqual([]);
    expect(informer.byIndex('step', '2').map(keyOf)).toEqual([keyOf(two)]);
    await remove(two, direct);
    expect(informer.get(keyOf(two))).toBeUndefined();
    const three = await put(secret({ batch, step: '3' }), direct);
    proxy.set('up');
    const last = await put(secret({ batch, step: '4' }));
    await eventually(() => informer.get(keyOf(last)) !== undefined);

    expect(versions(informer.list())).toEqual(versions([three, last]));
    expect(told).toEqual(['undefined 1', '1 2', '2 undefined', 'undefined 3', 'undefined 4']);
  });

  test('does not keep a written object that it does not select', async () => {
    await using kube = new KubeSession(connect());
    const batch = uniqueName();
    const informer = kube.informer(secrets, { namespace: ns.name, labelSelector: `batch=${batch}` });
    await informer.waitForSync(kube.signal);

    const foreign = await put(secret({ batch: 'other' }), kube);
    await put(secret({ batch }), admin);
    await eventually(() => informer.list().length > 0 && informer.get(keyOf(foreign)) === undefined);

    expect(informer.list()).toHaveLength(1);
  });

  test('is brought up to date on demand, without waiting for the next bookmark of a quiet watch', async () => {
    await using kube = new KubeSession(connect());
    const batch = uniqueName();
    const informer = kube.informer(secrets, { namespace: ns.name, labelSelector: `batch=${batch}` });
    await informer.waitForSync(kube.signal);
    const other = await admin.writer.create('create', machines, {
      metadata: { name: uniqueName(), namespace: ns.name },
      spec: { class: { kind: 'MachineClass', name: 'c' } },
    });
    const fromMs = kube.clock.monotonicMs();

    await reachPresent([{ resource: secrets, namespace: ns.name, reader: kube.reader, informer }], kube.signal);

    expect(kube.clock.monotonicMs() - fromMs).toBeLessThan(20_000); // bookmarks come once a minute
    const reached = informer.resourceVersion ?? '';
    expect(compareResourceVersions(reached, other.metadata.resourceVersion)).toBeGreaterThanOrEqual(0);
    const later = await put(secret({ batch }));
    await eventually(() => informer.get(keyOf(later)) !== undefined);
  });

  test('gives its connection up when it ends', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    const kube = new KubeSession(connect(), { url: proxy.url });
    const informer = kube.informer(secrets, { namespace: ns.name });
    await informer.waitForSync(kube.signal);
    expect(proxy.open).toBeGreaterThan(0);

    await kube[Symbol.asyncDispose]();

    await eventually(() => proxy.open === 0);
    expect(informer.hasSynced).toBe(false);
  });
});

describe('an informer whose network fails', () => {
  test.each([
    { how: 'is cut', fail: async (proxy: FaultProxy) => proxy.cut() },
    {
      how: 'refuses for a while',
      fail: async (proxy: FaultProxy, during: () => Promise<unknown>) => {
        proxy.set('refuse');
        await during();
        proxy.set('up');
      },
    },
    {
      how: 'stalls and then delivers',
      fail: async (proxy: FaultProxy, during: () => Promise<unknown>) => {
        proxy.set('stall');
        await during();
        proxy.set('up');
      },
    },
    {
      how: 'is half open',
      fail: async (proxy: FaultProxy, during: () => Promise<unknown>) => {
        proxy.set('swallow-to-client');
        await during();
        await eventually(() => proxy.open === 0 || proxy.accepted > 1);
        proxy.set('up');
      },
    },
  ])('resumes where it was, without a list, when the connection $how', async ({ fail }) => {
    await using proxy = await FaultProxy.start(connect().url);
    await using kube = new KubeSession(connect(), { url: proxy.url });
    const batch = uniqueName();
    const labelSelector = `batch=${batch}`;
    const before = await put(secret({ batch }));
    const doomed = await put(secret({ batch }));
    const informer = kube.informer(secrets, { namespace: ns.name, labelSelector }, { idleMs: 1_000, random: () => 0 });
    await informer.waitForSync(kube.signal);
    const told: string[] = [];
    informer.onChange((old, current) => told.push(`${old?.metadata.name} ${current?.metadata.name}`));
    told.length = 0;
    const during = async (): Promise<unknown> =>
      Promise.all([put(secret({ batch })), relabel(before, { batch, x: 'y' }), remove(doomed)]);

    await fail(proxy, during);
    await during().catch(() => undefined); // What happened already is refused.

    await expectEqualToLive(informer, labelSelector);
    expect(told).toContain(`${before.metadata.name} ${before.metadata.name}`);
    expect(told).toContain(`${doomed.metadata.name} undefined`);
    expect(lists(kube)).toBe(0);
  });

  test('misses nothing of a random history while its connections are cut again and again', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    await using kube = new KubeSession(connect(), { url: proxy.url });
    const batch = uniqueName();
    const labelSelector = `batch=${batch}`;
    const informer = kube.informer(secrets, { namespace: ns.name, labelSelector });
    // What the handlers were told, replayed: must end up as the truth too.
    const replayed = new Map<string, Secret>();
    const wrongOld: string[] = [];
    informer.onChange((old, current) => {
      const key = keyOf((old ?? current) as Secret);
      if (replayed.get(key)?.metadata.resourceVersion !== old?.metadata.resourceVersion) wrongOld.push(key);
      if (current === undefined) replayed.delete(key);
      else replayed.set(key, current);
    });
    await informer.waitForSync(kube.signal);

    const live: Secret[] = [];
    let cuts = 0;
    for (let i = 0; cuts < 12; i++) {
      const victim = live[Math.floor(Math.random() * live.length)];
      const dice = Math.random();
      if (victim === undefined || dice < 0.4) live.push(await put(secret({ batch })));
      else if (dice < 0.8) await relabel(victim, { batch, step: String(i) });
      else {
        live.splice(live.indexOf(victim), 1);
        await remove(victim);
        // The same name again: another object.
        if (dice < 0.9) live.push(await put(secret({ batch }, victim.metadata.name)));
      }
      // Each watch is cut once it stands, wherever in its stream that is.
      if (watches(kube) <= cuts) continue;
      cuts += 1;
      proxy.cut();
    }

    await expectEqualToLive(informer, labelSelector);
    expect(versions([...replayed.values()])).toEqual(versions(informer.list()));
    expect(wrongOld).toEqual([]);
    expect(lists(kube)).toBe(0);
    expect(watches(kube)).toBeGreaterThanOrEqual(12);
  });
});

describe('an informer whose server refuses', () => {
  test('lists anew after 410 and tells what happened meanwhile', async () => {
    await using proxy = await httpProxyFor(connect());
    await using kube = new KubeSession(connect(), { url: proxy.url });
    const batch = uniqueName();
    const labelSelector = `batch=${batch}`;
    const doomed = await put(secret({ batch }));
    const informer = kube.informer(secrets, { namespace: ns.name, labelSelector }, { streamLists: false });
    await informer.waitForSync(kube.signal);
    proxy.inject({ matches: ({ verb }) => verb === 'watch', status: 410, reason: 'Expired', times: 1 });
    const told: string[] = [];
    informer.onChange((old, current) => told.push(`${old?.metadata.name} ${current?.metadata.name}`));

    proxy.cut();
    await remove(doomed);
    const fresh = await put(secret({ batch }));
    await expectEqualToLive(informer, labelSelector);

    expect(told).toContain(`${doomed.metadata.name} undefined`);
    expect(told).toContain(`undefined ${fresh.metadata.name}`);
    expect(lists(kube)).toBe(2);
  });

  test.each([{ status: 400 }, { status: 422 }])(
    'lists where WatchList is answered with $status',
    async ({ status }) => {
      await using proxy = await httpProxyFor(connect());
      await using kube = new KubeSession(connect(), { url: proxy.url });
      proxy.inject({ matches: ({ verb }) => verb === 'watch', status, reason: 'Invalid', times: 1 });
      const object = await put(secret({ batch: uniqueName() }));
      const informer = kube.informer(secrets, {
        namespace: ns.name,
        fieldSelector: `metadata.name=${object.metadata.name}`,
      });

      await informer.waitForSync(kube.signal);

      expect(informer.list().map(keyOf)).toEqual([keyOf(object)]);
      expect(lists(kube)).toBe(1);
      await remove(object);
      await eventually(() => informer.list().length === 0);
    },
  );

  test('waits as long as Retry-After says before it watches again', async () => {
    await using proxy = await httpProxyFor(connect());
    await using kube = new KubeSession(connect(), { url: proxy.url });
    const batch = uniqueName();
    const informer = kube.informer(secrets, { namespace: ns.name, labelSelector: `batch=${batch}` });
    await informer.waitForSync(kube.signal);
    await informer.waitUntilWatching(kube.signal);
    proxy.inject({ matches: ({ verb }) => verb === 'watch', status: 429, retryAfterSeconds: 2, times: 1 });
    const object = await put(secret({ batch }));
    await eventually(() => informer.get(keyOf(object)) !== undefined);
    proxy.cut();
    const fromMs = kube.clock.monotonicMs();
    await eventually(() => proxy.count(({ verb }) => verb === 'watch') === 4);

    expect(kube.clock.monotonicMs() - fromMs).toBeGreaterThan(1_950);
  });

  test('survives errors of all kinds and ends up with the truth', async () => {
    await using proxy = await httpProxyFor(connect());
    await using kube = new KubeSession(connect(), { url: proxy.url });
    const batch = uniqueName();
    for (const status of [500, 503, 401, 403, 404]) {
      proxy.inject({ matches: ({ verb }) => verb === 'watch', status, reason: 'InternalError', times: 1 });
    }
    const informer = kube.informer(
      secrets,
      { namespace: ns.name, labelSelector: `batch=${batch}` },
      { random: () => 0 },
    );
    const object = await put(secret({ batch }));

    await eventually(() => informer.get(keyOf(object)) !== undefined, { timeoutMs: 60_000 });
  });
});

/** Lists five objects in pages of two. */
async function listInPages(kube: KubeSession, resourceVersion: string) {
  const batch = uniqueName();
  const names = [];
  for (let i = 0; i < 5; i++) names.push((await put(secret({ batch }))).metadata.name);
  const selection = { namespace: ns.name, labelSelector: `batch=${batch}` };
  const source = new HttpListWatch({ transport: kube.transport, resource: secrets, selection });
  const { items } = await listAll(source, { resourceVersion, signal: kube.signal, pageSize: 2 });
  return { names, items: items.map(({ metadata }) => metadata.name) };
}

describe('listAll', () => {
  test('reads a quorum list page by page', async () => {
    await using kube = new KubeSession(connect());

    const { names, items } = await listInPages(kube, '');

    expect(items.toSorted()).toEqual(names.toSorted());
    expect(lists(kube)).toBe(3);
  });

  test('reads a list from the cache of the server in one piece', async () => {
    await using kube = new KubeSession(connect());
    const { metadata } = await put(secret());

    const { names, items } = await listInPages(kube, metadata.resourceVersion);

    expect(items.toSorted()).toEqual(names.toSorted());
    expect(lists(kube)).toBe(1);
  });

  test('begins again in one piece when the continue token has expired', async () => {
    await using proxy = await httpProxyFor(connect());
    await using kube = new KubeSession(connect(), { url: proxy.url });
    proxy.inject({ matches: ({ query }) => query.has('continue'), status: 410, reason: 'Expired' });

    const { names, items } = await listInPages(kube, '');

    expect(items.toSorted()).toEqual(names.toSorted());
    expect(lists(kube)).toBe(3);
  });
});

describe('bookmarks', () => {
  // The server sends one 2 s before the time of a watch is over.
  test('move a quiet watch on, so that it resumes without a list', async () => {
    await using proxy = await FaultProxy.start(connect().url);
    await using kube = new KubeSession(connect(), { url: proxy.url });
    let alive = 0;
    const informer = kube.informer(
      secrets,
      { namespace: ns.name, labelSelector: `batch=${uniqueName()}` },
      {
        onAlive: () => {
          alive += 1;
        },
      },
    );
    await informer.waitForSync(kube.signal);
    const [atSync, aliveAtSync] = [informer.resourceVersion, alive];
    await put(secret({ batch: 'other' }));

    await eventually(() => informer.resourceVersion !== atSync, { timeoutMs: 100_000, intervalMs: 500 });
    const [bookmarked, watched] = [informer.resourceVersion, watches(kube)];
    proxy.cut();
    await eventually(() => watches(kube) > watched);

    expect(alive).toBeGreaterThan(aliveAtSync);
    expect(informer.resourceVersion).toBe(bookmarked);
    expect(lists(kube)).toBe(0);
  });
});
