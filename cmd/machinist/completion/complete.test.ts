import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { describe, expect, test } from '@jest/globals';
import { Argument, Command, Option } from 'commander';

import { MACHINE, MACHINE_DEPLOYMENT, NODE } from '../kinds.ts';
import { withClusterOptions } from '../options.ts';
import { ReferenceArgument } from '../reference-argument.ts';
import { complete, type Lookup } from './complete.ts';
import { SCRIPTS } from './scripts.ts';

const NAMES: Readonly<Record<string, readonly string[]>> = {
  machine: ['m-1', 'm-2'],
  machinedeployment: ['pool', 'other'],
  node: ['n-1'],
};

/** Where names were asked for. */
const asked: unknown[] = [];
const lookup: Lookup = {
  names: ({ name }, access) => {
    asked.push(access);
    return Promise.resolve(NAMES[name] ?? []);
  },
  namespaces: () => Promise.resolve(['default', 'machinist']),
  contexts: () => Promise.resolve(['kind', 'production']),
};

function program(): Command {
  const root = new Command('machinist').version('1', '--version');
  const rollout = root.command('rollout').description('Manage.');
  withClusterOptions(
    rollout
      .command('status')
      .addArgument(new ReferenceArgument('[name...]', [MACHINE_DEPLOYMENT], { mayOmitType: true }))
      .option('-w, --watch', 'watch')
      .addOption(new Option('--secret').hideHelp()),
  );
  withClusterOptions(
    root
      .command('describe')
      .alias('d')
      .addArgument(new ReferenceArgument('<name...>', [MACHINE, NODE])),
  ).addOption(new Option('-o, --output <format>').choices(['text', 'json']));
  root.command('completion').addArgument(new Argument('<shell>').choices(['bash', 'zsh']));
  root.command('hidden', { hidden: true });
  return root;
}

async function completed(line: string): Promise<string[]> {
  const { candidates, isPath } = await complete(program(), line.split(' '), lookup);
  return [...candidates.map(({ value }) => value), ...(isPath ? ['PATH'] : [])];
}

describe('completion', () => {
  test.each([
    { line: '', want: ['rollout', 'describe', 'completion', 'help'] },
    { line: 'r', want: ['rollout'] },
    { line: 'rollout ', want: ['status', 'help'] },
    { line: 'completion ', want: ['bash', 'zsh'] },
    { line: 'rollout status ', want: ['pool', 'other', 'machinedeployment'] },
    { line: 'rollout status -w pool ', want: ['other'] },
    { line: 'rollout status mcd/', want: ['mcd/pool', 'mcd/other'] },
    { line: 'rollout status mcd/pool mcd/', want: ['mcd/other'] },
    { line: 'rollout status mcd p', want: ['pool'] },
    { line: 'rollout status --wa', want: ['--watch'] },
    { line: 'rollout status --s', want: [] },
    { line: 'd ', want: ['machine', 'node'] },
    { line: 'describe mc ', want: ['m-1', 'm-2'] },
    { line: 'describe mc m-1 ', want: ['m-2'] },
    {
      line: 'describe machine.machine.sapcloud.io/m',
      want: ['machine.machine.sapcloud.io/m-1', 'machine.machine.sapcloud.io/m-2'],
    },
    { line: 'describe no/', want: ['no/n-1'] },
    { line: 'describe pod/', want: [] },
    { line: 'describe mc m-1 -o ', want: ['text', 'json'] },
    { line: 'describe --output=j', want: ['--output=json'] },
    { line: 'describe -n ', want: ['default', 'machinist'] },
    { line: 'describe --context p', want: ['production'] },
    { line: 'describe --kubeconfig ', want: ['PATH'] },
    { line: 'describe --request-timeout ', want: [] },
  ])('of "$line" is $want', async ({ line, want }) => {
    expect(await completed(line)).toEqual(want);
  });

  test('asks the cluster that the line names', async () => {
    asked.length = 0;

    await completed('describe --kubeconfig=a --context b -n c mc ');

    expect(asked).toEqual([{ kubeconfig: 'a', context: 'b', namespace: 'c' }]);
  });

  test('describes what it offers', async () => {
    const { candidates } = await complete(program(), ['rol'], lookup);

    expect(candidates).toEqual([{ value: 'rollout', description: 'Manage.' }]);
  });
});

describe('the script for bash', () => {
  /** What bash offers for a line, when the program answers thus; then what the program was asked. */
  async function offered(line: string, answer: string): Promise<string[]> {
    const folder = await mkdtemp(path.join(tmpdir(), 'completion-'));
    try {
      const program_ = path.join(folder, 'machinist');
      await writeFile(program_, `#!/bin/sh\nprintf '[%s]' "$@" >${folder}/asked\nprintf -- '${answer}'\n`);
      await chmod(program_, 0o755);
      await writeFile(path.join(folder, 'script'), SCRIPTS.bash);
      const text = `. ${folder}/script; COMP_LINE=${JSON.stringify(line)}; COMP_POINT=\${#COMP_LINE}; _machinist; printf '%s\\n' "\${COMPREPLY[@]}"; cat ${folder}/asked`;
      const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` };
      const { stdout } = await promisify(execFile)('bash', ['-c', text], { env });
      return stdout.split('\n');
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  test.each([
    { line: 'machinist ', answer: 'a\\tsays a\\nb\\n:4\\n', want: ['a', 'b', '[__complete][]'] },
    { line: 'machinist describe m', answer: 'mc\\n:4\\n', want: ['mc', '[__complete][describe][m]'] },
    { line: 'machinist x --output=j', answer: '--output=json\\n:4\\n', want: ['json', '[__complete][x][--output=j]'] },
  ])('offers for "$line" what the program answers', async ({ line, answer, want }) => {
    expect(await offered(line, answer)).toEqual(want);
  });
});
