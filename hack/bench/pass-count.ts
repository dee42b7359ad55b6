import { request } from 'undici';

/** Passes of the manager so far, by controller. */
export type PassCount = ReadonlyMap<string, number>;

/** Reads the manager's own counter. */
export async function countPasses(port: number): Promise<PassCount> {
  const { body } = await request(`http://127.0.0.1:${port}/metrics`);
  const counts = new Map<string, number>();
  for (const line of (await body.text()).split('\n')) {
    const [, controller, count] = /^machinist_reconcile_passes_total\{controller="([^"]+)".*\} (\d+)/.exec(line) ?? [];
    if (controller !== undefined) counts.set(controller, (counts.get(controller) ?? 0) + Number(count));
  }
  return counts;
}
