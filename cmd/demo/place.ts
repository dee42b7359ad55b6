import { existsSync, mkdirSync, rmSync } from 'node:fs';

import { cleanUpDeadRuns, type LedgerRun, openRun } from '../../hack/control-plane/ledger.ts';
import { endLeftMachines } from '../../hack/control-plane/left-machines.ts';

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

/**
 * Takes `directory` for this demo, after removing what one that was killed has left there. Throws DemoError when another
 * demo uses it, and what writing to the disk throws; then nothing is left behind.
 */
export async function takePlace(directory: string, say: (line: string) => void): Promise<DemoPlace> {
  await cleanUpAfterCrash(say);
  if (existsSync(directory)) {
    throw new DemoError(
      `${directory} is in use: a demo is already running from this checkout. Stop it with Ctrl-C in its terminal; if there is no such terminal, remove the folder.`,
    );
  }
  mkdirSync(directory, { mode: 0o700 });
  try {
    return { directory, run: openRun(directory) };
  } catch (err) {
    // What is not written down nobody would ever remove.
    rmSync(directory, { recursive: true, force: true });
    throw err;
  }
}

async function cleanUpAfterCrash(say: (line: string) => void): Promise<void> {
  const { ended } = await cleanUpDeadRuns({ beforeRemoval: endLeftMachines });
  for (const what of ended) say(`stopped ${what}, left behind by a demo that was killed`);
}
