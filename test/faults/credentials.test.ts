import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';

import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';
import { httpProxyFor } from '../integration/kube-session.ts';
import { identitiesOf } from '../cloud/trial.ts';

/* A credential plugin of the leader hangs. A load is given up after 10 s, and leadership after a renew deadline more. */
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };
const TEST_MS = 480_000;
const FLAGS = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '15s',
  'leader-elect-renew-deadline': '10s',
  'leader-elect-retry-period': '500ms',
};

let site: Site;
let folder: string;
beforeAll(async () => {
  site = await Site.drawn();
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'machinist-credentials-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A kubeconfig of the manager's user whose credentials come from a program; it hangs after `hang`. */
async function kubeconfigWithPlugin(url: string): Promise<{ path: string; hang: () => void }> {
  const { ca } = site.plane.connection;
  const identity = await site.plane.connection.identityFor({ user: 'machinist' });
  const status =
    'token' in identity
      ? { token: identity.token }
      : { clientCertificateData: identity.certificate, clientKeyData: identity.key };
  const [path, printed, hangs] = ['kubeconfig', 'credential', 'hangs'].map((name) => join(folder, name));
  writeFileSync(String(printed), JSON.stringify({ kind: 'ExecCredential', status }));
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: '/bin/sh',
    args: ['-c', `if [ -e ${hangs} ]; then sleep 1000; fi; cat ${printed}`],
  };
  const cluster = { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const kubeconfig = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { exec } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(String(path), JSON.stringify(kubeconfig));
  return { path: String(path), hang: () => writeFileSync(String(hangs), '') };
}

test(
  'a leader whose credentials are refused while its plugin hangs says so and gives the Lease up, although that could be renewed',
  async () => {
    await using proxy = await httpProxyFor(site.plane.connection);
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: 2 });
    const { path, hang } = await kubeconfigWithPlugin(proxy.url);
    const flags = { ...FLAGS, 'control-kubeconfig': path, 'target-kubeconfig': path };
    await using former = await InProcessManager.start({ ...pool.access, flags });
    await pool.untilUp(2, PATIENCE);
    const before = identitiesOf(await pool.machines());
    await using next = await InProcessManager.start({ ...pool.access, flags: FLAGS });

    hang();
    // One of several API servers does not know us any more; that which the Leases are renewed at does.
    proxy.inject({ matches: ({ resource }) => resource !== 'leases', status: 401, reason: 'Unauthorized' });
    let seen = { status: 0, text: '', failed: 0 };
    await eventually(
      async () => {
        // Credentials may be missing for too long a moment before their load is given up.
        const failed = await former.metric(
          'machinist_kube_credential_loads_total',
          'cluster="control",result="failed"',
        );
        const answer = await fetch(`${former.url}/readyz?verbose`);
        seen = { status: answer.status, text: await answer.text(), failed };
        return failed > 0 && seen.text.includes('[-] credentials');
      },
      { ...PATIENCE, describe: () => `the credentials to be missed; it says\n${seen.text}` },
    );
    const code = await former.ended;
    await eventually(async () => (await pool.leaders()).every((one) => one === next.identity), PATIENCE);
    await pool.scale(3);
    await pool.untilUp(3, PATIENCE);
    const after = identitiesOf(await pool.machines());

    expect(seen.status).toBe(503);
    expect(seen.text).toMatch(
      /credentials failed: control: not loaded for \d+ s \(loading the credentials took longer/,
    );
    expect({ code, hasFailed: seen.failed > 0 }).toEqual({ code: 1, hasFailed: true });
    expect([...before].filter(([name, identity]) => after.get(name) !== identity)).toEqual([]);
    expect({ created: cloud.created.length, deleted: cloud.deleted }).toEqual({ created: 3, deleted: 0 });
  },
  TEST_MS,
);
