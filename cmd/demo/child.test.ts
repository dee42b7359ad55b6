import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { openRun } from '../../hack/control-plane/ledger.ts';
import { eventually } from '../../test/expect/eventually.ts';
import { Child } from './child.ts';

test('a program that somebody has halted hears that it is to end', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'child-'));
  const run = openRun(folder);
  const logFile = path.join(folder, 'log');
  const program =
    "process.on('SIGTERM', () => { console.log('heard'); process.exit(); }); console.log('up'); setInterval(() => {}, 1000)";
  const child = new Child({
    name: 'node',
    program: process.execPath,
    args: ['-e', program],
    logFile,
    run,
    onUnexpectedEnd: () => undefined,
  });
  await eventually(() => readFileSync(logFile, 'utf8').includes('up'));
  process.kill(child.pid ?? 0, 'SIGSTOP');

  await child.stop();

  expect(readFileSync(logFile, 'utf8')).toContain('heard');
  run.close();
  rmSync(folder, { recursive: true });
});
