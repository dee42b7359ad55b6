import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import packageJson from '../../package.json' with { type: 'json' };
import { freePort } from '../../hack/control-plane/ports.ts';
import { leases } from '../../pkg/kube/client/resource.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { KubeSession } from '../integration/kube-session.ts';
import { grant, type RoleFile } from '../integration/shipped-roles.ts';
import { type Image, Images } from './image.ts';
import { errorsIn, flagsOf } from './manager-command.ts';
import { Program, SOURCES } from './program.ts';

const MANAGER = 'machine-controller-manager';
const MACHINE = 'machine-controller';

/** A program, its permissions and the Leases that it takes. */
const LEADERS: readonly { command: string; roles: readonly RoleFile[]; takes: readonly string[] }[] = [
  { command: 'machinist', roles: ['control', 'target'], takes: [MACHINE, MANAGER] },
  { command: MANAGER, roles: ['control-manager', 'target-manager'], takes: [MANAGER] },
  { command: MACHINE, roles: ['control-machine-controller', 'target'], takes: [MACHINE] },
];

/** What Kubernetes gives a container to end. */
const GRACE_MS = 30_000;
const BUILD_MS = 300_000;

let images: Images;
let image: Image;
beforeAll(async () => {
  images = await Images.build();
  image = images.of('manager');
}, BUILD_MS);
afterAll(async () => {
  await images[Symbol.asyncDispose]();
});

describe.each(['its sources', 'its image'])('a manager that runs from %s', (from) => {
  test.each(LEADERS)(
    '($command) takes its own Leases, and on SIGTERM ends soon with code 0 and gives them up',
    async ({ command, roles, takes }) => {
      const connection = connect();
      await using own = await namespace();
      await using session = new KubeSession(connection);
      const api = connection.api();
      for (const role of roles) await grant(api, role, own.name);
      await api.close();
      const holders = async (): Promise<Record<string, string>> => {
        const { items } = await session.reader.list(leases, { namespace: own.name });
        return Object.fromEntries(items.map(({ metadata, spec }) => [metadata.name, spec?.holderIdentity ?? '']));
      };
      await using program = new Program(
        command,
        flagsOf(command, [
          `--namespace=${own.name}`,
          `--target-kubeconfig=${await connection.kubeconfigFor({ user: 'machinist' })}`,
          '--address=127.0.0.1',
          `--port=${await freePort()}`,
        ]),
        { installation: from === 'its image' ? image : SOURCES },
      );
      await eventually(async () => expect(Object.keys(await holders()).toSorted()).toEqual(takes), {
        timeoutMs: 90_000,
        describe: () => `Leases of ${command}, which says:\n${program.stdout}`,
      });
      const held = Object.values(await holders());

      program.kill('SIGTERM');
      const askedMs = performance.now();
      const { code, stdout } = await program.ended();
      const tookMs = performance.now() - askedMs;

      expect(held).not.toContain('');
      expect(code).toBe(0);
      expect(errorsIn(stdout)).toEqual([]);
      expect(tookMs).toBeLessThan(GRACE_MS);
      expect(Object.values(await holders())).toEqual(takes.map(() => ''));
    },
  );
});

describe('the image of the manager', () => {
  test('holds its programs, what they load, and what went into them by name, version and licence: nothing else', async () => {
    const files = await image.files();

    expect(
      files
        .filter((file) => !/^(chunks|examples\/drivers|machinist-driver|packages\/mcm-provider)\//.test(file))
        .toSorted(),
    ).toEqual([
      'LICENSES.txt',
      'cmd/machine-controller-manager/main.js',
      'cmd/machine-controller/main.js',
      'cmd/machinist/main.js',
      'machine-controller',
      'machine-controller-manager',
      'machinist',
      'package.json',
      'proto/machine/driver/v1/driver.proto',
      'sbom.cdx.json',
    ]);
    const sources = await Promise.all(files.map((file) => readFile(join(image.root, file), 'utf8')));
    expect(files.filter((_, at) => /hack\/control-plane|cmd\/demo|node_modules\/jest/.test(sources[at] ?? ''))).toEqual(
      [],
    );
    const { components } = JSON.parse(await readFile(join(image.root, 'sbom.cdx.json'), 'utf8')) as {
      components: { name: string; version: string; licenses?: unknown[] }[];
    };
    const licences = await readFile(join(image.root, 'LICENSES.txt'), 'utf8');
    expect(components.map(({ name }) => name)).toEqual(expect.arrayContaining(['undici', '@grpc/grpc-js', 'pino']));
    expect(components.map(({ name }) => name)).not.toContain('esbuild');
    expect(components.filter(({ name, version }) => !licences.includes(`${name} ${version}: `))).toEqual([]);
  });

  test('holds what a new driver is made from, in each language', async () => {
    await using stack = new AsyncDisposableStack();
    const place = await mkdtemp(join(tmpdir(), 'new-'));
    stack.defer(() => rm(place, { recursive: true }));
    const make = (language: string) =>
      Program.run('machinist', ['driver', 'new', `--language=${language}`, language], {
        installation: image,
        cwd: place,
      });

    const endings = await Promise.all(['go', 'python', 'typescript'].map(make));

    expect(endings.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
      Array.from({ length: 3 }, () => ({ code: 0, stderr: '' })),
    );
    expect(endings[0]?.stdout).toContain(
      `MACHINIST='${process.execPath} ${image.root}/cmd/machinist/main.js' sh verify.sh`,
    );
    expect(await readdir(join(place, 'go'))).toEqual(expect.arrayContaining(['go.mod', 'contract', 'proto']));
    expect(await readdir(join(place, 'python'))).toEqual(expect.arrayContaining(['requirements.txt', 'proto']));
    expect(await readdir(join(place, 'typescript/machinist-driver'))).toEqual(
      expect.arrayContaining(['index.js', 'package.json', 'types']),
    );
  });

  test('is not written to by a program that runs in it', async () => {
    const before = await image.files();

    const { code, stdout } = await Program.run('machinist', ['--version'], { installation: image });

    expect({ code, stdout }).toEqual({ code: 0, stdout: `${packageJson.version}\n` });
    expect(await image.files()).toEqual(before);
  });

  test.each(['machinist', 'machine-controller-manager', 'machine-controller'])(
    'starts ./%s, as Deployments of the original do, without a shell',
    async (program) => {
      const file = join(image.root, program);

      const { stdout } = await promisify(execFile)(process.execPath, [file, '--version']);

      expect(stdout).toBe(`${packageJson.version}\n`);
      expect(await readFile(file, 'utf8')).toMatch(/^#!\/nodejs\/bin\/node\n/);
      expect((await stat(file)).mode & 0o777).toBe(0o755);
    },
  );
});

test('the image of the simulated cloud explains its flags', async () => {
  const cloud = images.of('sim-driver');

  const { code, stdout } = await Program.run('sim-driver', ['--help'], { installation: cloud });

  expect(code).toBe(0);
  expect(stdout).toContain('--control <address>');
  expect(await cloud.files()).not.toContain('chunks/lease-thread-main.js');
});
