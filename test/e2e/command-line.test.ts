import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { connect } from '../env/environment.ts';
import { errorsIn, flagsOf } from './manager-command.ts';
import { Program } from './program.ts';

const PROGRAMS = ['machinist', 'machine-controller-manager', 'machine-controller'] as const;
const MANAGER = 'machine-controller-manager';
const MACHINE = 'machine-controller';

describe('the command line', () => {
  test.each([
    { command: 'machinist', args: ['run', '--help'] },
    { command: MANAGER, args: ['--help'] },
    { command: MACHINE, args: ['--help'] },
  ])('of $command explains its flags', async ({ command, args }) => {
    const { code, stdout } = await Program.run(command, args);

    expect(code).toBe(0);
    expect(stdout).toMatch(
      /Clusters:[^]*--target-kubeconfig[^]*Safety:[^]*Leader election:[^]*--port <int>|--port <n>/,
    );
  });

  test.each(PROGRAMS)('of %s tells the version', async (command) => {
    const { code, stdout } = await Program.run(command, ['--version']);

    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
  });

  test.each([
    { command: 'machinist', args: ['bogus'], says: "error: unknown command 'bogus'" },
    { command: 'machinist', args: ['run', '--prot=1'], says: 'Did you mean --port?' },
    { command: 'machinist', args: ['run', '--machine-drain-timeout=5'], says: '--machine-drain-timeout: "5"' },
    {
      command: 'machinist',
      args: ['run', '--leader-elect-lease-duration=5s'],
      says: '--leader-elect-lease-duration=5s must be',
    },
    { command: 'machinist', args: ['run', '--driver=local=/tmp/socket'], says: '--driver: "local=/tmp/socket"' },
    {
      command: 'demo',
      args: ['--machines', '0'],
      says: "option '--machines <n>' argument '0' is invalid",
    },
    {
      command: 'demo',
      args: ['--machines', 'x'],
      says: "option '--machines <n>' argument 'x' is invalid",
    },
    { command: 'demo', args: ['--driver', 'x'], says: 'Allowed choices are local, sim, kwok.' },
    {
      command: 'demo',
      args: ['--api', 'ironcore', '--driver', 'sim'],
      says: 'cannot be used with --driver or --autoscaler',
    },
    {
      command: 'demo',
      args: ['--api', 'ironcore', '--autoscaler'],
      says: 'cannot be used with --driver or --autoscaler',
    },
    { command: 'demo', args: ['--forever'], says: "unknown option '--forever'" },
    { command: MANAGER, args: ['--nope'], says: "unknown option '--nope'" },
    { command: MACHINE, args: ['--port', 'http'], says: '--port: "http"' },
  ])('refuses $command $args with code 2, and says why', async ({ command, args, says }) => {
    const { code, stdout, stderr } = await Program.run(command, args);

    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain(says);
    expect(stderr).toContain('(see --help for usage)\n');
    expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(3);
  });
});

describe('a manager that cannot start says why in one sentence:', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'machinist-command-line-'));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });

  test.each(PROGRAMS)('%s, whose kubeconfig is missing', async (command) => {
    const { code, stdout } = await Program.run(command, flagsOf(command, ['--target-kubeconfig=/nowhere/kubeconfig']));

    expect(code).toBe(1);
    expect(errorsIn(stdout)).toEqual([
      expect.stringMatching(/^reading kubeconfig \/nowhere\/kubeconfig: .*no such file/),
    ]);
  });

  test('whose kubeconfig is none', async () => {
    const file = join(folder, 'broken');
    await writeFile(file, 'hello: [');

    const { code, stdout } = await Program.run(MANAGER, [`--target-kubeconfig=${file}`]);

    expect(code).toBe(1);
    expect(errorsIn(stdout)).toEqual([expect.stringContaining(file)]);
  });

  test.each(PROGRAMS)('%s, whose port is taken', async (command) => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo; // a TCP server
    const own = `--target-kubeconfig=${connect().kubeconfig}`;

    const { code, stdout } = await Program.run(
      command,
      flagsOf(command, [own, '--address=127.0.0.1', `--port=${port}`]),
    );
    taken.close();

    expect(code).toBe(1);
    expect(errorsIn(stdout)).toEqual([
      `listening on 127.0.0.1:${port}: the port is in use; choose another with --port`,
    ]);
  });
});
