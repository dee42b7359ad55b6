import type { Pod } from '../../../pkg/apis/wire.ts';
import { ApiError } from '../../../pkg/kube/errors.ts';
import { leases, machineDeployments, machines, machineSets, pods } from '../../../pkg/kube/resource.ts';
import type { Transport } from '../../../pkg/kube/transport.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../../../pkg/leader/names.ts';
import { CommandCluster } from '../command-cluster.ts';
import { formatted } from '../output.ts';
import { renderFindings, withCounts } from '../preflight/render.ts';
import { runForExitCode, type Terminal } from '../terminal.ts';
import { treeOf, type TreeNode } from '../tree/tree.ts';
import { version } from '../version.ts';
import type { StatusOptions } from './command.ts';
import {
  leaseFindings,
  machineFindings,
  NO_PROCESS,
  type ProcessAnswer,
  processFindings,
  type StatusFinding,
} from './findings.ts';

const TIMEOUT_MS = 10_000;
/** Names of the ports of metrics and probes. */
const HTTP_PORTS: ReadonlySet<string> = new Set(['http', 'machine-http']);

/** Prints what is the matter with an installation. Resolves with the exit code: 1 when something needs attention, or nothing can be read. */
export async function showStatus(options: StatusOptions, terminal: Terminal): Promise<number> {
  let needsAttention = false;
  const code = await runForExitCode(terminal, async () => {
    await using cluster = await CommandCluster.open({ ...options, env: terminal.env, command: 'status' });
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
  const server = await transport.request<{ gitVersion?: string }>(questionOf('/version'));
  const [held, answers, roots] = await Promise.all([
    Promise.all(
      [MANAGER_LEASE, MACHINE_LEASE].map(
        async (name) => await cluster.reader.get(leases, { namespace, name }).catch(nothingIfNotFound),
      ),
    ),
    options.url.length > 0 ? Promise.all(options.url.map(askURL)) : askPods(cluster, options.selector),
    readTree(cluster),
  ]);
  const nowMs = cluster.now();
  return [
    { check: 'cluster', status: 'ok', detail: `Kubernetes ${server.gitVersion ?? 'unknown'}, namespace ${namespace}` },
    ...leaseFindings(
      held.filter((lease) => lease !== undefined),
      nowMs,
    ),
    ...(answers.length === 0 ? [NO_PROCESS] : processFindings(answers, version(), nowMs)),
    ...machineFindings(roots),
  ];
}

async function askPods(cluster: CommandCluster, labelSelector: string): Promise<readonly ProcessAnswer[]> {
  const { reader, namespace, transport } = cluster;
  const { items } = await reader.list(pods, { namespace, labelSelector });
  const places = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined).flatMap(placesOf);
  return await Promise.all(places.map(({ name, path }) => askThroughServer(transport, name, path)));
}

/** Where a pod answers, as the API server reaches it. */
function placesOf({ metadata: { name, namespace = '' }, spec }: Pod): readonly { name: string; path: string }[] {
  const ports = (spec?.containers ?? []).flatMap((container) => portsOf(container));
  return ports.map((port) => ({
    name: ports.length === 1 ? name : `${name}:${port}`,
    path: `/api/v1/namespaces/${namespace}/pods/${name}:${port}/proxy`,
  }));
}

function portsOf(container: unknown): readonly number[] {
  const { ports = [] } = container as { ports?: { name?: string; containerPort?: number }[] }; // a part of Pod that nothing else reads
  return ports.flatMap(({ name = '', containerPort }) =>
    HTTP_PORTS.has(name) && containerPort !== undefined ? [containerPort] : [],
  );
}

async function askThroughServer(transport: Transport, name: string, path: string): Promise<ProcessAnswer> {
  return await answerOf(name, async (page) => await transport.text(questionOf(`${path}${page}`)));
}

async function askURL(url: string): Promise<ProcessAnswer> {
  const base = url.replace(/\/$/, '');
  return await answerOf(base, async (page) => {
    const answer = await fetch(`${base}${page}`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return await answer.text();
  });
}

async function answerOf(name: string, read: (page: string) => Promise<string>): Promise<ProcessAnswer> {
  try {
    const [readyz, metrics] = await Promise.all([read('/readyz?verbose'), read('/metrics')]);
    return { name, readyz, metrics };
  } catch (err) {
    const { message, cause } = err as Error; // of fetch, or ApiError
    return { name, error: cause instanceof Error && !(err instanceof ApiError) ? cause.message : message };
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

function questionOf(path: string): {
  method: 'GET';
  verb: 'get';
  address: { path: string; template: string; label: string };
  timeoutMs: number;
} {
  return { method: 'GET', verb: 'get', address: { path, template: path, label: 'status' }, timeoutMs: TIMEOUT_MS };
}

function nothingIfNotFound(err: unknown): undefined {
  if (ApiError.is(err, 'NotFound', 'NotServed')) return undefined;
  throw err;
}
