import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { Component } from '../../hack/control-plane/component.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import { KWOK_USER, kwokCommand } from '../../hack/control-plane/kwok.ts';
import { openRun } from '../../hack/control-plane/ledger.ts';

/** The real kwok, for the Nodes of kwok-driver. It works once deploy/rbac/kwok.yaml is obeyed. */
export async function startKwok(connection: Connection): Promise<AsyncDisposable> {
  const { path: program } = await resolveProgram('kwok');
  const directory = mkdtempSync(join(tmpdir(), 'machinist-kwok-'));
  const run = openRun(directory);
  const kubeconfig = await connection.kubeconfigFor({ user: KWOK_USER });
  const kwok = new Component({
    name: 'kwok',
    ...kwokCommand({ program, kubeconfig, directory }),
    directory,
    logFile: join(directory, 'kwok.log'),
    run,
    isReady: () => Promise.resolve(true),
    log: () => undefined,
  });
  await kwok.start();
  return {
    async [Symbol.asyncDispose]() {
      await kwok.stop('SIGKILL');
      await run.end();
    },
  };
}
