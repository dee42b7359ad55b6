import { randomBytes } from 'node:crypto';
import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { secret } from '../builders.ts';
import { CELL_LEASES, cellsControl, CellsManager } from '../cloud/cells-manager.ts';
import type { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';
import { documentedMachine } from './documented-machine.ts';
import { grant } from './shipped-roles.ts';

const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };
const NAME = 'example-control-plane';
const CLUSTER = 'example-cluster';

let control: Site;

beforeAll(async () => {
  control = await cellsControl();
  await applyManifests(control.api, readManifests(path.join(import.meta.dirname, '../../crds/mirantis')));
  await grant(control.api, 'mirantis', CELL_LEASES);
  await grant(control.api, 'mirantis-all-namespaces', CELL_LEASES);
});

afterAll(async () => {
  await control[Symbol.asyncDispose]();
});

/** A namespace with the documented Machine, whose Cluster is in a region of its own. */
async function tenant(region: string): Promise<string> {
  const { api } = control;
  const namespace = `t-${randomBytes(5).toString('hex')}`;
  await api.send('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
  const core = `/api/v1/namespaces/${namespace}`;
  await api.send('POST', `${core}/configmaps`, {
    metadata: { name: CLUSTER },
    data: { region, networkID: 'network-1' },
  });
  await api.send('POST', `${core}/secrets`, { metadata: { name: CLUSTER }, data: secret().data });
  await applyManifests(api, [documentedMachine(namespace)]);
  return namespace;
}

async function select(namespace: string, isSelected: boolean): Promise<void> {
  const labels = { cell: isSelected ? '' : null };
  await control.api.send('PATCH', `/api/v1/namespaces/${namespace}`, { metadata: { labels } });
}

const pathIn = (namespace: string, group: string, plural: string): string =>
  `/apis/${group}/v1alpha1/namespaces/${namespace}/${plural}`;

async function listed<T extends KubeObject>(namespace: string, plural: string): Promise<readonly T[]> {
  const { items } = await control.api.send<{ items: T[] }>('GET', pathIn(namespace, 'machine.sapcloud.io', plural));
  return items;
}

test('Machines of Mirantis Container Cloud in each selected namespace have Machines and classes by the settings of their own', async () => {
  const regions = ['north', 'south', 'nowhere'];
  const [north = '', south = '', unselected = ''] = await Promise.all(regions.map(tenant));
  await using _manager = await CellsManager.start({
    kubeconfig: control.kubeconfig,
    namespace: CELL_LEASES,
    drivers: '',
    flags: { controllers: '*,mirantis', 'target-kubeconfig': 'none', 'cell-kubeconfig-secret': '' },
  });
  for (const namespace of [north, south]) await select(namespace, true);

  for (const [at, namespace] of [north, south].entries()) {
    await eventually(async () => {
      const machines = await listed<Machine>(namespace, 'machines');
      const classes = await listed<MachineClass>(namespace, 'machineclasses');
      expect(machines.map(({ metadata }) => metadata.name)).toEqual([NAME]);
      expect(classes.map(({ providerSpec }) => JSON.stringify(providerSpec))).toEqual([
        expect.stringContaining(`"region":"${regions[at]}"`),
      ]);
    }, PATIENCE);
  }
  await control.api.send('DELETE', `${pathIn(north, 'cluster.k8s.io', 'machines')}/${NAME}`);
  await eventually(async () => {
    const [machine] = await listed<Machine>(north, 'machines');
    expect(machine?.metadata.deletionTimestamp).toBeDefined();
  }, PATIENCE);

  const [other] = await listed<Machine>(south, 'machines');
  expect(other?.metadata.deletionTimestamp).toBeUndefined();
  expect(await listed(south, 'machineclasses')).toHaveLength(1);
  expect(await listed(unselected, 'machines')).toEqual([]);
}, 120_000);
