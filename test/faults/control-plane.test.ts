import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { startControlPlane, type ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { identityOf } from '../../hack/control-plane/process-identity.ts';
import { bootstrapToken, startKubelet } from '../env/kubelet.ts';
import { eventually } from '../expect/eventually.ts';
import { halt } from '../processes/halt.ts';

/** Kubelets, and those who miss them, share the host with other tests. */
const PATIENCE = { timeoutMs: 90_000 };

interface NodeObject {
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
}

async function isNodeReady(api: Api, name: string, wanted: 'True' | 'Unknown'): Promise<boolean> {
  const { status, body } = await api.request(`/api/v1/nodes/${name}`);
  if (status !== 200) throw new Error(`node ${name}: ${JSON.stringify(body)}`);
  const { conditions } = (body as NodeObject).status;
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready?.status !== wanted) throw new Error(`node ${name}: ${JSON.stringify(conditions)}`);
  return true;
}

describe('a control plane', () => {
  let plane: ControlPlane;
  let admin: Api;

  beforeAll(async () => {
    plane = await startControlPlane({ programs: ['kubemark'] });
    admin = plane.connection.api();
  });

  afterAll(async () => {
    await admin.close();
    await plane.stop();
  });

  test('answers /readyz to everyone and everything to the admin', async () => {
    const anonymous = plane.connection.api('anonymous');

    const [ready, forbidden, nodes] = await Promise.all([
      anonymous.request('/readyz'),
      anonymous.request('/api/v1/nodes'),
      admin.request('/api/v1/nodes'),
    ]);

    await anonymous.close();
    expect([ready.status, ready.body, forbidden.status, nodes.status]).toEqual([200, 'ok', 403, 200]);
  });

  test('refuses a user without rights and obeys RBAC when it grants some', async () => {
    const reader = plane.connection.api(await plane.connection.credentialFor({ user: 'reader' }));
    const refused = await reader.request('/api/v1/nodes');

    await admin.request('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      method: 'POST',
      body: {
        metadata: { name: 'reader' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'reader' }],
      },
    });

    expect(refused).toMatchObject({ status: 403, body: { reason: 'Forbidden' } });
    await eventually(async () => (await reader.request('/api/v1/nodes')).status === 200);
    await reader.close();
  });

  test('lets a kubelet join with a bootstrap token, notices its death and its return', async () => {
    const token = await bootstrapToken(plane.connection);
    const kubelet = await startKubelet(plane, 'joiner', token);
    await eventually(() => isNodeReady(admin, 'joiner', 'True'), {
      ...PATIENCE,
      describe: 'the node to be Ready',
    });
    const groups = await admin.request('/apis/certificates.k8s.io/v1/certificatesigningrequests');
    expect(JSON.stringify(groups.body)).toContain(`system:bootstrap:${token.slice(0, 6)}`);

    await kubelet.stop('SIGKILL');

    await eventually(() => isNodeReady(admin, 'joiner', 'Unknown'), {
      ...PATIENCE,
      describe: 'the node to be Unknown',
    });
    await kubelet.start();
    await eventually(() => isNodeReady(admin, 'joiner', 'True'), {
      ...PATIENCE,
      describe: 'the node to be Ready again',
    });
    await kubelet.stop('SIGKILL');
  }, 300_000);

  test('refuses a kubelet whose token is wrong', async () => {
    const stranger = plane.connection.api({ token: 'abcdef.0123456789abcdef' });

    const answer = await stranger.request('/api/v1/nodes');

    await stranger.close();
    expect(answer.status).toBe(401);
  });

  test.each(['etcd', 'apiserver', 'controllerManager'] as const)(
    'has its data back after %s crashed and was started again',
    async (which) => {
      const component = plane[which];
      const before = await admin.request('/api/v1/namespaces/kube-system');
      const pid = component?.pid;

      await component?.stop('SIGKILL');
      await component?.start();

      await eventually(async () => {
        const after = await admin.request('/api/v1/namespaces/kube-system');
        expect(after).toEqual(before);
      });
      expect(component?.pid).not.toBe(pid);
    },
  );

  test('answers no more while the API server is paused and goes on afterwards', async () => {
    await halt(plane.apiserver);
    await expect(admin.request('/readyz', { timeoutMs: 300 })).rejects.toMatchObject({ name: 'TimeoutError' });

    plane.apiserver.kill('SIGCONT');

    await eventually(async () => (await admin.request('/readyz')).status === 200);
  });
});

describe('the end of a control plane', () => {
  let ledger: string;

  beforeAll(() => {
    ledger = mkdtempSync(join(tmpdir(), 'machinist-ledger-'));
  });

  afterAll(() => rmSync(ledger, { recursive: true, force: true }));

  test('leaves no process, no directory and no record', async () => {
    const plane = await startControlPlane({ ledger, programs: ['kubemark'] });
    const kubelet = await startKubelet(plane, 'machine', await bootstrapToken(plane.connection));
    const pids = [plane.etcd, plane.apiserver, plane.controllerManager, kubelet].map((c) => c?.pid ?? 0);
    expect(pids.map((pid) => identityOf(pid)?.pid)).toEqual(pids);

    await plane.stop();

    expect(pids.map((pid) => identityOf(pid))).toEqual([undefined, undefined, undefined, undefined]);
    expect(existsSync(plane.directory)).toBe(false);
    expect(readdirSync(ledger)).toEqual([]);
  });

  test('is made up for by the next start when its process was killed, and only then', async () => {
    const killed = await startInChild(ledger);
    await using bystander = await startControlPlane({ ledger, controllerManager: false });
    expect(killed.pids.map((pid) => identityOf(pid)?.pid)).toEqual(killed.pids);
    killed.kill();
    await eventually(() => identityOf(killed.parent) === undefined);
    const log: string[] = [];

    await using next = await startControlPlane({ ledger, controllerManager: false, log: (line) => log.push(line) });

    expect(killed.pids.map((pid) => identityOf(pid))).toEqual([undefined, undefined]);
    expect(existsSync(killed.directory)).toBe(false);
    expect(log).toContain(`cleaned up after a dead process: ${killed.directory}`);
    expect(identityOf(bystander.apiserver.pid ?? 0)).toBeDefined();
    expect(identityOf(next.apiserver.pid ?? 0)).toBeDefined();
  });

  test('of one program is told to the log', async () => {
    const log: string[] = [];
    await using plane = await startControlPlane({ ledger, controllerManager: false, log: (line) => log.push(line) });

    process.kill(plane.etcd.pid ?? 0, 'SIGKILL');

    await eventually(() =>
      expect(log).toContainEqual(expect.stringMatching(/^etcd ended \(SIGKILL\); its output is in /)),
    );
    expect(plane.etcd.pid).toBeUndefined();
  });

  test('comes by itself when the start is aborted', async () => {
    const before = readdirSync(ledger);
    const abort = new AbortController();
    const starting = startControlPlane({ ledger, signal: abort.signal });
    await eventually(() => readdirSync(ledger).length > before.length);

    abort.abort(new Error('changed my mind'));

    await expect(starting).rejects.toThrow('changed my mind');
    expect(readdirSync(ledger)).toEqual(before);
  });

  test('comes with the last words of the program when the start fails', async () => {
    const starting = startControlPlane({ ledger, extraArguments: { 'kube-apiserver': ['--no-such-flag'] } });

    await expect(starting).rejects.toMatchObject({
      code: 'start-failed',
      message: expect.stringContaining('unknown flag: --no-such-flag'),
    });
    expect(readdirSync(ledger)).toEqual([]);
  });

  test('is a clear error when a port that was asked for is taken', async () => {
    await using first = await startControlPlane({ ledger, controllerManager: false });
    const port = Number(new URL(first.url).port);

    const second = startControlPlane({ ledger, controllerManager: false, ports: { apiserver: port } });

    await expect(second).rejects.toMatchObject({ code: 'address-in-use' });
  });
});

interface Child {
  readonly parent: number;
  readonly pids: readonly number[];
  readonly directory: string;
  kill(): void;
}

/** A control plane whose parent is a process that can be killed. */
async function startInChild(ledger: string): Promise<Child> {
  const script = `
    import { startControlPlane } from ${JSON.stringify(join(import.meta.dirname, '../../hack/control-plane/control-plane.ts'))};
    const plane = await startControlPlane({ ledger: ${JSON.stringify(ledger)}, controllerManager: false });
    console.log(JSON.stringify({ pids: [plane.etcd.pid, plane.apiserver.pid], directory: plane.directory }));
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await new Promise<[Buffer]>((resolve) =>
    child.stdout.once('data', (chunk: Buffer) => resolve([chunk])),
  );
  const started = JSON.parse(line.toString()) as Pick<Child, 'pids' | 'directory'>;
  return { ...started, parent: child.pid ?? 0, kill: () => child.kill('SIGKILL') };
}
