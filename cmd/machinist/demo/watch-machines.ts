import { setTimeout as sleep } from 'node:timers/promises';

import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { NODE_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import { explain } from '../../../pkg/controllers/machine/explain.ts';
import type { Reader } from '../../../pkg/kube/client.ts';
import { machines, nodes } from '../../../pkg/kube/resource.ts';
import { NAMESPACE } from './manifests.ts';

const POLL_MS = 400;

/** Machines and Nodes at one moment. */
export interface Snapshot {
  readonly machines: readonly Machine[];
  readonly nodes: readonly Node[];
}

/** Reads both live. */
export async function snapshot(reader: Reader, signal: AbortSignal): Promise<Snapshot> {
  const [machineList, nodeList] = await Promise.all([
    reader.list(machines, { namespace: NAMESPACE, signal }),
    reader.list(nodes, { signal }),
  ]);
  return { machines: machineList.items, nodes: nodeList.items };
}

/** Whether exactly `wanted` machines exist, all are Running, and their Nodes are Ready. */
export function areUp({ machines: all, nodes: known }: Snapshot, wanted: number): boolean {
  return (
    all.length === wanted &&
    all.every(
      (machine) =>
        machine.status?.currentStatus?.phase === 'Running' &&
        known.some((node) => node.metadata.name === machine.metadata.labels?.[NODE_LABEL] && isReady(node)),
    )
  );
}

/** Whether the Node's Ready condition is True. */
export function isReady(node: Node): boolean {
  return (node.status?.conditions ?? []).some((c) => c.type === 'Ready' && c.status === 'True');
}

/**
 * Tells of every machine whose phase or reason changes, until `isDone` says so. Rejects with the signal's reason.
 */
export async function follow(
  read: () => Promise<Snapshot>,
  isDone: (now: Snapshot) => boolean,
  tell: (machine: string, what: string) => void,
  signal: AbortSignal,
): Promise<Snapshot> {
  const told = new Map<string, string>();
  for (;;) {
    const now = await read();
    for (const [name, line] of linesOf(now)) {
      if (told.get(name) === line) continue;
      told.set(name, line);
      tell(name, line);
    }
    if (isDone(now)) return now;
    await sleep(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

function linesOf({ machines: all }: Snapshot): [string, string][] {
  // The sentence must not change by itself as time passes, so it is explained as of no particular moment.
  return all.map((machine) => {
    const { phase, message } = explain(machine, 0);
    return [machine.metadata.name, `${(phase === '' ? 'New' : phase).padEnd(16)} ${message}`];
  });
}
