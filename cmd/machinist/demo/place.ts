import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { cleanUpDeadRuns, type LedgerRun, openRun } from '../../../hack/control-plane/ledger.ts';
import { identityOf, livenessOf, type ProcessIdentity } from '../../../hack/control-plane/process-identity.ts';
import { endAll } from '../../../pkg/drivers/local/end-all.ts';

/** Why the demo cannot begin; one sentence with the remedy. */
export class DemoError extends Error {
  override readonly name = 'DemoError';
}

/** The folder of one demo: everything it writes lies here, and it goes when the demo ends. */
export interface DemoPlace {
  readonly directory: string;
  /** Processes recorded here are ended by the next demo if this one is killed. */
  readonly run: LedgerRun;
}

/** Where the local driver keeps its machines. */
export function machinesDirectory(directory: string): string {
  return path.join(directory, 'machines');
}

/**
 * Takes `directory` for this demo, after removing what one that was killed has left there. Throws DemoError when another
 * demo uses it.
 */
export async function takePlace(directory: string, say: (line: string) => void): Promise<DemoPlace> {
  await cleanUpAfterCrash(directory, say);
  if (existsSync(directory)) {
    throw new DemoError(
      `${directory} is in use: a demo runs from this checkout already. End it with Ctrl-C in its terminal; if there is none, remove that folder.`,
    );
  }
  mkdirSync(directory, { mode: 0o700 });
  const run = openRun(directory);
  writeFileSync(ownerFile(directory), JSON.stringify(identityOf(process.pid)));
  return { directory, run };
}

async function cleanUpAfterCrash(directory: string, say: (line: string) => void): Promise<void> {
  const owner = readOwner(directory);
  // Kubelets outlive their driver by intent, so that they are in no ledger but the driver's own files.
  if (owner !== undefined && livenessOf(owner) === 'dead' && existsSync(machinesDirectory(directory))) {
    await endAll(machinesDirectory(directory));
    say('ended the machines of a demo that was killed');
  }
  for (const what of (await cleanUpDeadRuns()).ended) say(`ended ${what}, which a demo that was killed had left`);
}

function ownerFile(directory: string): string {
  return path.join(directory, 'owner.json');
}

function readOwner(directory: string): ProcessIdentity | undefined {
  const file = ownerFile(directory);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ProcessIdentity) : undefined; // written above
}
