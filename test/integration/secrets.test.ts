import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';

import { expect, test } from '@jest/globals';

import { applyManifests } from '../../hack/control-plane/apply.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { List } from '../../pkg/apis/meta.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Driver, MachineRequest } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { loadEndpoint } from '../../pkg/kube/client/config.ts';
import { createLogger } from '../../pkg/base/log/logger.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { serve } from '../drivers/served.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 90_000, intervalMs: 100 };
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';

/** A word that stands nowhere else. */
const planted = (what: string): string => `${what}-${randomBytes(12).toString('hex')}`;

/** A driver that quotes in each error all that it was sent, as some providers do. */
class TalkativeDriver implements Driver {
  /** What it was sent as user data, the bootstrap token included. */
  readonly userData: string[] = [];

  capabilities: Driver['capabilities'] = () =>
    Promise.resolve({
      contractVersion: 'v1',
      name: 'talkative',
      idempotentCreate: true,
      listScope: 'class',
      methods: new Set(['ListMachines'] as const),
    });

  createMachine: Driver['createMachine'] = (request) => {
    this.userData.push(Buffer.from(request.secretData['userData'] ?? []).toString());
    return Promise.reject(new DriverError('Internal', `refused: ${quote(request)}`));
  };

  initializeMachine: Driver['initializeMachine'] = (request) => Promise.reject(new Error(quote(request)));

  getMachineStatus: Driver['getMachineStatus'] = (request) =>
    Promise.reject(new DriverError('NotFound', `nothing found with ${quote(request)}`));

  deleteMachine: Driver['deleteMachine'] = (request) => Promise.reject(new TypeError(`threw with ${quote(request)}`));

  listMachines: Driver['listMachines'] = (request) =>
    Promise.reject(new DriverError('PermissionDenied', `listing with ${quote(request)}`));

  getVolumeIDs: Driver['getVolumeIDs'] = () => Promise.resolve([]);

  close: Driver['close'] = () => Promise.resolve();
}

function quote({ secretData }: Pick<MachineRequest, 'secretData'>): string {
  return Object.values(secretData)
    .flatMap((value) => [Buffer.from(value).toString(), Buffer.from(value).toString('base64')])
    .join(' ');
}

test('no secret shows in logs, Events, metrics, statuses or error texts, whatever the provider quotes', async () => {
  await using ns = await namespace();
  const driver = new TalkativeDriver();
  await using served = await serve(driver);
  const connection = connect();
  const api = connection.api();
  const lines: string[] = [];
  const destination = new Writable({ write: (line, _encoding, done) => (lines.push(String(line)), done()) });
  const secrets = { password: planted('password'), key: planted('key'), joining: planted('joining') };
  const kubeconfig = connection.kubeconfigWithToken(`planted-${ns.name}`, connection.adminToken);
  const machineClass = { kind: 'MachineClass', name: 'class-1' };
  await applyManifests(api, [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'secret-1', namespace: ns.name },
      stringData: {
        userData: `#cloud-config\njoin: ${secrets.joining}\nserver: "<<BOOTSTRAP_TOKEN>>"\n`,
        password: secrets.password,
        key: `-----BEGIN KEY-----\n${secrets.key}\n-----END KEY-----\n`,
      },
    },
    {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: machineClass.kind,
      metadata: { name: machineClass.name, namespace: ns.name },
      providerSpec: {},
      provider: 'sim',
      secretRef: { name: 'secret-1', namespace: ns.name },
    },
    {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'Machine',
      metadata: { name: `m-${ns.name}`, namespace: ns.name },
      spec: { class: machineClass },
    },
  ]);
  const machines = (): Promise<List<Machine>> => api.send('GET', `${GROUP}/namespaces/${ns.name}/machines`);
  const shows = async (operation: 'Create' | 'Delete', text: string): Promise<void> => {
    const { items } = await machines();
    expect(items[0]?.status?.lastOperation).toMatchObject({
      type: operation,
      description: expect.stringContaining(text),
    });
  };

  await using manager = await InProcessManager.start({
    kubeconfig,
    namespace: ns.name,
    driver: `unix://${served.socket}`,
    // With everything that is ever logged, stacks too.
    log: createLogger('debug', { destination }),
    flags: {
      controllers: 'machine,machine-class,secret,safety.orphan-vms',
      'machine-safety-orphan-vms-period': '1s',
    },
  });
  await eventually(() => shows('Create', 'refused: '), PATIENCE);
  const created = await machines();
  await api.send('DELETE', `${GROUP}/namespaces/${ns.name}/machines/m-${ns.name}`);
  await eventually(() => shows('Delete', 'threw with '), PATIENCE);
  await eventually(() => expect(lines.join('')).toContain('listing with '), PATIENCE);
  const events = await eventually(async () => {
    const found = await api.send('GET', `/api/v1/namespaces/${ns.name}/events`);
    expect(JSON.stringify(found)).toContain('refused: ');
    return found;
  }, PATIENCE);
  const readiness = await (await fetch(`${manager.url}/readyz?verbose`)).text();
  const metrics = await (await fetch(`${manager.url}/metrics`)).text();
  const broken = join(connection.directory, `broken-${ns.name}`);
  writeFileSync(broken, `users: [{name: a, user: {token: ${secrets.password}`);
  const refusal = await loadEndpoint({ kubeconfig: broken, clock: new SystemClock(), env: {} }).catch(String);
  const deleted = await machines();
  for (const { metadata } of deleted.items) {
    await api.request(`${GROUP}/namespaces/${ns.name}/machines/${metadata.name}`, {
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: { metadata: { finalizers: [] } },
    });
  }
  await api.close();

  const tokens = driver.userData.map((text) => /server: "(.*)"/.exec(text)?.[1] ?? '');
  expect(tokens).toEqual(tokens.map(() => expect.stringMatching(/^[a-z0-9]{6}\.[a-z0-9]{16}$/)));
  const places = { log: lines.join(''), events, readiness, metrics, refusal, created, deleted };
  const hidden = [...Object.values(secrets), ...tokens, connection.adminToken];
  const forms = hidden.flatMap((text) => [text, Buffer.from(text).toString('base64').replace(/=+$/, '')]);
  const shown = Object.entries(places).flatMap(([place, content]) => {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    return forms.filter((form) => text.includes(form)).map((form) => `${form} in ${place}`);
  });
  expect(shown).toEqual([]);
  expect(lines.join('')).toContain('[redacted]');
}, 240_000);
