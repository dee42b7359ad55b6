import type { WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { managerProcesses, workOf } from '../manager-processes.ts';
import type { ManagerOptions } from '../options.ts';

/** Nobody waits longer for what an object can be described without. */
const TIMEOUT_MS = 2_000;

/**
 * What the processes of the manager do about single machines: those at URLs, else the pods in its namespace. Without those that do not
 * answer, or may not be asked.
 */
export async function readWork(cluster: CommandCluster, options: ManagerOptions): Promise<readonly WorkInProgress[]> {
  const processes = await managerProcesses(cluster, options).catch(() => []);
  const answers = await Promise.all(processes.map((process) => workOf(process, TIMEOUT_MS)));
  return answers.filter((work) => work !== undefined);
}
