import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { DriverCall } from '../../pkg/driver/driver.ts';
import type { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import type { DriverProcess } from './driver-process.ts';
import { callOf as anyCallOf, connect, requestOf, type SecretTexts, stubOf } from './requests.ts';

/** A driver that is held to the contract. */
export interface DriverUnderTest {
  readonly name: string;
  readonly machineClass: MachineClass;
  /** A class with a mistake in it, and the member that the answer must name. */
  readonly brokenClass: MachineClass;
  readonly brokenMember: string;
  readonly userData: string;
  /** What else its Secret holds. */
  readonly secret?: SecretTexts;
  /** Longest that a call may take; 10 s by default. */
  readonly timeoutMs?: number;
  /** Starts the driver's process; the same directory is what it kept from the last time. */
  start(directory: string, socket: string): Promise<DriverProcess>;
  /** Ends what lives longer than the driver's process. */
  cleanUp(directory: string): Promise<void>;
}

/** What every driver must do, asked through gRPC over its socket. */
export function describeContract(driver: DriverUnderTest): void {
  const { machineClass, userData, secret = {}, timeoutMs = 10_000 } = driver;
  const callOf = (change: Partial<DriverCall> = {}): DriverCall => anyCallOf({ timeoutMs, ...change });
  const request = (name: string, options: { uid?: string; providerID?: string } = {}) =>
    requestOf(name, machineClass, { userData, secret, ...options });

  let directory: string;
  let socket: string;
  let running: DriverProcess;
  let client: GrpcDriver;

  const start = async (): Promise<void> => {
    running = await driver.start(join(directory, 'state'), socket);
  };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'driver-'));
    socket = join(directory, 'driver.sock');
    await start();
    client = connect(socket);
  });

  afterEach(async () => {
    await client.close();
    await running.end('SIGKILL');
    await driver.cleanUp(join(directory, 'state'));
    await rm(directory, { recursive: true, force: true });
  });

  describe(`the ${driver.name} driver keeps the contract`, () => {
    test('says what it can do', async () => {
      const capabilities = await client.capabilities(callOf().signal);

      expect(capabilities).toMatchObject({ contractVersion: 'v1', name: driver.name, idempotentCreate: true });
      expect(capabilities.methods).toContain('ListMachines');
    });

    test('makes one VM when a creation is repeated, one after another and all at once', async () => {
      const first = await client.createMachine(request('m-1'), callOf());
      const again = await client.createMachine(request('m-1'), callOf());
      const atOnce = await Promise.all([1, 2, 3, 4].map(() => client.createMachine(request('m-2'), callOf())));

      expect(first.nodeName).toBe('m-1');
      expect(again.providerID).toBe(first.providerID);
      expect(new Set(atOnce.map((vm) => vm.providerID)).size).toBe(1);
      expect(await client.listMachines(request('m-1'), callOf())).toHaveLength(2);
    });

    test('finds a VM by the name of its machine and by its provider id', async () => {
      const { providerID } = await client.createMachine(request('m-1'), callOf());

      const byName = await client.getMachineStatus(request('m-1'), callOf());
      const byID = await client.getMachineStatus(request('m-1', { providerID }), callOf());

      expect(byName).toMatchObject({ providerID, nodeName: 'm-1' });
      expect(byID).toMatchObject({ providerID, nodeName: 'm-1' });
    });

    test('tells of its own id where its machine has one of another form, and takes that for no VM by itself', async () => {
      const { providerID } = await client.createMachine(request('m-1'), callOf());
      // As a cloud controller may write it into the Node, and somebody from there into the Machine.
      const otherForm = `cloud://elsewhere/${providerID.split('/').at(-1)}`;

      const found = await client.getMachineStatus(request('m-1', { providerID: otherForm }), callOf());
      const stub = client.deleteMachine(stubOf('m-1', otherForm, machineClass, secret), callOf());

      expect(found).toMatchObject({ providerID, nodeName: 'm-1' });
      await expect(stub).rejects.toMatchObject({ code: 'NotFound' });
      await client.deleteMachine(request('m-1', { providerID: otherForm }), callOf());
      expect(await client.listMachines(request('m-1'), callOf())).toEqual([]);
    });

    test.each([
      { what: 'an unknown name', options: {}, name: 'm-2', cluster: 'c-1' },
      { what: 'the same name with another UID', options: { uid: 'u-other' }, name: 'm-1', cluster: 'c-1' },
      { what: 'the same name in another cluster', options: {}, name: 'm-1', cluster: 'c-2' },
    ])('does not take a VM for that of $what', async ({ options, name, cluster }) => {
      await client.createMachine(request('m-1'), callOf());

      await expect(client.getMachineStatus(request(name, options), callOf({ cluster }))).rejects.toMatchObject({
        code: 'NotFound',
        unanswered: false,
      });
    });

    test('deletes a VM once and then says that there is none', async () => {
      await client.createMachine(request('m-1'), callOf());

      await client.deleteMachine(request('m-1'), callOf());

      await expect(client.deleteMachine(request('m-1'), callOf())).rejects.toMatchObject({ code: 'NotFound' });
      await expect(client.getMachineStatus(request('m-1'), callOf())).rejects.toMatchObject({ code: 'NotFound' });
      expect(await client.listMachines(request('m-1'), callOf())).toEqual([]);
    });

    test('deletes exactly the VM that a stub without UID names', async () => {
      const one = await client.createMachine(request('m-1'), callOf());
      const two = await client.createMachine(request('m-2'), callOf());

      // The name has gone to another machine meanwhile; only the id counts.
      await client.deleteMachine(stubOf('m-2', one.providerID, machineClass, secret), callOf());

      const left = await client.listMachines(request('m-1'), callOf());
      expect(left.map((vm) => vm.providerID)).toEqual([two.providerID]);
    });

    test('lists VMs with name, UID and namespace of their machines, and none of another cluster', async () => {
      const { providerID } = await client.createMachine(request('m-1'), callOf());
      await client.createMachine(request('m-2'), callOf({ cluster: 'c-2' }));

      expect(await client.listMachines(request('m-1'), callOf())).toEqual([
        { providerID, machineName: 'm-1', machineUID: 'u-m-1', machineNamespace: machineClass.metadata.namespace },
      ]);
    });

    test.each(['SIGTERM', 'SIGKILL'] as const)('finds all VMs again after a restart by %s', async (signal) => {
      const { providerID } = await client.createMachine(request('m-1'), callOf());
      await client.createMachine(request('m-2'), callOf());
      await client.deleteMachine(request('m-2'), callOf());

      await running.end(signal);
      await start();

      const again = await client.createMachine(request('m-1'), callOf());
      expect(again.providerID).toBe(providerID);
      expect(await client.listMachines(request('m-1'), callOf())).toHaveLength(1);
    });

    test('names the member of the provider spec that is wrong', async () => {
      const broken = requestOf('m-1', driver.brokenClass, { userData, secret });

      await expect(client.createMachine(broken, callOf())).rejects.toMatchObject({
        code: 'InvalidArgument',
        detail: expect.stringContaining(driver.brokenMember),
      });
    });

    test.each(['../../escaped', '/tmp/escaped', 'm-1/..', '.hidden', '', 'M_1', 'm\n1', 'm-'.repeat(130)])(
      'makes no VM for a machine whose name is none: %j',
      async (name) => {
        await expect(client.createMachine(request(name), callOf())).rejects.toMatchObject({
          code: 'InvalidArgument',
          detail: expect.stringContaining('machine.metadata.name'),
        });
        expect(await client.listMachines(request('m-1'), callOf())).toEqual([]);
      },
    );

    test('finds a machine whose name begins as a removed one once did again when it is started anew', async () => {
      const { providerID } = await client.createMachine(request('deleted-m-1'), callOf());

      await running.end('SIGKILL');
      await start();

      const found = await client.getMachineStatus(request('deleted-m-1'), callOf());
      expect(found.providerID).toBe(providerID);
    });

    test('refuses mutations of a manager that was replaced, also after a restart', async () => {
      await client.createMachine(request('m-1'), callOf({ fencingToken: 7n }));
      const old = callOf({ fencingToken: 6n });

      // The one that holds the Lease, which may have been set back, has to know which token it must have.
      const refusal = { code: 'FailedPrecondition', highestToken: 7n };
      await expect(client.deleteMachine(request('m-1'), old)).rejects.toMatchObject(refusal);
      await running.end('SIGKILL');
      await start();
      await expect(client.deleteMachine(request('m-1'), old)).rejects.toMatchObject(refusal);

      // Reads and other clusters are not concerned.
      await client.getMachineStatus(request('m-1'), callOf({ fencingToken: 0n }));
      await client.createMachine(request('m-1'), callOf({ fencingToken: 0n, cluster: 'c-2' }));
      await client.deleteMachine(request('m-1'), callOf({ fencingToken: 8n }));
    });

    test('obeys a manager whose leader election was turned off, and still refuses one that was replaced before', async () => {
      await client.createMachine(request('m-1'), callOf({ fencingToken: 7n }));

      await client.createMachine(request('m-2'), callOf({ fencingToken: 0n }));
      await client.deleteMachine(request('m-1'), callOf({ fencingToken: 0n }));

      const old = callOf({ fencingToken: 6n });
      await expect(client.deleteMachine(request('m-2'), old)).rejects.toMatchObject({ code: 'FailedPrecondition' });
    });

    test('leaves a mutation unanswered when it is killed in the middle, and answers its successor', async () => {
      await client.capabilities(callOf().signal);
      running.freeze();
      const outcome = client.createMachine(request('m-1'), callOf()).catch((err: unknown) => err);

      await running.end('SIGKILL');
      expect(await outcome).toMatchObject({ code: 'Unavailable', unanswered: true });

      // Nothing was sent here: the connection could not even be made.
      await expect(client.createMachine(request('m-1'), callOf())).rejects.toMatchObject({
        code: 'Unavailable',
        unanswered: false,
      });
      await start();
      await expect(client.createMachine(request('m-1'), callOf())).resolves.toMatchObject({ nodeName: 'm-1' });
      expect(await client.listMachines(request('m-1'), callOf())).toHaveLength(1);
    });

    test('does not start twice with the same state', async () => {
      await expect(driver.start(join(directory, 'state'), join(directory, 'other.sock'))).rejects.toThrow(/is used by/);
    });
  });
}
