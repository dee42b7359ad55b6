import { describe, expect, test } from '@jest/globals';
import { Command, CommanderError } from 'commander';

import { usageExitCode, normalizeFlags, type ParsedCommandLine, withFlags } from './command-line.ts';
import type { Program } from './flag.ts';
import { WORLD_FLAGS } from '../../worlds/index.ts';

/** Parses `argv` as `program` would; what it printed on refusal is in the error. */
async function parse(argv: readonly string[], program: Program = 'machinist run'): Promise<ParsedCommandLine> {
  let parsed: ParsedCommandLine | undefined;
  let printed = '';
  const command = withFlags(new Command(program).exitOverride(), program, WORLD_FLAGS, async (line) => {
    parsed = line;
  }).configureOutput({ writeErr: (text) => (printed += text), writeOut: (text) => (printed += text) });
  try {
    await command.parseAsync(normalizeFlags(argv, WORLD_FLAGS), { from: 'user' });
  } catch (err) {
    if (err instanceof CommanderError) throw new Error(`exit ${usageExitCode(err)}: ${printed}`, { cause: err });
    throw err;
  }
  if (parsed === undefined) throw new Error('the action did not run');
  return parsed;
}

const MANAGER: Program = 'machine-controller-manager';
const MACHINE: Program = 'machine-controller';

describe('command line', () => {
  test.each([
    { title: 'Go booleans', argv: ['--leader-elect=false'] },
    { title: 'underscores', argv: ['--leader_elect=false'] },
    { title: 'one dash', argv: ['-leader-elect=0'] },
    { title: 'a separate word', argv: ['--leader-elect', 'false'] },
  ])('accepts $title', async ({ argv }) => {
    expect((await parse(argv)).config.leader.enabled).toBe(false);
  });

  test.each([['-v4'], ['-v=4'], ['-v', '4'], ['--v=4']])('takes the verbosity of %p', async (...argv) => {
    expect((await parse(argv)).config.verbosity).toBe(4);
  });

  test('a bare boolean flag means true', async () => {
    expect((await parse(['--leader-elect'])).config.leader.enabled).toBe(true);
  });

  test('the last of a repeated flag counts, as in Go', async () => {
    expect((await parse(['--port=1', '--port=2'])).config.server.port).toBe(2);
  });

  test('an unknown flag is refused with exit code 2 and a suggestion', async () => {
    await expect(parse(['--machine-drain-timeut=1h'])).rejects.toThrow(
      /exit 2: error: unknown option '--machine-drain-timeut'[^]*Did you mean --machine-drain-timeout[^]*\(see --help for usage\)/,
    );
  });

  test("words that are no flags are left out with a warning by the original's programs, as there, and refused by ours", async () => {
    const { warnings, config } = await parse(['--safety-up', '3', 'stray'], MANAGER);

    expect(warnings).toEqual(['"stray" is not a flag and has no effect']);
    expect(config.safety.up).toBe(3);
    await expect(parse(['stray'])).rejects.toThrow(/exit 2: error: too many arguments/);
  });

  test('a bad value is refused with exit code 2', async () => {
    await expect(parse(['--port=http'])).rejects.toThrow(/exit 2: error: --port: "http" is not valid/);
  });

  test.each([
    {
      title: 'of the other program',
      argv: ['--autoscaler-scaledown-annotation-during-rollout=false'],
      says: '--autoscaler-scaledown-annotation-during-rollout has no effect in machine-controller',
    },
    {
      title: 'of klog',
      argv: ['--logtostderr=true'],
      says: '--logtostderr is accepted for compatibility and has no effect',
    },
    {
      title: 'without effect here',
      argv: ['--min-resync-period=1h'],
      says: '--min-resync-period is accepted for compatibility and has no effect',
    },
    {
      title: 'that is too short',
      argv: ['--machine-safety-orphan-vms-period=0s'],
      says: '--machine-safety-orphan-vms-period=0s is too short, using the minimum of 1s',
    },
    {
      title: 'that is too great',
      argv: ['--safety-down=3'],
      program: MANAGER,
      says: expect.stringMatching(/^--safety-down=3 is greater than --safety-up, .*; using 2$/),
    },
    {
      title: 'of cells without cells',
      argv: ['--cell-shards=4'],
      program: 'machinist run' as const,
      says: '--cell-shards has no effect without --cells or --cell-namespaces',
    },
    {
      title: 'of autoscalers without a port for them',
      argv: ['--autoscaler-gpu-types=t4'],
      program: MANAGER,
      says: '--autoscaler-gpu-types has no effect without --autoscaler-grpc-address',
    },
    {
      title: 'of drivers without controllers of Machines',
      argv: ['--controllers=machine-deployment,machine-set', '--driver=garbage'],
      program: 'machinist run' as const,
      says: '--driver has no effect without the machine controllers; see --controllers',
    },
    {
      title: 'of the other program once',
      argv: ['--autoscaler-gpu-types=t4'],
      says: '--autoscaler-gpu-types has no effect in machine-controller',
    },
  ])('warns of a flag $title', async ({ argv, says, program = MACHINE }) => {
    expect((await parse(argv, program)).warnings).toEqual([says]);
  });

  test('both programs of the original obey the Node conditions', async () => {
    for (const program of [MANAGER, MACHINE]) {
      const { config, warnings } = await parse(['--node-conditions=A,B'], program);
      expect([config.machine.nodeConditions, warnings]).toEqual([['A', 'B'], []]);
    }
  });

  test('help shows groups, defaults and no flag without effect', async () => {
    const help = await parse(['--help']).catch((err: unknown) => String(err));

    expect(help).toMatch(/Machines:\n[^]*--machine-drain-timeout <duration>/);
    expect(help).toContain('(default 2h)');
    expect(help).not.toContain('--cloud-provider');
    expect(help).not.toContain('--controller-start-interval');
  });
});
