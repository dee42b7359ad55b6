import { describe, expect, test } from '@jest/globals';

import type { Pod } from '../../pkg/apis/wire.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { eventually } from '../expect/eventually.ts';
import { running } from './fleet.ts';
import type { Installation } from './installation.ts';
import { machine, NAMESPACE } from './manifests.ts';
import { onOneInstallation } from './scenario.ts';

const scenario = onOneInstallation();

/** A refused eviction is repeated after 20 s. */
const DRAINED = '--timeout=120s';
const LATER = { timeoutMs: 60_000, intervalMs: 200 };

describe('machines whose pods are guarded by budgets', () => {
  test(
    'one that allows an eviction at a time is obeyed; one that allows none is named until the deletion is forced',
    scenario(async (installation) => {
      const { kubectl } = installation;
      await installation.apply(machine('web'), machine('solo'), machine('spare'));
      await running(installation, ['solo', 'spare', 'web']);
      await installation.apply(pod('web-0', 'web', 'web'), pod('web-1', 'web', 'web'), pod('solo-0', 'solo', 'solo'));
      await kubectl('wait', 'pods', '--all', '--for=condition=Ready', '--timeout=60s');
      await installation.apply(budget('web', 1), budget('solo', 1));
      await judged(installation);
      const stop = new AbortController();
      using _stop = { [Symbol.dispose]: () => stop.abort() };

      await kubectl('delete', 'machines', 'web', 'solo', '--wait=false');
      // A pod that came in the other's place at once would leave nothing to wait for.
      await says(installation, 'web', 'PodDisruptionBudget web currently allows no eviction');
      const replaced = replaceWebPods(installation, stop.signal);
      await says(installation, 'solo', 'PodDisruptionBudget solo never allows an eviction');
      const guarded = await podsOf(installation, 'solo');
      await kubectl('label', 'machine', 'solo', 'force-deletion=true');
      await kubectl('wait', 'machine/solo', '--for=delete', DRAINED);
      await kubectl('wait', 'machine/web', '--for=delete', DRAINED);
      await eventually(async () => {
        const nodes = (await podsOf(installation, 'web')).map(({ spec }) => spec?.nodeName);
        expect(nodes).toEqual(['spare', 'spare']);
      }, LATER);
      stop.abort();
      const fewest = await replaced;

      expect(fewest).toBe(1);
      expect(guarded.map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined]);
      const web = await eventsWith(installation, 'web', ['DrainBlocked', 'Drained', 'VMDeleted']);
      expect(web.map(({ reason }) => reason)).not.toContain('DrainForced');
      expect(web.find(({ reason }) => reason === 'DrainBlocked')?.message).toMatch(
        /^Waiting for [12] pods?: machinist\/web-[01] \(PodDisruptionBudget web currently allows no eviction\)/,
      );
      await eventsWith(installation, 'solo', ['DrainBlocked', 'DrainForced', 'Drained', 'VMDeleted']);
      await kubectl('delete', 'poddisruptionbudgets', '--all');
      await kubectl('delete', 'pods', '--all', DRAINED);
    }),
    300_000,
  );
});

function pod(name: string, app: string, nodeName: string) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE, labels: { app } },
    spec: { nodeName, terminationGracePeriodSeconds: 10, containers: [{ name: 'main', image: 'example.org/main' }] },
  };
}

function budget(app: string, minAvailable: number) {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: app, namespace: NAMESPACE },
    spec: { minAvailable, selector: { matchLabels: { app } } },
  };
}

async function judged({ kubectl }: Installation): Promise<void> {
  await eventually(async () => {
    const path = 'jsonpath={range .items[*]}{.metadata.name}={.status.disruptionsAllowed} {end}';
    expect((await kubectl('get', 'poddisruptionbudgets', '-o', path)).trim()).toBe('solo=0 web=1');
  }, LATER);
}

async function says({ kubectl }: Installation, name: string, text: string): Promise<void> {
  await eventually(async () => expect(await kubectl('describe', 'machine', name)).toContain(text), LATER);
}

async function podsOf({ kubectl }: Installation, app: string): Promise<readonly Pod[]> {
  const text = await kubectl('get', 'pods', '-l', `app=${app}`, '-o', 'json');
  return (JSON.parse(text) as { items: Pod[] }).items; // a PodList
}

/** Plays the pods' controller and the scheduler: for a pod that leaves, another one comes. Resolves with the fewest that were ready. */
async function replaceWebPods(installation: Installation, signal: AbortSignal): Promise<number> {
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
async function eventsWith(
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
