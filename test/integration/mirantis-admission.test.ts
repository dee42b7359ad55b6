import path from 'node:path';

import { expect, test } from '@jest/globals';

import type { ApiAnswer } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { privateControlPlane } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { documentedMachine } from './documented-machine.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const NAMESPACE = 'default';
const MACHINES = `/apis/cluster.k8s.io/v1alpha1/namespaces/${NAMESPACE}/machines`;
const POOLS = `/apis/kaas.mirantis.com/v1alpha1/namespaces/${NAMESPACE}/machinepools`;

const RACK = { key: 'rack', value: '7' };
const ALLOWED = { key: 'tier', value: 'web' };
const REFUSED = [
  { key: 'tier', value: 'db' },
  { key: 'zone', value: 'a' },
];

const labelled = (name: string, nodeLabels: readonly object[]) =>
  documentedMachine(NAMESPACE, { name, value: { nodeLabels } });

function pool(nodeLabels: readonly object[]): object {
  const { metadata, spec: machineSpec } = labelled('refused', nodeLabels);
  return {
    apiVersion: 'kaas.mirantis.com/v1alpha1',
    kind: 'MachinePool',
    metadata,
    spec: { replicas: 0, machineSpec },
  };
}

// Policies are obeyed by the API server, so that it is a real one; no controller has a part in it.
// promise: front-end-mirantis/forbidden-labels-refused
test('labels that a policy does not allow are refused where they are written, of Machines and of pools', async () => {
  await using plane = await privateControlPlane({ controllerManager: false });
  await using stack = new AsyncDisposableStack();
  const api = plane.connection.api();
  stack.defer(() => api.close());
  await applyManifests(api, readManifests(path.join(ROOT, 'crds/mirantis')));
  await api.send('POST', MACHINES, labelled('labelled', [RACK]));
  const policies = readManifests(path.join(ROOT, 'deploy/policies'));
  await applyManifests(
    api,
    policies.filter(({ metadata }) => metadata.name.includes('mirantis')),
  );
  await api.send('POST', `/apis/machine.sapcloud.io/v1alpha1/namespaces/${NAMESPACE}/nodelabelpolicies`, {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'NodeLabelPolicy',
    metadata: { name: 'of-test' },
    spec: { machineLabels: { 'cluster.sigs.k8s.io/cluster-name': 'example-cluster' }, allowed: [ALLOWED] },
  });
  const dryRun = (at: string, body: object): Promise<ApiAnswer> =>
    api.request(`${at}?dryRun=All`, { method: 'POST', body });
  const edit = (nodeLabels: readonly object[]): Promise<ApiAnswer> =>
    api.request(`${MACHINES}/labelled`, {
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: { spec: { providerSpec: { value: { nodeLabels } } } },
    });
  const message =
    'NodeLabelPolicy of-test does not allow label tier=db (allowed: web), label zone=a (no value of this key) in nodeLabels';
  const says = { status: 403, body: { message: expect.stringContaining(message) } };

  await eventually(async () => expect(await dryRun(MACHINES, labelled('refused', REFUSED))).toMatchObject(says), {
    describe: 'the policy to be obeyed',
  });

  expect(await dryRun(POOLS, pool(REFUSED))).toMatchObject(says);
  expect(await dryRun(POOLS, pool([ALLOWED]))).toMatchObject({ status: 201 });
  expect(await dryRun(MACHINES, labelled('allowed', []))).toMatchObject({ status: 201 });
  // What was there before may stay.
  expect(await edit([RACK, ALLOWED])).toMatchObject({ status: 200 });
  expect(await edit([{ key: 'rack', value: '8' }])).toMatchObject({ status: 403 });
});
