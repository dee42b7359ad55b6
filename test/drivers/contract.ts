import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { VerifyOptions } from '../../pkg/driver/conformance/options.ts';
import { RULES } from '../../pkg/driver/conformance/rules/index.ts';
import { Verification } from '../../pkg/driver/conformance/verify.ts';
import type { DriverCall } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import type { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { eventually } from '../expect/eventually.ts';
import type { DriverProcess } from './driver-process.ts';
import { callOf as anyCallOf, connect, encoded, requestOf, type SecretTexts, stubOf } from './requests.ts';

/** A driver of ours that is held to the contract. */
export interface DriverUnderTest {
  readonly name: string;
  readonly machineClass: MachineClass;
  /** The same with a mistake in it. */
  readonly brokenClass: MachineClass;
  readonly userData: string;
  /** What else its Secret holds. */
  readonly secret?: SecretTexts;
  /** A Secret that its provider does not accept. */
  readonly brokenSecret?: SecretTexts;
  readonly makeUntagged?: VerifyOptions['makeUntagged'];
  /** Rules that are not tried: what DriverServer does for each of our drivers alike, where VMs cost minutes. */
  readonly leftOut?: readonly string[];
  /** Rules that are tried, and nothing beyond them, where VMs are expensive and a cheaper cloud shows the rest. By default everything is. */
  readonly only?: readonly string[];
  /** Rules that cannot be tried with it. */
  readonly notApplicable: readonly string[];
  /** Longest that a call may take; 10 s by default. */
  readonly timeoutMs?: number;
  /** Starts the driver's process; the same directory is what it kept from the last time. */
  start(directory: string, socket: string): Promise<DriverProcess>;
  /** Ends what lives longer than the driver's process. */
  cleanUp(directory: string): Promise<void>;
}

/** The rules of the contract, as `machinist driver verify` tries them; then what drivers of ours do beyond it. */
export function describeContract(driver: DriverUnderTest): void {
  const { machineClass, userData, secret = {}, brokenSecret, makeUntagged, timeoutMs = 10_000 } = driver;
  const { only, leftOut = [] } = driver;
  const callOf = (change: Partial<DriverCall> = {}): DriverCall => anyCallOf({ timeoutMs, ...change });
  const request = (name: string, options: { uid?: string; providerID?: string } = {}) =>
    requestOf(name, machineClass, { userData, secret, ...options });
  const never = new AbortController().signal;
  // Where machines are Nodes, other tests see them.
  const owner = driver.name.toLowerCase();
  const [one, two] = [`contract-${owner}-1`, `contract-${owner}-2`];

  describe(`the ${driver.name} driver`, () => {
    let directory: string;
    let socket: string;
    let running: DriverProcess;

    const start = async (): Promise<void> => {
      running = await driver.start(join(directory, 'state'), socket);
    };

    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'driver-'));
      socket = join(directory, 'driver.sock');
      await start();
    });

    afterAll(async () => {
      await running.end('SIGKILL');
      await driver.cleanUp(join(directory, 'state'));
      await rm(directory, { recursive: true, force: true });
    });

    describe('keeps the contract', () => {
      let verification: Verification;
      const notApplicable: string[] = [];

      beforeAll(async () => {
        const options: VerifyOptions = {
          address: parseDriverAddress(`unix://${socket}`),
          machineClass,
          secretData: encoded({ ...secret, userData }),
          badClass: driver.brokenClass,
          ...(brokenSecret === undefined ? {} : { badSecretData: encoded({ ...brokenSecret, userData }) }),
          ...(makeUntagged === undefined ? {} : { makeUntagged }),
          restart: async () => {
            await running.end('SIGKILL');
            await start();
          },
          clock: new SystemClock(),
          callMs: timeoutMs,
        };
        verification = await Verification.begin(options, never);
      });

      afterAll(() => {
        verification[Symbol.dispose]();
      });

      for (const rule of RULES.filter(({ name }) => only?.includes(name) ?? !leftOut.includes(name)))
        test(`in rule ${rule.name}`, async () => {
          const { outcome, reason, left } = await verification.try(rule, never);

          expect({ wrong: outcome === 'failed' ? reason : undefined, left }).toEqual({ left: [] });
          if (outcome === 'not applicable') notApplicable.push(rule.name);
        });

      test('and no rule is left out unnoticed', () => {
        expect(notApplicable).toEqual(driver.notApplicable);
      });
    });

    if (only !== undefined) return;
    describe('does more than the contract asks', () => {
      let client: GrpcDriver;

      beforeAll(() => {
        client = connect(socket);
      });

      afterAll(async () => {
        await client.close();
      });

      /** A driver may say that it is not finished, and is asked again. */
      const made = (name: string) => eventually(() => client.createMachine(request(name), callOf()));

      /** A VM that was made may need its time until it runs. */
      const foundAs = (name: string, options: { providerID?: string } = {}) =>
        eventually(() => client.getMachineStatus(request(name, options), callOf()));

      /** And once nothing is left of a machine, it may know no such machine. */
      const gone = (deletion: Promise<unknown>) =>
        deletion.catch((err: unknown) => {
          if (!DriverError.hasCode(err, 'NotFound')) throw err;
        });

      test('it says its name', async () => {
        expect(await client.capabilities(callOf().signal)).toMatchObject({ name: driver.name, idempotentCreate: true });
      });

      test('tells of its own id where its machine has one of another form, and takes that for no VM by itself', async () => {
        const { providerID } = await made(one);
        // As a cloud controller may write it into the Node, and somebody from there into the Machine.
        const otherForm = `cloud://elsewhere/${providerID.split('/').at(-1)}`;

        const found = await foundAs(one, { providerID: otherForm });
        const stub = client.deleteMachine(stubOf(one, otherForm, machineClass, secret), callOf());

        expect(found).toMatchObject({ providerID, nodeName: one });
        await expect(stub).rejects.toMatchObject({ code: 'NotFound' });
        await eventually(() => gone(client.deleteMachine(request(one, { providerID: otherForm }), callOf())));
        expect(await client.listMachines(request(one), callOf())).toEqual([]);
      });

      test.each(['../../escaped', '/tmp/escaped', 'm-1/..', '.hidden', '', 'M_1', 'm\n1', 'm-'.repeat(130)])(
        'makes no VM for a machine whose name is none: %j',
        async (name) => {
          await expect(client.createMachine(request(name), callOf())).rejects.toMatchObject({
            code: 'InvalidArgument',
            detail: expect.stringContaining('machine.metadata.name'),
          });
          expect(await client.listMachines(request(one), callOf())).toEqual([]);
        },
      );

      test('does not start twice with the same state', async () => {
        await expect(driver.start(join(directory, 'state'), join(directory, 'other.sock'))).rejects.toThrow(
          /is in use by/,
        );
      });

      test('leaves a mutation unanswered when it is killed in the middle, and answers its successor', async () => {
        await client.capabilities(callOf().signal);
        await running.freeze();
        const outcome = client.createMachine(request(two), callOf()).catch((err: unknown) => err);

        await running.end('SIGKILL');
        expect(await outcome).toMatchObject({ code: 'Unavailable', unanswered: true });

        // Nothing was sent here: the connection could not even be made.
        await expect(client.createMachine(request(two), callOf())).rejects.toMatchObject({
          code: 'Unavailable',
          unanswered: false,
        });
        await start();
        expect(await made(two)).toMatchObject({ nodeName: two });
        expect(await client.listMachines(request(two), callOf())).toHaveLength(1);
      });

      test('finds a machine whose name begins as a removed one once did again when it is started anew', async () => {
        const { providerID } = await made(`deleted-${one}`);

        await running.end('SIGTERM');
        await start();

        expect(await foundAs(`deleted-${one}`)).toMatchObject({ providerID });
      });
    });
  });
}
