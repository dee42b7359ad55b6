import path from 'node:path';

import { expect, test } from '@jest/globals';

import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import type { ClusterAPICluster } from '../../pkg/worlds/cluster-api/api/cluster.ts';
import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { ContractSimulator, SIM_MACHINE } from '../contract-simulator.ts';
import { privateApiServer } from '../env/api-server.ts';
import { namespace, WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { OperatorSession } from './operator-session.ts';
import { grant } from './shipped-roles.ts';

const VERSION = 'cluster.x-k8s.io/v1beta2';

// promise: cluster-api/beside/all-namespaces
test('with --cluster-api-all-namespaces Machines of every namespace are looked after, by the shipped roles', async () => {
  await using stack = new AsyncDisposableStack();
  const plane = stack.use(await privateApiServer(WITHOUT_KUBELETS));
  const { connection } = plane;
  const api = connection.api();
  stack.defer(() => api.close());
  await applyManifests(api, readManifests(path.join(import.meta.dirname, '../../crds/cluster-api')));
  const home = stack.use(await namespace(connection));
  const tenants = [stack.use(await namespace(connection)), stack.use(await namespace(connection))];
  const roles = ['control-machine-controller', 'target', 'cluster-api', 'cluster-api-all-namespaces'] as const;
  for (const role of roles) await grant(api, role, home.name);
  await new ContractSimulator(api, home.name).install(SIM_MACHINE, 'v1beta2');
  await using session = await OperatorSession.start({
    connection,
    subject: { user: 'machinist' },
    namespace: home.name,
    controllers: 'cluster-api',
    flags: { 'cluster-api-all-namespaces': 'true' },
  });

  // The same names in both: what is of one is not of the other.
  for (const [at, { name: ns }] of tenants.entries()) {
    const sim = new ContractSimulator(api, ns);
    const create = async (plural: string, kind: string, name: string, spec: object): Promise<void> => {
      const body = { apiVersion: VERSION, kind, metadata: { name, namespace: ns }, spec };
      await api.send('POST', `/apis/${VERSION}/namespaces/${ns}/${plural}`, body);
    };
    await api.send('POST', `/api/v1/namespaces/${ns}/secrets`, {
      metadata: { name: 'given' },
      stringData: { value: `#cloud-config ${at}` },
    });
    const behavior = at === 0 ? 'Skip' : 'Drain';
    await create('machinedrainrules', 'MachineDrainRule', 'rule', { drain: { behavior } });
    await create('clusters', 'Cluster', 'c', { clusterNetwork: { pods: { cidrBlocks: ['10.1.0.0/16'] } } });
    await sim.create(SIM_MACHINE, 'm', { spec: { providerID: `sim://${at}` } });
    await create('machines', 'Machine', 'm', {
      clusterName: 'c',
      bootstrap: { dataSecretName: 'given' },
      infrastructureRef: { ...SIM_MACHINE, name: 'm' },
    });
    await sim.report(SIM_MACHINE, 'm', { initialization: { provisioned: true } });
    await api.send('POST', '/api/v1/nodes', { metadata: { name: `node-${at}` }, spec: { providerID: `sim://${at}` } });
    const conditions = [{ type: 'Ready', status: 'True' }];
    await api.send('PATCH', `/api/v1/nodes/node-${at}/status`, { status: { conditions } });
    await api.send('POST', `/api/v1/namespaces/${ns}/pods`, {
      metadata: { name: 'p' },
      spec: {
        nodeName: `node-${at}`,
        terminationGracePeriodSeconds: 0,
        tolerations: [{ operator: 'Exists' }],
        containers: [{ name: 'c', image: 'i' }],
      },
    });
  }
  const machinePath = (ns: string): string => `/apis/${VERSION}/namespaces/${ns}/machines/m`;
  for (const [at, { name: ns }] of tenants.entries()) {
    let seen: unknown;
    await eventually(
      async () => {
        const machine = await api.send<ClusterAPIMachine>('GET', machinePath(ns));
        seen = machine.status;
        expect(machine.status).toMatchObject({ phase: 'Running', nodeRef: { name: `node-${at}` } });
      },
      { timeoutMs: 120_000, describe: () => `m in ${ns}: ${JSON.stringify(seen)}` },
    );
    const { metadata } = await api.send<Node>('GET', `/api/v1/nodes/node-${at}`);
    expect(metadata.annotations).toMatchObject({ 'cluster.x-k8s.io/cluster-namespace': ns });
    const cluster = await api.send<ClusterAPICluster>('GET', `/apis/${VERSION}/namespaces/${ns}/clusters/c`);
    expect(cluster.status?.conditions).toContainEqual(expect.objectContaining({ type: 'Available', status: 'True' }));
  }

  const collector = async (ns: string): Promise<void> => {
    // There is no provider that would take its object away.
    await eventually(
      async () => {
        const { status } = await api.request(machinePath(ns));
        expect(status).toBe(404);
      },
      { timeoutMs: 120_000, describe: () => `m in ${ns} to be gone` },
    );
  };
  for (const { name: ns } of tenants) await api.send('DELETE', machinePath(ns));
  for (const { name: ns } of tenants) await collector(ns);
  const pods = await Promise.all(
    tenants.map(async ({ name: ns }) => (await api.request(`/api/v1/namespaces/${ns}/pods/p`)).status),
  );
  // By the rule of each namespace.
  expect(pods).toEqual([200, 404]);
  expect(session.requests.filter(({ code }) => code === 401 || code === 403)).toEqual([]);
}, 300_000);
