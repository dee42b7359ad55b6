import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { DemoError } from './place.ts';

export interface Kubectl {
  /** Path of the program. */
  readonly program: string;
  /** The administrator's. */
  readonly kubeconfig: string;
  readonly signal: AbortSignal;
}

/** Runs kubectl. Throws DemoError with what it said; rejects with the signal's reason when that came first. */
export async function runKubectl({ program, kubeconfig, signal }: Kubectl, args: readonly string[]): Promise<void> {
  try {
    await promisify(execFile)(program, ['--kubeconfig', kubeconfig, ...args], { signal });
  } catch (err) {
    signal.throwIfAborted();
    const said = err instanceof Error && 'stderr' in err ? String(err.stderr).trim() : String(err);
    throw new DemoError(`kubectl ${args.join(' ')} failed: ${said}`, { cause: err });
  }
}
