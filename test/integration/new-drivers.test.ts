import { execFile, execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { withLock } from '../../hack/control-plane/build-lock.ts';
import { createPki, type PkiFiles } from '../../hack/control-plane/pki.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { cacheDirectory } from '../../hack/control-plane/user-directories.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { RULES } from '../../pkg/driver/conformance/rules/index.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { DriverFleet } from '../drivers/driver-fleet.ts';
import { acceptedSecret } from '../drivers/mcm-provider.ts';
import { GO_ENVIRONMENT } from '../drivers/go-environment.ts';
import { NewDriver, write } from '../drivers/new-driver.ts';
import { callOf, classOf, connect as connectTo, requestOf } from '../drivers/requests.ts';
import { eventually } from '../expect/eventually.ts';

const BUF = path.resolve(import.meta.dirname, '../../node_modules/.bin');
/** A driver is built, and its packages are downloaded, the first time. */
const BUILD_MS = 600_000;
/** More than gRPC takes by itself. */
const MUCH = '#'.repeat(8 * 1024 * 1024);
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };

/** What a language's tools are given, so that they find what they have downloaded and compiled before. */
const ENVIRONMENTS = {
  go: GO_ENVIRONMENT,
  python: { PIP_DISABLE_PIP_VERSION_CHECK: '1' },
} as const;

let place: string;
beforeAll(() => {
  place = mkdtempSync(path.join(tmpdir(), 'new-'));
});
afterAll(() => {
  rmSync(place, { recursive: true });
});

/** Why this host cannot run the driver in Python; undefined when it can. */
function lackOfPython(): string | undefined {
  try {
    execFileSync('python3', ['-c', 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))'], {
      stdio: 'ignore',
    });
    return undefined;
  } catch {
    return 'the driver in Python is not tried: python3 with venv, 3.10 or newer, is not there';
  }
}

/** Types commands that the author is told. */
async function type(language: keyof typeof ENVIRONMENTS, folder: string, commands: readonly string[]): Promise<void> {
  const env = { ...process.env, ...ENVIRONMENTS[language] };
  for (const command of commands) await promisify(execFile)('sh', ['-c', command], { cwd: folder, env });
}

/** All up to the start. Packages of Python are kept for the next run. */
async function build(language: keyof typeof ENVIRONMENTS, folder: string, told: readonly string[]): Promise<void> {
  const [first = '', ...rest] = told.slice(1, told.indexOf('sh start.sh'));
  if (language !== 'python') return await type(language, folder, [first, ...rest]);
  const version = execFileSync('python3', ['--version'], { encoding: 'utf8' }).trim().replace(' ', '-');
  const kept = path.join(path.dirname(cacheDirectory(process.env)), `new-driver-${version}`);
  await withLock(`${kept}.lock`, async () => {
    const isMade = existsSync(path.join(kept, '.venv/bin/pip'));
    mkdirSync(kept, { recursive: true });
    await type(language, kept, isMade ? [] : [first]);
    symlinkSync(path.join(kept, '.venv'), path.join(folder, '.venv'));
    await type(language, folder, rest);
  });
}

const lack = lackOfPython();
if (lack !== undefined) process.stderr.write(`skipped: ${lack}\n`);

describe.each(lack === undefined ? (['go', 'python'] as const) : (['go'] as const))(
  'a new driver in %s',
  (language) => {
    const name = `${language}-driver`;
    let folder: string;
    beforeAll(async () => {
      const commands = await write(language, name, place);
      folder = path.join(place, name);
      await build(language, folder, commands);
    }, BUILD_MS);

    test('keeps the contract at a provider that takes its time, writes down no secret, and ends when it is asked to', async () => {
      const latency = language === 'go' ? '25ms' : '0.025';
      await using driver = await NewDriver.start(folder, `--cloud-latency=${latency}`);

      const { rules, ...counts } = await driver.verify();

      expect(rules.filter(({ outcome }) => outcome !== 'passed')).toEqual([]);
      expect(counts).toMatchObject({ passed: RULES.length, failed: 0, notApplicable: 0 });
      expect(await driver.vms()).toEqual([]);
      expect(await driver.log()).not.toMatch(/example-token|another-token|#!\/bin\/sh|fault of this driver/);
      await driver.end();
      expect(await driver.log()).toMatch(/"msg":"stopping"}\n/);
    });

    test('gives up when the time of a call has passed, and with its caller, although the provider hangs', async () => {
      await using driver = await NewDriver.start(folder, `--cloud-latency=${language === 'go' ? '1h' : '3600'}`);
      const client = connectTo(driver.socket);
      const caller = new AbortController();
      const givenUp = (count: number): Promise<void> =>
        eventually(async () => expect((await driver.log()).match(/CODE_ABORTED/g)).toHaveLength(count), PATIENCE);

      // Whether an answer still arrives is a matter of speed; the driver's log says that it has given up.
      const late = client.getMachineStatus(requestOf('m-1', classOf(name)), callOf({ timeoutMs: 2_000 }));
      const patient = callOf({ timeoutMs: 600_000, signal: caller.signal });
      const ends = Promise.allSettled([late, client.getMachineStatus(requestOf('m-2', classOf(name)), patient)]);
      await givenUp(1);
      caller.abort(new Error('nobody waits'));
      await givenUp(2);

      expect((await ends).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      await client.close();
    });

    test('takes requests as large as the objects and Secrets of a class can be', async () => {
      await using driver = await NewDriver.start(folder);
      const client = connectTo(driver.socket);

      const large = requestOf('m-1', classOf(name), { secret: await acceptedSecret(folder), userData: MUCH });
      const failed = client.getMachineStatus(large, callOf());

      await expect(failed).rejects.toMatchObject({ code: 'NotFound' });
      await client.close();
    });

    test('is called over TCP with a certificate of its CA alone, and reads that CA again', async () => {
      const files = path.join(place, `${name}-tls`);
      const [first, second] = await Promise.all([
        createPki(path.join(files, '1'), ['localhost']),
        createPki(path.join(files, '2'), ['localhost']),
      ]);
      const use = ({ ca, server, serverKey }: PkiFiles): void => {
        for (const [from, to] of [
          [ca, 'ca'],
          [server, 'cert'],
          [serverKey, 'key'],
        ] as const)
          copyFileSync(from, path.join(files, to));
      };
      const target = `dns:///127.0.0.1:${await freePort()}`;
      /** What a manager with the certificate of this CA hears. */
      const heard = async ({ ca, kubeletClient, kubeletClientKey }: PkiFiles): Promise<string> => {
        const query = `?ca=${ca}&cert=${kubeletClient}&key=${kubeletClientKey}&serverName=localhost`;
        const address = parseDriverAddress(`${target}${query}`);
        const client = new GrpcDriver({ address, clock: new SystemClock(), log: silentLogger });
        try {
          return (await client.capabilities(AbortSignal.timeout(PATIENCE.timeoutMs))).name;
        } catch (err) {
          return DriverError.hasCode(err, 'Unavailable') ? 'nothing' : String(err);
        } finally {
          await client.close();
        }
      };

      use(first);
      await using _driver = await NewDriver.start(
        folder,
        `--address=${target}?ca=${files}/ca&cert=${files}/cert&key=${files}/key`,
      );
      const before = [await heard(first), await heard(second)];
      // As a renewal that is under way leaves it.
      writeFileSync(path.join(files, 'cert'), '');
      const meanwhile = [await heard(first), await heard(second)];
      use(second);
      const after = [await heard(first), await heard(second)];

      const ofTheFirst = [name, 'nothing'];
      expect({ before, meanwhile, after }).toEqual({
        before: ofTheFirst,
        meanwhile: ofTheFirst,
        after: ['nothing', name],
      });
    });

    test('makes the machines of a manager, and no other VMs, also when it is killed in between', async () => {
      await using driver = await NewDriver.start(folder);
      await using fleet = await DriverFleet.start(driver, name, folder);

      await fleet.settled(2);
      await driver.restart();
      await fleet.scale(3);
      await fleet.settled(3);
      await fleet.scale(1);
      await fleet.settled(1);
      await fleet.remove();
    });
  },
);

test(
  'what the example in Go holds of the contract is what its author generates from it',
  async () => {
    await write('go', 'fresh', place);
    const folder = path.join(place, 'fresh');
    const generated = ['contract/driver.pb.go', 'contract/driver_grpc.pb.go'];
    const read = (): readonly string[] => generated.map((file) => readFileSync(path.join(folder, file), 'utf8'));
    const before = read();
    rmSync(path.join(folder, 'contract'), { recursive: true });

    const env = { ...process.env, ...ENVIRONMENTS.go, PATH: `${BUF}:${process.env['PATH']}` };
    await promisify(execFile)('go', ['generate', '.'], { cwd: folder, env });

    expect(read().map((text, index) => ({ file: generated[index], isCurrent: text === before[index] }))).toEqual(
      generated.map((file) => ({ file, isCurrent: true })),
    );
  },
  BUILD_MS,
);
