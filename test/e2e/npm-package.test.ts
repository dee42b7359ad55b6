import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { connect } from '../env/environment.ts';
import { Terminal } from '../terminal/terminal.ts';
import { MachineSetWorld } from '../integration/machine-set-world.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** The tarball of `npm pack`, installed like by a user, and a folder from which no checkout can be found. */
let place: string;
const bin = (name: string): string => join(place, 'prefix/bin', name);

/** npm without what an `npm test` around it has set. */
function npm(args: readonly string[], cwd: string): Promise<{ stdout: string }> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(?:npm_|INIT_CWD)/i.test(key)));
  return run('npm', [...args], { cwd, env });
}

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'npm-package-'));
  await mkdir(join(place, 'home'));
  await npm(['pack', '--silent', '--pack-destination', place], ROOT);
  const [tarball = ''] = (await readdir(place)).filter((file) => file.endsWith('.tgz'));
  await npm(['install', '--global', '--offline', '--prefix', join(place, 'prefix'), join(place, tarball)], place);
}, 180_000);
afterAll(() => rm(place, { recursive: true, force: true }));

/** What a command of the package prints; rejects when it fails. */
async function typed(command: string, ...args: readonly string[]): Promise<string> {
  const env = { PATH: `${join(place, 'prefix/bin')}:${process.env['PATH']}`, HOME: join(place, 'home') };
  return (await run(command, [...args], { cwd: join(place, 'home'), env })).stdout;
}

describe('the package of npm', () => {
  test('has the version of the checkout and nothing else to install', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };

    expect(await typed('machinist', '--version')).toBe(`${version}\n`);
    const installed = join(place, 'prefix/lib/node_modules');
    expect(await readdir(installed)).toEqual(['machinist']);
    await expect(readdir(join(installed, 'machinist/node_modules'))).rejects.toThrow('ENOENT');
    expect((await readdir(join(installed, 'machinist'))).toSorted()).toEqual([
      'LICENSE',
      'README.md',
      'bin',
      'dist',
      'package.json',
    ]);
  });

  test('talks to a cluster, also as a plugin of kubectl, and draws the screen of top, which is bundled too', async () => {
    await using world = await MachineSetWorld.start({ startMs: 10, stopMs: 10 }, connect());
    await world.createDeployment(1);
    const access = ['--kubeconfig', connect().kubeconfig, '-n', world.namespace.name];
    const kubectl = connect().programs.kubectl?.path ?? 'kubectl';

    expect(await typed('machinist', 'rollout', 'status', 'd', ...access)).toContain('successfully rolled out\n');
    expect(await typed(kubectl, 'machinist', 'rollout', 'status', 'mcd/d', ...access)).toContain(
      'successfully rolled out',
    );
    expect(await typed(kubectl, '__complete', 'machinist', 'rollout', 'status', ...access, 'mcd/')).toContain(
      'mcd/d\n:4\n',
    );
    expect(await typed('machinist', '__complete', 'describe', 'mc', ...access, '')).toMatch(/^d-\S+\n:4\n$/);

    const env = { PATH: `${join(place, 'prefix/bin')}:${process.env['PATH']}`, HOME: join(place, 'home') };
    await using terminal = await Terminal.start(['machinist', 'top', ...access], { columns: 80, rows: 24 }, env);
    await terminal.shows(/^Machines 1: Running 1$/m);
    terminal.type('q');
    expect(await terminal.ended()).toBe(0);
  }, 120_000);

  test('brings along the definitions that machinist try creates', async () => {
    const crds = await readdir(join(place, 'prefix/lib/node_modules/machinist/dist/npm/crds'));

    expect(crds).toEqual(expect.arrayContaining(['machine.sapcloud.io_machines.yaml']));
    expect(await typed('machinist', 'try', '--help')).toContain('--undo');
  });

  test('makes a driver with the library that it brings along', async () => {
    await typed('machinist', 'driver', 'new', 'acme', '--language', 'typescript');

    const made = await readdir(join(place, 'home/acme'));
    expect(made).toEqual(expect.arrayContaining(['machinist-driver', '.gitignore']));
    expect(made.filter((name) => name.includes('packed'))).toEqual([]);
  });

  test('says to an old Node which one is needed, and what to do', async () => {
    const old = join(place, 'old.cjs');
    await writeFile(
      old,
      `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.18.9' } });\nrequire(process.argv[2]);\n`,
    );

    await expect(run(process.execPath, [old, bin('machinist')])).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^machinist needs Node 22\.19 or newer; this is Node 22\.18\.9\. Install a newer Node/,
      ),
    });
    const { engines } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } };
    expect(engines.node).toBe('>=22.19.0');
  });
});
