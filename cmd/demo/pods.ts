import { setTimeout as sleep } from 'node:timers/promises';

import type { Cluster } from '../../hack/autoscaler/cluster.ts';
import { schedule } from '../../hack/autoscaler/scheduler.ts';
import { WEB } from './manifests.ts';

const PAUSE_MS = 1_000;

/** Plays kube-scheduler until the returned function is called, which resolves when it binds no pod any more. */
export function playScheduler(cluster: Cluster, say: (line: string) => void): () => Promise<void> {
  const stop = new AbortController();
  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await schedule(cluster).catch((err: unknown) => say(`  scheduler  round failed: ${String(err)}`));
      await sleep(PAUSE_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  };
  const ended = run();
  return async () => {
    stop.abort();
    await ended;
  };
}

/** Resolves when so many pods of the demo's Deployment run. Rejects with the signal's reason. */
export async function untilRunning(cluster: Cluster, wanted: number, signal: AbortSignal): Promise<void> {
  const isOurs = ({ metadata, status }: Awaited<ReturnType<Cluster['pods']>>[number]): boolean =>
    metadata.labels?.['app'] === WEB.name && metadata.deletionTimestamp === undefined && status?.phase === 'Running';
  while ((await cluster.pods()).filter(isOurs).length < wanted) {
    signal.throwIfAborted();
    await sleep(PAUSE_MS);
  }
}
