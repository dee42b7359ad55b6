import { rmSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { keyOf } from '../../pkg/apis/meta.ts';
import type { Secret } from '../../pkg/apis/wire.ts';
import type { New } from '../../pkg/kube/client/client.ts';
import { secrets } from '../../pkg/kube/client/resource.ts';
import { privateControlPlane } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';
import { KubeSession } from './kube-session.ts';

const secret = (name: string): New<Secret> => ({ metadata: { name, namespace: 'default' } });

test('an informer catches up with a server that was restarted and has forgotten what happened before', async () => {
  await using plane = await privateControlPlane({ controllerManager: false });
  await using proxy = await FaultProxy.start(plane.url);
  await using admin = new KubeSession(plane.connection);
  await using kube = new KubeSession(plane.connection, { url: proxy.url });
  const doomed = await admin.writer.create('create', secrets, secret('doomed'));
  const informer = kube.informer(secrets, { namespace: 'default' });
  await informer.waitForSync(kube.signal);

  proxy.set('refuse');
  await admin.writer.delete('destroy', secrets, { namespace: 'default', name: 'doomed' }, { uid: doomed.metadata.uid });
  const missed = await admin.writer.create('create', secrets, secret('missed'));
  await plane.apiserver.stop('SIGKILL');
  await plane.apiserver.start();
  proxy.set('up');

  await eventually(() => informer.get(keyOf(missed)) !== undefined && informer.get(keyOf(doomed)) === undefined, {
    timeoutMs: 120_000,
  });
  const later = await admin.writer.create('create', secrets, secret('later'));
  await eventually(() => informer.get(keyOf(later)) !== undefined);
  // Its old place in history is gone: answered by an ERROR event inside of a watch, not by a status.
  expect(kube.requests.filter(({ code }) => code === 410)).toEqual([]);
});

test('an informer follows a server whose data were set back to an older state', async () => {
  await using plane = await privateControlPlane({ controllerManager: false });
  await using proxy = await FaultProxy.start(plane.url);
  await using kube = new KubeSession(plane.connection, { url: proxy.url });
  const lost = await kube.writer.create('create', secrets, secret('lost'));
  const informer = kube.informer(secrets, { namespace: 'default' }, { idleMs: 2_000 });
  await informer.waitForSync(kube.signal);
  expect(informer.get(keyOf(lost))).toBeDefined();

  proxy.set('refuse');
  await plane.apiserver.stop('SIGKILL');
  await plane.etcd.stop('SIGKILL');
  rmSync(join(plane.directory, 'etcd'), { recursive: true });
  await plane.etcd.start();
  await plane.apiserver.start();
  proxy.set('up');

  await eventually(() => informer.get(keyOf(lost)) === undefined, { timeoutMs: 60_000 });
  await using admin = new KubeSession(plane.connection);
  const found = await eventually(() => admin.writer.create('create', secrets, secret('found')), { timeoutMs: 120_000 });
  await eventually(() => informer.get(keyOf(found)) !== undefined);
});
