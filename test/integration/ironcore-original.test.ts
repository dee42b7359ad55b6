import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { load } from 'js-yaml';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { type ControlPlane, startControlPlane } from '../../hack/control-plane/control-plane.ts';
import type { IronCoreMachine } from '../../pkg/worlds/ironcore/api/machine.ts';
import type { IronCoreMachinePool } from '../../pkg/worlds/ironcore/api/machine-pool.ts';
import type { List } from '../../pkg/apis/meta.ts';
import { IriRuntime } from '../../packages/providers/iri/runtime.ts';
import { OriginalIronCore } from '../cloud/original-ironcore.ts';
import { DOCUMENTED_MACHINE } from '../documented-ironcore-machine.ts';
import { namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { OperatorSession } from './operator-session.ts';
import { grant } from './shipped-roles.ts';

/*
 * IronCore's own programs: its API server, controllers, machinebroker and machinepoollet. A provider's cluster has them all, with a pool
 * `down` whose machines are in memory; the machinebroker hands machines on to it.
 */

const ROOT = path.join(import.meta.dirname, '../..');
const COMPUTE = '/apis/compute.ironcore.dev/v1alpha1';
const STORAGE = '/apis/storage.ironcore.dev/v1alpha1';
const NETWORKING = '/apis/networking.ironcore.dev/v1alpha1';
const LONG_MS = 900_000;
const PATIENCE = { timeoutMs: 180_000 };
const CLASS = 'machineclass-sample';
const CAPABILITIES = { cpu: '1', memory: '1Gi' };

const started = new AsyncDisposableStack();
let provider: OriginalIronCore;
let lowest: IriRuntime;
let broker: string;

beforeAll(async () => {
  provider = started.use(await OriginalIronCore.start());
  lowest = started.use(
    await IriRuntime.start({ classes: { [CLASS]: 20 }, capabilities: { cpu: 1n, memory: 1n << 30n } }),
  );
  await provider.api.send('POST', '/api/v1/namespaces', { metadata: { name: 'provider' } });
  await createClass(provider.api);
  provider.startControllers();
  await provider.startPoollet({ pool: 'down', address: lowest.address });
  await poolIsReady('down');
  broker = await provider.startBroker({ namespace: 'provider', pool: 'down' });
}, LONG_MS);

afterAll(async () => {
  await started.disposeAsync();
});

async function createClass(api: Api): Promise<void> {
  await api.send('POST', `${COMPUTE}/machineclasses`, {
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'MachineClass',
    metadata: { name: CLASS },
    capabilities: CAPABILITIES,
  });
}

async function poolIsReady(pool: string): Promise<void> {
  await eventually(async () => {
    const { status } = await provider.api.send<IronCoreMachinePool>('GET', `${COMPUTE}/machinepools/${pool}`);
    expect(status).toMatchObject({ state: 'Ready', availableMachineClasses: [{ name: CLASS }] });
  }, PATIENCE);
}

async function createVolume(api: Api, ns: string, name: string): Promise<void> {
  const at = `${STORAGE}/namespaces/${ns}/volumes`;
  const body = { apiVersion: 'storage.ironcore.dev/v1alpha1', kind: 'Volume', metadata: { name } };
  await api.send('POST', at, { ...body, spec: {} });
  const access = { driver: 'ceph', handle: `handle-${name}` };
  const status = { state: 'Available', access, resources: { storage: '1Gi' } };
  await api.send('PATCH', `${at}/${name}/status`, { status });
}

async function createMachine(api: Api, ns: string, name: string, spec: object): Promise<void> {
  await api.send('POST', `${COMPUTE}/namespaces/${ns}/machines`, {
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'Machine',
    metadata: { name },
    spec: { machineClassRef: { name: CLASS }, ...spec },
  });
}

async function shows(api: Api, ns: string, name: string, look: (machine: IronCoreMachine) => void): Promise<void> {
  let seen: IronCoreMachine | undefined;
  await eventually(
    async () => {
      seen = await api.send<IronCoreMachine>('GET', `${COMPUTE}/namespaces/${ns}/machines/${name}`);
      look(seen);
    },
    { ...PATIENCE, describe: () => `${name}: ${JSON.stringify(seen)}` },
  );
}

const isRunning = ({ status }: IronCoreMachine): void => expect(status?.state).toBe('Running');

async function providersMachines(): Promise<readonly IronCoreMachine[]> {
  const { items } = await provider.api.send<List<IronCoreMachine>>('GET', `${COMPUTE}/namespaces/provider/machines`);
  return items;
}

/** Serves pools, of a cluster with our definitions or with IronCore's API server. */
async function serve(plane: ControlPlane, ns: string, pools: readonly string[]): Promise<OperatorSession> {
  return await OperatorSession.start({
    connection: plane.connection,
    subject: { user: 'machinist' },
    namespace: ns,
    controllers: 'ironcore.pools',
    flags: { 'leader-elect': 'false', 'ironcore-pool': pools.join(',') },
  });
}

// promise: ironcore/own-programs/volume-reaches-broker
test(
  "the document's example reaches a machinebroker's cluster with its Volume as the first disk",
  async () => {
    await using plane = await startControlPlane();
    const api = plane.connection.api();
    await applyManifests(api, readManifests(path.join(ROOT, 'crds/ironcore')));
    const ns = await namespace(plane.connection);
    for (const role of ['ironcore-pools', 'ironcore-machines'] as const) await grant(api, role, ns.name);
    await createClass(api);
    await createVolume(api, ns.name, 'my-volume');
    await api.send('POST', `${NETWORKING}/namespaces/${ns.name}/networks`, {
      apiVersion: 'networking.ironcore.dev/v1alpha1',
      kind: 'Network',
      metadata: { name: 'network' },
      spec: { providerID: 'net-1' },
    });
    await api.send('POST', `${NETWORKING}/namespaces/${ns.name}/networkinterfaces`, {
      apiVersion: 'networking.ironcore.dev/v1alpha1',
      kind: 'NetworkInterface',
      metadata: { name: 'networkinterface-sample' },
      spec: { networkRef: { name: 'network' }, ips: [{ value: '10.0.0.1' }], ipFamilies: ['IPv4'] },
    });
    await api.send('POST', `/api/v1/namespaces/${ns.name}/secrets`, {
      metadata: { name: 'my-ignition-secret' },
      data: { 'ignition.yaml': Buffer.from('systemd: {}').toString('base64') },
    });
    await using _session = await serve(plane, ns.name, [`up=${broker}`]);
    const example = load(DOCUMENTED_MACHINE) as IronCoreMachine; // A Machine, as everybody can read.

    await api.send('POST', `${COMPUTE}/namespaces/${ns.name}/machines`, {
      ...example,
      spec: { ...example.spec, machinePoolRef: { name: 'up' } },
    });

    await eventually(async () => {
      const [machine] = await providersMachines();
      expect(machine?.spec.volumes).toEqual([
        { name: 'rootdisk', device: 'oda', volumeRef: { name: expect.any(String) } },
      ]);
    }, PATIENCE);
    await api.send('DELETE', `${COMPUTE}/namespaces/${ns.name}/machines/machine-sample`);
    await eventually(async () => expect(await providersMachines()).toEqual([]), PATIENCE);
    await api.close();
  },
  LONG_MS,
);

// promise: ironcore/own-programs/nothing-written-at-rest
// promise: ironcore/own-programs/no-generations-counted
// promise: ironcore/own-programs/drain-behind-broker
test(
  'with IronCore’s API server nothing is written at rest, machines follow their Machines, and those that the provider takes are made anew',
  async () => {
    const { api, plane } = provider;
    const ns = await namespace(plane.connection);
    for (const role of ['ironcore-pools', 'ironcore-machines'] as const) await grant(api, role, ns.name);
    await using direct = await IriRuntime.start({
      classes: { [CLASS]: 20 },
      capabilities: { cpu: 1n, memory: 1n << 30n },
    });
    await using session = await serve(plane, ns.name, [`direct=${direct.address}`, `up=${broker}`]);
    const names = ['a', 'b', 'c'];
    for (const name of names) {
      await createVolume(api, ns.name, name);
      const volumes = [{ name: 'root', volumeRef: { name } }];
      await createMachine(api, ns.name, name, { machinePoolRef: { name: 'up' }, volumes, power: 'On' });
    }
    await createVolume(api, ns.name, 'data');
    await createMachine(api, ns.name, 'own', {
      machinePoolRef: { name: 'direct' },
      power: 'On',
      volumes: [{ name: 'root', localDisk: { image: 'os' } }],
    });
    for (const name of [...names, 'own']) await shows(api, ns.name, name, isRunning);

    const pathOf = (name: string): string => `${COMPUTE}/namespaces/${ns.name}/machines/${name}`;
    const versions = async (): Promise<readonly (string | undefined)[]> =>
      await Promise.all(
        [`${COMPUTE}/machinepools/direct`, `${COMPUTE}/machinepools/up`, pathOf('own'), pathOf('a')].map(
          async (one) => (await api.send<IronCoreMachine>('GET', one)).metadata.resourceVersion,
        ),
      );
    const asked = direct.asked('Status').length;
    const before = await versions();
    const sent = session.requests.length;
    await eventually(() => expect(direct.asked('Status').length).toBeGreaterThan(asked + 2), PATIENCE);
    expect(await versions()).toEqual(before);
    const writes = session.requests.slice(sent).filter(({ method }) => method !== 'GET');
    expect(writes.filter(({ resource }) => resource !== 'leases')).toEqual([]);

    const { metadata } = await api.send<IronCoreMachine>('GET', pathOf('own'));
    expect(metadata.generation).toBeUndefined();
    await api.send('PATCH', pathOf('own'), {
      spec: {
        power: 'Off',
        volumes: [
          { name: 'root', device: 'oda', localDisk: { image: 'os' } },
          { name: 'data', volumeRef: { name: 'data' } },
        ],
      },
    });
    await shows(api, ns.name, 'own', ({ status }) => {
      expect(status?.state).toBe('Shutdown');
      expect(status?.volumes).toMatchObject([{ state: 'Attached' }, { name: 'data', state: 'Attached' }]);
    });
    const generation = 'machinepoollet.ironcore.dev/irimachine-generation';
    expect(Number(direct.store.named('own').metadata.annotations[generation])).toBeGreaterThan(1);

    const taken = (await providersMachines()).map((one) => one.metadata.name);
    expect(taken).toHaveLength(3);
    await Promise.all(
      taken.map((name) => provider.api.send('DELETE', `${COMPUTE}/namespaces/provider/machines/${name}`)),
    );
    for (const name of names) {
      await shows(api, ns.name, name, ({ status }) => {
        expect(status?.state).toBe('Running');
        expect(taken.some((id) => status?.machineID?.endsWith(`://${id}`) === true)).toBe(false);
      });
    }
  },
  LONG_MS,
);
