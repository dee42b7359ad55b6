import { expect } from '@jest/globals';

import type { Pod } from '../../pkg/apis/wire.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { eventually } from '../expect/eventually.ts';
import type { Installation } from './installation.ts';
import { NAMESPACE } from './manifests.ts';

const LATER = { timeoutMs: 120_000, intervalMs: 200 };

/** A pod of an application on this Node, which ends at once. */
export function pod(name: string, app: string, nodeName: string) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE, labels: { app } },
    spec: { nodeName, terminationGracePeriodSeconds: 10, containers: [{ name: 'main', image: 'example.org/main' }] },
  };
}

/** A PodDisruptionBudget of the pods of an application. */
export function budget(app: string, minAvailable: number) {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: app, namespace: NAMESPACE },
    spec: { minAvailable, selector: { matchLabels: { app } } },
  };
}

/** Waits until the budgets of `solo` and `web` count the pods. */
export async function judged({ kubectl }: Installation): Promise<void> {
  await eventually(async () => {
    const path = 'jsonpath={range .items[*]}{.metadata.name}={.status.disruptionsAllowed} {end}';
    expect((await kubectl('get', 'poddisruptionbudgets', '-o', path)).trim()).toBe('solo=0 web=1');
  }, LATER);
}

/** Waits until `kubectl describe machine` tells of this. */
export async function says({ kubectl }: Installation, name: string, text: string): Promise<void> {
  await eventually(async () => expect(await kubectl('describe', 'machine', name)).toContain(text), LATER);
}

/** The pods of an application. */
export async function podsOf({ kubectl }: Installation, app: string): Promise<readonly Pod[]> {
  const text = await kubectl('get', 'pods', '-l', `app=${app}`, '-o', 'json');
  return (JSON.parse(text) as { items: Pod[] }).items; // a PodList
}

/** Plays the pods' controller and the scheduler: for a pod that leaves, another one comes. Resolves with the fewest that were ready. */
export async function replaceWebPods(installation: Installation, signal: AbortSignal): Promise<number> {
  const clock = new SystemClock();
  let fewest = Number.POSITIVE_INFINITY;
  for (let serial = 2; !signal.aborted;) {
    const staying = (await podsOf(installation, 'web')).filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    );
    const ready = staying.filter(({ status }) =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    );
    fewest = Math.min(fewest, ready.length);
    if (staying.length < 2) await installation.apply(pod(`web-${serial++}`, 'web', 'spare'));
    await clock.sleep(200, signal).catch(() => undefined);
  }
  return fewest;
}

interface Told {
  readonly reason: string;
  readonly message: string;
}

/** The Events on a machine, once these are among them. */
export async function eventsWith(
  { kubectl }: Installation,
  name: string,
  reasons: readonly string[],
): Promise<readonly Told[]> {
  const selector = `--field-selector=involvedObject.kind=Machine,involvedObject.name=${name}`;
  return await eventually(async () => {
    const { items } = JSON.parse(await kubectl('get', 'events', selector, '-o', 'json')) as { items: Told[] }; // an EventList
    expect(items.map(({ reason }) => reason)).toEqual(expect.arrayContaining([...reasons]));
    return items;
  }, LATER);
}
