import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import type { FromMcmProviderOptions } from '../../cmd/machinist/driver/command.ts';
import { fromMcmProvider } from '../../cmd/machinist/driver/from-mcm-provider.ts';
import { MCM_PROVIDERS } from '../../cmd/machinist/driver/mcm-providers.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { RULES } from '../../pkg/driver/conformance/rules/index.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import type { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { DriverFleet } from '../drivers/driver-fleet.ts';
import { acceptedSecret, go, ProviderFaults, writeFolderProvider } from '../drivers/mcm-provider.ts';
import { NewDriver } from '../drivers/new-driver.ts';
import { callOf, classOf, connect as connectTo, requestOf, type SecretTexts } from '../drivers/requests.ts';
import { eventually } from '../expect/eventually.ts';

/*
 * packages/mcm-provider with a provider that is written as those of machine-controller-manager are. The original's module cannot be
 * downloaded from every proxy: test/mcm-provider/original has what providers import of it.
 */
const ROOT = path.resolve(import.meta.dirname, '../..');
const BUILD_MS = 600_000;
/** For a call of megabytes, which a busy host takes a minute for. */
const LARGE_MS = 300_000;
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };
const NAME = 'folder-driver';
const SHIM = 'machinist.example/mcm-provider';

/** As the API server has it. */
function served(machineClass: MachineClass): MachineClass {
  return { ...machineClass, metadata: { ...machineClass.metadata, creationTimestamp: '2026-01-01T00:00:00Z' } };
}

let folder: string;
let faults: ProviderFaults;
let secret: SecretTexts;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'mcm-provider-'));
  await writeFolderProvider(folder);
  await go(folder, 'build', '-o', NAME, '.');
  faults = new ProviderFaults(folder);
  secret = await acceptedSecret(folder);
}, BUILD_MS);
afterAll(() => {
  rmSync(folder, { recursive: true });
});

test(
  'the library passes its own tests and go vet, and is formatted',
  async () => {
    const sources = ['packages/mcm-provider', 'test/mcm-provider'].map((one) => path.join(ROOT, one));
    expect(await promisify(execFile)('gofmt', ['-l', ...sources])).toMatchObject({ stdout: '' });
    expect(await go(folder, 'vet', './...', `${SHIM}/...`)).toBe('');
    expect(await go(folder, 'test', SHIM)).toMatch(/^ok /m);
  },
  BUILD_MS,
);

describe('a provider of the original that is served as a driver', () => {
  let driver: NewDriver;
  let client: GrpcDriver;
  beforeEach(async () => {
    rmSync(path.join(folder, 'run'), { recursive: true, force: true });
    driver = await NewDriver.start(folder);
    client = connectTo(driver.socket);
  });
  afterEach(async () => {
    await client.close();
    await driver[Symbol.asyncDispose]();
  });

  const machineClass = served(classOf(NAME, { size: 'small' }));
  const request = (name = 'm-1', more = {}) => requestOf(name, machineClass, { secret, ...more });
  const create = (name = 'm-1', timeoutMs = 60_000) => client.createMachine(request(name), callOf({ timeoutMs }));
  /** Code and message of what a call fails with. */
  const failureOf = async (call: Promise<unknown>): Promise<string> =>
    await call.then(
      () => 'OK',
      (err: unknown) => (err instanceof DriverError ? `${err.code}: ${err.message}` : String(err)),
    );

  test('keeps every rule of the contract, writes no secret to its log, and ends when asked to', async () => {
    await client.close();
    const { rules, ...counts } = await driver.verify();

    expect(rules.filter(({ outcome }) => outcome !== 'passed')).toEqual([
      expect.objectContaining({ name: 'list-of-another-class', outcome: 'not applicable' }),
    ]);
    expect(counts).toMatchObject({ passed: RULES.length - 1, failed: 0, notApplicable: 1 });
    expect(await driver.vms()).toEqual([]);
    expect(await driver.log()).toContain('creating the VM of');
    expect(await driver.log()).not.toMatch(/example-token|another-token|#!\/bin\/sh/);
    await driver.end();
    expect(await driver.log()).toMatch(/"msg":"stopping"}\n/);
  });

  test(
    'takes requests as large as the objects and Secrets of a class can be',
    async () => {
      const large = requestOf('m-1', machineClass, { secret, userData: '#'.repeat(8 * 1024 * 1024) });

      expect(await failureOf(client.getMachineStatus(large, callOf({ timeoutMs: LARGE_MS })))).toMatch(/^NotFound: /);
    },
    2 * LARGE_MS,
  );

  test.each([
    ['panic', 'CreateMachine', /^Internal: .*the provider panicked in CreateMachine: nil map with \[redacted\]/],
    ['fatal', 'CreateMachine', /^Internal: .*the provider panicked in CreateMachine/],
    ['image', 'CreateMachine', /^FailedPrecondition: .*image not found/],
    ['quota', 'CreateMachine', /^ResourceExhausted: .*quota exceeded for \[redacted\]/],
    ['subnet', 'GetMachineStatus', /^Unknown: .*describing the VM: subnet not found/],
    ['text', 'GetMachineStatus', /^Unknown: /],
  ] as const)(
    'a creation in which the provider answers with %s in %s fails alone, and makes nothing',
    async (fault, method, says) => {
      await faults.put(method, fault);

      const failed = await failureOf(create());

      expect(failed).toMatch(says);
      expect(await driver.vms()).toEqual([]);
      expect(await driver.log()).not.toContain('example-token');
      const { providerID } = await create();
      expect(await driver.vms()).toEqual([providerID]);
    },
  );

  test('a text that reads like NotFound is not NotFound for a machine that has its VM', async () => {
    const { providerID } = await create();
    const asked = request('m-1', { providerID });

    for (const fault of ['subnet', 'text'] as const) {
      await faults.put('GetMachineStatus', fault);
      expect(await failureOf(client.getMachineStatus(asked, callOf()))).toMatch(/^Unknown: /);
    }
    await faults.put('GetMachineStatus', 'blind');
    expect(await failureOf(client.getMachineStatus(asked, callOf()))).toMatch(/^NotFound: /);
  });

  test('a second creation waits for one that goes on beyond its time, and finds its VM before the cloud shows it', async () => {
    await faults.put('CreateMachine', 'hang');

    // The first may have made a VM, which a failure would deny; the second has certainly made none.
    expect(await failureOf(create('m-1', 1_000))).toMatch(
      /^Unavailable: .*CreateMachine was not answered: ABORTED: the provider did not return from CreateMachine in time/,
    );
    expect(await failureOf(create('m-1', 1_000))).toMatch(/^Aborted: .*CreateMachine has been running for/);
    const second = create('m-1');
    await eventually(async () => expect(await faults.isWaiting('CreateMachine')).toBe(false), PATIENCE);
    await create('m-2'); // another machine waits for nobody
    await faults.put('GetMachineStatus', 'blind');
    await faults.endHang('CreateMachine');
    const { providerID } = await second;

    const vms = await driver.vms();
    expect(vms.filter((id) => id.includes('/m-1/'))).toEqual([providerID]);
    expect(vms).toHaveLength(2);
    expect(await faults.isWaiting('GetMachineStatus')).toBe(false);
  });

  test('a creation that runs when the driver is asked to end is answered, and the driver ends after it', async () => {
    await faults.put('CreateMachine', 'hang');
    const made = create();
    await eventually(async () => expect(await faults.isWaiting('CreateMachine')).toBe(false), PATIENCE);

    await driver.end();
    await faults.endHang('CreateMachine');

    const { providerID } = await made;
    expect(await driver.vms()).toEqual([providerID]);
  });

  test('state of the provider and several VMs of a machine are carried to the manager, and state back to the provider', async () => {
    await faults.put('CreateMachine', 'quota');
    const failed = await client.createMachine(request(), callOf()).catch((err: unknown) => err);
    expect(failed).toMatchObject({ code: 'ResourceExhausted', lastKnownState: 'began' });

    const asked = request();
    const machine = { ...asked.machine, status: { lastKnownState: 'began' } };
    expect(await client.createMachine({ ...asked, machine }, callOf())).toMatchObject({
      lastKnownState: 'made after began',
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
    });
    await faults.put('GetMachineStatus', 'several');
    expect(await failureOf(client.getMachineStatus(request(), callOf()))).toMatch(/^OutOfRange: /);
    await faults.put('GetMachineStatus', 'uninitialized');
    expect(await client.getMachineStatus(request(), callOf()).catch((err: unknown) => err)).toMatchObject({
      code: 'Uninitialized',
      result: { nodeName: 'm-1' },
    });
  });

  test('an optional method that the provider does not have is left out of the capabilities from its first call on', async () => {
    const before = await client.capabilities(AbortSignal.timeout(60_000));
    await faults.put('ListMachines', 'unimplemented');
    const failed = await failureOf(client.listMachines({ machineClass, secretData: request().secretData }, callOf()));
    const after = await client.capabilities(AbortSignal.timeout(60_000));

    expect(failed).toMatch(/^Unimplemented: /);
    expect(before.listScope).toBe('cluster');
    const asked = ['InitializeMachine', 'ListMachines', 'GetVolumeIDs'] as const;
    expect(asked.filter((method) => before.methods.has(method))).toEqual(['ListMachines', 'GetVolumeIDs']);
    expect(asked.filter((method) => after.methods.has(method))).toEqual(['GetVolumeIDs']);
  });

  test('an object that the original could not read is made no VM from, but its VM is found and deleted', async () => {
    const { providerID } = await create();
    const odd = {
      ...machineClass,
      metadata: { ...machineClass.metadata, creationTimestamp: '' },
    };
    const asked = requestOf('m-1', odd, { secret, providerID });

    expect(await failureOf(client.createMachine(requestOf('m-2', odd, { secret }), callOf()))).toMatch(
      /^InvalidArgument: .*machineClass: /,
    );
    expect(await client.getMachineStatus(asked, callOf())).toMatchObject({ providerID });
    await client.deleteMachine(asked, callOf());
    expect(await driver.vms()).toEqual([]);
  });

  test('a class of another provider is refused with the member and the remedy, and the provider is not asked', async () => {
    await faults.put('GetMachineStatus', 'panic');

    const failed = await failureOf(
      client.createMachine(requestOf('m-1', served(classOf('AWS')), { secret }), callOf()),
    );

    expect(failed).toMatch(/^InvalidArgument: .*machineClass\.provider: this driver serves "folder-driver", not "AWS"/);
    expect(await faults.isWaiting('GetMachineStatus')).toBe(true);
  });

  test('a VM is neither shown, nor deleted, nor joined by another one, for a machine of the same name with another UID', async () => {
    const { providerID } = await create();
    // As those that find VMs by names alone.
    const later = { ...request('m-1', { uid: 'u-later' }) };
    const asked = requestOf('m-1', machineClass, { secret, uid: 'u-later', providerID });

    for (const one of [later, asked])
      expect(await failureOf(client.getMachineStatus(one, callOf()))).toMatch(/^NotFound: /);
    expect(await failureOf(client.deleteMachine(asked, callOf()))).toMatch(/^(NotFound: |OK)/);
    expect(await driver.vms()).toEqual([providerID]);
  });

  test('VMs of two namespaces whose classes list alike are told apart', async () => {
    const { providerID } = await create();
    const elsewhere = { ...machineClass, metadata: { ...machineClass.metadata, namespace: 'other' } };

    const list = async (of: typeof machineClass) =>
      await client.listMachines({ machineClass: of, secretData: request().secretData }, callOf());

    expect(await list(machineClass)).toEqual([
      expect.objectContaining({ providerID, machineName: 'm-1', machineUID: 'u-m-1', machineNamespace: 'shoot' }),
    ]);
    expect(await list(elsewhere)).toEqual([]);
  });
});

test("a driver's socket is its user's alone; it serves its metrics and the provider's, and no second one takes its place", async () => {
  rmSync(path.join(folder, 'run'), { recursive: true, force: true });
  const metrics = `127.0.0.1:${await freePort()}`;
  await using driver = await NewDriver.start(folder, `--metrics=${metrics}`);
  const client = connectTo(driver.socket);
  const machineClass = served(classOf(NAME));
  await client.createMachine(requestOf('m-1', machineClass, { secret }), callOf());
  await client.close();

  expect(statSync(driver.socket).mode & 0o777).toBe(0o600);
  const page = async (route: string): Promise<string> => await (await fetch(`http://${metrics}${route}`)).text();
  expect(await page('/healthz')).toBe('ok\n');
  expect(await page('/metrics')).toMatch(/^folder_creations_total 1$/m);
  expect(await page('/metrics')).toMatch(
    /^machinist_driver_served_seconds_count\{code="OK",method="CreateMachine"\} 1$/m,
  );
  const state = `--state-directory=${path.join(folder, 'run/other')}`;
  const flags = [`--address=unix://${driver.socket}`, `--cloud=${path.join(folder, 'run/cloud')}`, state];
  const second = promisify(execFile)(path.join(folder, NAME), flags);
  await expect(second).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('another driver listens on') });
  await expect(promisify(execFile)(path.join(folder, NAME), [state])).rejects.toMatchObject({
    code: 2,
    stderr: 'error: --address is missing\n(see --help for usage)\n',
  });
});

test(
  'a manager gets one VM for each machine from a provider that panics, makes two, lies, hangs and is killed, and leaves none',
  async () => {
    rmSync(path.join(folder, 'run'), { recursive: true, force: true });
    await using driver = await NewDriver.start(folder);
    await faults.put('CreateMachine', 'panic');
    await faults.put('GetMachineStatus', 'subnet');
    await using fleet = await DriverFleet.start(driver, NAME, folder, {
      'machine-safety-orphan-vms-period': '2s',
      'machine-safety-orphan-vms-grace': '2s',
    });

    await fleet.settled(2);
    await driver.restart();
    await faults.put('CreateMachine', 'quota');
    await fleet.scale(3);
    await fleet.settled(3);
    await faults.put('DeleteMachine', 'fatal');
    await fleet.scale(1);
    await fleet.settled(1);
    await faults.put('GetMachineStatus', 'lie');
    await fleet.scale(2);
    await fleet.settled(2);
    expect(await driver.log()).toMatch(/"method":"[^"]*GetMachineStatus","code":"CODE_NOT_FOUND"/);
    await faults.put('CreateMachine', 'twice');
    await fleet.scale(3);
    await fleet.settled(3);
    await faults.put('DeleteMachine', 'hang');
    const removed = fleet.remove();
    await eventually(async () => expect(await driver.log()).toMatch(/DeleteMachine","code":"CODE_ABORTED"/), PATIENCE);
    await faults.endHang('DeleteMachine');
    await removed;
    expect(await driver.log()).not.toContain('example-token');
  },
  BUILD_MS,
);

describe('machinist driver from-mcm-provider', () => {
  let place: string;
  beforeEach(() => {
    place = mkdtempSync(path.join(tmpdir(), 'from-mcm-'));
  });
  afterEach(() => {
    rmSync(place, { recursive: true });
  });

  /** Exit code and lines of the command. */
  async function run(
    module: string | undefined,
    options: Partial<FromMcmProviderOptions> = {},
    env: Readonly<Record<string, string | undefined>> = process.env,
  ): Promise<{ readonly code: number; readonly text: string }> {
    const lines: string[] = [];
    const say = (line: string): void => void lines.push(line);
    const out = path.join(place, 'out');
    const all = { out, import: [], expression: undefined, build: true, ...options };
    const code = await fromMcmProvider(module, all, { out: say, err: say, env });
    return { code, text: lines.join('\n') };
  }

  const local = {
    source: '',
    mcmSource: '',
    import: ['/pkg/provider'],
    expression: 'provider.New()',
    provider: NAME,
  };
  beforeAll(() => {
    local.source = folder;
    local.mcmSource = path.join(folder, 'original');
  });

  test(
    'writes a program that compiles, and serves the provider of a checkout',
    async () => {
      const { code, text } = await run(undefined, local);
      expect({ code, text }).toMatchObject({ code: 0 });

      const program = path.join(place, 'out/folder-driver-driver');
      const socket = path.join(place, 'driver.sock');
      expect(text).toContain(`${program} --address=unix:///tmp/folder-driver.sock`);
      const env = { ...process.env, FOLDER_CLOUD: path.join(place, 'cloud') };
      const child = spawn(program, [`--address=unix://${socket}`, `--state-directory=${path.join(place, 'state')}`], {
        env,
        stdio: 'ignore',
      });
      const ended = once(child, 'exit');
      const client = connectTo(socket);
      try {
        await eventually(() => expect(existsSync(socket)).toBe(true), PATIENCE);
        const made = await client.createMachine(requestOf('m-1', served(classOf(NAME)), { secret }), callOf());
        expect(made.providerID).toMatch(/^folder-driver:/);
      } finally {
        await client.close();
        child.kill('SIGTERM');
      }
      expect(await ended).toEqual([0, null]);
    },
    BUILD_MS,
  );

  test(
    'a constructor that the module does not have is an error of the compiler, and nothing is created',
    async () => {
      const { code, text } = await run(undefined, { ...local, expression: 'provider.NewDriver()' });

      expect(code).toBe(1);
      expect(text).toMatch(
        /go build .*undefined: provider\.NewDriver[^]*nothing was created; check --import and --constructor/,
      );
      expect(readdirSync(place)).toEqual([]);
    },
    BUILD_MS,
  );

  test('what it writes for each known provider is formatted as gofmt does it', async () => {
    for (const module of Object.keys(MCM_PROVIDERS)) {
      const out = path.join(place, path.basename(module));
      expect(await run(`${module}@v1.2.3`, { out, build: false })).toMatchObject({ code: 0 });
    }
    expect(readdirSync(place)).toHaveLength(Object.keys(MCM_PROVIDERS).length);
    expect(await promisify(execFile)('gofmt', ['-l', place])).toMatchObject({ stdout: '' });
  });
});
