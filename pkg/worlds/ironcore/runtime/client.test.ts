import { once } from 'node:events';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createServer, Status } from 'nice-grpc';

import { eventually } from '../../../../test/expect/eventually.ts';
import { remoteVolume, runtimeMachine } from '../../../../test/fakes/runtime-machine.ts';
import { wireMessage } from '../../../../test/fakes/wire-message.ts';
import { type RuntimeMethod, IriRuntime } from '../../../../packages/providers/iri/runtime.ts';
import { SystemClock } from '../../../base/clock/system-clock.ts';
import { parseDriverAddress } from '../../../driver/grpc/address.ts';
import { HealthService } from '../../../driver/grpc/health.ts';
import { HealthDefinition } from '../../../driver/grpc/gen/grpc/health/v1/health.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { RuntimeClient, type EndedCall } from './client.ts';
import {
  ListMachinesResponse,
  Machine,
  MachineSpec,
  MachineState,
  Power,
  StatusResponse,
  VersionResponse,
  type MachineClassStatus,
} from './gen/ironcore/machine/v1alpha1/machine.ts';
import { ObjectMetadata } from './gen/ironcore/meta/v1alpha1/meta.ts';
import type { RuntimeCall } from './runtime.ts';

const CALL: RuntimeCall = { signal: new AbortController().signal, timeoutMs: 10_000 };
const SHORT: RuntimeCall = { ...CALL, timeoutMs: 100 };
const SPEC = { class: 'small' };
const UID = { 'machinepoollet.ironcore.dev/machine-uid': 'u-1' };

let runtime: IriRuntime;
let client: RuntimeClient;

function clientOf(address: string): RuntimeClient {
  return new RuntimeClient({ address: parseDriverAddress(address), clock: new SystemClock(), log: silentLogger });
}

beforeAll(async () => {
  runtime = await IriRuntime.start({ classes: { small: 10 } });
  client = clientOf(runtime.address);
});

afterAll(async () => {
  client.close();
  await runtime[Symbol.asyncDispose]();
});

beforeEach(() => {
  runtime.clearFaults();
  runtime.calls.length = 0;
});

async function create(labels: Record<string, string> = UID): Promise<string> {
  return await client.createMachine(runtimeMachine({ labels }, SPEC), CALL);
}

describe('a client of a runtime', () => {
  test('asks for its name once, and for its classes', async () => {
    expect(await client.version(CALL)).toEqual({ name: 'sim', version: '1.0.0', connection: 0 });
    await client.version(CALL);

    expect(runtime.asked('Version')).toEqual([{ version: 'v1alpha1' }]);
    expect(await client.classes(CALL)).toEqual([{ name: 'small', resources: {}, quantity: 10 }]);
  });

  test('makes machines, changes them and takes them away', async () => {
    const volume = (size: bigint) =>
      remoteVolume('v', { driver: 'd', handle: 'h', effectiveStorageBytes: size }, 'odb');
    const ignitionData = Buffer.from('{}');
    const id = await client.createMachine(
      runtimeMachine({ labels: UID, annotations: { a: 'b' } }, { ...SPEC, ignitionData }),
      CALL,
    );
    await client.updateMachineAnnotations(id, { c: 'd' }, CALL);
    await client.updateMachinePower(id, Power.POWER_OFF, CALL);
    await client.attachVolume(id, volume(0n), CALL);
    await client.updateVolume(id, volume(5n), CALL);
    await client.attachNetworkInterface(id, { name: 'n', networkId: 'net', ips: ['10.0.0.1'], attributes: {} }, CALL);

    const [machine] = await client.machines({ labels: UID }, CALL);
    expect(machine).toMatchObject({
      metadata: { id, labels: UID, annotations: { c: 'd' }, generation: 5n },
      spec: {
        power: Power.POWER_OFF,
        class: 'small',
        ignitionData: Buffer.from('{}'),
        volumes: [{ name: 'v', connection: { effectiveStorageBytes: 5n } }],
        networkInterfaces: [{ name: 'n', networkId: 'net', ips: ['10.0.0.1'] }],
      },
      status: { state: MachineState.MACHINE_STOPPED, volumes: [{ name: 'v' }], networkInterfaces: [{ name: 'n' }] },
    });

    await client.detachVolume(id, 'v', CALL);
    await client.detachNetworkInterface(id, 'n', CALL);
    await client.deleteMachine(id, CALL);
    expect(await client.machines({ id }, CALL)).toEqual([]);
    await expect(client.deleteMachine(id, CALL)).rejects.toMatchObject({ code: 'NotFound', unanswered: false });
  });

  test('tells of each call what it ended with, and after how long', async () => {
    const calls: EndedCall[] = [];
    const observe = (call: EndedCall): void => void calls.push(call);
    const address = parseDriverAddress(runtime.address);
    const observed = new RuntimeClient({ address, clock: new SystemClock(), log: silentLogger, observe });
    runtime.fault('Status', { kind: 'refuse', status: Status.RESOURCE_EXHAUSTED }, 1);
    runtime.fault('DeleteMachine', { kind: 'hang' }, 1);

    await observed.version(CALL);
    await observed.classes(CALL).catch(() => undefined);
    await observed.deleteMachine('x', SHORT).catch(() => undefined);
    observed.close();

    expect(calls).toMatchObject([
      { method: 'Version', code: 'OK' },
      { method: 'Status', code: 'ResourceExhausted' },
      { method: 'DeleteMachine', code: 'DeadlineExceeded' },
    ]);
    expect(calls[2]?.ms).toBeGreaterThanOrEqual(SHORT.timeoutMs - 1);
  });

  test('asks for events a minute earlier than they are wanted, in whole seconds', async () => {
    const id = await create();
    runtime.emit(id, 'Old', { seconds: 39 });
    runtime.emit(id, 'Started', { seconds: 40 });

    const events = await client.events(100_999, CALL);

    expect(events.map(({ spec }) => spec?.reason)).toEqual(['Started']);
    await client.deleteMachine(id, CALL);
  });

  test('finds the runtime again after it was away', async () => {
    const { connection } = await client.version(CALL);
    await runtime.kill();
    await expect(client.classes(CALL)).rejects.toMatchObject({ code: 'Unavailable' });

    await runtime.listen();

    // gRPC waits a moment between attempts to connect.
    const classes = await eventually(() => client.classes(CALL));
    expect(classes).toHaveLength(1);
    expect((await client.version(CALL)).connection).not.toBe(connection);
    expect((await client.version(CALL)).connection).toBe((await client.version(CALL)).connection);
  });
});

describe('a call that is refused', () => {
  test.each([
    { status: Status.INVALID_ARGUMENT, code: 'InvalidArgument', unanswered: false },
    { status: Status.NOT_FOUND, code: 'NotFound', unanswered: false },
    { status: Status.ALREADY_EXISTS, code: 'AlreadyExists', unanswered: false },
    { status: Status.PERMISSION_DENIED, code: 'PermissionDenied', unanswered: false },
    { status: Status.RESOURCE_EXHAUSTED, code: 'ResourceExhausted', unanswered: false },
    { status: Status.FAILED_PRECONDITION, code: 'FailedPrecondition', unanswered: false },
    { status: Status.ABORTED, code: 'Aborted', unanswered: false },
    { status: Status.OUT_OF_RANGE, code: 'OutOfRange', unanswered: false },
    { status: Status.UNAUTHENTICATED, code: 'Unauthenticated', unanswered: false },
    { status: Status.UNKNOWN, code: 'Unknown', unanswered: true },
    { status: Status.CANCELLED, code: 'Canceled', unanswered: true },
    { status: Status.DEADLINE_EXCEEDED, code: 'DeadlineExceeded', unanswered: true },
    { status: Status.INTERNAL, code: 'Internal', unanswered: true },
    { status: Status.UNAVAILABLE, code: 'Unavailable', unanswered: true },
    { status: Status.DATA_LOSS, code: 'DataLoss', unanswered: true },
  ])('with status $status is $code; may have happened: $unanswered', async ({ status, code, unanswered }) => {
    runtime.fault('CreateMachine', { kind: 'refuse', status, details: 'why not' }, 1);
    runtime.fault('ListMachines', { kind: 'refuse', status, details: 'why not' }, 1);

    const message = `CreateMachine: ${code}: why not`;
    await expect(create()).rejects.toMatchObject({ code, unanswered, detail: 'why not', message });
    await expect(client.machines({}, CALL)).rejects.toMatchObject({ code, unanswered: false });
  });

  test('repeats nothing of what is secret', async () => {
    const secret = Buffer.from('a-secret-of-some-length');
    const details = `cannot use ${secret.toString()}, nor ${secret.toString('base64')}`;
    const volume = remoteVolume('v', { secretData: { key: secret } });
    runtime.fault('CreateMachine', { kind: 'refuse', status: Status.INVALID_ARGUMENT, details }, 2);
    runtime.fault('AttachVolume', { kind: 'refuse', status: Status.INVALID_ARGUMENT, details }, 1);

    const hidden = { detail: 'cannot use [redacted], nor [redacted]' };
    const createWith = (part: Partial<MachineSpec>) => client.createMachine(runtimeMachine({}, part), CALL);
    await expect(createWith({ ignitionData: secret })).rejects.toMatchObject(hidden);
    // Another Secret has the same member.
    const other = remoteVolume('w', { secretData: { key: Buffer.from('something-else-of-some-length') } });
    await expect(createWith({ volumes: [volume, other] })).rejects.toMatchObject(hidden);
    await expect(client.attachVolume('i', volume, CALL)).rejects.toMatchObject(hidden);
  });
});

describe('a call without an answer', () => {
  test.each([{ kind: 'hang' }, { kind: 'lose' }] as const)('ends with its time, if it does $kind', async (fault) => {
    runtime.fault('CreateMachine', fault, 1);

    await expect(client.createMachine(runtimeMachine({}, SPEC), SHORT)).rejects.toMatchObject({
      code: 'DeadlineExceeded',
      detail: 'was not answered within time',
      unanswered: true,
    });
  });

  test('ends when it is given up', async () => {
    runtime.fault('Status', { kind: 'hang' }, 1);
    const controller = new AbortController();

    const call = client.classes({ ...CALL, signal: controller.signal });
    controller.abort(new Error('enough'));

    await expect(call).rejects.toMatchObject({ code: 'Canceled', detail: 'was aborted: enough' });
  });

  test('says nothing to a proxy of the environment', async () => {
    let heard = 0;
    const proxy = createTcpServer((socket) => {
      heard += 1;
      socket.destroy();
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const { port } = proxy.address() as AddressInfo; // Of a server on TCP.
    process.env['http_proxy'] = `http://127.0.0.1:${port}`;
    try {
      const alone = clientOf('dns:///127.0.0.1:9?insecure=true');
      await expect(alone.version(SHORT)).rejects.toMatchObject({ code: expect.stringMatching(/Unavail|Deadline/) });
      alone.close();
    } finally {
      delete process.env['http_proxy'];
      proxy.close();
    }

    expect(heard).toBe(0);
  });

  test('says that nobody listens', async () => {
    const nobody = clientOf('unix:///tmp/no-runtime-is-here.sock');
    await expect(nobody.version(CALL)).rejects.toMatchObject({ code: 'Unavailable', detail: 'no such socket' });
    nobody.close();
  });

  test('says that it is no runtime', async () => {
    const server = createServer();
    server.add(HealthDefinition, new HealthService());
    const port = await server.listen('127.0.0.1:0');
    const other = clientOf(`dns:///127.0.0.1:${port}`);
    await expect(other.version(CALL)).rejects.toMatchObject({
      code: 'Unimplemented',
      detail: expect.stringContaining(
        'the runtime does not implement it: it has another version, or is not an IronCore runtime',
      ),
    });
    other.close();
    server.forceShutdown();
  });
});

/** A list with machines of which only this is known. */
function list(...machines: Partial<Machine>[]): Uint8Array {
  return ListMachinesResponse.encode({ machines: machines.map((one) => wireMessage(Machine, one)) }).finish();
}

function classList(...machineClassStatus: MachineClassStatus[]): Uint8Array {
  return StatusResponse.encode({ machineClassStatus }).finish();
}

const CLASS: MachineClassStatus = { machineClass: { name: 'c', capabilities: undefined }, quantity: 1n };
const metadata = wireMessage(ObjectMetadata, { id: 'a' });
const spec = wireMessage(MachineSpec, SPEC);
const ours = { metadata: { ...metadata, labels: UID }, spec };
const ANSWERS: readonly {
  readonly method: RuntimeMethod;
  readonly what: string;
  readonly bytes: Uint8Array;
  readonly says: string;
}[] = [
  { method: 'ListMachines', what: 'no message', bytes: Buffer.from('0affffff', 'hex'), says: 'parsing error' },
  {
    method: 'ListMachines',
    what: 'a machine without id',
    bytes: list({ spec }),
    says: 'a machine has no ID',
  },
  {
    method: 'ListMachines',
    what: 'a machine without spec',
    bytes: list({ metadata }),
    says: 'a has no spec',
  },
  {
    method: 'ListMachines',
    what: 'one machine twice',
    bytes: list(ours, ours),
    says: 'a is listed twice',
  },
  {
    method: 'ListMachines',
    what: 'the machine of another',
    bytes: list({ metadata: { ...metadata, labels: { [Object.keys(UID)[0] as string]: 'u-2' } }, spec }),
    says: 'has label machinepoollet.ironcore.dev/machine-uid u-2, but u-1 was requested',
  },
  {
    method: 'ListMachines',
    what: 'a machine without labels',
    bytes: list({ metadata, spec }),
    says: 'has label machinepoollet.ironcore.dev/machine-uid none, but u-1 was requested',
  },
  { method: 'CreateMachine', what: 'no machine', bytes: new Uint8Array(), says: 'the machine has no ID' },
  { method: 'Version', what: 'no name', bytes: new Uint8Array(), says: 'the runtime\'s name is ""' },
  {
    method: 'Version',
    what: 'a name that is none',
    bytes: VersionResponse.encode({ runtimeName: 'a b://', runtimeVersion: '' }).finish(),
    says: 'which is not a valid URI scheme',
  },
  {
    method: 'Status',
    what: 'one class twice',
    bytes: classList(CLASS, CLASS),
    says: 'class c is listed twice',
  },
  {
    method: 'Status',
    what: 'less than nothing',
    bytes: classList({ ...CLASS, quantity: -1n }),
    says: 'class c has the quantity -1',
  },
  {
    method: 'Status',
    what: 'a class without name',
    bytes: classList({ ...CLASS, machineClass: undefined }),
    says: 'a class has no name',
  },
];

describe('an answer that makes no sense', () => {
  test.each(ANSWERS)('is told: $what to $method', async ({ method, bytes, says }) => {
    const asking = clientOf(runtime.address);
    runtime.fault(method, { kind: 'garbage', bytes }, 1);
    const calls: Partial<Record<RuntimeMethod, () => Promise<unknown>>> = {
      ListMachines: () => asking.machines({ labels: UID }, CALL),
      CreateMachine: () => asking.createMachine(runtimeMachine({}, SPEC), CALL),
      Version: () => asking.version(CALL),
      Status: () => asking.classes(CALL),
    };

    await expect(calls[method]?.()).rejects.toMatchObject({
      code: 'Internal',
      detail: expect.stringContaining(says),
      unanswered: method === 'CreateMachine',
    });
    asking.close();
  });

  test('is not that a machine has no status yet', async () => {
    runtime.fault('ListMachines', { kind: 'garbage', bytes: list({ metadata, spec }) }, 1);

    const [machine] = await client.machines({ id: 'a' }, CALL);

    expect(machine?.status).toEqual({
      observedGeneration: 0n,
      state: MachineState.MACHINE_PENDING,
      imageRef: '',
      volumes: [],
      networkInterfaces: [],
      machineConditions: [],
    });
  });
});
