import type { WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { type ManagerProcess, managerProcesses } from '../manager-processes.ts';
import type { ManagerOptions } from '../options.ts';

/** Nobody waits longer for what an object can be described without. */
const TIMEOUT_MS = 2_000;

/**
 * What the processes of the manager do about single machines: those at URLs, else the pods in its namespace. Without those that do not
 * answer, or may not be asked.
 */
export async function readWork(cluster: CommandCluster, options: ManagerOptions): Promise<readonly WorkInProgress[]> {
  const processes = await managerProcesses(cluster, options).catch(() => []);
  const answers = await Promise.all(processes.map(workOf));
  return answers.filter((work) => work !== undefined);
}

async function workOf({ read }: ManagerProcess): Promise<WorkInProgress | undefined> {
  try {
    return JSON.parse(await read('/work', TIMEOUT_MS)) as WorkInProgress;
  } catch {
    return undefined;
  }
}
