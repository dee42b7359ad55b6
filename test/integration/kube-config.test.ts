import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { identityOf } from '../../hack/control-plane/process-identity.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { contextNames, foreignEndpoint, loadEndpoint } from '../../pkg/kube/client/config.ts';
import type { Endpoint } from '../../pkg/kube/client/endpoint.ts';
import { HttpReader } from '../../pkg/kube/client/http-reader.ts';
import { HttpListWatch } from '../../pkg/kube/client/list-watch.ts';
import { secrets } from '../../pkg/kube/client/resource.ts';
import { Transport } from '../../pkg/kube/client/transport.ts';
import { connect, namespace } from '../env/environment.ts';
import type { TestNamespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';

const clock = new SystemClock();
let folder: string;
let ns: TestNamespace;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'machinist-kubeconfig-'));
  ns = await namespace();
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await ns[Symbol.asyncDispose]();
});

/** How the server answers a read: undefined when it lets it pass. */
async function refusalOf(endpoint: Endpoint): Promise<string | undefined> {
  const transport = new Transport({ endpoint, clock, userAgent: 'machinist/test' });
  try {
    await new HttpReader(transport).list(secrets, { namespace: ns.name, limit: 1 });
    return undefined;
  } catch (err) {
    return (err as { reason: string }).reason;
  } finally {
    await transport.close();
  }
}

async function serviceAccountToken(): Promise<string> {
  const api = connect().api();
  try {
    const path = `/api/v1/namespaces/${ns.name}/serviceaccounts/default/token`;
    const { body } = await api.request(path, { method: 'POST', body: { spec: { expirationSeconds: 3_600 } } });
    return (body as { status: { token: string } }).status.token;
  } finally {
    await api.close();
  }
}

function kubeconfigWith(user: object, url = connect().url): string {
  const path = join(folder, 'kubeconfig');
  const { ca } = connect();
  const cluster = { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const config = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'shoot--a--b' } }],
    'current-context': 'x',
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

describe('foreignEndpoint', () => {
  const server = 'https://127.0.0.1:6443';
  const content = (cluster: object, user: object = { token: 't' }): string =>
    JSON.stringify({
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    });

  test.each([
    { what: 'a file', text: content({ server, 'certificate-authority': '/ca' }), says: 'certificate-authority is not' },
    { what: 'a program', text: content({ server }, { exec: { command: 'sh' } }), says: 'exec is not allowed' },
    { what: 'a token of a file', text: content({ server }, { tokenFile: '/t' }), says: 'tokenFile is not allowed' },
    { what: 'one under another name', text: content({ server }, { 'token-file': '/t' }), says: 'token-file is not' },
    { what: 'a user that is a list', text: content({ server }, []), says: 'a user is no object' },
    { what: 'no TLS', text: content({ server: 'http://127.0.0.1:1' }), says: 'a server without TLS is not allowed' },
    {
      what: 'certificates that nobody checks',
      text: content({ server, 'insecure-skip-tls-verify': true }),
      says: 'set the CA of the server instead',
    },
    { what: 'aliases, which may come to anything', text: `a: &a [x]\nb: *a\n`, says: 'aliases are not allowed' },
  ])('refuses $what', async ({ text, says }) => {
    await expect(foreignEndpoint({ content: { kubeconfig: text }, clock })).rejects.toThrow(says);
  });

  test('takes one that brings all along', async () => {
    const text = content({ server, 'certificate-authority-data': Buffer.from(connect().ca).toString('base64') });

    expect((await foreignEndpoint({ content: { kubeconfig: text }, clock })).url).toBe(server);
  });
});

const isAlive = (pid: number): boolean => identityOf(pid) !== undefined;

/** A credential plugin that never ends, and nor does what it has started; `started` resolves with the process IDs of both. */
function hangingPlugin() {
  const file = join(folder, 'pids');
  rmSync(file, { force: true });
  const script = `sleep 1000 & echo "$$ $! all" > ${file}; wait`;
  const started = async (): Promise<readonly number[]> => {
    await eventually(() => existsSync(file) && readFileSync(file, 'utf8').includes('all'));
    return readFileSync(file, 'utf8').split(' ').slice(0, 2).map(Number);
  };
  return { user: { exec: { command: 'sh', args: ['-c', script] } }, started };
}

describe('loadEndpoint', () => {
  test('takes a kubeconfig with client certificates', async () => {
    const endpoint = await loadEndpoint({ kubeconfig: connect().kubeconfig, clock, env: {} });

    expect(endpoint.url).toBe(connect().url);
    expect(await refusalOf(endpoint)).toBeUndefined();
  });

  test('reads a tokenFile beside the kubeconfig, and again once its token was refused', async () => {
    writeFileSync(join(folder, 'token'), 'old\n');
    const kubeconfig = kubeconfigWith({ tokenFile: 'token', token: 'ignored' });
    const endpoint = await loadEndpoint({ kubeconfig, clock, env: {} });
    expect(endpoint.namespace).toBe('shoot--a--b');
    await endpoint.credentials();

    writeFileSync(join(folder, 'token'), `${await serviceAccountToken()}\n`);

    // Known to the server, but a plain service account may not list Secrets.
    expect(await refusalOf(endpoint)).toBe('Forbidden');
  });

  test('runs a credential plugin once for many, and again once its token was refused', async () => {
    const log = join(folder, 'plugin.log');
    const token = await serviceAccountToken();
    const script = `echo run >> ${log}; if [ $(wc -l < ${log}) -gt 1 ]; then T=${token}; else T=wrong; fi; echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$T'"}}'`;
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh', args: ['-c', script] };
    const endpoint = await loadEndpoint({ kubeconfig: kubeconfigWith({ exec }), clock, env: {} });
    const [one, two] = await Promise.all([endpoint.credentials(), endpoint.credentials()]);

    expect(one).toBe(two);
    expect(one.headers['Authorization']).toBe('Bearer wrong');
    expect(await refusalOf(endpoint)).toBe('Forbidden');
  });

  test('ends a credential plugin that hangs after 10 s, with all that it has started, and says so', async () => {
    const fake = new FakeClock();
    const plugin = hangingPlugin();
    const kubeconfig = kubeconfigWith(plugin.user);
    const endpoint = await loadEndpoint({ kubeconfig, clock: fake, env: process.env });
    const failure = endpoint.credentials().catch((err: unknown) => err);
    const pids = await plugin.started();
    fake.advance(9_999);
    const wereAlive = pids.map(isAlive);
    fake.advance(1);

    const message = `loading the credentials took longer than 10000 ms: kubeconfig ${kubeconfig}, credential plugin sh`;
    expect(await failure).toMatchObject({ message });
    expect(wereAlive).toEqual([true, true]);
    await eventually(() => !pids.some(isAlive), { describe: 'the plugin and its child to end' });
    expect(await refusalOf(endpoint)).toBe('NoCredentials');
  });

  test('gives a credential plugin a minute where somebody sits at the terminal, before any request', async () => {
    const fake = new FakeClock();
    const plugin = hangingPlugin();
    const [kubeconfig, env] = [
      kubeconfigWith(plugin.user),
      { ...process.env, KUBECONFIG: kubeconfigWith(plugin.user) },
    ];
    const failure = loadEndpoint({ kubeconfig: '', clock: fake, env, isInteractive: true }).catch(
      (err: unknown) => err,
    );
    const [pid = 0, grandchild = 0] = await plugin.started();
    try {
      fake.advance(59_999);
      const wasAlive = isAlive(pid);
      fake.advance(1);

      const message = `loading the credentials took longer than 60000 ms: kubeconfig ${kubeconfig}, credential plugin sh`;
      expect(await failure).toMatchObject({ name: 'ConfigError', message });
      expect(wasAlive).toBe(true);
      await eventually(() => !isAlive(pid), { describe: 'the plugin to end' });
    } finally {
      // It shares the terminal, so that it is not in a group of its own.
      process.kill(grandchild, 'SIGKILL');
    }
  });

  test('a credential plugin that hangs ends with the process', async () => {
    const plugin = hangingPlugin();
    const program = join(import.meta.dirname, '../processes/plugin-program.ts');
    const child = spawn(process.execPath, [program, kubeconfigWith(plugin.user)], {
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    const ended = once(child, 'exit');
    const pids = await plugin.started();

    child.stdin.end();

    expect(await ended).toEqual([0, null]);
    await eventually(() => !pids.some(isAlive), { describe: 'the plugin and its child to end' });
  });

  test('tells a credential plugin what client-go tells it, and takes a certificate from it', async () => {
    const { key, certificate } = connect().admin;
    const asked = join(folder, 'asked');
    const status = { clientCertificateData: certificate, clientKeyData: key };
    writeFileSync(join(folder, 'credential'), JSON.stringify({ kind: 'ExecCredential', status }));
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: 'sh',
      args: ['-c', `echo "$OWN $KUBERNETES_EXEC_INFO" > ${asked}; cat ${join(folder, 'credential')}`],
      env: [{ name: 'OWN', value: 'of the kubeconfig' }],
      provideClusterInfo: true,
    };
    const endpoint = await loadEndpoint({ kubeconfig: kubeconfigWith({ exec }), clock, env: {} });

    expect(await refusalOf(endpoint)).toBeUndefined();
    const [, own, info] = /^(of the kubeconfig) (.*)$/m.exec(readFileSync(asked, 'utf8')) ?? [];
    expect(own).toBeDefined();
    expect(JSON.parse(info ?? '')).toMatchObject({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      spec: { interactive: false, cluster: { server: connect().url } },
    });
  });

  test.each([
    { endsInMs: 91_000, runs: 1 },
    { endsInMs: 89_000, runs: 2 },
    { endsInMs: undefined, runs: 1 },
  ])('runs a credential plugin $runs times in a minute when its token ends in $endsInMs ms', async (row) => {
    const fake = new FakeClock();
    const log = join(folder, 'runs');
    writeFileSync(log, '');
    const { endsInMs } = row;
    const status = {
      token: 't',
      ...(endsInMs === undefined
        ? {}
        : { expirationTimestamp: new Date(fake.now() + 60_000 + endsInMs).toISOString() }),
    };
    const exec = { command: 'sh', args: ['-c', `echo run >> ${log}; echo '${JSON.stringify({ status })}'`] };
    const endpoint = await loadEndpoint({ kubeconfig: kubeconfigWith({ exec }), clock: fake, env: {} });
    await endpoint.credentials();
    fake.advance(60_000);
    await endpoint.credentials();

    await eventually(() => endpoint.state?.loadedMs === 60_000);
    expect(readFileSync(log, 'utf8').match(/run/g)).toHaveLength(row.runs);
  });

  test('a token file, or the kubeconfig, that is missing for a moment stops nothing', async () => {
    const fake = new FakeClock();
    const file = join(folder, 'token');
    writeFileSync(file, await serviceAccountToken());
    const kubeconfig = kubeconfigWith({ tokenFile: 'token' });
    const endpoint = await loadEndpoint({ kubeconfig, clock: fake, env: {} });
    const before = await endpoint.credentials();

    for (const missing of [file, kubeconfig]) {
      renameSync(missing, `${missing}.away`);
      fake.advance(61_000);
      await endpoint.credentials();
      await eventually(() => endpoint.state?.trouble?.includes('ENOENT') === true);
      const meanwhile = await refusalOf(endpoint);
      renameSync(`${missing}.away`, missing);
      fake.advance(1_000);
      await endpoint.credentials();
      await eventually(() => endpoint.state?.trouble === undefined);

      expect(meanwhile).toBe('Forbidden'); // it knows us
    }
    expect(await endpoint.credentials()).toBe(before);
  });

  test('takes another server of the kubeconfig: watches are broken off, and requests go there', async () => {
    const fake = new FakeClock();
    await using former = await FaultProxy.start(connect().url);
    await using latter = await FaultProxy.start(connect().url);
    const { key, certificate } = connect().admin;
    const [cert, secret] = [certificate, key].map((pem) => Buffer.from(pem).toString('base64'));
    const user = { 'client-certificate-data': cert, 'client-key-data': secret };
    const endpoint = await loadEndpoint({ kubeconfig: kubeconfigWith(user, former.url), clock: fake, env: {} });
    const transport = new Transport({ endpoint, clock, userAgent: 'machinist/test' });
    await using _closed = { [Symbol.asyncDispose]: () => transport.close() };
    const reader = new HttpReader(transport);
    const list = () => reader.list(secrets, { namespace: ns.name, limit: 1 });
    const watch = new HttpListWatch({ transport, resource: secrets, selection: { namespace: ns.name } });
    const opened = Promise.withResolvers<void>();
    let ending: unknown;
    const watching = async (): Promise<void> => {
      const from = { resourceVersion: '0', signal: new AbortController().signal, onOpen: () => opened.resolve() };
      for await (const event of watch.watch(from)) void event;
    };
    void watching().catch((err: unknown) => (ending = err));
    await opened.promise;
    await list();

    kubeconfigWith(user, latter.url);
    fake.advance(61_000);
    await list();
    await eventually(() => endpoint.url === latter.url);
    const onTheWay = await list().catch((err: unknown) => err);
    await list();

    expect(onTheWay).toMatchObject({ reason: 'Unreachable', message: expect.stringContaining(latter.url) });
    expect(ending).toMatchObject({ reason: 'Unreachable' });
    expect(latter.accepted).toBe(1);
    expect(former.open).toBe(0);
  });

  test.each([{ kubeconfig: 'inClusterConfig' }, { kubeconfig: '' }])(
    'takes the service account of the pod for "$kubeconfig"',
    async ({ kubeconfig }) => {
      const { hostname, port } = new URL(connect().url);
      writeFileSync(join(folder, 'token'), await serviceAccountToken());
      writeFileSync(join(folder, 'ca.crt'), connect().ca);
      writeFileSync(join(folder, 'namespace'), 'garden');
      const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };

      const endpoint = await loadEndpoint({ kubeconfig, clock, env, serviceAccount: folder });

      expect(endpoint.namespace).toBe('garden');
      expect(await refusalOf(endpoint)).toBe('Forbidden');
    },
  );

  test('falls back to the default kubeconfig outside of a cluster', async () => {
    const endpoint = await loadEndpoint({ kubeconfig: '', clock, env: { KUBECONFIG: connect().kubeconfig } });

    expect(await refusalOf(endpoint)).toBeUndefined();
  });

  test('names the place of a mistake and nothing of the text around it, which may be a token', async () => {
    const kubeconfig = join(folder, 'crooked');
    writeFileSync(kubeconfig, 'users:\n- name: u\n  user:\n    token: abcdef.0123456789abcdef\n   tokenFile: x\n');

    const err = await loadEndpoint({ kubeconfig, clock, env: {} }).catch((reason: unknown) => reason);

    expect(err).toMatchObject({ name: 'ConfigError', message: expect.stringMatching(/crooked: line 5, column \d+: /) });
    expect(inspect(err)).not.toMatch(/abcdef|0123456789/);
  });

  test.each(['https://user:abcdef0123456789@host:99999', 'abcdef0123456789', 'localhost:6443', '', undefined])(
    'says that %s is no server, without a word of it, which may be a password',
    async (server) => {
      const kubeconfig = join(folder, 'nowhere');
      const [clusters, users] = [[{ name: 'c', cluster: { server } }], [{ name: 'u', user: {} }]];
      const contexts = [{ name: 'x', context: { cluster: 'c', user: 'u' } }];
      writeFileSync(kubeconfig, JSON.stringify({ clusters, users, contexts, 'current-context': 'x' }));

      const err = await loadEndpoint({ kubeconfig, clock, env: {} }).catch((reason: unknown) => reason);

      expect(err).toMatchObject({ name: 'ConfigError', message: expect.stringContaining('nowhere') });
      expect(inspect(err)).not.toMatch(/abcdef|0123456789/);
    },
  );

  test('says nothing of what a credential plugin printed', async () => {
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'echo', args: ['abcdef.0123456789abcdef'] };
    const endpoint = await loadEndpoint({ kubeconfig: kubeconfigWith({ exec }), clock, env: {} });

    const err = await endpoint.credentials().catch((reason: unknown) => reason);

    expect(err).toMatchObject({ name: 'ConfigError', message: expect.stringMatching(/credentials of kubeconfig/) });
    expect(inspect(err)).not.toMatch(/abcdef|0123456789/);
  });

  test('a context is that of the caller, also where a pod has a service account', async () => {
    const file = kubeconfigWith({ token: 't' });
    const config = JSON.parse(readFileSync(file, 'utf8')) as { contexts: object[]; clusters: object[] };
    config.clusters.push({ name: 'd', cluster: { server: 'https://other.example.com' } });
    config.contexts.push({ name: 'y', context: { cluster: 'd', user: 'u', namespace: 'z' } });
    writeFileSync(file, JSON.stringify(config));
    const env = { KUBECONFIG: file, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' };

    expect(await loadEndpoint({ kubeconfig: file, context: 'y', clock, env: {} })).toMatchObject({ namespace: 'z' });
    expect(await loadEndpoint({ kubeconfig: '', context: 'y', clock, env })).toMatchObject({ namespace: 'z' });
    await expect(loadEndpoint({ kubeconfig: file, context: 'no', clock, env: {} })).rejects.toThrow(
      'context "no" does not exist',
    );
    expect(await contextNames({ kubeconfig: file, clock, env: {} })).toEqual(['x', 'y']);
  });

  test.each([
    { source: { kubeconfig: '/does/not/exist', env: {} }, says: /reading kubeconfig \/does\/not\/exist: ENOENT/ },
    { source: { kubeconfig: 'inClusterConfig', env: {} }, says: /service account: KUBERNETES_SERVICE_HOST/ },
    { source: { kubeconfig: '', env: {} }, says: /no service account and no kubeconfig/ },
    {
      source: { kubeconfig: '', env: { HOME: '/no/such' } },
      says: /^KUBECONFIG is not set and ~\/.kube\/config does not exist, and no flag names a kubeconfig$/,
    },
    {
      source: { kubeconfig: '', env: { HOME: '/no/such' }, isInteractive: true },
      says: /^KUBECONFIG is not set and ~\/.kube\/config does not exist; use --kubeconfig$/,
    },
    {
      source: { kubeconfig: '', env: { KUBECONFIG: '/no/such' }, isInteractive: true },
      says: /configuration: ENOENT/,
    },
  ])('says what is wrong with $source', async ({ source, says }) => {
    await expect(loadEndpoint({ ...source, clock })).rejects.toThrow(says);
  });
});
