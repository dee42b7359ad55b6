import { setTimeout as sleep } from 'node:timers/promises';

import PQueue from 'p-queue';

import type { Bed } from './bed.ts';
import { patchSpec, machinesOf, MAIN, MANY, roll, scale, settled, timed } from './workload.ts';

/** Seconds for which nothing is asked for, or for which the provider has no capacity. */
const WHILE_S = 15;
const PODS = '/api/v1/namespaces/machinist/pods';

/** How a scenario ended: how long it took, and how many VMs had to be made and removed for it. */
interface Ended {
  readonly seconds: number;
  readonly created: number;
  readonly deleted: number;
}

/** Something that happens to a fleet. */
export interface Scenario {
  readonly name: string;
  /** What is measured, in one line. */
  readonly description: string;
  /** Machines that run before: none, or as many as are asked for. Whatever is to be done for that is not measured. */
  readonly from: 'none' | 'all';
  /** Machines that it is about. */
  readonly machines: (count: number) => number;
  readonly run: (bed: Bed, count: number) => Promise<Ended>;
  /** What is made ready beside the machines. */
  readonly prepare?: (bed: Bed, count: number) => Promise<void>;
}

const tenth = (count: number): number => Math.max(1, Math.round(count / 10));
const half = (count: number): number => Math.max(1, Math.round(count / 2));

/** In the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'create',
    description: 'from 0 to N machines',
    from: 'none',
    machines: (count) => count,
    run: async ({ api }, count) => ({ seconds: await scale(api, count), created: count, deleted: 0 }),
  },
  {
    name: 'idle',
    description: `N machines, and nothing happens for ${WHILE_S} s`,
    from: 'all',
    machines: (count) => count,
    run: async () => ({ seconds: await timed(() => sleep(1_000 * WHILE_S)), created: 0, deleted: 0 }),
  },
  {
    name: 'up',
    description: 'half as many again',
    from: 'all',
    machines: half,
    run: async ({ api }, count) => ({
      seconds: await scale(api, count + half(count)),
      created: half(count),
      deleted: 0,
    }),
  },
  {
    name: 'back',
    description: 'from half as many again to N',
    from: 'all',
    machines: half,
    prepare: async ({ api }, count) => void (await scale(api, count + half(count))),
    run: async ({ api }, count) => ({ seconds: await scale(api, count), created: 0, deleted: half(count) }),
  },
  {
    name: 'roll',
    description: 'N machines to another class at 10 %/10 %',
    from: 'all',
    machines: (count) => count,
    run: async ({ api }, count) => ({ seconds: await roll(api, count), created: count, deleted: count }),
  },
  {
    name: 'die',
    description: 'a tenth of the VMs vanishes; all are replaced',
    from: 'all',
    machines: tenth,
    run: async ({ api, cloud }, count) => {
      const dead = new Set<string>();
      const seconds = await timed(async () => {
        for (const { providerID } of (await cloud.vms()).slice(0, tenth(count))) {
          await cloud.vanish(providerID);
          dead.add(providerID);
        }
        while ((await machinesOf(api)).some(({ spec }) => dead.has(spec?.providerID ?? ''))) await sleep(200);
        await settled(api, MAIN, count);
      });
      return { seconds, created: dead.size, deleted: dead.size };
    },
  },
  {
    name: 'exhausted',
    description: `a tenth more is asked for, and the provider has no capacity for ${WHILE_S} s`,
    from: 'all',
    machines: tenth,
    run: async ({ api, cloud }, count) => {
      await cloud.setFaults([{ method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted' }]);
      const seconds = await timed(async () => {
        await patchSpec(api, MAIN, { replicas: count + tenth(count) });
        await sleep(1_000 * WHILE_S);
      });
      await cloud.setFaults([]);
      return { seconds, created: tenth(count), deleted: 0 };
    },
  },
  {
    name: 'zero',
    description: 'from N machines to 0',
    from: 'all',
    machines: (count) => count,
    run: async ({ api }, count) => ({ seconds: await scale(api, 0), created: 0, deleted: count }),
  },
  {
    name: 'drain',
    description: 'from N machines with a pod each to 0',
    from: 'all',
    machines: (count) => count,
    prepare: addPods,
    run: async ({ api }, count) => ({ seconds: await scale(api, 0), created: 0, deleted: count }),
  },
  {
    name: 'many',
    description: `from 0 to N machines of ${MANY.length} MachineDeployments, and back`,
    from: 'none',
    machines: (count) => MANY.length * Math.max(1, Math.round(count / MANY.length)),
    run: async ({ api }, count) => {
      const each = Math.max(1, Math.round(count / MANY.length));
      const all = (replicas: number) => async (): Promise<void> => {
        await Promise.all(MANY.map((name) => scale(api, replicas, name)));
      };
      const seconds = (await timed(all(each))) + (await timed(all(0)));
      return { seconds, created: MANY.length * each, deleted: MANY.length * each };
    },
  },
];

/** A pod on each Node, without a kubelet: the driver ends it when it is evicted. */
async function addPods({ api }: Bed): Promise<void> {
  await api.request('/api/v1/namespaces/machinist/serviceaccounts', {
    method: 'POST',
    body: { metadata: { name: 'default' } },
  });
  const queue = new PQueue({ concurrency: 16 });
  const containers = [{ name: 'c', image: 'registry.example/c:1' }];
  await queue.addAll(
    (await machinesOf(api)).map(({ metadata: { name, labels } }) => async () => {
      await api.send('POST', PODS, {
        metadata: { generateName: `${name}-` },
        spec: { nodeName: labels?.['node'], containers },
      });
    }),
  );
}
