import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests } from '../../hack/control-plane/apply.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Site } from '../cloud/site.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { eventually } from '../expect/eventually.ts';
import { grant } from '../integration/shipped-roles.ts';
import type { Bed } from './bed.ts';
import { belongingsOf, clear, SELDOM } from './leftovers.ts';
import { openStackClass, secretOf } from './requests.ts';

const NAMESPACE = 'shoot';
const POOL = { name: 'pool', namespace: NAMESPACE };
const PATH = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${NAMESPACE}`;
const PATIENCE = { ...SELDOM, timeoutMs: 240_000 };

/** Everything that is shipped, over the real services: definitions and roles, the manager, the driver as a process beside it. */
export function describeManager(bed: Bed): void {
  describe('the manager over OpenStack', () => {
    afterEach(async () => {
      await clear(bed);
    });

    test('makes three machines, replaces one whose server vanishes, and leaves nothing of them', async () => {
      await using stack = new AsyncDisposableStack();
      const site = stack.use(await Site.open());
      const directory = await mkdtemp(join(tmpdir(), 'manager-'));
      stack.defer(async () => await rm(directory, { recursive: true, force: true }));
      const address = `unix://${join(directory, 'driver.sock')}`;
      const flags = [`--address=${address}`, `--state-directory=${join(directory, 'state')}`];
      stack.use(await DriverProcess.start('openstack-driver', flags));
      await site.api.send('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } });
      await grant(site.api, 'control', NAMESPACE);
      await applyManifests(site.api, manifestsOf(bed));
      const { kubeconfig } = site;
      stack.use(
        await InProcessManager.start({ kubeconfig, namespace: NAMESPACE, flags: { driver: `OpenStack=${address}` } }),
      );

      const nodes = new Nodes(site.api);
      const untilUp = async (): Promise<readonly string[]> =>
        await eventually(async () => {
          const machines = await nodes.join();
          expect(machines.map(({ status }) => status?.currentStatus?.phase)).toEqual(['Running', 'Running', 'Running']);
          const { servers, ports } = await belongingsOf(bed);
          const ids = servers.map(({ id }) => `openstack:///${bed.settings.region}/${id}`);
          expect(ids.toSorted()).toEqual(machines.map(({ spec }) => spec.providerID ?? '').toSorted());
          expect(ports.map(({ device_id: device }) => device).toSorted()).toEqual(
            servers.map(({ id }) => id).toSorted(),
          );
          return servers.map(({ name }) => name).toSorted();
        }, PATIENCE);
      const first = await untilUp();

      const [vanished = ''] = first;
      const { servers } = await belongingsOf(bed);
      const gone = servers.find(({ name }) => name === vanished);
      await bed.user.call('nova', 'DELETE', `/v2.1/servers/${gone?.id}`);
      await eventually(async () => (await belongingsOf(bed)).servers.length < 3, SELDOM);
      // As a cloud controller does.
      await site.api.send('DELETE', `/api/v1/nodes/${vanished}`);
      const second = await untilUp();
      expect(second).not.toContain(vanished);
      expect(second.filter((name) => first.includes(name))).toHaveLength(2);

      await site.api.send('PATCH', `${PATH}/machinedeployments/${POOL.name}`, { spec: { replicas: 0 } });
      await eventually(async () => {
        expect(await belongingsOf(bed)).toEqual({ servers: [], ports: [], floatingIPs: [] });
        expect(await nodes.machines()).toEqual([]);
      }, PATIENCE);
    }, 900_000);
  });
}

/** In the place of kubelets: servers boot nothing. */
class Nodes {
  readonly #api: Api;
  readonly #joined = new Set<string>();

  constructor(api: Api) {
    this.#api = api;
  }

  async machines(): Promise<readonly Machine[]> {
    return (await this.#api.send<{ items: Machine[] }>('GET', `${PATH}/machines`)).items;
  }

  /** Makes the Node of each machine that has a server, once; says which machines there are. */
  async join(): Promise<readonly Machine[]> {
    const machines = await this.machines();
    for (const { metadata, spec } of machines) {
      const name = metadata.labels?.[NODE_LABEL];
      if (name === undefined || this.#joined.has(name) || metadata.deletionTimestamp !== undefined) continue;
      this.#joined.add(name);
      await this.#api.send('POST', '/api/v1/nodes', { metadata: { name }, spec: { providerID: spec.providerID } });
      const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }];
      await this.#api.send('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions } });
    }
    return machines;
  }
}

function manifestsOf(bed: Bed): Parameters<typeof applyManifests>[1] {
  const { providerSpec } = openStackClass(bed);
  const labels = { pool: POOL.name };
  const stringData = { ...secretOf(bed), userData: '#cloud-config' };
  const template = {
    metadata: { labels },
    spec: { class: { kind: 'MachineClass', name: POOL.name }, healthTimeout: '5s' },
  };
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: POOL, type: 'Opaque', stringData },
    {
      apiVersion: API_VERSION,
      kind: 'MachineClass',
      metadata: POOL,
      provider: 'OpenStack',
      providerSpec,
      secretRef: POOL,
    },
    {
      apiVersion: API_VERSION,
      kind: 'MachineDeployment',
      metadata: POOL,
      spec: { replicas: 3, selector: { matchLabels: labels }, strategy: { type: 'Recreate' }, template },
    },
  ];
}
