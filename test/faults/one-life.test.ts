import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { Api } from '../../hack/control-plane/api.ts';
import { kubeconfig as kubeconfigOf, writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { Authority } from '../cloud/authority.ts';
import { CloudProcess } from '../cloud/cloud-process.ts';
import { metricAt } from '../cloud/manager.ts';
import { ManagerProcess } from '../cloud/manager-process.ts';
import { Pool } from '../cloud/pool.ts';
import { Site } from '../cloud/site.ts';
import { identitiesOf } from '../cloud/trial.ts';
import { eventually } from '../expect/eventually.ts';
import { grant } from '../integration/shipped-roles.ts';
import { halt } from '../processes/halt.ts';

/*
 * One manager process lives through everything that its neighbours can suffer, one after the other, while its pool grows and shrinks:
 * etcd, API server and driver are paused and killed; its certificate expires, its authority is replaced, its token is revoked. After
 * each: machines that were there are there still, exactly the VMs asked for were made and removed, no outage lasts; and at the
 * end it holds no more than at the beginning. MACHINIST_FAULTS=long: with 100 machines.
 */
const IS_LONG = process.env['MACHINIST_FAULTS'] === 'long';
const [FEW, MANY] = IS_LONG ? [60, 100] : [2, 4];
const PATIENCE = { timeoutMs: 300_000 };
const PAUSE_MS = 4_000;
const CERTIFICATE_MS = 12_000;
const USER = 'machinist';
/** A manager that sees an outage soon: pauses are shorter than what production waits for. */
const FLAGS = {
  'machine-safety-apiserver-statuscheck-timeout': '3s',
  'machine-safety-apiserver-statuscheck-period': '3s',
  'machine-safety-orphan-vms-period': '2s',
  'machine-safety-orphan-vms-grace': '2s',
  'machine-safety-grace': '0s',
};
/** What the manager may keep in all: a heap that may grow at will is collected late, and says nothing of leaks. */
const HEAP_MB = 80;
/** What the manager may hold more at the end: connections that idle, and garbage. */
const MORE_DESCRIPTORS = 12;
const MORE_RESIDENT_MB = 80;

let authority: Authority;
let site: Site<ControlPlane>;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'one-life-'));
  authority = await Authority.create();
  site = await Site.open({ extraArguments: { 'kube-apiserver': authority.arguments } });
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
  authority[Symbol.dispose]();
  await rm(directory, { recursive: true, force: true });
});

/** The manager's kubeconfig, with a certificate. */
async function writeCertificate(path: string, lifetimeMs?: number): Promise<void> {
  const identity = await authority.issue(USER, lifetimeMs);
  writeKubeconfig(path, { url: authority.url(site.plane), ca: authority.ca, identity });
}

/** What the former authority has certified is refused from now on, or soon: the server reads files now and then. */
async function replaceAuthority(): Promise<void> {
  await authority.replace();
  authority.admitClients(site.plane);
}

/** Resolves when the server knows the present authority. */
async function untilAdmitted(): Promise<void> {
  const api = new Api({ url: authority.url(site.plane), ca: authority.ca, identity: await authority.issue(USER) });
  const look = async (): Promise<boolean> => (await api.request('/api/v1/nodes')).status === 200;
  await eventually(look, { ...PATIENCE, intervalMs: 200, describe: 'the API server to know the authority' });
  await api.close();
}

/** A service account that may do what the manager may in a namespace, and tokens that end with a Secret. */
class Account {
  readonly #namespace = 'default';

  async create(namespace: string): Promise<void> {
    const user = `system:serviceaccount:${this.#namespace}:manager`;
    await this.#post('serviceaccounts', { metadata: { name: 'manager' } });
    await grant(site.api, 'control', namespace, user);
    await grant(site.api, 'control-identity', 'default', user);
    await grant(site.api, 'target', 'default', user);
  }

  /** A token that is good as long as Secret `name` is there. */
  async token(name: string): Promise<string> {
    const secret = (await this.#post('secrets', { metadata: { name } })) as { metadata: { uid: string } };
    const boundObjectRef = { apiVersion: 'v1', kind: 'Secret', name, uid: secret.metadata.uid };
    const made = await this.#post('serviceaccounts/manager/token', { spec: { audiences: [], boundObjectRef } });
    return (made as { status: { token: string } }).status.token;
  }

  /** Resolves when the server refuses the token of this Secret. */
  async revoke(name: string, token: string): Promise<void> {
    await site.api.request(`/api/v1/namespaces/${this.#namespace}/secrets/${name}`, { method: 'DELETE' });
    const api = site.plane.connection.api({ token });
    const look = async (): Promise<boolean> => (await api.request('/api/v1/nodes')).status === 401;
    await eventually(look, { ...PATIENCE, intervalMs: 200, describe: 'the token to be refused' });
    await api.close();
  }

  async #post(what: string, body: unknown): Promise<unknown> {
    const path = `/api/v1/namespaces/${this.#namespace}/${what}`;
    const answer = await site.api.request(path, { method: 'POST', body });
    if (answer.status !== 201) throw new Error(`POST ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }
}

/** What a process holds. */
function holdings(pid: number): { descriptors: number; residentMB: number } {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return { descriptors: readdirSync(`/proc/${pid}/fd`).length, residentMB: Number(kilobytes) / 1_024 };
}

test('a manager lives through all that its neighbours can suffer, and neither replaces nor leaks anything', async () => {
  authority.admitClients(site.plane);
  await untilAdmitted();
  await using cloud = await CloudProcess.start(site);
  await using pool = await Pool.create({ site, cloud, replicas: FEW });
  const account = new Account();
  await account.create(pool.namespace);
  const kubeconfig = join(directory, 'kubeconfig.yaml');
  const tokenFile = join(directory, 'token');
  await writeCertificate(kubeconfig);
  const port = await freePort();
  const flags = { ...FLAGS, port: String(port) };
  await using manager = await ManagerProcess.start({ ...pool.access, kubeconfig, flags, heapMB: HEAP_MB });
  await pool.untilUp(FEW, PATIENCE);

  let size = FEW;
  let told = '';
  let atRest: number | undefined;
  const paused = async (stop: () => Promise<void>, goOn: () => void): Promise<void> => {
    await stop();
    await sleep(PAUSE_MS);
    goOn();
  };
  const restarted = async (what: 'etcd' | 'apiserver'): Promise<void> => {
    await site.plane[what].stop('SIGKILL');
    await site.plane[what].start();
  };
  /** Something happens while the pool changes; afterwards everything is exact. */
  const during = async (what: string, disturb: () => Promise<void>): Promise<void> => {
    const before = identitiesOf(await pool.machines());
    const [made, removed] = [cloud.everMade().length, cloud.everRemoved];
    const next = size === FEW ? MANY : FEW;
    await pool.scale(next);
    await disturb();
    await pool.untilUp(next, PATIENCE);
    await eventually(
      async () => (await metricAt(`http://127.0.0.1:${port}`, 'machinist_cluster_outage')) === 0,
      PATIENCE,
    );
    const after = identitiesOf(await pool.machines());
    const [some, all] = next > size ? [before, after] : [after, before];
    const replaced = [...some].filter(([name, identity]) => all.get(name) !== identity).map(([name]) => name);
    const counted = { made: cloud.everMade().length - made, removed: cloud.everRemoved - removed, replaced };
    expect({ what, ...counted }).toEqual({
      what,
      made: Math.max(0, next - size),
      removed: Math.max(0, size - next),
      replaced: [],
    });
    const { descriptors } = holdings(manager.pid);
    told += `${what}: ${counted.made} made, ${counted.removed} removed, ${descriptors} descriptors\n`;
    // Connections that a fault has broken are closed by and by.
    const most = (atRest ??= descriptors) + MORE_DESCRIPTORS;
    await eventually(() => holdings(manager.pid).descriptors <= most, {
      ...PATIENCE,
      describe: 'descriptors to be closed',
    });
    size = next;
  };

  await during('nothing', () => Promise.resolve());
  const before = holdings(manager.pid);
  const { etcd, apiserver } = site.plane;
  await during('etcd stands still', () =>
    paused(
      () => halt(etcd),
      () => etcd.kill('SIGCONT'),
    ),
  );
  await during('etcd is killed', () => restarted('etcd'));
  await during('the API server stands still', () =>
    paused(
      () => halt(apiserver),
      () => apiserver.kill('SIGCONT'),
    ),
  );
  await during('the driver stands still', () =>
    paused(
      () => cloud.pause(),
      () => cloud.resume(),
    ),
  );
  await during('the driver is killed', async () => {
    await cloud.kill();
    await cloud.restart();
  });
  await during('the authority is replaced, and the API server killed', async () => {
    await replaceAuthority();
    await restarted('apiserver');
    await untilAdmitted();
    // Its authority is unknown to the manager for a moment, and its certificate to the server.
    await sleep(PAUSE_MS / 2);
    await writeCertificate(kubeconfig);
  });
  await during('the certificate expires, and a token takes its place', async () => {
    // What the manager has is refused, so that it loads the certificate that ends soon. How far it comes with that is a matter of luck.
    await replaceAuthority();
    await untilAdmitted();
    await writeCertificate(kubeconfig, CERTIFICATE_MS);
    await sleep(CERTIFICATE_MS);
    writeFileSync(tokenFile, await account.token('first'));
    const text = kubeconfigOf({ url: authority.url(site.plane), ca: authority.ca, identity: { token: 'x' } });
    writeFileSync(kubeconfig, text.replace('token: "x"', `tokenFile: ${JSON.stringify(tokenFile)}`));
  });
  await during('the token is replaced, and the old one revoked', async () => {
    const old = readFileSync(tokenFile, 'utf8');
    await account.revoke('first', old);
    writeFileSync(tokenFile, await account.token('second'));
  });
  await during('nothing any more', () => Promise.resolve());

  const after = holdings(manager.pid);
  process.stdout.write(`${told}${JSON.stringify({ before, after })}\n`);
  expect(after.descriptors).toBeLessThanOrEqual(before.descriptors + MORE_DESCRIPTORS);
  expect(after.residentMB).toBeLessThanOrEqual(before.residentMB + MORE_RESIDENT_MB);
  // There were outages, and each ended by itself.
  const count = (text: string): number => manager.output.split(text).length - 1;
  expect(count('"outage began: the API server did not respond"')).toBeGreaterThan(0);
  // With timeouts as short as these a busy moment is one, too.
  await eventually(
    () => expect(count('"outage ended: the API server responds again"')).toBe(count('"outage began: ')),
    PATIENCE,
  );

  await pool.delete();
  await pool.untilGone(PATIENCE);
  expect(cloud.everRemoved).toBe(cloud.everMade().length);
}, 3_600_000);
