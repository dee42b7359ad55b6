import { ApiError } from '../../../pkg/kube/client/errors.ts';
import { machineDeployments, machines, machineSets } from '../../../pkg/kube/client/resource.ts';
import { treeOf, type TreeNode } from '../../../pkg/fleet/tree.ts';
import { CommandCluster } from '../command-cluster.ts';
import { readManagerLeases } from '../manager-leases.ts';
import { type ManagerProcess, managerProcesses, workOf } from '../manager-processes.ts';
import { formatted } from '../output.ts';
import { renderFindings, withCounts } from '../preflight/render.ts';
import { noticesOf, runForExitCode, type Terminal } from '../terminal.ts';
import { version } from '../version.ts';
import type { StatusOptions } from './command.ts';
import { type CellFacts, cellFindings, hintFindings, leaderFindings } from './cell-findings.ts';
import {
  cellsOf,
  machineFindings,
  NO_PROCESS,
  type ProcessAnswer,
  processFindings,
  refusalFinding,
  type StatusFinding,
} from './findings.ts';
import { readCell } from './read-cell.ts';

/** Without a --request-timeout. */
const TIMEOUT_MS = 10_000;

/** Prints what is the matter with an installation. Resolves with the exit code: 1 when something needs attention, or nothing can be read. */
export async function showStatus(options: StatusOptions, terminal: Terminal): Promise<number> {
  let needsAttention = false;
  const code = await runForExitCode(terminal, async () => {
    await using cluster = await CommandCluster.open({
      ...options,
      env: terminal.env,
      err: noticesOf(terminal),
      command: 'status',
    });
    const findings = await check(cluster, options);
    needsAttention = findings.some(({ status }) => status !== 'ok');
    const { output } = options;
    const isText = output === 'text' || output === 'name';
    terminal.out(isText ? renderFindings(findings, terminal) : await formatted(withCounts(findings), output));
  });
  return needsAttention ? 1 : code;
}

async function check(cluster: CommandCluster, options: StatusOptions): Promise<readonly StatusFinding[]> {
  const { namespace, transport } = cluster;
  const timeoutMs = options.requestTimeout || TIMEOUT_MS;
  const server = await transport.request<{ gitVersion?: string }>(questionOf('/version', timeoutMs));
  const [held, answers, roots] = await Promise.all([
    orRefused('leaders', readManagerLeases(cluster, options, { timeoutMs })),
    orRefused(
      'processes',
      managerProcesses(cluster, options, options.selector).then(
        async (processes) => await Promise.all(processes.map(async (one) => await answerOf(one, timeoutMs))),
      ),
    ),
    readTree(cluster),
  ]);
  const told = cellsOf('refusal' in answers ? [] : answers);
  const cellLeases = 'refusal' in held ? undefined : held.cellLeases;
  const isLost = !('refusal' in held) && held.elsewhere?.length === 0;
  const ofCells = await findCells(cluster, options, { told, cellLeases, isLost, timeoutMs });
  const nowMs = cluster.now();
  return [
    { check: 'cluster', status: 'ok', detail: `Kubernetes ${server.gitVersion ?? 'unknown'}, namespace ${namespace}` },
    ...('refusal' in held ? [held.refusal] : leaderFindings(held, told, nowMs)),
    ...ofCells,
    ...('refusal' in answers
      ? [answers.refusal]
      : answers.length === 0
        ? [NO_PROCESS]
        : processFindings(answers, version(), nowMs)),
    ...machineFindings(roots),
  ];
}

/** What there is to say about cells: nothing, unless the manager has some. */
async function findCells(
  cluster: CommandCluster,
  { managerNamespace = '' }: StatusOptions,
  {
    told,
    cellLeases,
    isLost,
    timeoutMs,
  }: Pick<CellFacts, 'told' | 'cellLeases'> & { readonly isLost: boolean; readonly timeoutMs: number },
): Promise<readonly StatusFinding[]> {
  if (told.length === 0 && cellLeases === undefined) {
    return isLost ? hintFindings(cluster.namespace, await readCell(cluster, timeoutMs), cluster.now()) : [];
  }
  // Who asks in the namespace of the manager asks for all of it.
  const namespace =
    cellLeases !== undefined && ['', cluster.namespace].includes(managerNamespace) ? undefined : cluster.namespace;
  const seen = namespace === undefined ? {} : await readCell(cluster, timeoutMs);
  return cellFindings({ told, cellLeases, namespace, ...seen }, cluster.now());
}

/** What was read, or that the API server refuses it to whoever asks. Rejects without an answer. */
async function orRefused<T extends object>(
  what: StatusFinding['check'],
  read: Promise<T>,
): Promise<T | { readonly refusal: StatusFinding }> {
  try {
    return await read;
  } catch (err) {
    if (!(err instanceof ApiError) || err.code === 0) throw err;
    return { refusal: refusalFinding(what, err.message) };
  }
}

async function answerOf(process: ManagerProcess, timeoutMs: number): Promise<ProcessAnswer> {
  const { name, read } = process;
  try {
    const [readyz, metrics, work] = await Promise.all([
      read('/readyz?verbose', timeoutMs),
      read('/metrics', timeoutMs),
      workOf(process, timeoutMs),
    ]);
    return { name, readyz, metrics, work };
  } catch (err) {
    return { name, error: (err as Error).message }; // ApiError, or of a URL
  }
}

async function readTree(cluster: CommandCluster): Promise<readonly TreeNode[] | { error: string }> {
  try {
    const [deployments, sets, found] = await Promise.all([
      cluster.list(machineDeployments),
      cluster.list(machineSets),
      cluster.list(machines),
    ]);
    return treeOf({ deployments, sets, machines: found }, cluster.now());
  } catch (err) {
    if (!(err instanceof ApiError)) throw err;
    return { error: err.message };
  }
}

function questionOf(
  path: string,
  timeoutMs: number,
): {
  method: 'GET';
  verb: 'get';
  address: { path: string; template: string; label: string };
  timeoutMs: number;
} {
  return { method: 'GET', verb: 'get', address: { path, template: path, label: 'status' }, timeoutMs };
}
