import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { explain } from '../../../pkg/controllers/machine/explain/explain.ts';
import { machines } from '../../../pkg/kube/client/resource.ts';
import type { CommandCluster } from '../command-cluster.ts';
import type { PrintLine } from '../terminal.ts';
import { NAMESPACE } from './objects.ts';

/** Prints what becomes of each machine while `work` is done. */
export async function showingMachines<T>(cluster: CommandCluster, out: PrintLine, work: () => Promise<T>): Promise<T> {
  const ended = new AbortController();
  const watching = show(cluster, out, ended.signal);
  try {
    return await work();
  } finally {
    ended.abort();
    await watching;
  }
}

async function show(cluster: CommandCluster, out: PrintLine, signal: AbortSignal): Promise<void> {
  const informer = cluster.informer(machines, { namespace: NAMESPACE });
  const shown = new Map<string, string>();
  informer.onChange((old, current) => {
    const { name } = (current ?? old)?.metadata ?? { name: '' };
    const line = current === undefined ? 'gone' : lineOf(current);
    if (shown.get(name) === line) return;
    shown.set(name, line);
    out(`  ${name}  ${line}`);
  });
  await informer.run(signal).catch(() => undefined);
}

function lineOf(machine: Machine): string {
  const { phase, message } = explain(machine, 0);
  return `${(phase === '' ? 'New' : phase).padEnd(12)} ${message}`;
}
