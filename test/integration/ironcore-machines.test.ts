import path from 'node:path';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { load } from 'js-yaml';
import { Status } from 'nice-grpc';
import PQueue from 'p-queue';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { startControlPlane } from '../../hack/control-plane/control-plane.ts';
import type { IronCoreMachine, IronCoreMachineSpec } from '../../pkg/worlds/ironcore/api/machine.ts';
import type { IronCoreNetworkInterface } from '../../pkg/worlds/ironcore/api/network-interface.ts';
import type { IronCoreVolume } from '../../pkg/worlds/ironcore/api/volume.ts';
import { choiceOf } from '../../hack/test/sample.ts';
import { CREATION_SENT_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { List } from '../../pkg/apis/meta.ts';
import type { Event } from '../../pkg/apis/wire.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { MachineState, Power } from '../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../pkg/worlds/ironcore/runtime/runtime.ts';
import { CrashPoint, POINTS, type Point } from '../cloud/crash-point.ts';
import { Poollet } from '../cloud/ironcore-others.ts';
import { DOCUMENTED_MACHINE } from '../documented-ironcore-machine.ts';
import { simulatedServer, type TestServer } from '../env/api-server.ts';
import { namespace, type TestNamespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { IriRuntime } from '../../packages/providers/iri/runtime.ts';
import { IRONCORE_KINDS } from '../../pkg/worlds/ironcore/controllers/kinds.ts';
import { ironCore } from '../../pkg/worlds/ironcore/world.ts';
import { OperatorSession } from './operator-session.ts';
import { grant } from './shipped-roles.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const CLASS = 'machineclass-sample';
const POOL = 'pool-sample';
const EVERY = choiceOf(process.env).how === 'all';

let plane: TestServer;
let api: Api;
let ns: TestNamespace;
let runtime: IriRuntime;
let session: OperatorSession;

beforeAll(async () => {
  plane = (await simulatedServer()) ?? (await startControlPlane());
  const { connection } = plane;
  api = connection.api();
  await applyManifests(api, readManifests(path.join(ROOT, 'crds/ironcore')));
  ns = await namespace(connection);
  for (const role of ['ironcore-scheduler', 'ironcore-lifecycle', 'ironcore-pools', 'ironcore-machines'] as const)
    await grant(api, role, ns.name);
  runtime = await IriRuntime.start({ classes: { [CLASS]: 100 } });
  session = await OperatorSession.start({
    connection,
    subject: { user: 'machinist' },
    namespace: ns.name,
    controllers: 'ironcore',
    flags: { 'leader-elect': 'false', 'ironcore-pool': `${POOL}=${runtime.address}` },
  });
  await api.send('POST', '/apis/compute.ironcore.dev/v1alpha1/machineclasses', {
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'MachineClass',
    metadata: { name: CLASS },
    capabilities: { cpu: '1', memory: '1Gi' },
  });
  await create('Network', 'network', { providerID: 'net-1' });
});

afterAll(async () => {
  await session[Symbol.asyncDispose]();
  await runtime[Symbol.asyncDispose]();
  await api.close();
  await plane[Symbol.asyncDispose]();
});

beforeEach(() => {
  runtime.clearFaults();
  runtime.calls.length = 0;
  const atOnce = { attachesAtOnce: true, deletesAtOnce: true, observesAtOnce: true };
  Object.assign(runtime.store.habits, { ...atOnce, stateAtFirst: MachineState.MACHINE_RUNNING });
});

const KINDS = {
  Machine: 'compute.ironcore.dev/v1alpha1 machines',
  Volume: 'storage.ironcore.dev/v1alpha1 volumes',
  NetworkInterface: 'networking.ironcore.dev/v1alpha1 networkinterfaces',
  Network: 'networking.ironcore.dev/v1alpha1 networks',
} as const;
type Kind = keyof typeof KINDS;

function collection(kind: Kind): string {
  const [group, plural] = KINDS[kind].split(' ');
  return `/apis/${group}/namespaces/${ns.name}/${plural}`;
}

async function create(kind: Kind, name: string, spec: object, metadata: object = {}): Promise<void> {
  const [apiVersion] = KINDS[kind].split(' ');
  await api.send('POST', collection(kind), { apiVersion, kind, metadata: { name, ...metadata }, spec });
}

async function read<T>(kind: Kind, name: string): Promise<T | undefined> {
  return await api.find(`${collection(kind)}/${name}`);
}

async function edit(kind: Kind, name: string, change: object, subresource = ''): Promise<void> {
  await api.send('PATCH', `${collection(kind)}/${name}${subresource}`, change);
}

async function remove(kind: Kind, name: string): Promise<void> {
  await api.send('DELETE', `${collection(kind)}/${name}`);
}

async function createSecret(name: string, data: Readonly<Record<string, string>>): Promise<void> {
  await api.send('POST', `/api/v1/namespaces/${ns.name}/secrets`, { metadata: { name }, stringData: data });
}

/** A Volume as its provider has made it. */
async function createVolume(name: string, storage = '1Gi'): Promise<void> {
  await create('Volume', name, { resources: { storage } });
  const access = { driver: 'ceph', handle: `handle-${name}`, volumeAttributes: { monitors: 'm' } };
  await edit('Volume', name, { status: { state: 'Available', access } }, '/status');
}

async function createMachine(name: string, spec: Partial<IronCoreMachineSpec> = {}): Promise<void> {
  const volumes = [{ name: 'root', localDisk: { image: 'os' } }];
  await create('Machine', name, { machineClassRef: { name: CLASS }, volumes, ...spec });
}

async function shows(
  name: string,
  look: (machine: IronCoreMachine) => unknown,
  patience: { readonly timeoutMs?: number } = {},
): Promise<void> {
  let seen: IronCoreMachine | undefined;
  await eventually(
    async () => {
      seen = await read<IronCoreMachine>('Machine', name);
      if (seen === undefined) throw new Error('it is not there');
      await look(seen);
    },
    { ...patience, describe: () => `${name}: ${JSON.stringify({ spec: seen?.spec, status: seen?.status })}` },
  );
}

/** Resolves when the Machine is not ready for this reason. */
async function waits(name: string, reason: string, part: string): Promise<void> {
  await shows(name, ({ status }) => {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    expect(ready).toMatchObject({ status: 'False', reason });
    expect(ready?.message).toContain(part);
  });
}

async function running(name: string, at = runtime): Promise<RuntimeMachine> {
  await shows(name, ({ status }) => expect(status).toMatchObject({ state: 'Running' }));
  return at.store.named(name);
}

async function gone(name: string, patience: { readonly timeoutMs?: number } = {}): Promise<void> {
  await eventually(async () => expect(await read('Machine', name)).toBeUndefined(), patience);
}

async function eventsAbout(name: string): Promise<readonly Event[]> {
  const { items } = await api.send<List<Event>>('GET', `/api/v1/namespaces/${ns.name}/events`);
  return items.filter(({ involvedObject }) => involvedObject.name === name);
}

function created(name: string): number {
  return runtime
    .asked('CreateMachine')
    .filter((asked) => JSON.stringify(asked, plain).includes(`machine-name":"${name}"`)).length;
}

function plain(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

// promise: ironcore/machines/documents-example-runtime-receives
// promise: ironcore/machines/create-over-iri-createmachine
test("the document's example becomes a machine of its class, with its image, volume, network interface and ignition", async () => {
  await createVolume('my-volume', '10Gi');
  await create('NetworkInterface', 'networkinterface-sample', {
    networkRef: { name: 'network' },
    ips: [{ value: '10.0.0.1' }],
  });
  await createSecret('my-ignition-secret', { 'ignition.yaml': 'systemd: {}' });

  await api.send('POST', collection('Machine'), load(DOCUMENTED_MACHINE));

  const { metadata, spec } = await running('machine-sample');
  const machine = await read<IronCoreMachine>('Machine', 'machine-sample');
  expect(created('machine-sample')).toBe(1);
  const metrics = await (await fetch(`${session.url}/metrics`)).text();
  expect(metrics).toMatch(
    /machinist_ironcore_runtime_call_duration_seconds_count\{(?=.*pool="pool-sample")(?=.*method="CreateMachine")(?=.*code="OK").*\} 1\n/,
  );
  expect(metadata.labels).toMatchObject({
    'machinepoollet.ironcore.dev/machine-uid': machine?.metadata.uid,
    'machinepoollet.ironcore.dev/machine-namespace': ns.name,
    'machinepoollet.ironcore.dev/machine-name': 'machine-sample',
  });
  expect(spec).toMatchObject({
    power: Power.POWER_ON,
    class: CLASS,
    ignitionData: Buffer.from('systemd: {}'),
    volumes: [
      {
        name: 'rootdisk',
        device: 'oda',
        localDisk: undefined,
        connection: { driver: 'ceph', handle: 'handle-my-volume', effectiveStorageBytes: 10_737_418_240n },
      },
    ],
    networkInterfaces: [{ name: 'primary', networkId: 'net-1', ips: ['10.0.0.1'] }],
  });
  await shows('machine-sample', ({ status }) => {
    expect(status).toMatchObject({
      machineID: `sim://${metadata.id}`,
      observedGeneration: machine?.metadata.generation,
      volumes: [{ name: 'rootdisk', state: 'Attached', volumeRef: { name: 'my-volume' } }],
      networkInterfaces: [{ name: 'primary', state: 'Attached' }],
    });
    const ready = status?.conditions?.filter(({ status: is }) => is === 'True').map(({ type }) => type);
    expect(ready?.toSorted()).toEqual(expect.arrayContaining(['NetworkInterfacesReady', 'Ready', 'VolumesReady']));
  });
  await eventually(async () => {
    const nic = await read<IronCoreNetworkInterface>('NetworkInterface', 'networkinterface-sample');
    expect(nic?.spec?.providerID).toBe(`${metadata.id}/primary`);
  });
});

// promise: ironcore/machines/running-shown-seconds
test('a machine that starts is shown within seconds', async () => {
  runtime.store.habits.stateAtFirst = MachineState.MACHINE_PENDING;
  await createMachine('starting');
  await shows('starting', ({ status }) =>
    expect(status).toMatchObject({ state: 'Pending', machineID: expect.stringMatching(/^sim:/) }),
  );
  const { metadata } = runtime.store.named('starting');

  runtime.store.setState(metadata.id, MachineState.MACHINE_RUNNING);

  // How soon is said by relist.test.ts, by a clock of its own.
  await shows('starting', ({ status }) => expect(status).toMatchObject({ state: 'Running' }));
});

// promise: ironcore/machines/ignition-secret-condition-call
test('a Machine waits for its Secret, and is created when that comes', async () => {
  await createMachine('early', { ignitionRef: { name: 'late-secret' } });
  await waits('early', 'IgnitionNotReady', 'Secret late-secret does not exist');
  await createSecret('late-secret', { other: 'x' });
  await waits('early', 'IgnitionNotReady', 'Secret late-secret has no key ignition.yaml');
  expect(created('early')).toBe(0);

  await api.send('PATCH', `/api/v1/namespaces/${ns.name}/secrets/late-secret`, {
    stringData: { 'ignition.yaml': 'x' },
  });

  await running('early');
  expect(created('early')).toBe(1);
});

// promise: ironcore/machines/volumes-attached-grown-detached
test('a volume is attached, grows where it is, is detached once, and is free again', async () => {
  await createMachine('growing');
  const { metadata } = await running('growing');
  await createVolume('data');
  runtime.store.habits.attachesAtOnce = false;
  const root = { name: 'root', device: 'oda', localDisk: { image: 'os' } };
  await edit('Machine', 'growing', { spec: { volumes: [root, { name: 'data', volumeRef: { name: 'data' } }] } });

  const shown = (state: string) => (machine: IronCoreMachine) => {
    const data = machine.status?.volumes?.find(({ name }) => name === 'data');
    expect(data).toMatchObject({ state, volumeRef: { name: 'data' } });
    expect(data?.lastStateTransitionTime).toBeDefined();
  };
  await shows('growing', shown('Pending'));
  runtime.store.settle();
  await shows('growing', shown('Attached'));
  await edit('Volume', 'data', { status: { resources: { storage: '2Gi' } } }, '/status');
  await eventually(() => expect(runtime.asked('UpdateVolume')).toHaveLength(1));
  expect(runtime.store.get(metadata.id).spec.volumes).toMatchObject([
    { name: 'root' },
    { name: 'data', device: 'odb', connection: { effectiveStorageBytes: 2_147_483_648n } },
  ]);
  expect(runtime.asked('DetachVolume')).toEqual([]);

  await edit('Machine', 'growing', { spec: { volumes: [root] } });

  await eventually(async () => {
    const volume = await read<IronCoreVolume>('Volume', 'data');
    expect(volume?.spec?.claimRef).toBeUndefined();
  });
  expect(runtime.asked('DetachVolume')).toEqual([{ machineId: metadata.id, name: 'data' }]);
  expect(runtime.asked('AttachVolume')).toHaveLength(1);
});

// promise: ironcore/machines/server-notfound-detach-success
test('a network interface is attached and given back, also when the runtime says at first that there is none', async () => {
  await createMachine('connected');
  const { metadata } = await running('connected');
  await create('NetworkInterface', 'late', { networkRef: { name: 'network' }, ips: [{ value: '10.0.0.7' }] });
  const late = { name: 'late', networkInterfaceRef: { name: 'late' } };
  await edit('Machine', 'connected', { spec: { networkInterfaces: [late] } });
  await shows('connected', ({ status }) => {
    expect(status?.networkInterfaces).toMatchObject([{ name: 'late', state: 'Attached' }]);
  });
  runtime.fault('DetachNetworkInterface', { kind: 'refuse', status: Status.NOT_FOUND }, 1);

  await edit('Machine', 'connected', { spec: { networkInterfaces: [] } });

  await eventually(
    async () => {
      const nic = await read<IronCoreNetworkInterface>('NetworkInterface', 'late');
      expect(nic?.spec?.machineRef).toBeUndefined();
    },
    { timeoutMs: 120_000 },
  );
  expect(runtime.store.get(metadata.id).spec.networkInterfaces).toEqual([]);
  expect(runtime.asked('AttachNetworkInterface')).toHaveLength(1);
});

// promise: ironcore/machines/claims-two-machines-name
test('of two Machines that want one volume the first has it, and the second when that is gone', async () => {
  await createVolume('wanted');
  const volumes = [{ name: 'root', volumeRef: { name: 'wanted' } }];
  await createMachine('first', { volumes });
  await running('first');
  await createMachine('second', { volumes });
  await waits('second', 'VolumeNotReady', 'Volume wanted is in use by Machine first');
  runtime.store.habits.deletesAtOnce = false;

  await remove('Machine', 'first');
  await waits('first', 'Terminating', 'Waiting for the runtime to delete machine');
  await eventually(() => expect(runtime.asked('DeleteMachine')).toHaveLength(1));
  expect(created('second')).toBe(0);
  runtime.store.settle();

  await gone('first');
  await running('second');
  expect(runtime.asked('DeleteMachine')).toHaveLength(1);
});

test('two Machines that change their Volumes and addresses with each other have them so', async () => {
  const sides = ['left', 'right'] as const;
  const volumesWith = (data: string) => [
    { name: 'root', device: 'oda', localDisk: { image: 'os' } },
    { name: 'data', device: 'odb', volumeRef: { name: `data-${data}` } },
  ];
  const addresses = { left: [{ value: '10.0.0.21' }], right: [{ value: '10.0.0.22' }] };
  for (const side of sides) {
    await createVolume(`data-${side}`);
    await create('NetworkInterface', `nic-${side}`, { networkRef: { name: 'network' }, ips: addresses[side] });
    const networkInterfaces = [{ name: 'eth', networkInterfaceRef: { name: `nic-${side}` } }];
    await createMachine(side, { volumes: volumesWith(side), networkInterfaces });
    await running(side);
  }

  for (const [side, other] of [sides, sides.toReversed()] as const) {
    await edit('Machine', side, { spec: { volumes: volumesWith(other) } });
    await edit('NetworkInterface', `nic-${side}`, { spec: { ips: addresses[other] } });
  }

  for (const [side, other] of [sides, sides.toReversed()] as const) {
    await eventually(() => {
      const { volumes, networkInterfaces } = runtime.store.named(side).spec ?? {};
      expect([volumes?.[1]?.connection?.handle, networkInterfaces?.[0]?.ips]).toEqual([
        `handle-data-${other}`,
        [addresses[other][0]?.value],
      ]);
    });
  }
  for (const side of sides) await remove('Machine', side);
  for (const side of sides) await gone(side);
});

// promise: ironcore/machines/ephemeral-owned-foreign-name
test('what is made for a Machine is its own, and what was there before is not taken', async () => {
  const networkInterfaceTemplate = { spec: { networkRef: { name: 'network' }, ips: [{ value: '10.0.0.7' }] } };
  const networkInterfaces = [{ name: 'eth', ephemeral: { networkInterfaceTemplate } }];
  const root = { name: 'root', localDisk: { image: 'os' } };
  const tmp = { name: 'tmp', ephemeral: { volumeTemplate: { spec: { resources: { storage: '1Gi' } } } } };
  await create('NetworkInterface', 'own-eth', { networkRef: { name: 'network' } });
  await createMachine('own', { networkInterfaces, volumes: [root, tmp] });
  await waits('own', 'NetworkInterfaceNotReady', 'NetworkInterface own-eth already exists');
  expect((await read<IronCoreNetworkInterface>('NetworkInterface', 'own-eth'))?.spec?.machineRef).toBeUndefined();

  await remove('NetworkInterface', 'own-eth');
  await waits('own', 'VolumeNotReady', 'Volume own-tmp is not available');
  const access = { driver: 'ceph', handle: 'h' };
  await edit('Volume', 'own-tmp', { status: { state: 'Available', access } }, '/status');

  const { spec } = await running('own');
  expect(spec.networkInterfaces).toMatchObject([{ name: 'eth', ips: ['10.0.0.7'] }]);
  const { metadata } = (await read<IronCoreMachine>('Machine', 'own')) ?? {};
  expect(await read('NetworkInterface', 'own-eth')).toMatchObject({
    metadata: {
      annotations: { 'common.ironcore.dev/ephemeral-managed-by': 'ephemeral-manager' },
      ownerReferences: [{ kind: 'Machine', uid: metadata?.uid, controller: true }],
    },
    spec: { machineRef: { name: 'own', uid: metadata?.uid } },
  });
  await edit('Machine', 'own', { spec: { networkInterfaces: [], volumes: [{ ...root, device: 'oda' }] } });
  await eventually(async () => {
    expect(await read('NetworkInterface', 'own-eth')).toBeUndefined();
    expect(await read('Volume', 'own-tmp')).toBeUndefined();
  });
  expect(runtime.asked('DetachNetworkInterface')).toHaveLength(1);
});

// promise: ironcore/machines/go-machine
test('what is made for a Machine goes with it, and what it names stays', async () => {
  const networkInterfaceTemplate = { spec: { networkRef: { name: 'network' }, ips: [{ value: '10.0.0.8' }] } };
  const tmp = { name: 'tmp', ephemeral: { volumeTemplate: { spec: { resources: { storage: '1Gi' } } } } };
  await createVolume('named');
  await createMachine('whole', {
    networkInterfaces: [{ name: 'eth', ephemeral: { networkInterfaceTemplate } }],
    volumes: [tmp, { name: 'named', volumeRef: { name: 'named' } }],
  });
  await waits('whole', 'VolumeNotReady', 'Volume whole-tmp is not available');
  const access = { driver: 'ceph', handle: 'whole' };
  await edit('Volume', 'whole-tmp', { status: { state: 'Available', access } }, '/status');
  await running('whole');

  await remove('Machine', 'whole');

  await gone('whole');
  await eventually(
    async () => {
      expect(await read('NetworkInterface', 'whole-eth')).toBeUndefined();
      expect(await read('Volume', 'whole-tmp')).toBeUndefined();
    },
    { timeoutMs: 90_000 },
  );
  expect((await read<IronCoreVolume>('Volume', 'named'))?.spec?.claimRef).toBeUndefined();
});

// promise: ironcore/machines/power-off-creation-again
test('a Machine that is to be off is switched off at once, and on again', async () => {
  await createMachine('off', { power: 'Off' });
  await shows('off', ({ status }) => expect(status?.state).toBe('Shutdown'));
  expect(runtime.store.named('off').spec.power).toBe(Power.POWER_OFF);

  await edit('Machine', 'off', { spec: { power: 'On' } });

  await running('off');
  expect(runtime.asked('UpdateMachinePower')).toHaveLength(2);
});

// promise: ironcore/machines/duplicates-older-kept-told
test('of two machines for one Machine the older is kept, and it is told', async () => {
  await createMachine('double');
  const { metadata } = await running('double');
  const copy = runtime.store.duplicate(metadata.id);

  await edit('Machine', 'double', { metadata: { annotations: { look: 'again' } } });

  await eventually(() => expect(runtime.store.named('double').metadata.id).toBe(metadata.id));
  expect(runtime.asked('DeleteMachine')).toEqual([{ machineId: copy }]);
  await eventually(async () =>
    expect((await eventsAbout('double')).map(({ reason }) => reason)).toContain('DuplicateMachine'),
  );
});

describe('a runtime that', () => {
  // promise: machines-ironcore/answer-missing-makes-second
  // promise: ironcore/machines/answer-creation-lost-makes
  test('loses the answer of a creation has the machine found, and no second one', async () => {
    runtime.fault('CreateMachine', { kind: 'drop' }, 1);
    await createMachine('unanswered');

    await running('unanswered');

    expect(created('unanswered')).toBe(1);
  });

  test('refuses is told with its words, and asked again', async () => {
    const details = 'no memory is left';
    runtime.fault('CreateMachine', { kind: 'refuse', status: Status.RESOURCE_EXHAUSTED, details });
    await createMachine('refused');
    await waits('refused', 'RuntimeRefused', 'CreateMachine: ResourceExhausted: no memory is left');
    runtime.clearFaults();

    await running('refused');
  });

  test('answers garbage does not stop anybody else', async () => {
    await createMachine('garbled');
    await running('garbled');
    runtime.fault('ListMachines', { kind: 'garbage', bytes: Buffer.from('0affffff', 'hex') }, 3);

    await edit('Machine', 'garbled', { spec: { power: 'Off' } });

    await shows('garbled', ({ status }) => expect(status?.state).toBe('Shutdown'));
  });

  // promise: ironcore/machines/events-runtime-told-once
  test('tells of a machine has each told once', async () => {
    await createMachine('telling');
    const { metadata } = await running('telling');
    const seconds = Math.floor(new SystemClock().now() / 1_000);
    for (const at of [seconds, seconds, seconds + 1]) {
      runtime.emit(metadata.id, 'DiskFull', { message: 'a disk is full', type: 'Warning', seconds: at });
    }
    await eventually(
      async () => {
        // A change hurries the next look.
        await edit('Machine', 'telling', { spec: { power: runtime.calls.length % 2 === 0 ? 'On' : 'Off' } });
        const told = (await eventsAbout('telling')).filter(({ reason }) => reason === 'DiskFull');
        expect(told).toMatchObject([{ type: 'Warning', message: 'a disk is full', count: 2 }]);
      },
      { intervalMs: 1_000 },
    );
  });

  // promise: ironcore/machines/lost-objects-machine-whose
  test('still has the machine of a Machine that went without its finalizer has it deleted', async () => {
    await createVolume('of-stripped');
    await createMachine('stripped', { volumes: [{ name: 'root', volumeRef: { name: 'of-stripped' } }] });
    const { metadata } = await running('stripped');
    await runtime.kill();
    await remove('Machine', 'stripped');

    await edit('Machine', 'stripped', { metadata: { finalizers: null } });

    await gone('stripped');
    await runtime.listen();
    await eventually(() => expect(runtime.store.list({ id: metadata.id })).toEqual([]), { timeoutMs: 60_000 });
    await eventually(
      async () => {
        const volume = await read<IronCoreVolume>('Volume', 'of-stripped');
        expect(volume?.spec?.claimRef).toBeUndefined();
        expect(volume?.metadata.annotations ?? {}).toEqual({});
      },
      { timeoutMs: 90_000 },
    );
  });

  // promise: machines-ironcore/machine-ironcore-lost-labels
  // promise: ironcore/machines/lost-labels-found-id
  test('loses the labels of a machine has it found by its id, and deleted with its Machine', async () => {
    await createMachine('unlabelled');
    const { metadata } = await running('unlabelled');
    metadata.labels = {};
    runtime.store.setState(metadata.id, MachineState.MACHINE_SUSPENDED);
    await shows('unlabelled', ({ status }) => expect(status?.state).toBe('Shutdown'), { timeoutMs: 120_000 });
    await edit('Machine', 'unlabelled', { spec: { power: 'Off' } });
    await eventually(() => expect(runtime.asked('UpdateMachinePower')).toMatchObject([{ machineId: metadata.id }]));

    await remove('Machine', 'unlabelled');

    await gone('unlabelled');
    expect(runtime.asked('DeleteMachine')).toEqual([{ machineId: metadata.id }]);
    expect(created('unlabelled')).toBe(1);
  });
});

test('an address that is not given is that of a prefix, which is waited for', async () => {
  await create('NetworkInterface', 'dynamic', { networkRef: { name: 'network' }, ips: [{ ephemeral: {} }] });
  await createMachine('dynamic', { networkInterfaces: [{ name: 'eth', networkInterfaceRef: { name: 'dynamic' } }] });
  await waits('dynamic', 'NetworkInterfaceNotReady', 'Prefix dynamic-0 is not allocated yet');
});

// promise: machines-ironcore/machinepoollet-serves-touched-beside
test('a pool that a machinepoollet serves is left to it, and taken over when that has ended', async () => {
  const name = 'shared';
  await using own = await IriRuntime.start({ classes: { [CLASS]: 5 } });
  const others = { api, pool: name, namespace: ns.name, address: own.address };
  const first = Poollet.start(others);
  await eventually(() => first.rounds > 0);
  await using beside = await OperatorSession.start({
    connection: plane.connection,
    subject: { user: 'machinist' },
    namespace: ns.name,
    controllers: 'ironcore.pools',
    flags: { 'leader-elect': 'false', 'ironcore-pool': `${name}=${own.address}` },
  });
  const serves = async (value: 0 | 1): Promise<void> =>
    await eventually(
      async () => {
        const metrics = await (await fetch(`${beside.url}/metrics`)).text();
        expect(metrics).toContain(`machinist_ironcore_pool_served{pool="${name}"} ${value}\n`);
      },
      { timeoutMs: 120_000 },
    );
  const seen = async (rounds: Poollet): Promise<void> => {
    const before = rounds.rounds;
    await eventually(() => rounds.rounds > before + 10);
  };
  await serves(0);
  await eventually(async () => {
    const { items } = await api.send<List<Event>>('GET', '/api/v1/namespaces/default/events');
    expect(items.map(({ reason, involvedObject }) => [reason, involvedObject.name])).toContainEqual([
      'ServedByAnother',
      name,
    ]);
  });
  await createMachine(name, { machinePoolRef: { name }, power: 'Off' });
  await eventually(() => expect(own.store.made).toBe(1));
  await seen(first);
  expect(own.changes).toEqual(['CreateMachine']);

  await first[Symbol.asyncDispose]();
  const lease = `/apis/coordination.k8s.io/v1/namespaces/ironcore-machinepool-lease/leases/${name}`;
  await api.send('PATCH', lease, { spec: { renewTime: '2026-01-01T00:00:00.000000Z' } });
  await serves(1);
  await shows(name, ({ status }) => expect(status?.state).toBe('Shutdown'));
  expect(own.store.made).toBe(1);

  await using second = Poollet.start(others);
  await serves(0);
  await edit('Machine', name, { spec: { power: 'On' } });
  await seen(second);
  expect(own.store.named(name).spec.power).toBe(Power.POWER_OFF);
  await second[Symbol.asyncDispose]();
  await edit('Machine', name, { metadata: { finalizers: null } });
});

// promise: machines-ironcore/address-runtime-machine-made
test('at the wrong address nothing is made, deleted or given back, and at the right one it goes on', async () => {
  const name = 'mixed-up';
  await using right = await IriRuntime.start({ name: 'right', classes: { [CLASS]: 1 } });
  await using wrong = await IriRuntime.start({ name: 'wrong', classes: { [CLASS]: 1 } });
  const serve = async ({ address }: IriRuntime): Promise<OperatorSession> =>
    await OperatorSession.start({
      connection: plane.connection,
      subject: { user: 'machinist' },
      namespace: ns.name,
      controllers: 'ironcore.pools',
      flags: { 'leader-elect': 'false', 'ironcore-pool': `${name}=${address}` },
    });
  await createVolume(name);
  const volumes = [{ name: 'root', volumeRef: { name } }];
  {
    await using _session = await serve(right);
    await createMachine(name, { machinePoolRef: { name }, volumes });
    await running(name, right);
  }

  {
    await using _session = await serve(wrong);
    await edit('Machine', name, { spec: { power: 'Off' } });
    await waits(name, 'WrongRuntime', 'runtime wrong');
    await remove('Machine', name);
    const looks = wrong.calls.length;
    await eventually(() => expect(wrong.calls.length).toBeGreaterThan(looks + 10), { timeoutMs: 90_000 });
    const reasons = async (): Promise<readonly unknown[]> => (await eventsAbout(name)).map(({ reason }) => reason);
    await eventually(async () => expect(await reasons()).toContain('WrongRuntime'));
    expect([wrong.changes, right.store.all().length]).toEqual([[], 1]);
    expect((await read<IronCoreVolume>('Volume', name))?.spec?.claimRef).toMatchObject({ name });
  }

  await using _session = await serve(right);
  await gone(name, { timeoutMs: 90_000 });
  expect(right.store.all()).toEqual([]);
  expect((await read<IronCoreVolume>('Volume', name))?.spec?.claimRef).toBeUndefined();
}, 240_000);

// promise: ironcore/machines/watch-filter-downward-api
test('a pool with a provider ID, a watch filter and a downward API serves the Machines with the label, and hands on their fields', async () => {
  const name = 'filtered';
  await using own = await IriRuntime.start({ classes: { [CLASS]: 5 } });
  const team = "team=metadata.labels['example.com/team']";
  await using _session = await OperatorSession.start({
    connection: plane.connection,
    subject: { user: 'machinist' },
    namespace: ns.name,
    controllers: 'ironcore.pools',
    flags: {
      'leader-elect': 'false',
      'ironcore-pool': `${name}=${own.address}`,
      'ironcore-pool-provider-id': `${name}=sim://${name}`,
      'ironcore-watch-filter': 'blue',
      'machine-downward-api-label': team,
      'machine-downward-api-annotation': team,
      'volume-downward-api-label': 'of=metadata.namespace',
    },
  });
  const label = 'common.ironcore.dev/watch-filter';
  const machinePoolRef = { name };
  await createVolume(name);
  const volumes = [{ name: 'root', volumeRef: { name } }];
  const labels = { [label]: 'blue', 'example.com/team': 'a' };
  await create('Machine', 'unlabelled-filtered', { machineClassRef: { name: CLASS }, machinePoolRef });
  await create('Machine', name, { machineClassRef: { name: CLASS }, machinePoolRef, volumes }, { labels });

  const { metadata, spec } = await running(name, own);
  const key = 'downward-api.machinepoollet.ironcore.dev/team';
  expect(metadata.labels).toMatchObject({ [key]: 'a' });
  const ofVolume = spec.volumes[0]?.connection?.attributes['rawVolumeLabels'] ?? '{}';
  expect(JSON.parse(ofVolume)).toMatchObject({ 'downward-api.machinepoollet.ironcore.dev/of': ns.name });
  await edit('Machine', name, { metadata: { labels: { 'example.com/team': 'b' } } });
  await eventually(() => expect(own.store.named(name).metadata.annotations).toMatchObject({ [key]: 'b' }));
  expect(own.store.named(name).metadata.labels).toMatchObject({ [key]: 'a' });
  expect(own.asked('DetachVolume')).toEqual([]);
  const pool = await api.send<{ spec: object }>('GET', `/apis/compute.ironcore.dev/v1alpha1/machinepools/${name}`);
  expect(pool.spec).toMatchObject({ providerID: `sim://${name}` });

  expect(own.store.made).toBe(1);
  expect((await read<IronCoreMachine>('Machine', 'unlabelled-filtered'))?.metadata.finalizers).toBeUndefined();
  await edit('Machine', 'unlabelled-filtered', { metadata: { labels: { [label]: 'blue' } } });
  await running('unlabelled-filtered', own);
  for (const one of [name, 'unlabelled-filtered']) {
    await remove('Machine', one);
    await gone(one, { timeoutMs: 120_000 });
  }
}, 180_000);

/*
 * The process dies at one of its mutations, or loses its answer, while a Machine with a volume and a network interface comes, is switched
 * off, and goes. Whoever comes next ends it. MACHINIST_TEST_SAMPLE=all walks all points of each; without it, a sample.
 */
describe('whatever the process dies of', () => {
  const all = Array.from({ length: 17 }, (_, i) => i + 1).flatMap((n) => POINTS.map((point) => ({ n, point })));
  // Each second mutation, at one point each.
  const lives = EVERY ? all : all.filter((_, i) => i % 6 === Math.floor(i / 6) % 3);

  // promise: machines-ironcore/machine-served-pool-machine
  // promise: ironcore/machines/crash-points-machine-comes
  test('a Machine comes and goes with one machine, and leaves nothing', async () => {
    const lane = new PQueue({ concurrency: 5 });

    const ends = await lane.addAll(
      lives.map(
        ({ n, point }) =>
          () =>
            lifeWith(n, point),
      ),
    );

    expect(ends.filter(({ made, left }) => made > 1 || left > 0)).toEqual([]);
    expect(ends.filter(({ claims }) => claims.length > 0)).toEqual([]);
    expect(ends.filter(({ hit }) => hit !== undefined).length).toBeGreaterThan(5);
  }, 400_000);
});

interface End {
  readonly n: number;
  readonly point: Point;
  readonly hit: string | undefined;
  /** Machines that there ever were, and those that are left. */
  readonly made: number;
  readonly left: number;
  /** What still holds a volume or a network interface. */
  readonly claims: readonly unknown[];
}

/** Two minutes pass since a creation was sent. */
async function age(name: string): Promise<void> {
  const machine = await read<IronCoreMachine>('Machine', name);
  if (machine?.metadata.annotations?.[CREATION_SENT_ANNOTATION] === undefined) return;
  const sentAt = toTimestamp(new SystemClock().now() - 120_000);
  await edit('Machine', name, { metadata: { annotations: { [CREATION_SENT_ANNOTATION]: sentAt } } });
}

async function lifeWith(n: number, point: Point): Promise<End> {
  const name = `life-${n}-${point}`;
  await using own = await IriRuntime.start({ classes: { [CLASS]: 1 } });
  const crash = new CrashPoint(n, point);
  const start = async (watched: CrashPoint | undefined): Promise<OperatorSession> =>
    await OperatorSession.start({
      connection: plane.connection,
      subject: { user: 'machinist' },
      namespace: ns.name,
      controllers: 'ironcore.pools',
      flags: { 'leader-elect': 'false', 'ironcore-pool': `${name}=${own.address}` },
      ...(watched !== undefined && {
        hooks: { intercept: armed(watched) },
        worlds: [ironCore({ intercept: armed(watched) })],
      }),
    });
  let isArmed = false;
  const armed =
    (watched: CrashPoint): CrashPoint['intercept'] =>
    (mutation, send) =>
      isArmed ? watched.intercept(mutation, send) : send();
  const first = await start(crash);
  const succession = crash.died.then(async () => {
    await first[Symbol.asyncDispose]();
    await age(name);
    return await start(undefined);
  });
  await eventually(
    () => expect(first.caches.of(IRONCORE_KINDS).ironCorePools.get(name)?.status?.capacity).toBeDefined(),
    {
      timeoutMs: 120_000,
      describe: () =>
        `places in pool ${name}: ${JSON.stringify(first.caches.of(IRONCORE_KINDS).ironCorePools.get(name))}`,
    },
  );
  await createVolume(name);
  await create('NetworkInterface', name, { networkRef: { name: 'network' }, ips: [{ value: '10.0.0.1' }] });
  isArmed = true;
  await createMachine(name, {
    machinePoolRef: { name },
    volumes: [{ name: 'root', volumeRef: { name } }],
    networkInterfaces: [{ name: 'eth', networkInterfaceRef: { name } }],
  });
  await running(name, own);
  await edit('Machine', name, { spec: { power: 'Off' } });
  await shows(name, ({ status }) => expect(status?.state).toBe('Shutdown'));
  await remove('Machine', name);
  // One whose deletion the process before has sent, and not noted, is looked for.
  await gone(name, { timeoutMs: 90_000 });
  const texts = crash.texts;
  crash.die();
  await (await succession)[Symbol.asyncDispose]();
  const volume = await read<IronCoreVolume>('Volume', name);
  const nic = await read<IronCoreNetworkInterface>('NetworkInterface', name);
  const claims = [volume?.spec?.claimRef, nic?.spec?.machineRef].filter((claim) => claim !== undefined);
  return { n, point, hit: texts[n - 1], made: own.store.made, left: own.store.all().length, claims };
}

test('uses every verb that its role grants, and is refused nothing', () => {
  const roles = readManifests(path.join(ROOT, 'deploy/rbac')).filter(
    ({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === 'machinist-ironcore-machines',
  ) as unknown as readonly { readonly rules: readonly Rule[] }[];
  const granted = roles.flatMap(({ rules }) =>
    rules.flatMap(({ resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
    ),
  );
  const used = new Set(session.requests.map(({ verb, resource }) => `${verb} ${resource}`));

  expect(granted).not.toEqual([]);
  // IronCore's IPAM is not installed here, so that there is nothing to watch.
  expect(granted.filter((one) => !used.has(one))).toEqual(['watch prefixes']);
  expect(session.requests.filter(({ code }) => code === 401 || code === 403)).toEqual([]);
});

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
