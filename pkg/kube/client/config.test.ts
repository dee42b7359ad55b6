import { readFileSync } from 'node:fs';

import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { foreignEndpoint } from './config.ts';

const clusters = [{ name: 'c', cluster: { server: 'https://host:6443' } }];
const users = [{ name: 'u', user: { token: 't' } }];
const contexts = [
  { name: 'x', context: { cluster: 'c', user: 'u' } },
  { name: 'astray', context: { cluster: 'other', user: 'u' } },
];

test.each(['astray', 'none', undefined])(
  'a kubeconfig whose current context is %s is told how to mend',
  async (current) => {
    const kubeconfig = JSON.stringify({ clusters, users, contexts, 'current-context': current });

    await expect(foreignEndpoint({ content: { kubeconfig }, clock: new FakeClock() })).rejects.toMatchObject({
      name: 'ConfigError',
      message:
        'the current context of the kubeconfig refers to a cluster that it does not define; set current-context to a context with an existing cluster',
    });
  },
);

test.each([
  { changed: 'server', cluster: { server: 'https://other:6443' } },
  { changed: 'proxy-url', cluster: { 'proxy-url': 'http://proxy:3128' } },
  { changed: 'tls-server-name', cluster: { 'tls-server-name': 'other' } },
  { changed: 'certificate-authority-data', cluster: { 'certificate-authority-data': 'b3RoZXI=' } },
])(
  'a kubeconfig that is read again and has another $changed may mean another cluster: it is told and not used',
  async (row) => {
    const clock = new FakeClock();
    let moves = 0;
    let own = {};
    const content = async (): Promise<{ kubeconfig: string }> => {
      const changed = [{ name: 'c', cluster: { ...clusters[0]?.cluster, ...own } }];
      return { kubeconfig: JSON.stringify({ clusters: changed, users, contexts, 'current-context': 'x' }) };
    };
    const endpoint = await foreignEndpoint({ content, clock, moved: () => moves++ });
    await endpoint.credentials();
    endpoint.refused();
    await endpoint.credentials();
    expect(moves).toBe(0);

    own = row.cluster;
    clock.advance(60_000);
    endpoint.refused();

    await expect(endpoint.credentials()).rejects.toThrow('names another server now, or another way to it');
    expect(moves).toBe(1);
  },
);

/** A CA bundle of certificates that say nothing but this. */
function bundleOf(...names: readonly string[]): string {
  const blocks = names.map((name) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`);
  return Buffer.from(blocks.join('')).toString('base64');
}

test.each([
  { what: 'a slash at the end of the server', changed: [{ server: 'https://host:6443/' }] },
  { what: 'the default port', first: { server: 'https://host' }, changed: [{ server: 'https://HOST:443' }] },
  {
    what: 'another password of the proxy',
    first: { 'proxy-url': 'http://u:old@proxy:3128' },
    changed: [{ 'proxy-url': 'http://u:new@proxy:3128' }],
  },
  {
    what: 'a CA that is rotated as Kubernetes documents it',
    first: { 'certificate-authority-data': bundleOf('old') },
    changed: ['old new', 'new'].map((names) => ({ 'certificate-authority-data': bundleOf(...names.split(' ')) })),
  },
])('a kubeconfig that is read again and has $what means the same server, and is used', async ({ first, changed }) => {
  const clock = new FakeClock();
  let own = {};
  const content = async (): Promise<{ kubeconfig: string }> => {
    const cluster = { ...clusters[0]?.cluster, ...first, ...own };
    return {
      kubeconfig: JSON.stringify({ clusters: [{ name: 'c', cluster }], users, contexts, 'current-context': 'x' }),
    };
  };
  const endpoint = await foreignEndpoint({ content, clock, moved: () => expect('moved').toBe('not moved') });
  await endpoint.credentials();

  for (const cluster of changed) {
    own = cluster;
    clock.advance(60_000);
    endpoint.refused();
    await endpoint.credentials();
  }

  const ca = (await endpoint.credentials()).connection.tls.ca ?? '';
  expect(ca).toBe(first && 'certificate-authority-data' in first ? atob(bundleOf('new')) : '');
});

test('servers are told apart by the path of their URL, their proxy and their name, but not by their CA', async () => {
  const ways = [
    {},
    { server: 'https://host:6443/' },
    { 'certificate-authority-data': bundleOf('new') },
    { server: 'https://host:6443/k8s/clusters/c-1' },
    { server: 'https://host:6443/k8s/clusters/c-2' },
    { 'proxy-url': 'http://proxy:3128' },
    { 'tls-server-name': 'other' },
  ].map(async (own) => {
    const cluster = { ...clusters[0]?.cluster, ...own };
    const kubeconfig = { clusters: [{ name: 'c', cluster }], users, contexts, 'current-context': 'x' };
    const content = { kubeconfig: JSON.stringify(kubeconfig) };
    return (await foreignEndpoint({ content, clock: new FakeClock() })).way;
  });

  const [first, slash, ca, ...others] = await Promise.all(ways);

  expect([slash, ca]).toEqual([first, first]);
  expect(new Set([first, ...others]).size).toBe(5);
});

test('a CA that has nothing in common with the one before may vouch for another server', async () => {
  const clock = new FakeClock();
  let ca = 'old';
  let moves = 0;
  const content = async (): Promise<{ kubeconfig: string }> => {
    const cluster = { ...clusters[0]?.cluster, 'certificate-authority-data': bundleOf(ca) };
    return {
      kubeconfig: JSON.stringify({ clusters: [{ name: 'c', cluster }], users, contexts, 'current-context': 'x' }),
    };
  };
  const endpoint = await foreignEndpoint({ content, clock, moved: () => moves++ });
  await endpoint.credentials();

  ca = 'new';
  clock.advance(60_000);
  endpoint.refused();

  await expect(endpoint.credentials()).rejects.toThrow('names another server now, or another way to it');
  expect(moves).toBe(1);
});

test('a kubeconfig whose token alone has changed is used', async () => {
  const clock = new FakeClock();
  let token = 'old';
  const content = async (): Promise<{ kubeconfig: string }> => ({
    kubeconfig: JSON.stringify({ clusters, users: [{ name: 'u', user: { token } }], contexts, 'current-context': 'x' }),
  });
  const endpoint = await foreignEndpoint({ content, clock, moved: () => expect('not moved').toBe('moved') });

  const before = await endpoint.credentials();
  token = 'new';
  clock.advance(60_000);
  endpoint.refused();
  const after = await endpoint.credentials();

  expect([before, after].map(({ headers }) => headers)).toEqual(
    ['old', 'new'].map((one) => ({ Authorization: `Bearer ${one}` })),
  );
});

test.each([
  { server: 'https://kube-apiserver', url: 'https://kube-apiserver.cell-a.svc', name: 'kube-apiserver' },
  { server: 'https://api:6443/path', url: 'https://api.cell-a.svc:6443/path', name: 'api' },
  { server: 'https://api', named: 'other', url: 'https://api.cell-a.svc', name: 'other' },
  { server: 'https://api.example.com:6443', url: 'https://api.example.com:6443', name: undefined },
  { server: 'https://10.0.0.1:6443', url: 'https://10.0.0.1:6443', name: undefined },
  { server: 'https://[::1]:6443', url: 'https://[::1]:6443', name: undefined },
  { server: 'https://localhost:6443', url: 'https://localhost:6443', name: undefined },
  {
    server: 'https://api',
    proxy: 'http://proxy:3128',
    url: 'https://api',
    name: undefined,
    by: 'http://proxy.cell-a.svc:3128',
  },
])('in a namespace, $server is reached at $url', async ({ server, named, proxy, url, name, by }) => {
  const cluster = {
    server,
    ...(named !== undefined && { 'tls-server-name': named }),
    ...(proxy !== undefined && { 'proxy-url': proxy }),
  };
  const config = { clusters: [{ name: 'c', cluster }], users, contexts, 'current-context': 'x' };
  const content = async () => ({ kubeconfig: JSON.stringify(config), namespace: 'cell-a' });

  const endpoint = await foreignEndpoint({ content, clock: new FakeClock() });
  const { connection } = await endpoint.credentials();

  expect(endpoint.url).toBe(url);
  expect(connection.tls.servername).toBe(name);
  expect(connection.proxy?.url.replace(/\/$/, '')).toBe(by);
});

test('what nobody knows in a foreign kubeconfig is left out', async () => {
  const cluster = { server: 'https://host:6443', 'api-version': 'v1' };
  const config = { clusters: [{ name: 'c', cluster }], users: [{ name: 'u', user: { token: 't', tokenfile: '/t' } }] };
  const content = JSON.stringify({ ...config, contexts, 'current-context': 'x' });

  const endpoint = await foreignEndpoint({ content: { kubeconfig: content }, clock: new FakeClock() });

  expect((await endpoint.credentials()).headers).toEqual({ Authorization: 'Bearer t' });
});

test('of all that client-node reads of a user, a foreign kubeconfig may bring only values', async () => {
  const source = readFileSync(new URL('./config_types.js', import.meta.resolve('@kubernetes/client-node')), 'utf8');
  const members = new Set(
    [...source.matchAll(/\buser(?:\.([a-zA-Z]+)|\['([a-z-]+)'\])/g)].map(([, a, b]) => a ?? b ?? ''),
  );
  const accepted: string[] = [];
  for (const member of members) {
    // Neither half of basic credentials is anything alone.
    const user = { ...(member === 'password' && { username: 'u' }), [member]: '/etc/hostname' };
    const content = JSON.stringify({ clusters, users: [{ name: 'u', user }], contexts, 'current-context': 'x' });
    const isTaken = await foreignEndpoint({ content: { kubeconfig: content }, clock: new FakeClock() })
      .then(async (endpoint) => JSON.stringify(await endpoint.credentials()))
      .then(
        (credentials) => !credentials.startsWith('{"headers":{},"connection":{"tls":{}}'),
        () => false,
      );
    if (isTaken) accepted.push(member);
  }

  expect(members).toContain('token-file');
  expect(accepted.toSorted()).toEqual([
    'as',
    'client-certificate-data',
    'client-key-data',
    'password',
    'token',
    'username',
  ]);
});
