import { request } from 'undici';

/** What the manager has counted so far. */
export interface ManagerCounts {
  /** Passes, by controller. */
  readonly passes: ReadonlyMap<string, number>;
  /** Keys that waited more than a second for a worker, by queue. */
  readonly lateKeys: ReadonlyMap<string, number>;
}

/** Reads the manager's own metrics. */
export async function readManager(port: number): Promise<ManagerCounts> {
  const { body } = await request(`http://127.0.0.1:${port}/metrics`);
  return countsIn(await body.text());
}

/** The counts in a text of metrics. */
export function countsIn(text: string): ManagerCounts {
  const [passes, lateKeys] = [new Map<string, number>(), new Map<string, number>()];
  for (const line of text.split('\n')) {
    const [, series = '', labels = '', value = ''] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? [];
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    const add = (to: Map<string, number>, key: string, count: number): unknown =>
      to.set(key, (to.get(key) ?? 0) + count);
    if (series === 'machinist_reconcile_passes_total') add(passes, label('controller'), Number(value));
    if (series === 'mcm_workqueue_queue_duration_seconds_count') add(lateKeys, label('name'), Number(value));
    if (series === 'mcm_workqueue_queue_duration_seconds_bucket' && label('le') === '1')
      add(lateKeys, label('name'), -Number(value));
  }
  return { passes, lateKeys };
}
