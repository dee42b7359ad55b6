import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { writeManagerAddress, writeShellEnvironment } from './shell-environment.ts';

/** With all that a shell could take for something else. */
const NAME = `machinist's "demo" $HOME `;

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), NAME));
  const kubectl = path.join(directory, 'real-kubectl');
  writeFileSync(kubectl, '#!/bin/sh\necho "kubectl $KUBECONFIG $*"\n');
  chmodSync(kubectl, 0o755);
  writeShellEnvironment(directory, { kubectl, kubeconfig: path.join(directory, 'config'), root: directory });
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Those that are installed here; zsh often is not. */
const shells = ['sh', 'bash', 'dash', 'zsh'].filter((shell) => {
  try {
    execFileSync(shell, ['-c', 'true']);
    return true;
  } catch {
    return false;
  }
});
const run = (shell: string, script: string): string =>
  execFileSync(shell, ['-c', script], {
    encoding: 'utf8',
    cwd: directory,
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });

test.each(shells)('after reading the file, %s runs kubectl of the demo with its cluster', (shell) => {
  const config = path.join(directory, 'config');

  expect(run(shell, '. ./env; kubectl get nodes; k get mc')).toBe(
    `kubectl ${config} get nodes\nkubectl ${config} get mc\n`,
  );
});

test.each(shells)('%s finds machinist and its plugin for kubectl, and reads the file twice without harm', (shell) => {
  const found = run(shell, '. ./env; . ./env; echo "$PATH"; command -v machinist m kubectl-machinist').split('\n');

  expect(found[0]).toBe(`${path.join(directory, 'bin')}:/usr/bin:/bin`);
  expect(found[1]).toBe(path.join(directory, 'bin/machinist'));
});

test('machinist asks the manager of the demo as soon as it runs, unless told of another one', () => {
  mkdirSync(path.join(directory, 'cmd/machinist'), { recursive: true });
  writeFileSync(
    path.join(directory, 'cmd/machinist/main.ts'),
    'console.log(process.env["MACHINIST_URL"] ?? "its pods");',
  );

  const before = run('sh', '. ./env; m status');
  writeManagerAddress(directory, 'http://127.0.0.1:1');

  expect(before).toBe('its pods\n');
  expect(run('sh', '. ./env; m status')).toBe('http://127.0.0.1:1\n');
  expect(run('sh', '. ./env; MACHINIST_URL=http://other m status')).toBe('http://other\n');
});

test('bash reads the file although k is an alias already', () => {
  expect(run('bash', 'shopt -s expand_aliases; alias k=kubectl\n. ./env\nk get mc')).toMatch(
    /^kubectl .*config get mc\n$/,
  );
});
