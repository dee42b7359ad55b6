import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

import { expect, test } from '@jest/globals';

import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { pkiDirectory } from '../../hack/control-plane/connection.ts';
import { pkiFiles } from '../../hack/control-plane/pki.ts';
import type { ClusterAPICluster } from '../../pkg/worlds/cluster-api/api/cluster.ts';
import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { definitions, PROVIDER_KINDS, startContestant } from '../cluster-api/contestant.ts';
import { namespace, privateControlPlane, WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { OperatorSession } from './operator-session.ts';
import { grant } from './shipped-roles.ts';

/*
 * Programs of Cluster API that its users run beside its core, on Machines that are looked after here, with our definitions: clusterctl, and
 * kubeadm's bootstrap provider with the provider whose machines live in memory.
 */

/** Built before any test's time begins. */
await resolveProgram('cluster-api');
const { path: clusterctl } = await resolveProgram('clusterctl');

const execute = promisify(execFile);
const PATIENCE = { timeoutMs: 120_000 };
const CORE = 'cluster.x-k8s.io/v1beta2';
const INFRASTRUCTURE = 'infrastructure.cluster.x-k8s.io/v1beta2';
const BOOTSTRAP = 'bootstrap.cluster.x-k8s.io/v1beta2';
/** What the page says to install beside ours. */
const LISTED = ['MachineSet', 'MachineDeployment', 'MachinePool'];

// promise: cluster-api/programs/clusterctl-describe
// promise: cluster-api/programs/kubeadm-bootstrap
test('with our definitions, and three of Cluster API, clusterctl describes a Cluster, and kubeadm makes the data of its Machines', async () => {
  await using stack = new AsyncDisposableStack();
  const plane = stack.use(await privateControlPlane(WITHOUT_KUBELETS));
  const { connection } = plane;
  const api = connection.api();
  stack.defer(() => api.close());
  await applyManifests(api, readManifests(path.join(import.meta.dirname, '../../crds/cluster-api')));
  await applyManifests(api, await definitions([...PROVIDER_KINDS, 'KubeadmConfig', 'KubeadmConfigTemplate']));
  const ns = stack.use(await namespace(connection));
  for (const role of ['control-machine-controller', 'target', 'cluster-api'] as const) await grant(api, role, ns.name);
  stack.use(
    await OperatorSession.start({
      connection,
      subject: { user: 'machinist' },
      namespace: ns.name,
      controllers: 'cluster-api',
    }),
  );
  const create = async (version: string, plural: string, object: object): Promise<void> => {
    const at = version === 'v1' ? '/api/v1' : `/apis/${version}`;
    await api.send('POST', `${at}/namespaces/${ns.name}/${plural}`, { apiVersion: version, ...object });
  };
  const read = async <T extends KubeObject>(version: string, plural: string, name: string): Promise<T> =>
    await api.send<T>('GET', `/apis/${version}/namespaces/${ns.name}/${plural}/${name}`);
  const describeCluster = async (): Promise<string> => {
    const args = ['describe', 'cluster', 'c', `--namespace=${ns.name}`, `--kubeconfig=${connection.kubeconfig}`];
    const ended = await execute(clusterctl, [...args, '--show-conditions=all'], { timeout: 60_000 }).catch(
      (err: unknown) => err as { readonly stdout: string; readonly stderr: string },
    );
    return `${ended.stdout}${ended.stderr}`;
  };
  const labels = { 'cluster.x-k8s.io/cluster-name': 'c' };
  const secret = (name: string, data: object): Promise<void> =>
    create('v1', 'secrets', {
      metadata: { name, labels },
      type: 'cluster.x-k8s.io/secret',
      stringData: data,
    });
  const pki = pkiFiles(pkiDirectory(connection.directory));
  await secret('c-kubeconfig', { value: readFileSync(plane.kubeconfig, 'utf8') });
  await secret('c-ca', { 'tls.crt': readFileSync(pki.ca, 'utf8'), 'tls.key': readFileSync(pki.caKey, 'utf8') });
  await create(INFRASTRUCTURE, 'devclusters', {
    kind: 'DevCluster',
    metadata: { name: 'c', annotations: { 'example.com/made-for': 'tests' } },
    spec: { backend: { inMemory: {} } },
  });
  await create(CORE, 'clusters', {
    kind: 'Cluster',
    metadata: { name: 'c' },
    spec: {
      clusterNetwork: { pods: { cidrBlocks: ['10.1.0.0/16'] } },
      infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DevCluster', name: 'c' },
    },
  });

  expect(await describeCluster()).toMatch(/no matches for kind "Machine(?:Deployment|Pool|Set)/);

  await applyManifests(api, await definitions(LISTED));
  stack.use(await startContestant(connection, { kubeadmIn: ns.name }));
  let cluster: ClusterAPICluster | undefined;
  await eventually(
    async () => {
      cluster = await read<ClusterAPICluster>(CORE, 'clusters', 'c');
      expect(cluster.status?.initialization).toEqual({
        infrastructureProvisioned: true,
        controlPlaneInitialized: true,
      });
    },
    { ...PATIENCE, describe: () => `c: ${JSON.stringify([cluster?.spec, cluster?.status])}` },
  );
  await create(BOOTSTRAP, 'kubeadmconfigs', {
    kind: 'KubeadmConfig',
    metadata: { name: 'm' },
    spec: { joinConfiguration: { nodeRegistration: { name: 'm' } } },
  });
  await create(INFRASTRUCTURE, 'devmachines', {
    kind: 'DevMachine',
    metadata: { name: 'm' },
    spec: { backend: { inMemory: {} } },
  });
  await create(CORE, 'machines', {
    kind: 'Machine',
    metadata: { name: 'm' },
    spec: {
      clusterName: 'c',
      version: 'v1.34.0',
      bootstrap: { configRef: { apiGroup: 'bootstrap.cluster.x-k8s.io', kind: 'KubeadmConfig', name: 'm' } },
      infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DevMachine', name: 'm' },
    },
  });
  let seen: ClusterAPIMachine | undefined;
  await eventually(
    async () => {
      seen = await read<ClusterAPIMachine>(CORE, 'machines', 'm');
      expect(seen.spec?.providerID).toBe('in-memory://m');
    },
    { ...PATIENCE, describe: () => `m: ${JSON.stringify([seen?.spec, seen?.status])}` },
  );
  const { dataSecretName = '' } = seen?.spec?.bootstrap ?? {};
  const { data } = await api.send<{ data: { value: string } }>(
    'GET',
    `/api/v1/namespaces/${ns.name}/secrets/${dataSecretName}`,
  );
  expect(Buffer.from(data.value, 'base64').toString('utf8')).toMatch(
    /^## template: jinja\n#cloud-config[^]*kubeadm join/,
  );
  await api.send('POST', '/api/v1/nodes', { metadata: { name: 'm' }, spec: { providerID: 'in-memory://m' } });
  const conditions = [
    { type: 'Ready', status: 'True' },
    ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({ type, status: 'False' })),
  ];
  await api.send('PATCH', '/api/v1/nodes/m/status', { status: { conditions } });
  await eventually(
    async () => {
      seen = await read<ClusterAPIMachine>(CORE, 'machines', 'm');
      expect(seen.status?.phase).toBe('Running');
    },
    { ...PATIENCE, describe: () => `m: ${JSON.stringify(seen?.status)}` },
  );

  await eventually(
    async () => {
      const described = await describeCluster();
      const [, ofCluster = '', ofMachine = ''] = /Cluster \S+\/c\b([^]*)Machine \S+\/m\b([^]*)/.exec(described) ?? [];
      for (const type of ['Available', 'ControlPlaneAvailable', 'InfrastructureReady', 'RemoteConnectionProbe']) {
        expect(ofCluster).toMatch(new RegExp(`─${type} +True `));
      }
      expect(ofMachine).toMatch(/─Available +True +Available/);
    },
    { ...PATIENCE, describe: () => 'clusterctl to describe the Cluster' },
  );
}, 600_000);
