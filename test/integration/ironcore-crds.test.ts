import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Api, ApiAnswer } from '../../hack/control-plane/api.ts';
import { applyManifests, parseManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { startControlPlane, type ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { WORLDS } from '../../hack/generate/worlds/index.ts';
import type { IronCoreMachine } from '../../pkg/worlds/ironcore/api/machine.ts';
import type { IronCoreMachineClass } from '../../pkg/worlds/ironcore/api/machine-class.ts';
import type { IronCoreMachinePool } from '../../pkg/worlds/ironcore/api/machine-pool.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { DOCUMENTED_MACHINE } from '../documented-ironcore-machine.ts';
import { causesOf } from './crds-api.ts';
import { missingFields } from './missing-fields.ts';

type New<T extends KubeObject> = Omit<T, 'metadata'> & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
};

const IRONCORE_DEFINITIONS = WORLDS.flatMap(({ definitions }) => definitions).filter(
  ({ foreign }) => foreign?.folder === 'ironcore',
);
const COMPUTE = 'compute.ironcore.dev/v1alpha1';
const NOW = '2026-01-02T00:00:00Z';
const metadata = { name: 'full' };
const condition = { type: 'Ready', status: 'True', reason: 'Why', message: 'why', lastTransitionTime: NOW } as const;
const attached = { handle: 'handle', state: 'Attached', lastStateTransitionTime: NOW };
const uidRef = { name: 'full', uid: 'uid' };

const machine: New<IronCoreMachine> = {
  apiVersion: COMPUTE,
  kind: 'Machine',
  metadata,
  spec: {
    machineClassRef: { name: 'full' },
    machinePoolSelector: { a: 'b' },
    machinePoolRef: { name: 'full' },
    image: 'image',
    power: 'Off',
    volumes: [
      {
        name: 'root',
        device: 'oda',
        volumeRef: { name: 'v' },
      },
      { name: 'empty', device: 'odb', emptyDisk: { sizeLimit: '1Gi' } },
      { name: 'local', device: 'odc', localDisk: { sizeLimit: 5, image: 'image' } },
      { name: 'made', device: 'odaa', ephemeral: { volumeTemplate: { spec: { resources: { storage: '1Gi' } } } } },
    ],
    networkInterfaces: [
      { name: 'primary', networkInterfaceRef: { name: 'n' } },
      { name: 'made', ephemeral: { networkInterfaceTemplate: { spec: { ips: [{ value: '10.0.0.1' }] } } } },
    ],
    ignitionRef: { name: 'ignition', key: 'key' },
    efiVars: [{ name: 'n', uuid: 'u', value: 'v' }],
    tolerations: [{ key: 'k', operator: 'Equal', value: 'v', effect: 'NoSchedule' }],
    guestConfig: { hostname: 'host-1' },
  },
  status: {
    machineID: 'runtime://1',
    observedGeneration: 1,
    conditions: [condition],
    state: 'Running',
    volumes: [{ name: 'root', ...attached, volumeRef: { name: 'v' } }],
    networkInterfaces: [{ name: 'primary', ...attached, networkInterfaceRef: { name: 'n' } }],
  },
};

const machineClass: New<IronCoreMachineClass> = {
  apiVersion: COMPUTE,
  kind: 'MachineClass',
  metadata,
  capabilities: { cpu: 4, memory: '8Gi', 'gpu.example.com': 1 },
};

const machinePool: New<IronCoreMachinePool> = {
  apiVersion: COMPUTE,
  kind: 'MachinePool',
  metadata,
  spec: { providerID: 'provider://1', taints: [{ key: 'k', value: 'v', effect: 'NoExecute' }] },
  status: {
    state: 'Ready',
    conditions: [{ ...condition, observedGeneration: 1 }],
    availableMachineClasses: [{ name: 'full' }],
    addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
    daemonEndpoints: { machinepoolletEndpoint: { port: 1 } },
    capacity: { 'class/machine.full': 4 },
    allocatable: { 'class/machine.full': '3' },
  },
};

/** Members that our definitions do not name are kept. */
const other = { others: { a: [1, null] } };
const access = { driver: 'd', handle: 'h', volumeAttributes: { a: 'b' }, secretRef: { name: 's' }, ...other };
const FULL = [
  machine,
  machineClass,
  machinePool,
  {
    apiVersion: 'storage.ironcore.dev/v1alpha1',
    kind: 'Volume',
    metadata,
    spec: {
      claimRef: uidRef,
      encryption: { secretRef: { name: 's' } },
      resources: { storage: '1Gi' },
      ...other,
    },
    status: { state: 'Available', access, resources: { storage: '1Gi' }, ...other },
  },
  {
    apiVersion: 'networking.ironcore.dev/v1alpha1',
    kind: 'NetworkInterface',
    metadata,
    spec: {
      networkRef: { name: 'n' },
      machineRef: uidRef,
      ips: [{ value: '10.0.0.1', ...other }],
      providerID: 'p',
      attributes: { a: 'b' },
      ...other,
    },
    status: { state: 'Available', ips: ['10.0.0.1'], ...other },
  },
  {
    apiVersion: 'networking.ironcore.dev/v1alpha1',
    kind: 'Network',
    metadata,
    spec: { providerID: 'p', ...other },
    status: { state: 'Available', ...other },
  },
];

interface Item {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

let plane: ControlPlane;
let api: Api;

beforeAll(async () => {
  // Of its own: where several groups are served, kubectl takes `machine` for one of them.
  plane = await startControlPlane({ programs: ['kubectl'] });
  api = plane.connection.api();
  await applyManifests(api, readManifests(path.join(import.meta.dirname, '../../crds/ironcore')));
});

afterAll(async () => {
  await api.close();
  await plane.stop();
});

function pathOf({ apiVersion, kind }: Item): string {
  const definition = IRONCORE_DEFINITIONS.find((one) => one.kind === kind);
  const scope = definition?.foreign?.isClusterScoped === true ? '' : '/namespaces/default';
  return `/apis/${apiVersion}${scope}/${definition?.plural}`;
}

const create = (item: Item): Promise<ApiAnswer> =>
  api.request(`${pathOf(item)}?fieldValidation=Strict`, { method: 'POST', body: item });
const patch = (item: Item, body: unknown, more = ''): Promise<ApiAnswer> =>
  api.request(`${pathOf(item)}/${item.metadata.name}${more}`, {
    method: 'PATCH',
    contentType: 'application/merge-patch+json',
    body,
  });
/** Creates an object with its status. */
async function createFull(item: Item & { readonly status?: unknown }): Promise<void> {
  const { status, ...rest } = item;
  const answers = [await create(rest)];
  if (status !== undefined) answers.push(await patch(item, { status }, '/status?fieldValidation=Strict'));
  const refused = answers.find((answer) => answer.status > 201);
  if (refused !== undefined) throw new Error(JSON.stringify(refused.body));
}

const read = (item: Item): Promise<ApiAnswer> => api.request(`${pathOf(item)}/${item.metadata.name}`);

async function kubectl(...args: string[]): Promise<string> {
  const { programs, kubeconfig } = plane.connection;
  const program = programs.kubectl?.path ?? 'kubectl';
  const common = ['--kubeconfig', kubeconfig, '--cache-dir', path.join(path.dirname(kubeconfig), 'kubectl-cache')];
  const { stdout } = await promisify(execFile)(program, [...common, ...args]);
  return stdout.replaceAll(/\s+/g, ' ').trim();
}

describe('types and CRDs have the same fields', () => {
  test.each(FULL)('a full $kind is stored and read back unchanged', async (item) => {
    await createFull(item);

    const { body } = await read(item);
    const { metadata: _ours, ...want } = item;
    const { metadata: _theirs, ...have } = body as { metadata: object };
    expect(have).toEqual(want);
  });

  test.each(IRONCORE_DEFINITIONS)('a full $kind has each field that the CRD names', ({ kind, properties }) => {
    const full = FULL.find((one) => one.kind === kind);
    // A volume and an interface have one source each: together they have all.
    const { volumes = [], networkInterfaces = [] } = machine.spec;
    const together = [Object.assign({}, ...volumes), Object.assign({}, ...networkInterfaces)] as object[];
    const spec = { ...machine.spec, volumes: [together[0]], networkInterfaces: [together[1]] };

    expect(missingFields(properties, full === machine ? { ...full, spec } : full, kind)).toEqual([]);
  });
});

// promise: ironcore/placing-machines/documents-example-taken-unchanged
test('the documented example is taken unchanged, and is on unless it says otherwise', async () => {
  const [documented] = parseManifests(DOCUMENTED_MACHINE) as unknown as [Item & { spec: object }];

  const answer = await create(documented);

  expect(answer).toMatchObject({ status: 201, body: { spec: { ...documented.spec, power: 'On' } } });
});

const named = (name: string, spec: object): Item & { spec: object } => ({
  apiVersion: COMPUTE,
  kind: 'Machine',
  metadata: { name },
  spec: { machineClassRef: { name: 'c' }, ...spec },
});

describe('what no pool could obey is refused', () => {
  const ref = { volumeRef: { name: 'v' } };

  test.each([
    { what: 'no class', spec: { machineClassRef: null }, field: 'spec.machineClassRef', says: 'Required' },
    {
      what: 'a class has no name',
      spec: { machineClassRef: { name: '' } },
      field: 'spec.machineClassRef.name',
      says: 'at least 1',
    },
    { what: 'another power', spec: { power: 'Paused' }, field: 'spec.power', says: 'supported values: "On", "Off"' },
    {
      what: 'a volume without source',
      spec: { volumes: [{ name: 'a' }] },
      field: 'spec.volumes[0]',
      says: 'exactly one of volumeRef, emptyDisk, localDisk and ephemeral',
    },
    {
      what: 'a volume with two sources',
      spec: { volumes: [{ name: 'a', ...ref, emptyDisk: {} }] },
      field: 'spec.volumes[0]',
      says: 'exactly one of',
    },
    {
      what: 'two volumes of one name',
      spec: {
        volumes: [
          { name: 'a', ...ref },
          { name: 'a', ...ref },
        ],
      },
      field: 'spec.volumes[1]',
      says: 'Duplicate',
    },
    {
      what: 'two volumes with one device',
      spec: {
        volumes: [
          { name: 'a', device: 'oda', ...ref },
          { name: 'b', device: 'oda', ...ref },
        ],
      },
      field: 'spec.volumes',
      says: 'the same device',
    },
    {
      what: 'a device that is none',
      spec: { volumes: [{ name: 'a', device: 'sda1', ...ref }] },
      field: 'spec.volumes[0].device',
      says: 'should match',
    },
    {
      what: 'an interface with two sources',
      spec: {
        networkInterfaces: [
          { name: 'a', networkInterfaceRef: { name: 'n' }, ephemeral: { networkInterfaceTemplate: {} } },
        ],
      },
      field: 'spec.networkInterfaces[0]',
      says: 'exactly one of networkInterfaceRef and ephemeral',
    },
    {
      what: 'a toleration of any key with a value',
      spec: { tolerations: [{ value: 'v' }] },
      field: 'spec.tolerations[0]',
      says: 'operator must be Exists',
    },
    {
      what: 'a host name that is none',
      spec: { guestConfig: { hostname: 'a.b' } },
      field: 'spec.guestConfig.hostname',
      says: 'should match',
    },
  ])('$what', async ({ spec, field, says }) => {
    const answer = await create(named('refused', spec));

    expect(answer).toMatchObject({ status: 422 });
    expect(causesOf(answer)).toContainEqual(
      expect.objectContaining({ field, message: expect.stringContaining(says) as unknown }),
    );
  });

  test.each([
    { what: 'a Machine', item: named('a.b', {}) },
    { what: 'a class', item: { ...machineClass, metadata: { name: 'a.b' } } },
  ])('$what whose name cannot be a part of others', async ({ item }) => {
    const messages = causesOf(await create(item)).map(({ message }) => message);
    expect(messages).toEqual([expect.stringContaining('metadata.name must be at most 63 characters') as unknown]);
  });

  test.each([{ cpu: 1 }, { cpu: 0, memory: '1Gi' }, { cpu: '500m', memory: '0' }])('a class with %j', async (given) => {
    const answer = await create({ ...machineClass, metadata: { name: 'refused' }, capabilities: given } as Item);

    expect(causesOf(answer)).toEqual([
      expect.objectContaining({
        message: expect.stringMatching(/(cpu|memory) must be set, and greater than 0/) as unknown,
      }),
    ]);
  });
});

describe('what was decided stays', () => {
  const disk = { name: 'disk', localDisk: { image: 'a' } };
  const kept = named('kept', {
    machinePoolRef: { name: 'p' },
    volumes: [disk],
    guestConfig: { hostname: 'h' },
    image: 'i',
  });

  beforeAll(() => createFull(kept));

  test.each([
    { what: 'class', spec: { machineClassRef: { name: 'd' } }, field: 'spec.machineClassRef' },
    { what: 'pool', spec: { machinePoolRef: { name: 'q' } }, field: 'spec.machinePoolRef' },
    { what: 'pool, by taking it away', spec: { machinePoolRef: null }, field: 'spec.machinePoolRef' },
    { what: 'image', spec: { image: null }, field: 'spec.image' },
    { what: 'host name', spec: { guestConfig: null }, field: 'spec.guestConfig' },
    {
      what: 'image of a disk',
      spec: { volumes: [{ ...disk, localDisk: { image: 'b' } }] },
      field: 'spec.volumes[0].localDisk',
    },
    { what: 'disk with an image', spec: { volumes: [] }, field: 'spec.volumes' },
  ])('$what', async ({ spec, field }) => {
    const answer = await patch(kept, { spec });

    expect(answer).toMatchObject({ status: 422 });
    expect(causesOf(answer).map((cause) => cause.field)).toEqual([field]);
  });

  test('power, selector, tolerations and further volumes can change', async () => {
    const spec = {
      power: 'Off',
      machinePoolSelector: { a: 'b' },
      tolerations: [{ operator: 'Exists' }],
      volumes: [disk, { name: 'more', volumeRef: { name: 'v' } }],
    };

    expect(await patch(kept, { spec })).toMatchObject({ status: 200 });
  });

  test('a pool is given to a Machine that has none', async () => {
    const free = named('free', {});
    await create(free);

    expect(await patch(free, { spec: { machinePoolRef: { name: 'p' } } })).toMatchObject({ status: 200 });
  });

  test('a volume comes back under its name when it is detached', async () => {
    const volume = { name: 'data', volumeRef: { name: 'v' } };
    const item = named('detaching', {});
    await create(item);
    await patch(item, { status: { volumes: [{ name: 'data', state: 'Attached' }] } }, '/status');

    const early = await patch(item, { spec: { volumes: [volume] } });
    await patch(item, { status: { volumes: [] } }, '/status');
    const late = await patch(item, { spec: { volumes: [volume] } });

    expect(causesOf(early)).toEqual([
      expect.objectContaining({ field: 'spec.volumes', message: expect.stringContaining('still attached') as unknown }),
    ]);
    expect(late).toMatchObject({ status: 200 });
    expect(await patch(item, { status: { volumes: [{ name: 'data' }] } }, '/status')).toMatchObject({ status: 200 });
  });

  test('capabilities of a class and the provider ID of a pool', async () => {
    const answers = [
      await patch(machineClass, { capabilities: { cpu: 8 } }),
      await patch(machinePool, { spec: { providerID: 'provider://2' } }),
    ];

    expect(answers.map(({ status }) => status)).toEqual([422, 422]);
    expect(answers.flatMap((answer) => causesOf(answer)).map(({ field }) => field)).toEqual([
      'capabilities',
      'spec.providerID',
    ]);
  });
});

describe('kubectl', () => {
  test.each([
    { field: 'machines.spec.machinePoolRef', words: 'the scheduler selects one. Can be set only once.' },
    { field: 'machinepools.status.allocatable', words: 'Remaining number of machines' },
    { field: 'volumes.status.access', words: 'How a machine accesses the volume' },
  ])('explains $field', async ({ field, words }) => {
    expect(await kubectl('explain', field)).toContain(words);
  });

  test.each([
    {
      name: 'machines.compute.ironcore.dev',
      want: /^NAME MACHINECLASSREF IMAGE MACHINEPOOLREF STATE AGE .*full full image full Running /,
    },
    {
      name: 'machinepools.compute.ironcore.dev',
      want: /^NAME READY STATE KEPT AGE full True Ready /,
    },
    {
      name: 'machinepools.compute.ironcore.dev -o custom-columns=NAME:.metadata.name,CLASSES:.status.availableMachineClasses[*].name',
      want: /^NAME CLASSES full full/,
    },
    { name: 'networkinterfaces', want: /^NAME NETWORK STATE AGE full n Available / },
  ])('shows the columns of $name', async ({ name, want }) => {
    expect(await kubectl('get', ...name.split(' '))).toMatch(want);
  });
});
