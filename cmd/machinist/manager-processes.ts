import type { Pod } from '../../pkg/apis/wire.ts';
import type { WorkInProgress } from '../../pkg/health/work-in-progress.ts';
import { pods } from '../../pkg/kube/client/resource.ts';
import type { Transport } from '../../pkg/kube/client/transport.ts';
import type { CommandCluster } from './command-cluster.ts';
import type { ManagerOptions } from './options.ts';

/** Names of the ports of metrics and probes. */
const HTTP_PORTS: ReadonlySet<string> = new Set(['http', 'machine-http']);

/** Labels of the pods of the manager, as the layouts and the chart set them. */
export const MANAGER_SELECTOR = 'app=machinist';

/** A process of the manager, as it is reached. */
export interface ManagerProcess {
  /** A pod, with its port where it has several, or a URL. */
  readonly name: string;
  /** The page at a path such as `/metrics`. Rejects with an error in words when there is no answer within the time. */
  readonly read: (page: string, timeoutMs: number) => Promise<string>;
}

/** The processes at URLs; without any, the pods of the manager in its namespace, through the proxy of the API server. Throws ApiError. */
export async function managerProcesses(
  { reader, namespace: own, transport }: CommandCluster,
  { url, managerNamespace = '' }: ManagerOptions,
  labelSelector: string = MANAGER_SELECTOR,
): Promise<readonly ManagerProcess[]> {
  if (url.length > 0) return url.map(processAt);
  const namespace = managerNamespace === '' ? own : managerNamespace;
  const { items } = await reader.list(pods, { namespace, labelSelector });
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .flatMap((pod) => processesIn(pod, transport));
}

/** What a process does about single machines; undefined: it does not answer, or nothing that is known here. */
export async function workOf(
  { read }: Pick<ManagerProcess, 'read'>,
  timeoutMs: number,
): Promise<WorkInProgress | undefined> {
  try {
    return JSON.parse(await read('/work', timeoutMs)) as WorkInProgress;
  } catch {
    return undefined;
  }
}

function processesIn({ metadata: { name, namespace = '' }, spec }: Pod, transport: Transport): ManagerProcess[] {
  const ports = (spec?.containers ?? []).flatMap((container) => portsOf(container));
  return ports.map((port) => ({
    name: ports.length === 1 ? name : `${name}:${port}`,
    read: async (page, timeoutMs) => {
      const path = `/api/v1/namespaces/${namespace}/pods/${name}:${port}/proxy${page}`;
      const address = { path, template: path, label: 'pods/proxy' };
      return await transport.text({ method: 'GET', verb: 'get', address, timeoutMs });
    },
  }));
}

function portsOf(container: unknown): readonly number[] {
  const { ports = [] } = container as { ports?: { name?: string; containerPort?: number }[] }; // a part of Pod that nothing else reads
  return ports.flatMap(({ name = '', containerPort }) =>
    HTTP_PORTS.has(name) && containerPort !== undefined ? [containerPort] : [],
  );
}

/** A process that runs elsewhere. */
function processAt(url: string): ManagerProcess {
  const base = url.replace(/\/$/, '');
  return {
    name: base,
    read: async (page, timeoutMs) => {
      try {
        const answer = await fetch(`${base}${page}`, { signal: AbortSignal.timeout(timeoutMs) });
        return await answer.text();
      } catch (err) {
        const { message, cause } = err as Error; // of fetch
        throw new Error(cause instanceof Error ? cause.message : message, { cause: err });
      }
    },
  };
}
