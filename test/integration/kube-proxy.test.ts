import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { Api } from '../../hack/control-plane/api.ts';
import { nodes } from '../../pkg/kube/client/resource.ts';
import { connect } from '../env/environment.ts';
import type { HttpFaultProxy } from '../proxy/http-fault-proxy.ts';
import { httpProxyFor, KubeSession } from './kube-session.ts';

let proxy: HttpFaultProxy;
beforeAll(async () => {
  proxy = await httpProxyFor(connect());
});
afterAll(() => proxy[Symbol.asyncDispose]());

/** Who the server takes a client of the proxy for. */
async function seenAs(identity: ConstructorParameters<typeof Api>[0]['identity']): Promise<unknown> {
  const api = new Api({ url: proxy.url, ca: connect().ca, ...(identity === undefined ? {} : { identity }) });
  try {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const { body, status } = await api.request('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      method: 'POST',
      body: review,
    });
    if (status !== 201) return (body as { reason: string }).reason;
    const { userInfo } = (body as { status: { userInfo: { username: string; groups: string[] } } }).status;
    return { user: userInfo.username, groups: userInfo.groups };
  } finally {
    await api.close();
  }
}

describe('the HTTP fault proxy', () => {
  test('hands on the user and groups of a client certificate', async () => {
    const node = await connect().credentialFor({ user: 'system:node:n1', groups: ['system:nodes'] });

    expect(await seenAs(node)).toEqual({ user: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] });
  });

  test('hands on tokens, good or bad, and nobody', async () => {
    expect(await seenAs({ token: 'bad' })).toBe('Unauthorized');
    expect(await seenAs(undefined)).toBe('Forbidden');
  });

  test('counts what clients ask, watches apart', async () => {
    await using kube = new KubeSession(connect(), { url: proxy.url });
    proxy.reset();
    const informer = kube.informer(nodes, {}, { streamLists: false });
    await informer.waitForSync(kube.signal);
    await kube.reader.get(nodes, { name: 'none' }).catch(() => undefined);
    await kube.reader.list(nodes, { limit: 1 });

    expect(Object.fromEntries(proxy.counts())).toMatchObject({ 'list nodes': 2, 'get nodes': 1, 'watch nodes': 1 });
  });
});
