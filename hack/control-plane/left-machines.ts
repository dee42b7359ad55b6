import { existsSync } from 'node:fs';
import path from 'node:path';

import { endAll } from '../../packages/providers/local/end-all.ts';

/** Where the local driver of a demo keeps its machines, in the folder of the run. */
export function machinesDirectory(directory: string): string {
  return path.join(directory, 'machines');
}

/** Ends kubelets that a driver had just started when its demo was killed: they are in its files only. For whoever cleans up after any run. */
export async function endLeftMachines(directory: string): Promise<void> {
  if (existsSync(machinesDirectory(directory))) await endAll(machinesDirectory(directory));
}
